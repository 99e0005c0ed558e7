//! A gateway in memory with its upstreams, against which one fault after another is run.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use server::EmbeddedGateway;
use simulator::{Detached, Play, Request};
use testkit::Config;
use testkit::requests::PROTOCOLS;
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};
use upstream::{BoxFuture, Connection, Dial, Network};

use crate::fault::{Fault, Kind};
use crate::metrics::{Counted, Metrics};
use crate::pipe::{Count, Recorder, Tape, pair};
use crate::upstream_response::UpstreamResponse;
use crate::visit::{Client, SETTLED, visit};

/// A gateway with its upstreams.
pub(crate) struct Harness {
    gateway: EmbeddedGateway,
    shared: Arc<Shared>,
    /// The connection sides that the gateway holds.
    held: Count,
    /// The metrics after the last fault.
    metrics: Metrics,
}

/// The observations of one fault.
pub(crate) struct Observed {
    /// The bytes that the client sent and read.
    pub(crate) client: Client,
    /// Each request that the upstream received, with its response.
    pub(crate) exchanges: Vec<Exchange>,
    /// The increments of the metrics.
    pub(crate) counted: Counted,
    /// The resources that remain in the end.
    pub(crate) leftovers: Leftovers,
}

impl Observed {
    /// The upstream's last response, as far as it was sent.
    pub(crate) fn last_response(&self) -> &UpstreamResponse {
        self.exchanges
            .last()
            .map_or(&NO_RESPONSE, |exchange| &exchange.response)
    }
}

/// A request that an upstream received, and its response.
pub(crate) struct Exchange {
    pub(crate) request: Request,
    /// The response, as far as it was sent.
    pub(crate) response: UpstreamResponse,
    /// The bytes that had been written to the client when the request arrived.
    pub(crate) written_before: Vec<u8>,
}

/// Resources that should all be released.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Leftovers {
    pub(crate) permits: usize,
    pub(crate) connections: usize,
    pub(crate) tasks: usize,
    pub(crate) panics: f64,
    /// True if it took longer than all timeouts together.
    pub(crate) hung: bool,
}

/// The state that the upstreams share.
struct Shared {
    fault: Mutex<Option<Fault>>,
    /// Records what is written to the client.
    to_client: Mutex<Tape>,
    /// Record what is written to the gateway over each of its connections, in the order in which it
    /// opened them.
    recorders: Mutex<Vec<Recorder>>,
    /// The requests of this fault.
    pending: Mutex<Vec<Pending>>,
    held: Count,
    upstream: Detached,
}

/// A request whose response may still be in progress.
#[derive(Clone)]
struct Pending {
    request: Request,
    response: Tape,
    written_before: Vec<u8>,
}

impl Harness {
    /// A gateway whose key for its upstreams is in this file.
    pub(crate) fn new(key: &Path) -> Self {
        let held = Count::default();
        let shared = Arc::new_cyclic(|shared| {
            let shared = Weak::<Shared>::clone(shared);
            let behave = move |request: &Request| {
                shared
                    .upgrade()
                    .map_or_else(Play::new, |shared| shared.play(request))
            };
            let upstream = Detached::new(behave);
            Shared {
                fault: Mutex::default(),
                to_client: Mutex::default(),
                recorders: Mutex::default(),
                pending: Mutex::default(),
                held: held.clone(),
                upstream,
            }
        });
        let network = Network {
            dialer: Arc::new(Dialer(Arc::clone(&shared))),
            ..Network::default()
        };
        let gateway = EmbeddedGateway::new(&config(key), network)
            .unwrap_or_else(|error| panic!("the configuration: {error}"));
        Self {
            gateway,
            shared,
            held,
            metrics: Metrics::default(),
        }
    }

    /// Runs one fault.
    pub(crate) async fn run_fault(&mut self, fault: &Fault) -> Observed {
        set(&self.shared.fault, Some(fault.clone()));
        set(&self.shared.pending, Vec::new());
        let exchange = timeout(MAX_DURATION, self.exchange(fault)).await;
        let hung = exchange.is_err();
        // Idle connections are kept for a while; then nothing may be left.
        sleep(SETTLED).await;
        let permits = self.gateway.in_flight();
        sleep(POOL_EXPIRY).await;
        let metrics = Metrics::read(&self.gateway.metrics());
        let old = std::mem::replace(&mut self.metrics, metrics);
        Observed {
            client: exchange.unwrap_or_default(),
            exchanges: get(&self.shared.pending)
                .into_iter()
                .map(Pending::ended)
                .collect(),
            counted: self.metrics.since(&old),
            leftovers: Leftovers {
                permits,
                connections: self.held.get(),
                tasks: Handle::current().metrics().num_alive_tasks(),
                panics: self.metrics.panics() - old.panics(),
                hung,
            },
        }
    }

    /// Runs the client's side of the fault.
    async fn exchange(&self, fault: &Fault) -> Client {
        let (ours, client) = pair(fault.pace.capacity, &self.held);
        let recorder = Recorder::default();
        set(&self.shared.to_client, recorder.next());
        let gateway = self.gateway.clone();
        tokio::spawn(async move { gateway.serve(ours.recorded(recorder)).await });
        visit(client, fault, &self.gateway).await
    }
}

impl Shared {
    fn play(&self, request: &Request) -> Play {
        let Some(fault) = get(&self.fault) else {
            return Play::new();
        };
        // Connections are numbered in the order in which they were opened.
        let response = lock(&self.recorders)[request.connection].next();
        let written_before = get(&self.to_client).written().bytes;
        lock(&self.pending).push(Pending {
            request: request.clone(),
            response,
            written_before,
        });
        fault.play(request)
    }

    /// A recorder for the next connection.
    fn recorder(&self) -> Recorder {
        let recorder = Recorder::default();
        lock(&self.recorders).push(recorder.clone());
        recorder
    }
}

impl Pending {
    /// The request with its complete response.
    fn ended(self) -> Exchange {
        let Self {
            request,
            response,
            written_before,
        } = self;
        Exchange {
            request,
            response: UpstreamResponse::read(&response.written()),
            written_before,
        }
    }
}

/// The network of a gateway in memory.
struct Dialer(Arc<Shared>);

impl Dial for Dialer {
    fn dial(&self, _: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Connection>>> {
        Box::pin(async {
            let fault = get(&self.0.fault);
            match fault.as_ref().map(|fault| &fault.kind) {
                None | Some(Kind::Refused) => return Err(io::ErrorKind::ConnectionRefused.into()),
                Some(Kind::Unreachable) => pending::<()>().await,
                Some(_) => {}
            }
            let capacity = fault.map_or(1, |fault| fault.pace.capacity);
            let (ours, theirs) = pair(capacity, &self.0.held);
            let (shared, theirs) = (Arc::clone(&self.0), theirs.recorded(self.0.recorder()));
            tokio::spawn(async move { shared.upstream.serve(theirs).await });
            Ok(Box::new(ours) as Box<dyn Connection>)
        })
    }
}

/// One upstream for each protocol, each at an address of its own.
fn config(key: &Path) -> String {
    let serve = |config: Config, (host, protocol)| {
        config.served(protocol, &format!("http://127.0.0.{host}:80/v1"), "")
    };
    (1..)
        .zip(PROTOCOLS)
        .fold(Config::new(LIMITS), serve)
        .text(key)
}

fn set<T>(place: &Mutex<T>, value: T) {
    *lock(place) = value;
}

fn get<T: Clone>(place: &Mutex<T>) -> T {
    lock(place).clone()
}

fn lock<T>(place: &Mutex<T>) -> MutexGuard<'_, T> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The response if no request was received.
static NO_RESPONSE: UpstreamResponse = UpstreamResponse {
    status: 0,
    body: Vec::new(),
    is_whole: false,
    is_closed: false,
};
/// Limits that differ from the defaults: a stream of nothing but comments is waited for as long as
/// a plain reply.
const LIMITS: &str = "write_stall = \"30s\"\nstream_timeout = \"600s\"";
/// Longer than all timeouts of a request together.
const MAX_DURATION: Duration = Duration::from_secs(3_600);
/// Longer than idle connections to upstreams are kept.
const POOL_EXPIRY: Duration = Duration::from_secs(100);
