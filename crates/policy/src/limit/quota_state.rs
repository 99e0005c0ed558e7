//! The state of the quotas that responses report.

use quota::{Refused, Remaining};

/// The state of the quotas when they admitted or refused a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct QuotaState {
    /// The remaining amounts of the quotas per minute that apply to the request.
    pub remaining: Remaining,
    /// True if the store of a leased quota does not answer, or is in quarantine.
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
