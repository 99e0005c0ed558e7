//! A gateway in memory with its upstreams, against which one fault after another is run.

use std::future::pending;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use server::EmbeddedGateway;
use simulator::{Detached, Play, Protocol, Request};
use testkit::requests::{PROTOCOLS, protocol_name};
use testkit::{Config, UPSTREAM_MODEL};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};
use upstream::{BoxFuture, Connection, Dial, Network};

use crate::fault::{
    Fault, JSON_BODY, Kind, OTHER_VENDOR, Place, VENDOR, VENDORS, Vendors, either, other,
};
use crate::metrics::{Counted, Metrics};
use crate::pipe::{Count, Recorder, Tape, pair};
use crate::upstream_response::UpstreamResponse;
use crate::visit::{Client, ClientConnection, SETTLED};

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
    /// The observations of the request that ran at the same time.
    pub(crate) bystander: Option<Box<Self>>,
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
    /// The target that received it.
    pub(crate) place: Place,
    /// The response, as far as it was sent.
    pub(crate) response: UpstreamResponse,
    /// The bytes that had been written to the client when the request arrived.
    pub(crate) written_before: Vec<u8>,
}

impl Exchange {
    /// Returns true if the upstream closed an idle connection when it got the request.
    pub(crate) fn was_stale(&self) -> bool {
        self.response.status == 0 && self.request.nth_on_connection > 0
    }
}

/// Resources that should all be released.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Leftovers {
    pub(crate) permits: u64,
    pub(crate) connections: usize,
    pub(crate) tasks: usize,
    pub(crate) panics: f64,
    /// True if it took longer than all timeouts together.
    pub(crate) hung: bool,
}

/// The state that the upstreams share.
struct Shared {
    fault: Mutex<Option<Fault>>,
    /// Records the bytes that are written to the client.
    to_client: Mutex<Tape>,
    /// Record the bytes that are written to the gateway over each of its connections, in the order
    /// in which it opened them, with the target of each.
    recorders: Mutex<Vec<(Recorder, Place)>>,
    /// The requests of this fault.
    pending: Mutex<Vec<Pending>>,
    /// The requests of the bystander, which runs at the same time.
    of_bystander: Mutex<Vec<Pending>>,
    held: Count,
    upstream: Detached,
}

/// A request whose response may still be in progress.
#[derive(Clone)]
struct Pending {
    request: Request,
    place: Place,
    response: Tape,
    written_before: Vec<u8>,
}

impl Harness {
    /// A gateway with these vendors, whose key for its upstreams is in this file.
    pub(crate) fn new(key: &Path, vendors: Vendors) -> Self {
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
                of_bystander: Mutex::default(),
                held: held.clone(),
                upstream,
            }
        });
        let network = Network {
            dialer: Arc::new(Dialer(Arc::clone(&shared))),
            ..Network::default()
        };
        let gateway = EmbeddedGateway::new(&config(key, vendors), network)
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
        set(&self.shared.of_bystander, Vec::new());
        let both = timeout(MAX_DURATION, self.both(fault)).await;
        let hung = both.is_err();
        let (client, bystander) = both.unwrap_or_default();
        // The clock is paused: it advances when no task can run on.
        sleep(AT_ONCE).await;
        let is_busy = self.gateway.in_flight() > 0;
        if is_busy || !fault.is_hurried {
            sleep(SETTLED).await;
        }
        let permits = self.gateway.in_flight();
        let kept = self.kept(fault).await;
        let metrics = Metrics::read(&self.gateway.metrics());
        let old = std::mem::replace(&mut self.metrics, metrics);
        Observed {
            client,
            exchanges: ended(&self.shared.pending),
            bystander: bystander.map(|client| Box::new(self.bystander(client))),
            counted: self.metrics.since(&old),
            leftovers: Leftovers {
                permits,
                panics: self.metrics.panics() - old.panics(),
                hung,
                ..kept
            },
        }
    }

    /// The connections and tasks that are left when none is kept any more: idle connections are,
    /// for a while.
    async fn kept(&self, fault: &Fault) -> Leftovers {
        if fault.is_hurried {
            return Leftovers::default();
        }
        sleep(POOL_EXPIRY).await;
        Leftovers {
            connections: self.held.get(),
            tasks: Handle::current().metrics().num_alive_tasks(),
            ..Leftovers::default()
        }
    }

    /// Runs the clients of the fault and of its bystander at the same time.
    async fn both(&self, fault: &Fault) -> (Client, Option<Client>) {
        let recorder = Recorder::default();
        set(&self.shared.to_client, recorder.next());
        let connection = self.open(fault, recorder).await;
        let shared = connection.shared(fault);
        let bystander = async {
            let bystander = fault.bystander.as_deref()?;
            let connection = match shared {
                Some(connection) => connection,
                None => self.open(bystander, Recorder::default()).await,
            };
            Some(connection.visit(bystander, &self.gateway).await)
        };
        tokio::join!(connection.visit(fault, &self.gateway), bystander)
    }

    /// Opens a connection for a client.
    async fn open(&self, fault: &Fault, recorder: Recorder) -> ClientConnection {
        let (ours, client) = pair(fault.pace.capacity, &self.held);
        let gateway = self.gateway.clone();
        tokio::spawn(async move { gateway.serve(ours.recorded(recorder)).await });
        ClientConnection::open(client, fault).await
    }

    /// The observations of the request at the same time; it is counted with the other one.
    fn bystander(&self, client: Client) -> Observed {
        Observed {
            client,
            exchanges: ended(&self.shared.of_bystander),
            counted: Counted::default(),
            leftovers: Leftovers::default(),
            bystander: None,
        }
    }
}

impl Shared {
    fn play(&self, request: &Request) -> Play {
        let Some(fault) = get(&self.fault) else {
            return Play::new();
        };
        // Connections are numbered in the order in which they were opened.
        let (recorder, place) = lock(&self.recorders)[request.connection].clone();
        let pending = Pending {
            request: request.clone(),
            place,
            response: recorder.next(),
            written_before: get(&self.to_client).written().bytes,
        };
        match fault.bystander.as_deref().filter(|it| it.sent(request)) {
            Some(bystander) => {
                lock(&self.of_bystander).push(pending);
                bystander.play(request)
            }
            None => {
                lock(&self.pending).push(pending);
                fault.at(place).play(request)
            }
        }
    }

    /// A recorder for the next connection.
    fn recorder(&self, place: Place) -> Recorder {
        let recorder = Recorder::default();
        lock(&self.recorders).push((recorder.clone(), place));
        recorder
    }
}

impl Pending {
    /// The request with its complete response.
    fn ended(self) -> Exchange {
        let Self {
            request,
            place,
            response,
            written_before,
        } = self;
        Exchange {
            request,
            place,
            response: UpstreamResponse::read(&response.written()),
            written_before,
        }
    }
}

/// The network of a gateway in memory.
struct Dialer(Arc<Shared>);

impl Dial for Dialer {
    fn dial(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Connection>>> {
        let place = place(to);
        Box::pin(async move {
            let fault = get(&self.0.fault).map(|fault| fault.at(place));
            match fault.as_ref().map(|fault| &fault.kind) {
                None => return Err(io::ErrorKind::ConnectionRefused.into()),
                // Nothing happens to the others.
                Some(Kind::Refused) if place == Place::First => {
                    return Err(io::ErrorKind::ConnectionRefused.into());
                }
                Some(Kind::Unreachable) if place == Place::First => pending::<()>().await,
                Some(_) => {}
            }
            let capacity = fault.map_or(1, |fault| fault.pace.capacity);
            let (ours, theirs) = pair(capacity, &self.0.held);
            let theirs = theirs.recorded(self.0.recorder(place));
            let shared = Arc::clone(&self.0);
            tokio::spawn(async move { shared.upstream.serve(theirs).await });
            Ok(Box::new(ours) as Box<dyn Connection>)
        })
    }
}

/// Two upstreams for each protocol, each at an address of its own. Every other one is the second
/// target of models, and has a model of its own.
fn config(key: &Path, vendors: Vendors) -> String {
    let target = |name: &str| target(name, UPSTREAM_MODEL);
    let mut config = Config::new(&format!("{LIMITS}\njson_body = {JSON_BODY}"));
    for (host, protocol) in (1..).zip(PROTOCOLS) {
        let url = |host| format!("http://127.0.0.{host}:80/v1");
        let name = other(protocol);
        config = config
            .served(protocol, &url(host), "")
            .upstream(&name, protocol, &url(host + OTHERS), "")
            .model(&name, protocol, &format!("[{}]", target(&name)));
    }
    for (first, second) in pairs() {
        let targets = [protocol_name(first), &other(second)]
            .map(target)
            .join(", ");
        config = config.model(&either(first, second), first, &format!("[{targets}]"));
    }
    with_vendors(config, vendors).text(key)
}

/// Adds both vendors, each at an address of its own, a model of the first one, and a model of both.
fn with_vendors(mut config: Config, vendors: Vendors) -> Config {
    let places = [
        (Place::First, VENDOR, 1),
        (Place::Second, OTHER_VENDOR, 1 + OTHERS),
    ];
    let targets = places.map(|(place, name, _)| target(name, vendors.at(place).model));
    for (place, name, host) in places {
        let server = vendors.at(place);
        let (url, preset) = (
            format!("http://127.0.1.{host}:80/v1"),
            format!("preset = \"{}\"", server.preset),
        );
        config = config.upstream(name, server.protocol, &url, &preset);
    }
    let [first, both] =
        [&targets[..1], &targets].map(|targets| format!("[{}]", targets.join(", ")));
    config
        .model(VENDOR, Protocol::Chat, &first)
        .model(VENDORS, Protocol::Chat, &both)
}

/// A target of a model, as TOML.
fn target(upstream: &str, model: &str) -> String {
    format!("{{ upstream = \"{upstream}\", model = \"{model}\" }}")
}

/// The protocols of two targets of a model.
fn pairs() -> impl Iterator<Item = (Protocol, Protocol)> {
    let all = PROTOCOLS.into_iter();
    let pairs = all.flat_map(|first| PROTOCOLS.into_iter().map(move |second| (first, second)));
    pairs.filter(|(first, second)| (*first == Protocol::Images) == (*second == Protocol::Images))
}

/// The target with this address.
fn place(address: SocketAddr) -> Place {
    match address.ip() {
        IpAddr::V4(ip) if ip.octets()[3] > OTHERS => Place::Second,
        _ => Place::First,
    }
}

/// The requests with their complete responses.
fn ended(pending: &Mutex<Vec<Pending>>) -> Vec<Exchange> {
    get(pending).into_iter().map(Pending::ended).collect()
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
/// The distance between the addresses of both upstreams of a protocol.
const OTHERS: u8 = 4;
/// Limits that differ from the defaults: a stream of nothing but comments is waited for as long as
/// a plain reply.
const LIMITS: &str = "write_stall = \"30s\"\nstream_timeout = \"600s\"";
/// Longer than all timeouts of a request together.
const MAX_DURATION: Duration = Duration::from_secs(3_600);
/// The time between two faults if the second follows at once.
const AT_ONCE: Duration = Duration::from_millis(1);
/// Longer than idle connections to upstreams are kept.
const POOL_EXPIRY: Duration = Duration::from_secs(100);
