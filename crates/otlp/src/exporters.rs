//! The tasks that export traces and metrics.

use std::sync::Arc;
use std::time::Duration;

use config::Config;
use policy::{Policies, clock};
use telemetry::requests::trace_queue::TraceQueue;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use upstream::Network;

use crate::collector::{Collector, resource};
use crate::metric_exporter::MetricExporter;
use crate::trace_exporter::TraceExporter;

/// The exporters of the signals for which there is a collector. They do not run yet.
pub struct Exporters {
    traces: Option<TraceExporter>,
    metrics: Option<MetricExporter>,
}

/// Exporters that run until [`finish`](Self::finish) is called.
#[derive(Debug)]
pub struct RunningExporters(Vec<Task>);

#[derive(Debug)]
struct Task {
    stop: oneshot::Sender<()>,
    handle: JoinHandle<()>,
}

impl Exporters {
    /// Makes the exporters by `[traces]` and `[metrics]`. `version` is the version of the gateway.
    ///
    /// # Errors
    /// Returns all problems of the settings.
    pub fn new(config: &Config, network: &Network, version: &str) -> Result<Self, Vec<String>> {
        let resource = resource(version, clock::random_bits());
        let Config {
            traces, metrics, ..
        } = config;
        let mut problems = Vec::new();
        let mut collector = |settings: config::collector::Collector<'_>| {
            settings.endpoint?;
            let collector = Collector::new(&settings, network);
            collector.map_err(|found| problems.extend(found)).ok()
        };
        let [for_traces, for_metrics] =
            [traces.collector(), metrics.collector()].map(&mut collector);
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self {
            traces: for_traces.map(|to| TraceExporter::new(config, to, resource.clone())),
            metrics: for_metrics.map(|to| MetricExporter::new(metrics.interval, to, resource)),
        })
    }

    /// The queue for finished requests, if traces are exported.
    pub fn queue(&self) -> Option<Arc<TraceQueue>> {
        self.traces.as_ref().map(TraceExporter::queue)
    }

    /// Starts the tasks. The upstreams of attempts are looked up in `policies`, and `render` returns the
    /// metrics as Prometheus gets them.
    pub fn start(
        self,
        policies: Arc<Policies>,
        render: impl Fn() -> String + Send + 'static,
    ) -> RunningExporters {
        let traces = self.traces.map(|exporter| {
            let (stop, stopped) = oneshot::channel();
            let handle = tokio::spawn(exporter.run(policies, stopped));
            Task { stop, handle }
        });
        let metrics = self.metrics.map(|exporter| {
            let (stop, stopped) = oneshot::channel();
            let handle = tokio::spawn(exporter.run(render, stopped));
            Task { stop, handle }
        });
        RunningExporters(traces.into_iter().chain(metrics).collect())
    }
}

impl RunningExporters {
    /// Sends the spans of all finished requests and the last metrics, and ends the tasks; within five
    /// seconds, whatever the collectors do.
    pub async fn finish(self) {
        let deadline = Instant::now() + FLUSH_TIMEOUT;
        let stopping = self.0.into_iter().map(|task| {
            // The task is gone only if it has panicked.
            let _ = task.stop.send(());
            task.handle
        });
        for mut handle in stopping.collect::<Vec<_>>() {
            if timeout_at(deadline, &mut handle).await.is_err() {
                handle.abort();
                tracing::warn!("a collector has not taken the last export in time");
            }
        }
    }
}

/// The timeout for the exports that are left at the end.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
