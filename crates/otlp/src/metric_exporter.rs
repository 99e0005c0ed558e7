//! The task that sends the metrics to a collector, at intervals.

use std::pin::pin;
use std::time::Duration;

use policy::clock;
use prost::Message as _;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::collector::{Collector, scope};
use crate::messages::Resource;
use crate::messages::metrics::{ExportMetricsServiceRequest, ResourceMetrics, ScopeMetrics};
use crate::metrics::{self, Period};

/// An exporter of metrics. They are cumulative, so that an export that is lost costs only the values of
/// its time.
pub(crate) struct MetricExporter {
    interval: Duration,
    collector: Collector,
    resource: Resource,
    /// The start of the process.
    start: Duration,
}

impl MetricExporter {
    pub(crate) fn new(interval: Duration, collector: Collector, resource: Resource) -> Self {
        Self {
            interval,
            collector,
            resource,
            start: clock::since_epoch(),
        }
    }

    /// Exports what `render` returns, which is the text of `/metrics`, after each interval and at the end.
    pub(crate) async fn run(
        mut self,
        render: impl Fn() -> String + Send,
        stopped: oneshot::Receiver<()>,
    ) {
        let mut stopped = pin!(stopped);
        loop {
            let is_last = timeout(self.interval, stopped.as_mut()).await.is_ok();
            let request = self.request(&render());
            self.collector.export(request.encode_to_vec().into()).await;
            if is_last {
                return;
            }
        }
    }

    fn request(&self, text: &str) -> ExportMetricsServiceRequest {
        let period = Period {
            start: self.start,
            end: clock::since_epoch(),
        };
        ExportMetricsServiceRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(self.resource.clone()),
                scope_metrics: vec![ScopeMetrics {
                    scope: Some(scope()),
                    metrics: metrics::read(text, period),
                }],
            }],
        }
    }
}
