//! The steps of `cargo xtask ci`.

use crate::outcome::Outcome;
use crate::times::Times;

/// One step of a tier.
pub(crate) struct Step {
    /// The name for `--only` and `--from`.
    pub(crate) name: &'static str,
    /// A one-line description for `--list`.
    pub(crate) about: &'static str,
    /// Runs the step. If it has several parts it measures them itself; otherwise `cargo xtask ci` measures it.
    pub(crate) run: Run,
}

/// The way a step is measured.
pub(crate) enum Run {
    /// As a single piece.
    Whole(Box<dyn Fn() -> Outcome>),
    /// As pieces that it measures itself.
    Pieces(fn(&mut Times) -> Outcome),
}

impl Step {
    pub(crate) fn new(name: &'static str, about: &'static str, run: impl Fn() -> Outcome + 'static) -> Self {
        Self { name, about, run: Run::Whole(Box::new(run)) }
    }
}
