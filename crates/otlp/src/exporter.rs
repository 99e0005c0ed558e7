//! The task that sends the spans of finished requests to a collector, in batches.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use config::traces::{Semconv, Traces};
use http::{HeaderMap, HeaderValue, Method};
use policy::{Policies, clock};
use prost::Message as _;
use telemetry::requests::report::RequestReport;
use telemetry::requests::sampling::Sampling;
use telemetry::requests::trace_queue::TraceQueue;
use telemetry::traces::span_result::SpanResult;
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use upstream::{Effort, Network, Outgoing, Upstream};

use crate::messages::{
    Copied, ExportTraceServiceRequest, ExportTraceServiceResponse, InstrumentationScope, KeyValue,
    Resource, ResourceSpans, ScopeSpans, Span,
};
use crate::servers::Servers;
use crate::spans::SpanMaker;

/// An exporter that is not running yet.
pub struct Exporter {
    queue: Arc<TraceQueue>,
    exit: Receiver<Arc<RequestReport>>,
    collector: Collector,
    semconv: Semconv,
}

/// An exporter that runs until it is told to finish.
#[derive(Debug)]
pub struct RunningExporter {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// The collector, and what every export to it has.
struct Collector {
    upstream: Upstream,
    /// The timeout for one export.
    timeout: Duration,
    resource: Resource,
    /// True if the last export failed: only changes are logged.
    is_failing: bool,
}

/// What a collector has done with an export.
#[derive(Debug, PartialEq, Eq)]
struct Accepted {
    rejected_spans: u64,
    message: String,
}

impl Exporter {
    /// Makes an exporter by its settings. `version` is that of the gateway.
    ///
    /// # Errors
    /// Returns all problems of the settings.
    pub fn new(settings: &Traces, network: &Network, version: &str) -> Result<Self, Vec<String>> {
        let upstream = Upstream::with_network(network, settings.options()?);
        let upstream = upstream.map_err(|error| vec![error.to_string()])?;
        let sampling = Sampling::new(settings.ratio, settings.slow);
        let (queue, exit) = TraceQueue::new(sampling);
        Ok(Self {
            queue,
            exit,
            collector: Collector {
                upstream,
                timeout: settings.timeout,
                resource: resource(version),
                is_failing: false,
            },
            semconv: settings.semconv,
        })
    }

    /// The queue for finished requests.
    pub fn queue(&self) -> Arc<TraceQueue> {
        Arc::clone(&self.queue)
    }

    /// Starts the task. The upstreams of attempts are looked up in `policies`.
    pub fn start(self, policies: Arc<Policies>) -> RunningExporter {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(self.run(policies, stopped));
        RunningExporter { stop, task }
    }

    async fn run(mut self, policies: Arc<Policies>, stopped: oneshot::Receiver<()>) {
        let mut stopped = pin!(stopped);
        let mut batch = Vec::with_capacity(MAX_BATCH);
        while self.receive(&mut batch, stopped.as_mut()).await {
            let maker = SpanMaker {
                semconv: self.semconv,
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

    /// Sends the spans of requests, and counts what became of them.
    async fn export(&mut self, maker: &SpanMaker, reports: &[Arc<RequestReport>]) {
        let mut spans = Vec::with_capacity(2 * reports.len());
        reports
            .iter()
            .for_each(|report| maker.add(report, &mut spans));
        let count = spans.len() as u64;
        let body = self.collector.body(spans);
        match self.collector.send(body).await {
            Ok(accepted) => {
                let rejected = accepted.rejected_spans.min(count);
                self.queue.count(SpanResult::Sent, count - rejected);
                self.queue.count(SpanResult::Rejected, rejected);
                if !accepted.message.is_empty() {
                    let message = &accepted.message;
                    tracing::warn!(rejected, message, "the collector of traces has a complaint");
                }
                if std::mem::take(&mut self.collector.is_failing) {
                    tracing::info!("traces are exported again");
                }
            }
            Err(cause) => {
                self.queue.count(SpanResult::Failed, count);
                if !std::mem::replace(&mut self.collector.is_failing, true) {
                    tracing::warn!(cause, "traces cannot be exported, and their spans are lost");
                }
            }
        }
    }
}

impl RunningExporter {
    /// Sends the spans of all finished requests, and ends the task; within five seconds, whatever the
    /// collector does.
    pub async fn finish(mut self) {
        // The task is gone only if it has panicked.
        let _ = self.stop.send(());
        if timeout(FLUSH_TIMEOUT, &mut self.task).await.is_err() {
            self.task.abort();
            tracing::warn!("the last spans were lost: the collector did not take them in time");
        }
    }
}

impl Collector {
    fn body(&self, spans: Vec<Span>) -> Bytes {
        let scope = InstrumentationScope {
            name: Bytes::from_static(SERVICE.as_bytes()),
            version: Bytes::new(),
        };
        let request = ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![ScopeSpans {
                    scope: Some(scope),
                    spans,
                }],
            }],
        };
        request.encode_to_vec().into()
    }

    /// Sends an export. It is sent a second time if the first one failed in a way that allows it.
    async fn send(&self, body: Bytes) -> Result<Accepted, String> {
        let outgoing = Outgoing {
            method: Method::POST,
            path: "/v1/traces".into(),
            content_type: HeaderValue::from_static("application/x-protobuf"),
            headers: HeaderMap::new(),
            body: body.into(),
            accept_stream: false,
            client: SERVICE.into(),
        };
        let effort = Effort {
            may_retry: true,
            // A collector that is gone is left alone for a while.
            has_alternative: true,
        };
        let exchange = async {
            let deadline = Instant::now() + self.timeout;
            let sent = self.upstream.send_with_retry(&outgoing, deadline, effort);
            let response = sent.await.map_err(|error| error.to_string())?;
            let status = response.status;
            let body = response.body.collect(MAX_RESPONSE).await;
            match status.is_success() {
                true => accepted(body.map_err(|error| error.to_string())?),
                false => Err(format!("status {status}")),
            }
        };
        let in_time = timeout(self.timeout, exchange).await;
        in_time.unwrap_or_else(|_| Err("no response in time".to_owned()))
    }
}

/// Reads the response to an export that was accepted.
fn accepted(body: Bytes) -> Result<Accepted, String> {
    let response = ExportTraceServiceResponse::decode(body)
        .map_err(|error| format!("the response is not of OTLP in protobuf: {error}"))?;
    let partial = response.partial_success.unwrap_or_default();
    Ok(Accepted {
        rejected_spans: u64::try_from(partial.rejected_spans).unwrap_or_default(),
        message: partial.error_message,
    })
}

/// The attributes of this process:
/// <https://opentelemetry.io/docs/specs/semconv/resource/service/>.
fn resource(version: &str) -> Resource {
    let instance = format!("{:032x}", clock::random_bits());
    Resource {
        attributes: vec![
            KeyValue::new("service.name", SERVICE),
            KeyValue::new("service.version", Copied(version)),
            KeyValue::new("service.instance.id", Copied(&instance)),
        ],
    }
}

const SERVICE: &str = "sluicegate";
/// The maximum number of requests in one export.
const MAX_BATCH: usize = 512;
/// The time for which requests accumulate.
const ACCUMULATE: Duration = Duration::from_millis(500);
/// The timeout for the exports that are left at the end.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum size of a response, in bytes.
const MAX_RESPONSE: usize = 64 << 10;

#[cfg(test)]
mod tests;
