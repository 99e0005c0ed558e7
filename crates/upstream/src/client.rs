//! An upstream: its hosts, and when the second one is asked.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::EngineError;
use tokio::time::{Instant, sleep};

use crate::budget::Budget;
use crate::connect::Connector;
use crate::host::Host;
use crate::host_attempt::{Answer, HostAttempt};
use crate::origin::Origin;
use crate::{Failure, Incoming, Network, Options, OptionsError, Outgoing, Stage};

/// A model server. Clones share its connections, its breakers and its retry budget.
#[derive(Clone)]
pub struct Upstream {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    error_body: usize,
    /// Its key.
    key: Option<Box<str>>,
    /// In the order in which they are asked.
    hosts: Vec<Arc<Host>>,
    budget: Mutex<Budget>,
}

/// What one try came to, and which host it asked.
struct Attempted {
    outcome: Result<Answer, Failure>,
    host: usize,
}

impl Upstream {
    /// Asks over the network.
    ///
    /// # Errors
    /// When something in `options` cannot be.
    pub fn new(options: Options) -> Result<Self, OptionsError> {
        Self::over(&Network::default(), options)
    }

    /// Asks over another network than the system's.
    ///
    /// # Errors
    /// When something in `options` cannot be.
    pub fn over(network: &Network, options: Options) -> Result<Self, OptionsError> {
        options.check()?;
        let connector = Arc::new(Connector::new(network, options.trusted()?));
        let mut origins = vec![Origin::new(&options.base_url, "base_url")?];
        if let Some(url) = &options.fallback_base_url {
            origins.push(Origin::new(url, "fallback_base_url")?);
        }
        let host = |origin| Arc::new(Host::new(origin, &options, Arc::clone(&connector)));
        let hosts = origins.into_iter().map(host).collect();
        let budget = Mutex::new(Budget::new());
        let Options { name, error_body, credential, .. } = options;
        let key = credential.map(|credential| credential.key);
        Ok(Self { inner: Arc::new(Inner { name, error_body, key, hosts, budget }) })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// How much of the body of an error is worth reading, in bytes.
    #[must_use]
    pub fn error_body(&self) -> usize {
        self.inner.error_body
    }

    /// Takes the upstream's own key out of a text that it had a say in: servers repeat what they were shown. The text may
    /// have been cut in the middle of it.
    pub fn redact(&self, text: &mut String) {
        let Some(key) = &self.inner.key else { return };
        if text.contains(&**key) {
            *text = text.replace(&**key, REDACTED);
        }
        if let Some(begun) = (TELLING..key.len()).rev().find(|length| text.ends_with(&key[..*length])) {
            text.truncate(text.len() - begun);
            text.push_str(REDACTED);
        }
    }

    /// Whether no host of it would be asked at `now`.
    #[must_use]
    pub fn is_open(&self, now: Instant) -> bool {
        self.inner.hosts.iter().all(|host| host.is_open(now))
    }

    /// Asks once: the first host that its breaker lets be asked. Resolves when the head of the answer is there,
    /// whatever its status. Dropping the future closes the connection.
    ///
    /// # Errors
    /// When there is no answer that could be read.
    pub async fn send(&self, request: &Outgoing) -> Result<Incoming, Failure> {
        let one = self.inner.first(request, Instant::now() + FAR).await;
        one.outcome.map(|answer| answer.incoming)
    }

    /// Asks, and asks once more if `may_retry` and that can do no harm: when the request did not reach the host, or the
    /// host says by its status that it has failed or is overloaded. Then the other host is asked, if there is one. A
    /// retry needs time until `deadline`, a token of the budget, and a `Retry-After` of at most a second, if any.
    ///
    /// # Errors
    /// When there is no answer that could be read, until `deadline` at the latest.
    pub async fn ask(&self, request: &Outgoing, deadline: Instant, may_retry: bool) -> Result<Incoming, Failure> {
        self.inner.budget(Budget::deposit);
        let first = self.inner.first(request, deadline).await;
        let pause = first.pause().filter(|pause| may_retry && Instant::now() + *pause < deadline);
        let last = match pause {
            // Boxed, because it is rare: every request would have room for it.
            Some(pause) => Box::pin(self.inner.again(first, request, deadline, pause)).await,
            None => first,
        };
        last.outcome.map(|answer| answer.incoming)
    }
}

impl Inner {
    async fn first(&self, request: &Outgoing, deadline: Instant) -> Attempted {
        match self.admit(0..self.hosts.len()) {
            Some((host, leave)) => Attempted { outcome: leave.ask(request, deadline).await, host },
            None => Attempted { outcome: Err(left_alone()), host: 0 },
        }
    }

    /// The one retry, if a host and the budget let it be.
    async fn again(&self, first: Attempted, request: &Outgoing, deadline: Instant, pause: Duration) -> Attempted {
        let count = self.hosts.len();
        let others = first.host + 1..first.host + count;
        // Where nobody came to the door in time, nobody would come now.
        let itself = (!first.was_late()).then_some(first.host);
        let order = others.map(|at| at % count).chain(itself);
        let Some((host, leave)) = self.admit(order) else { return first };
        if !self.budget(Budget::withdraw) {
            return first;
        }
        if let Ok(answer) = first.outcome {
            answer.incoming.body.drain();
        }
        sleep(pause).await;
        Attempted { outcome: leave.ask(request, deadline).await, host }
    }

    fn admit(&self, order: impl IntoIterator<Item = usize>) -> Option<(usize, HostAttempt)> {
        order.into_iter().find_map(|at| Some((at, self.hosts[at].admit()?)))
    }

    fn budget<T>(&self, act: impl FnOnce(&mut Budget) -> T) -> T {
        // No panic leaves the budget half changed.
        act(&mut self.budget.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Attempted {
    fn was_late(&self) -> bool {
        matches!(&self.outcome, Err(Failure { error: EngineError::Timeout(_), .. }))
    }

    /// For how long to wait before it is repeated, if it may be repeated.
    fn pause(&self) -> Option<Duration> {
        match &self.outcome {
            Ok(answer) if RETRIED.contains(&answer.incoming.status.as_u16()) => {
                let pause = answer.pause.unwrap_or_default();
                (pause <= LONGEST_PAUSE).then_some(pause)
            }
            Ok(_) => None,
            Err(failure) => {
                let was_asked = failure.stage != Stage::Breaker;
                (was_asked && failure.may_fail_over).then_some(Duration::ZERO)
            }
        }
    }
}

fn left_alone() -> Failure {
    let error = EngineError::Unavailable("it has failed too often, and is left alone for a while".to_owned());
    Failure::unsent(Stage::Breaker, error)
}

/// Statuses after which a request is repeated.
const RETRIED: [u16; 4] = [500, 502, 503, 529];
/// The longest wait before a retry.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// A deadline for who has none; the limits of the upstream end everything long before.
const FAR: Duration = Duration::from_secs(24 * 60 * 60);
/// What stands in the place of a key.
const REDACTED: &str = "[key]";
/// So many characters of a key tell something of it.
const TELLING: usize = 4;
