//! The step `pages` of `cargo xtask ci`: checks the lists that name tests against the tests that
//! are run.

use crate::outcome::Outcome;
use crate::{faults, listed, servers, suite};

/// Checks `tests/FAULTS.md` and `tests/SERVERS.md`. That the tests pass is the result of the step
/// before.
pub(crate) fn check() -> Outcome {
    suite::build()?;
    let programs = listed::programs()?;
    faults::check(&programs)?;
    servers::check(&programs)
}
