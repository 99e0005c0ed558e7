//! The usage and the images that an upstream has reported, for answers that do not come to their
//! end.

use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::Usage;
use relay::Delivered;

/// The usage and the images of an answer that an upstream has reported so far. It outlives the
/// answer, which may fail or be dropped at any time.
#[derive(Debug, Default)]
pub struct Reported(Mutex<Report>);

/// The usage and the images of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The token usage, if it was reported.
    pub usage: Option<Usage>,
    /// The images.
    pub pictures: Delivered,
}

impl Reported {
    /// Replaces the usage, if it is known.
    pub fn set_usage(&self, usage: Option<Usage>) {
        if usage.is_some() {
            self.lock().usage = usage;
        }
    }

    /// Replaces the images.
    pub fn set_pictures(&self, pictures: Delivered) {
        self.lock().pictures = pictures;
    }

    /// Returns the report, and resets it.
    #[must_use]
    pub fn take(&self) -> Report {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Report> {
        // No step of a change panics halfway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
