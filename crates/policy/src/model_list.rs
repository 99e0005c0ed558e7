//! The list of models of an upstream, which is read in the background for the facts of its models.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use catalog::{Facts, upstream_list};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::time::{Instant, timeout_at};
use upstream::{Credential, Effort, Network, Options, OptionsError, Outgoing, Upstream};

use crate::refresh_schedule::RefreshSchedule;

/// The list of models of an upstream.
pub struct ModelList {
    /// A client of its own: a list that cannot be read opens no circuit breaker of requests.
    client: Upstream,
    /// The facts of its models, by their names there. Empty until it was read.
    facts: RwLock<BTreeMap<String, Facts>>,
    /// The times at which it is read.
    pub schedule: RefreshSchedule,
}

impl ModelList {
    /// The list at the base URL of `options`, which is to be read.
    pub(crate) fn new(network: &Network, options: Options) -> Result<Self, OptionsError> {
        Ok(Self {
            client: Upstream::with_network(network, options)?,
            facts: RwLock::default(),
            schedule: RefreshSchedule::new(INTERVAL, true),
        })
    }

    /// Replaces the API key with which it is read.
    pub(crate) fn replace_credential(&self, credential: Credential) {
        self.client.replace_credential(credential);
    }

    /// Returns the facts of a model, by its name at the upstream.
    pub(crate) fn facts(&self, name: &str) -> Option<Facts> {
        let facts = self.facts.read().unwrap_or_else(PoisonError::into_inner);
        facts.get(name).cloned()
    }

    /// Reads the list, and returns the number of models with facts. If it cannot be read, the previous
    /// facts stay.
    ///
    /// # Errors
    /// Returns the problem.
    pub async fn refresh(&self) -> Result<usize, String> {
        let deadline = Instant::now() + TIMEOUT;
        let read = timeout_at(deadline, self.read(deadline)).await;
        let read = read.unwrap_or_else(|_| Err(format!("no list within {} s", TIMEOUT.as_secs())));
        self.schedule.ended(read.is_ok());
        let facts = read?;
        let count = facts.len();
        *self.facts.write().unwrap_or_else(PoisonError::into_inner) = facts;
        Ok(count)
    }

    async fn read(&self, deadline: Instant) -> Result<BTreeMap<String, Facts>, String> {
        let once = Effort {
            may_retry: false,
            has_alternative: false,
        };
        let incoming = self
            .client
            .send_with_retry(&request(), deadline, once)
            .await;
        let incoming = incoming.map_err(|error| error.to_string())?;
        if incoming.status != StatusCode::OK {
            return Err(format!("status {}", incoming.status.as_u16()));
        }
        let body = incoming.body.collect(MAX_LENGTH).await;
        upstream_list::read(&body.map_err(|error| error.to_string())?)
    }
}

/// The request for the list.
fn request() -> Outgoing {
    Outgoing {
        method: Method::GET,
        path: "".into(),
        content_type: HeaderValue::from_static("application/json"),
        headers: HeaderMap::new(),
        body: Vec::new().into(),
        accept_stream: false,
        client: Arc::from("the gateway"),
        sockets: None,
    }
}

/// The time between two readings.
const INTERVAL: Duration = Duration::from_secs(60 * 60);
/// The timeout for one reading.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The longest list, in bytes. The list of OpenRouter has less than 1 MiB.
const MAX_LENGTH: usize = 8 << 20;
