//! The state that all requests share.

use std::net::SocketAddr;
use std::sync::Arc;

use auth::Entry;
use config::{Config, Cors, Limits, WebSocket};
use engine::{ImageEngine, TextEngine};
use fetch::Fetcher;
use http::HeaderValue;
use policy::accounting::{Accounting, Admitted, JournalEntry};
use policy::lifecycle::Lifecycle;
use policy::limit::lease_client::LeaseClient;
use policy::limit::{AdmissionRequest, Decision, Limiter, Permit, Reserved};
use policy::prices::TargetPrices;
use policy::{Policies, Policy};
use telemetry::metrics::Metrics;
use telemetry::requests::history::RequestHistory;
use telemetry::requests::live::LiveRequests;
use telemetry::requests::report::{Admission, AppliedLimit};
use telemetry::requests::trace_queue::TraceQueue;
use tokio::time::Instant;

use crate::background::Background;
use crate::exchange::body::budget::Budget;
use crate::exchange::record::{Record, milliseconds};
use crate::exchange::refusal::Refusal;
use crate::long_work::LongWork;
use response_store::origins::ResponseOrigins;
use response_store::store::{ResponseStore, StoreFigures};

/// The state that all requests share.
pub struct GatewayState {
    /// The policy, which a reload replaces.
    pub policies: Arc<Policies>,
    /// The limits of the configuration.
    pub limits: Limits,
    /// The limits of concurrent requests, and the quotas.
    pub limiter: Arc<Limiter>,
    /// The store of keys and usage, if there is one.
    pub accounting: Option<Arc<Accounting>>,
    /// The settings of WebSockets.
    pub websocket: WebSocket,
    /// The memory for the bodies of all requests.
    pub budget: Budget,
    /// The memory for the conversations of all WebSockets.
    pub conversations: Budget,
    /// The embedded text engine, if it is loaded.
    pub text_engine: Option<Arc<dyn TextEngine>>,
    /// The embedded image engine, if it is loaded.
    pub image_engine: Option<Arc<dyn ImageEngine>>,
    pub(crate) fetcher: Fetcher,
    /// Permits for fetching images, in total and per key.
    pub(crate) fetches: Limiter,
    pub(crate) long_work: LongWork,
    /// The answers that later requests may refer to. `None` if none is kept.
    pub(crate) kept: Option<Arc<ResponseStore>>,
    /// The upstreams that keep responses, for models that allow it.
    pub(crate) origins: ResponseOrigins,
    /// The requests whose responses are made in the background.
    pub(crate) background: Arc<Background>,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The requests in flight.
    pub live: Arc<LiveRequests>,
    /// The most recent finished requests.
    pub history: Arc<RequestHistory>,
    /// The phase of the shutdown.
    pub lifecycle: Lifecycle,
    /// The origins of the web pages that may call the API.
    pub(crate) cors_origins: Vec<HeaderValue>,
    pub(crate) started: Instant,
}

/// The embedded engines that are loaded.
#[derive(Default)]
pub struct Engines {
    /// The text engine.
    pub text: Option<Arc<dyn TextEngine>>,
    /// The image engine.
    pub images: Option<Arc<dyn ImageEngine>>,
}

/// The parts of a gateway, from which its state is made.
pub struct Parts<'a> {
    /// The configuration, whose limits, image fetches and kept responses are used.
    pub config: &'a Config,
    /// The keys, models, limits and prices.
    pub policy: Policy,
    /// The embedded engines.
    pub engines: Engines,
    /// The addresses of the listeners, which no image is fetched from.
    pub addresses: &'a [SocketAddr],
    /// The client of the store that lends the quotas, if they are shared.
    pub lease_client: Option<Arc<LeaseClient>>,
    /// The store of keys and usage, if there is one.
    pub accounting: Option<Arc<Accounting>>,
    /// The queue of the exporter of traces, if there is one.
    pub traces: Option<Arc<TraceQueue>>,
}

/// An authenticated caller, and the state for serving it.
pub(crate) struct Caller<'a> {
    pub(crate) state: &'a Arc<GatewayState>,
    pub(crate) policy: &'a Arc<Policy>,
    pub(crate) key: &'a Entry,
    /// The record of the request, which is attached to the response.
    pub(crate) record: &'a mut Record,
    /// The time by which a plain reply has to be complete, and a stream has to have its first
    /// event.
    pub(crate) deadline: Instant,
}

impl Caller<'_> {
    /// Takes a permit for a request for `model` within all limits that apply to it. `reserve`
    /// estimates the usage of the request, if an estimate is needed.
    ///
    /// # Errors
    /// Returns 429 for the first limit that has no room, 401 if the key is revoked while the
    /// request waits, 403 if a budget applies and the model has no price, and 503 if the limits
    /// cannot be checked or the request cannot be journaled.
    pub(crate) async fn take_permit(
        &mut self,
        model: &str,
        reserve: impl FnOnce() -> Reserved,
    ) -> Result<(), Refusal> {
        let prices = self.prices(model)?;
        self.record
            .register(&self.state.live, &self.key.name, model);
        let applicant = AdmissionRequest {
            key: &self.key.name,
            model,
            quotas: &self.policy.quotas,
            prices: &prices,
            answer_tokens: self.state.limits.answer_tokens,
            is_journaled: self.state.accounting.is_some(),
        };
        let policies = &self.state.policies;
        let Decision { result, waited } = tokio::select! {
            biased;
            decision = self.state.limiter.admit(applicant, reserve) => decision,
            () = policies.revoked(self.key) => return Err(Refusal::invalid_key()),
        };
        if let Some(waited) = waited {
            self.record.queued = Some(waited);
            self.state.metrics.queued(waited);
            if !policies.current().keys.has(self.key) {
                return Err(Refusal::invalid_key());
            }
        }
        let mut admission = self.admission(model);
        admission.queued_ms = waited.map(milliseconds);
        let permit = match result {
            Ok(permit) => {
                admission.degraded = permit.quotas().is_degraded;
                admission.reserved_tokens = permit.most().tokens;
                self.record.admission = Some(admission);
                permit
            }
            Err(refused) => {
                self.state.metrics.limited(&refused);
                admission.set_refused(&refused);
                self.record.admission = Some(admission);
                self.record.refused = Some(Box::new((&refused).into()));
                return Err(Refusal::limit(&refused));
            }
        };
        self.record.targets.set_admitted();
        self.record.journal = self.journaled(model, &permit)?;
        if !permit.losses().is_empty() {
            self.record.connection.shutdown.set_losses(permit.losses());
        }
        self.record.permit = Some(permit);
        Ok(())
    }

    /// The limits that apply to a request for a model, for its report.
    fn admission(&self, model: &str) -> Box<Admission> {
        let quotas = self.policy.quotas.names(&self.key.name, model);
        let limits = quotas.map(|(name, is_per_key)| AppliedLimit {
            limit: name.to_owned(),
            key: is_per_key.then(|| Arc::clone(&self.key.name)),
        });
        Box::new(Admission {
            limits: limits.collect(),
            ..Admission::default()
        })
    }

    /// Returns the prices of a model, if it has any. A model without one is refused if a budget
    /// applies, because nothing is free by accident.
    fn prices(&self, model: &str) -> Result<TargetPrices, Refusal> {
        let Policy {
            catalog, routes, ..
        } = &**self.policy;
        let targets = catalog.find(model).map(|model| routes.possible(model));
        match self.policy.prices.of(model, targets.unwrap_or_default()) {
            Ok(prices) => Ok(prices),
            Err(_) => match self.policy.quotas.budgets(&self.key.name, model).next() {
                Some(_) => Err(Refusal::no_price(model)),
                None => Ok(TargetPrices::default()),
            },
        }
    }

    /// Journals the admission of the request, if there is a store of usage.
    fn journaled(
        &self,
        model: &str,
        permit: &Permit,
    ) -> Result<Option<Box<JournalEntry>>, Refusal> {
        let Some(accounting) = &self.state.accounting else {
            return Ok(None);
        };
        let request = Admitted {
            id: &self.record.id,
            key: &self.key.name,
            route: self.record.route,
            model,
        };
        accounting
            .opened(&request, permit)
            .map(|entry| Some(Box::new(entry)))
            .map_err(|error| Refusal::not_journaled(&error))
    }
}

impl<'a> Parts<'a> {
    /// The parts of a gateway without embedded engines, listeners and stores.
    pub fn new(config: &'a Config, policy: Policy) -> Self {
        Self {
            config,
            policy,
            engines: Engines::default(),
            addresses: &[],
            lease_client: None,
            accounting: None,
            traces: None,
        }
    }
}

/// The origins as requests have them. All origins of a checked configuration are valid headers.
fn origins(cors: &Cors) -> Vec<HeaderValue> {
    let origins = cors.origins.iter();
    origins
        .filter_map(|origin| HeaderValue::from_str(origin).ok())
        .collect()
}

impl GatewayState {
    /// Makes the state of a gateway from its parts.
    pub fn new(parts: Parts<'_>) -> Self {
        let Config {
            limits,
            fetch,
            responses,
            websocket,
            cors,
            ..
        } = parts.config;
        let mut limiter = Limiter::new(limits.concurrency, limits.concurrency_per_key);
        if let Some(lease_client) = parts.lease_client {
            limiter = limiter.with_lease_client(lease_client);
        }
        let limiter = Arc::new(limiter);
        let lifecycle = Lifecycle::new();
        let policies = Policies::new(parts.policy, Arc::clone(&limiter), lifecycle.clone());
        Self {
            budget: Budget::new(limits.body_memory.as_u64(), limits.body_memory_per_key()),
            conversations: Budget::new(
                websocket.keep_bytes.as_u64(),
                websocket.keep_bytes.as_u64() / 2,
            ),
            websocket: websocket.clone(),
            policies: Arc::new(policies),
            limiter,
            accounting: parts.accounting,
            text_engine: parts.engines.text,
            image_engine: parts.engines.images,
            fetcher: Fetcher::new(fetch.options(parts.addresses, limits.picture)),
            fetches: Limiter::new(fetch.at_once, fetch.at_once_per_key),
            long_work: LongWork::new(),
            kept: ResponseStore::new(responses).map(Arc::new),
            origins: ResponseOrigins::default(),
            background: Arc::default(),
            limits: limits.clone(),
            metrics: Arc::default(),
            live: Arc::default(),
            history: Arc::new(RequestHistory::new(parts.traces)),
            lifecycle,
            cors_origins: origins(cors),
            started: Instant::now(),
        }
    }

    /// Returns the time by which a plain reply has to be complete, and a stream has to have its
    /// first event.
    pub(crate) fn deadline(&self, record: &Record) -> Instant {
        record.started + self.limits.request_timeout
    }

    /// Ends a request in flight: its client gets an error, and its target is cancelled. Returns false
    /// if no such request is in flight.
    pub fn end_request(&self, id: &str) -> bool {
        let is_found = self.live.end(id);
        if is_found {
            self.lifecycle.wake_all();
        }
        is_found
    }

    /// Renders every metric in the Prometheus text format.
    pub fn render_metrics(&self) -> String {
        if let Some(kept) = &self.kept {
            let StoreFigures {
                responses,
                bytes,
                evicted,
            } = kept.figures();
            self.metrics.kept(responses, bytes, evicted);
        }
        if let Some(lease_client) = self.limiter.lease_client() {
            self.metrics.exchanged(lease_client.exchanges());
        }
        if let Some(accounting) = &self.accounting {
            self.metrics.usage_refused(accounting.refusals());
            self.metrics.journal_faults(accounting.journal_faults());
        }
        if let Some(traces) = self.history.traces() {
            self.metrics.spans(traces.counts());
        }
        self.metrics.waiting(self.limiter.waiting());
        self.metrics
            .render(self.limiter.taken(), self.started.elapsed())
    }
}
