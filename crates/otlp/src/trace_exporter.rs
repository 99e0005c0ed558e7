//! The task that sends the spans of finished requests to a collector, in batches.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use config::Config;
use config::traces::Semconv;
use policy::Policies;
use prost::Message as _;
use telemetry::requests::report::RequestReport;
use telemetry::requests::sampling::Sampling;
use telemetry::requests::trace_queue::TraceQueue;
use telemetry::traces::span_result::SpanResult;
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::collector::{Collector, scope};
use crate::fields::Fields as _;
use crate::messages::{Resource, ResourceSpans, ScopeSpans};
use crate::servers::Servers;
use crate::spans::SpanMaker;

/// An exporter of the spans of requests.
pub(crate) struct TraceExporter {
    queue: Arc<TraceQueue>,
    exit: Receiver<Arc<RequestReport>>,
    collector: Collector,
    resource: Resource,
    semconv: Semconv,
    /// The scheme of the URLs of clients.
    scheme: &'static str,
}

impl TraceExporter {
    pub(crate) fn new(config: &Config, collector: Collector, resource: Resource) -> Self {
        let settings = &config.traces;
        let sampling = Sampling::new(settings.ratio, settings.slow);
        let (queue, exit) = TraceQueue::new(sampling);
        Self {
            queue,
            exit,
            collector,
            resource,
            semconv: settings.semconv,
            scheme: if config.tls.is_some() {
                "https"
            } else {
                "http"
            },
        }
    }

    /// The queue for finished requests.
    pub(crate) fn queue(&self) -> Arc<TraceQueue> {
        Arc::clone(&self.queue)
    }

    /// Exports finished requests until it is stopped and the queue is empty. The upstreams of attempts are
    /// looked up in `policies`.
    pub(crate) async fn run(mut self, policies: Arc<Policies>, stopped: oneshot::Receiver<()>) {
        let mut stopped = pin!(stopped);
        let mut batch = Vec::with_capacity(MAX_BATCH);
        while self.receive(&mut batch, stopped.as_mut()).await {
            let maker = SpanMaker {
                semconv: self.semconv,
                scheme: self.scheme,
                servers: Servers::of(&policies.current()),
            };
            self.export(&maker, &batch).await;
            batch.clear();
        }
    }

    /// Waits for finished requests, and for more of them to accumulate, unless the exporter is stopped.
    /// Returns false at the end.
    async fn receive(
        &mut self,
        batch: &mut Vec<Arc<RequestReport>>,
        mut stopped: Pin<&mut oneshot::Receiver<()>>,
    ) -> bool {
        let is_running = !self.exit.is_closed();
        tokio::select! {
            _ = self.exit.recv_many(batch, MAX_BATCH) => {}
            _ = stopped.as_mut(), if is_running => self.exit.close(),
        }
        if batch.len() < MAX_BATCH && !self.exit.is_closed() {
            tokio::select! {
                () = sleep(ACCUMULATE) => {}
                _ = stopped => self.exit.close(),
            }
        }
        let more = std::iter::from_fn(|| self.exit.try_recv().ok());
        batch.extend(more.take(MAX_BATCH - batch.len()));
        !batch.is_empty()
    }

    /// Sends the spans of requests, and counts how many of them the collector has accepted.
    async fn export(&mut self, maker: &SpanMaker, reports: &[Arc<RequestReport>]) {
        let (body, count) = self.body(maker, reports);
        match self.collector.export(body).await {
            Some(rejected) => {
                let rejected = rejected.min(count);
                self.queue.count(SpanResult::Sent, count - rejected);
                self.queue.count(SpanResult::Rejected, rejected);
            }
            None => self.queue.count(SpanResult::Failed, count),
        }
    }

    /// The message `ExportTraceServiceRequest` with the spans of requests, which follow the scope in `ScopeSpans`,
    /// and their number.
    fn body(&self, maker: &SpanMaker, reports: &[Arc<RequestReport>]) -> (Bytes, u64) {
        let resource = ResourceSpans {
            resource: Some(self.resource.clone()),
            scope_spans: Vec::new(),
        };
        let scope = ScopeSpans {
            scope: Some(scope()),
            spans: Vec::new(),
        };
        let (mut body, mut count) = (Vec::new(), 0);
        body.message(1, |body| {
            body.extend(resource.encode_to_vec());
            body.message(2, |body| {
                body.extend(scope.encode_to_vec());
                count = reports.iter().map(|report| maker.add(report, body)).sum();
            });
        });
        (body.into(), count)
    }
}

/// The maximum number of requests in one export.
const MAX_BATCH: usize = 512;
/// The time for which requests accumulate.
pub(crate) const ACCUMULATE: Duration = Duration::from_millis(500);
