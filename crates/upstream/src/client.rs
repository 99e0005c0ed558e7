//! The client of an upstream: host selection, the one retry, and failover.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::EngineError;
use tokio::time::{Instant, sleep};

use crate::budget::Budget;
use crate::connect::{Connector, Network};
use crate::credential::{Credential, CurrentCredential};
use crate::exchange::exchange;
use crate::failure::Failure;
use crate::health::HostHealth;
use crate::host::Host;
use crate::host_attempt::HostAttempt;
use crate::incoming::Incoming;
use crate::options::Options;
use crate::options_error::OptionsError;
use crate::origin::Origin;
use crate::outgoing::Outgoing;

/// The client of a model server. Clones share connections, circuit breakers and the retry budget.
///
/// ```
/// # use std::{error::Error, sync::Arc, time::Duration};
/// # use network::{WITH_RETRY, World, ok, post};
/// # use sluicegate_upstream::{Network, Options, Upstream};
/// # use tokio::time::Instant;
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> Result<(), Box<dyn Error>> {
///     let world = World::default(); // A network in memory.
///     world.serve("a.example", |_, peer| peer.always(ok(r#"{"status":"completed"}"#)));
///     let (resolver, dialer) = (Arc::new(world.clone()), Arc::new(world));
///     let network = Network { resolver, dialer, ..Network::default() };
///     let upstream = Upstream::with_network(&network, Options::new("http://a.example".parse()?))?;
///     let (request, deadline) = (post("{}"), Instant::now() + Duration::from_secs(600));
///     let response = upstream.send_with_retry(&request, deadline, WITH_RETRY).await?;
///     assert_eq!(response.status, 200);
///     assert_eq!(response.body.collect(1 << 20).await?, r#"{"status":"completed"}"#);
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Upstream {
    inner: Arc<Inner>,
}

struct Inner {
    credential: Arc<CurrentCredential>,
    /// In order of preference.
    hosts: Vec<Arc<Host>>,
    budget: Mutex<Budget>,
}

/// The lengths to which an upstream goes for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// True if the request may be sent a second time.
    pub may_retry: bool,
    /// True if the caller can turn to another upstream: then the request fails at once if the
    /// circuit breakers of all hosts are open.
    pub has_alternative: bool,
}

/// The result of one attempt, and the index of its host.
struct Attempted {
    outcome: Result<Incoming, Failure>,
    host: usize,
}

impl Upstream {
    /// Creates a client that uses the system's resolver and TCP.
    ///
    /// # Errors
    /// When an option is invalid.
    pub fn new(options: Options) -> Result<Self, OptionsError> {
        Self::with_network(&Network::default(), options)
    }

    /// Creates a client that uses the resolver and the dialer of `network`.
    ///
    /// # Errors
    /// When an option is invalid.
    pub fn with_network(network: &Network, options: Options) -> Result<Self, OptionsError> {
        options.check()?;
        let connector = Arc::new(Connector::new(
            network,
            options.trusted_roots()?,
            options.proxy.clone(),
        ));
        let mut origins = vec![Origin::new(&options.base_url, "base_url")?];
        if let Some(url) = &options.fallback_base_url {
            origins.push(Origin::new(url, "fallback_base_url")?);
        }
        let credential = Arc::new(CurrentCredential::new(options.credential.clone()));
        let host = |origin| {
            let (credential, connector) = (Arc::clone(&credential), Arc::clone(&connector));
            let event_memory = network.event_memory.clone();
            Arc::new(Host::new(
                origin,
                &options,
                credential,
                connector,
                event_memory,
            ))
        };
        let hosts = origins.into_iter().map(host).collect();
        let budget = Mutex::new(Budget::new());
        Ok(Self {
            inner: Arc::new(Inner {
                credential,
                hosts,
                budget,
            }),
        })
    }

    /// Replaces the API key, which requests carry from now on. It has to be for the same header. An
    /// upstream without a credential keeps none.
    pub fn replace_credential(&self, credential: Credential) {
        self.inner.credential.replace(credential);
    }

    /// The health of each host: of the base URL, and of the fallback if there is one.
    #[must_use]
    pub fn health(&self) -> Vec<HostHealth> {
        let hosts = self.inner.hosts.iter();
        hosts.map(|host| host.health()).collect()
    }

    /// Redacts the upstream's API key in a text that comes from the upstream: servers may echo
    /// their request headers. A prefix of the key at the end of the text is redacted too, because
    /// the text may have been truncated there. So is the key that the current one has replaced.
    pub fn redact(&self, text: &mut String) {
        self.inner.credential.redact(text);
    }

    /// Sends a request to the first host whose circuit breaker admits it, or to the first host if
    /// the caller has no alternative. Resolves with the head of the response, whatever its status.
    /// Dropping the future closes the connection.
    ///
    /// The request is retried once if `effort` allows it and a retry is safe: when the request did
    /// not reach the host, or the status means that the host has failed or is overloaded. The retry
    /// goes to the other host, if there is one. It needs time before `deadline`, a token of the
    /// retry budget, and a `Retry-After` of at most one second, if any.
    ///
    /// # Errors
    /// When there is no readable response, at `deadline` at the latest.
    pub async fn send_with_retry(
        &self,
        request: &Outgoing,
        deadline: Instant,
        effort: Effort,
    ) -> Result<Incoming, EngineError> {
        self.inner.budget(Budget::deposit);
        let first = self.inner.first(request, deadline, effort).await;
        let delay = first
            .delay()
            .filter(|delay| effort.may_retry && Instant::now() + *delay < deadline);
        let last = match delay {
            // Boxed, because retries are rare: unboxed, the future of every request would be
            // larger.
            Some(delay) => Box::pin(self.inner.retry(first, request, deadline, delay)).await,
            None => first,
        };
        last.outcome.map_err(|failure| failure.error)
    }
}

impl Inner {
    async fn first(&self, request: &Outgoing, deadline: Instant, effort: Effort) -> Attempted {
        let admitted = self
            .admit(0..self.hosts.len())
            .or_else(|| self.admit_always(effort));
        match admitted {
            Some((host, attempt)) => Attempted {
                outcome: exchange(attempt, request, deadline).await,
                host,
            },
            None => Attempted {
                outcome: Err(breaker_open()),
                host: 0,
            },
        }
    }

    /// Retries once, if a circuit breaker and the budget allow it; otherwise returns the first
    /// result.
    async fn retry(
        &self,
        first: Attempted,
        request: &Outgoing,
        deadline: Instant,
        delay: Duration,
    ) -> Attempted {
        let count = self.hosts.len();
        let others = first.host + 1..first.host + count;
        // A host that timed out is not retried.
        let itself = (!first.timed_out()).then_some(first.host);
        let order = others.map(|at| at % count).chain(itself);
        let Some((host, attempt)) = self.admit(order) else {
            return first;
        };
        if !self.budget(Budget::withdraw) {
            return first;
        }
        if let Ok(incoming) = first.outcome {
            incoming.body.drain();
        }
        sleep(delay).await;
        Attempted {
            outcome: exchange(attempt, request, deadline).await,
            host,
        }
    }

    /// Returns an attempt against the first host of `order` whose circuit breaker admits one.
    fn admit(&self, order: impl IntoIterator<Item = usize>) -> Option<(usize, HostAttempt)> {
        order
            .into_iter()
            .find_map(|at| Some((at, HostAttempt::admit(&self.hosts[at])?)))
    }

    /// Returns an attempt against the first host for a caller without an alternative.
    fn admit_always(&self, effort: Effort) -> Option<(usize, HostAttempt)> {
        let host = self.hosts.first().filter(|_| !effort.has_alternative)?;
        Some((0, HostAttempt::admit_always(host)))
    }

    fn budget<T>(&self, act: impl FnOnce(&mut Budget) -> T) -> T {
        // A panic cannot leave the budget in an inconsistent state.
        act(&mut self.budget.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Attempted {
    fn timed_out(&self) -> bool {
        matches!(
            &self.outcome,
            Err(Failure {
                error: EngineError::Timeout(_) | EngineError::Unanswered(_),
                ..
            })
        )
    }

    /// The delay before a retry, or `None` if the attempt must not be retried.
    fn delay(&self) -> Option<Duration> {
        match &self.outcome {
            Ok(incoming) if RETRIED_STATUSES.contains(&incoming.status.as_u16()) => {
                let delay = incoming.retry_delay.unwrap_or_default();
                (delay <= MAX_RETRY_DELAY).then_some(delay)
            }
            Ok(_) => None,
            Err(failure) => failure.may_retry.then_some(Duration::ZERO),
        }
    }
}

/// The failure of a request for which no host was tried, so that there is nothing to retry.
fn breaker_open() -> Failure {
    Failure::unanswered(EngineError::Unavailable("circuit breaker open".to_owned()))
}

/// Response statuses after which a request is retried.
const RETRIED_STATUSES: [u16; 4] = [500, 502, 503, 529];
/// The longest delay before a retry.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(1);
