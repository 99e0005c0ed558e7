//! Which requests are exported. That is decided at their end, when it is known how they went.

use std::time::Duration;

use super::report::{AttemptResult, RequestReport};
use crate::traces::context::{SpanId, TraceContext, TraceId, TraceParent};

/// Decides which requests are exported: all that failed or were slow, and a part of the others.
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    /// Traces whose random bits are less than this are not exported.
    threshold: u64,
    slow_ms: f64,
}

impl Sampling {
    /// Exports this part of the traces, from 0 to 1, and each request that took as long as `slow`.
    pub fn new(ratio: f64, slow: Duration) -> Self {
        let dropped = (1.0 - ratio.clamp(0.0, 1.0)) * RANDOM_VALUES;
        Self {
            threshold: dropped as u64,
            slow_ms: slow.as_secs_f64() * 1e3,
        }
    }

    /// Begins the trace of a request, or continues the client's, which then decides whether a request
    /// without a fault is exported. `random` returns random bits.
    pub fn begin(&self, parent: Option<TraceParent>, random: impl Fn() -> u128) -> TraceContext {
        let trace = parent.map_or_else(|| TraceId::new(random()), |parent| parent.trace);
        TraceContext {
            trace,
            parent: parent.map(|parent| parent.span),
            span: SpanId::new(random() as u64),
            is_sampled: match parent {
                Some(parent) => parent.is_sampled,
                None => self.draws(trace),
            },
        }
    }

    /// True if a finished request is exported.
    pub(super) fn keeps(&self, report: &RequestReport, trace: &TraceContext) -> bool {
        trace.is_sampled
            || report.took_ms >= self.slow_ms
            || report.outcome.is_failure()
            || has_failed_attempt(report)
    }

    /// Draws a trace by its id, as every other service with this ratio does:
    /// <https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/>.
    fn draws(&self, trace: TraceId) -> bool {
        trace.randomness() >= self.threshold
    }
}

fn has_failed_attempt(report: &RequestReport) -> bool {
    let mut attempts = report.attempts.iter();
    attempts.any(|attempt| attempt.result == AttemptResult::Failed)
}

/// The number of different values of the random bits of a trace's id.
const RANDOM_VALUES: f64 = (1_u64 << 56) as f64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;

    const SLOW: Duration = Duration::from_secs(1);

    fn trace(is_sampled: bool) -> TraceContext {
        let sampling = Sampling::new(0.0, SLOW);
        let parent = TraceParent {
            trace: TraceId::new(1),
            span: SpanId::new(2),
            is_sampled,
        };
        sampling.begin(Some(parent), || 3)
    }

    fn report(outcome: Outcome, took_ms: f64) -> RequestReport {
        RequestReport {
            outcome,
            took_ms,
            ..RequestReport::completed("req_1".to_owned())
        }
    }

    #[test]
    fn failures_and_slow_requests_are_always_kept() {
        let sampling = Sampling::new(0.0, SLOW);
        let keeps = |report: &RequestReport| sampling.keeps(report, &trace(false));
        assert!(!keeps(&report(Outcome::Completed, 999.0)));
        assert!(keeps(&report(Outcome::Completed, 1000.0)));
        assert!(!keeps(&report(Outcome::Refused, 1.0)));
        assert!(!keeps(&report(Outcome::ClientGone, 1.0)));
        assert!(keeps(&report(Outcome::UpstreamTruncated, 1.0)));
        assert!(keeps(&report(Outcome::Timeout, 1.0)));
    }

    #[test]
    fn a_trace_of_the_client_is_kept_as_the_client_keeps_it() {
        let sampling = Sampling::new(0.0, SLOW);
        let report = report(Outcome::Completed, 1.0);
        assert!(sampling.keeps(&report, &trace(true)));
        assert!(!sampling.keeps(&report, &trace(false)));
        let context = trace(true);
        assert_eq!(context.trace, TraceId::new(1));
        assert_eq!(context.parent, Some(SpanId::new(2)));
        assert_eq!(context.span, SpanId::new(3));
    }

    /// The last 56 bits decide, the greatest being kept: the example of a threshold of the
    /// specification is `th:c` for a quarter.
    #[test]
    fn the_ratio_is_drawn_by_the_trace_id() {
        let sampled = |ratio, bits: u128| {
            let sampling = Sampling::new(ratio, SLOW);
            sampling.begin(None, || bits).is_sampled
        };
        let threshold = 0xc0_0000_0000_0000;
        assert!(sampled(0.25, threshold));
        assert!(!sampled(0.25, threshold - 1));
        assert!(!sampled(0.25, (0xff << 56) + threshold - 1));
        assert!(sampled(1.0, 1));
        assert!(!sampled(0.0, u128::MAX));
    }
}
