//! The histogram of request durations. It has an atomic counter for each bucket. The histogram of
//! `prometheus_client` has a lock, which all threads would take for each request.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::histogram::exponential_buckets;

/// A histogram of durations from 1 ms to some 9 minutes.
#[derive(Clone, Debug, Default)]
pub(super) struct Durations(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    buckets: [AtomicU64; BUCKETS],
    nanoseconds: AtomicU64,
}

impl Durations {
    pub(super) fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = bounds().position(|bound| seconds <= bound);
        let counter = self.0.buckets.get(bucket.unwrap_or(BUCKETS - 1));
        if let Some(counter) = counter {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.0.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

impl EncodeMetric for Durations {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        let counts = self.0.buckets.iter();
        let buckets: Vec<_> = bounds()
            .zip(counts.map(|count| count.load(Ordering::Relaxed)))
            .collect();
        // The sum of the buckets rather than a counter of its own: both are read while requests
        // end, and have to agree.
        let count = buckets.iter().map(|(_, count)| count).sum();
        let seconds = Duration::from_nanos(self.0.nanoseconds.load(Ordering::Relaxed));
        encoder.encode_histogram::<NoLabelSet>(seconds.as_secs_f64(), count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

/// The upper bounds of the buckets, in seconds.
fn bounds() -> impl Iterator<Item = f64> {
    exponential_buckets(0.001, 2.0, BUCKETS as u16 - 1).chain([f64::INFINITY])
}

const BUCKETS: usize = 21;

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::metrics::histogram::Histogram;
    use prometheus_client::registry::{Metric, Registry};

    use super::*;

    fn rendered(metric: impl Metric) -> String {
        let mut registry = Registry::default();
        registry.register("took", "A time", metric);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn durations_render_like_the_library_histogram() {
        let durations = Durations::default();
        let histogram = Histogram::new(exponential_buckets(0.001, 2.0, 20));
        assert_eq!(rendered(durations.clone()), rendered(histogram.clone()));
        for micros in [
            0,
            500,
            1_000,
            1_001,
            2_000,
            15_500,
            524_288_000,
            524_289_000,
        ] {
            durations.observe(Duration::from_micros(micros));
            histogram.observe(Duration::from_micros(micros).as_secs_f64());
        }
        let text = rendered(durations);
        assert_eq!(text, rendered(histogram));
        for line in [
            "took_count 8",
            "took_bucket{le=\"0.001\"} 3",
            "took_bucket{le=\"0.002\"} 5",
            "took_bucket{le=\"0.016\"} 6",
            "took_bucket{le=\"524.288\"} 7",
            "took_bucket{le=\"+Inf\"} 8",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }
}
