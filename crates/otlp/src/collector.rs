//! The client of a collector, which sends exports to it.

use std::time::Duration;

use bytes::Bytes;
use config::collector::Collector as Settings;
use http::{HeaderMap, HeaderValue, Method};
use prost::Message as _;
use tokio::time::{Instant, timeout};
use upstream::{Effort, Network, OptionsError, Outgoing, Upstream};

use crate::messages::{
    Copied, ExportResponse, InstrumentationScope, KeyValue, PartialSuccess, Resource,
};

/// A collector, and whether it takes exports.
pub(crate) struct Collector {
    upstream: Upstream,
    /// `traces` or `metrics`.
    signal: &'static str,
    /// The timeout for one export.
    timeout: Duration,
    /// True if the last export failed: only changes are logged.
    is_failing: bool,
}

impl Collector {
    /// Makes a client by its settings.
    ///
    /// # Errors
    /// Returns all problems of the settings.
    pub(crate) fn new(settings: &Settings<'_>, network: &Network) -> Result<Self, Vec<String>> {
        let upstream = Upstream::with_network(network, settings.options()?);
        let signal = settings.section;
        Ok(Self {
            upstream: upstream
                .map_err(|error| vec![format!("{signal}: {}", of_endpoint(error))])?,
            signal,
            timeout: settings.timeout,
            is_failing: false,
        })
    }

    /// Sends an export, and returns the number of its spans or data points that were rejected; `None` if
    /// all of it was lost.
    pub(crate) async fn export(&mut self, body: Bytes) -> Option<u64> {
        let signal = self.signal;
        match self.send(body).await {
            Ok(partial) => {
                let rejected = u64::try_from(partial.rejected).unwrap_or_default();
                if !partial.error_message.is_empty() {
                    let reason = &partial.error_message;
                    tracing::warn!(rejected, reason, "the collector of {signal} has a warning");
                }
                if std::mem::take(&mut self.is_failing) {
                    tracing::info!("{signal} are exported again");
                }
                Some(rejected)
            }
            Err(cause) => {
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::warn!(cause, "{signal} cannot be exported");
                }
                None
            }
        }
    }

    /// Sends a body. It is sent a second time if the first one failed in a way that allows it.
    async fn send(&self, body: Bytes) -> Result<PartialSuccess, String> {
        let outgoing = Outgoing {
            method: Method::POST,
            path: format!("/v1/{}", self.signal).into(),
            content_type: HeaderValue::from_static("application/x-protobuf"),
            headers: HeaderMap::new(),
            body: body.into(),
            accept_stream: false,
            client: SERVICE.into(),
            sockets: None,
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

/// Returns the error of the options with the name that the URL of a collector has in the configuration.
fn of_endpoint(error: OptionsError) -> OptionsError {
    match error {
        OptionsError::Scheme(_, found) => OptionsError::Scheme(ENDPOINT, found),
        OptionsError::Part(_, found) => OptionsError::Part(ENDPOINT, found),
        OptionsError::Host(_) => OptionsError::Host(ENDPOINT),
        other => other,
    }
}

/// Reads the response to an export that was accepted.
fn accepted(body: Bytes) -> Result<PartialSuccess, String> {
    let response = ExportResponse::decode(body)
        .map_err(|error| format!("the response is not of OTLP in protobuf: {error}"))?;
    Ok(response.partial_success.unwrap_or_default())
}

/// The attributes of this process, whose version and instance are given:
/// <https://opentelemetry.io/docs/specs/semconv/resource/service/>.
pub(crate) fn resource(version: &str, instance: u128) -> Resource {
    Resource {
        attributes: vec![
            KeyValue::new("service.name", SERVICE),
            KeyValue::new("service.version", Copied(version)),
            KeyValue::new("service.instance.id", Copied(&format!("{instance:032x}"))),
        ],
    }
}

/// The gateway as the library that makes the spans and metrics.
pub(crate) fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: Bytes::from_static(SERVICE.as_bytes()),
        version: Bytes::new(),
    }
}

const SERVICE: &str = "sluicegate";
/// The setting that has the URL of a collector.
const ENDPOINT: &str = "endpoint";
/// The maximum size of a response, in bytes.
const MAX_RESPONSE: usize = 64 << 10;
