//! The steps of `cargo xtask ci`.

use crate::outcome::Outcome;
use crate::times::Times;

/// One step of a tier.
pub(crate) struct Step {
    /// The name for `--only` and `--from`.
    pub(crate) name: &'static str,
    /// A one-line description for `--list`.
    pub(crate) about: &'static str,
    /// Runs the step and measures it, as a whole or in parts.
    pub(crate) run: Box<dyn Fn(&mut Times) -> Outcome>,
}

impl Step {
    /// A step that is measured as a whole.
    pub(crate) fn new(name: &'static str, about: &'static str, run: impl Fn() -> Outcome + 'static) -> Self {
        Self { name, about, run: Box::new(move |times: &mut Times| times.step(name, &run)) }
    }
}
