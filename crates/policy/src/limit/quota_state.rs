//! The state of the quotas that responses report.

use quota::{Refused, Remaining};

/// The state of the quotas when they admitted or refused a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct QuotaState {
    /// The rest of the quotas per minute that apply to the request.
    pub remaining: Remaining,
    /// True if the store that lends a quota does not answer, or may have forgotten its loans.
    pub is_degraded: bool,
}

impl From<&Refused> for QuotaState {
    fn from(refused: &Refused) -> Self {
        Self {
            remaining: refused.remaining,
            is_degraded: refused.is_degraded,
        }
    }
}
