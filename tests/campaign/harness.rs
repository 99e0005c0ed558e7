//! A gateway in memory with its upstreams, against which one fault after another is run.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use server::EmbeddedGateway;
use simulator::{Detached, Play, Request};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};
use upstream::{BoxFuture, Connection, Dial, Network};

use crate::fault::{Fault, Kind};
use crate::law::KEYS;
use crate::metrics::{Counted, Metrics};
use crate::pipe::{Count, Recorder, Tape, pair};
use crate::question::{PROTOCOLS, word};
use crate::said::Said;
use crate::visit::{Client, SETTLED, visit};

/// A gateway with its upstreams.
pub(crate) struct World {
    inside: EmbeddedGateway,
    shared: Arc<Shared>,
    /// The connection sides that the gateway holds.
    held: Count,
    /// The metrics after the last fault.
    metrics: Metrics,
}

/// The observations of one fault.
pub(crate) struct Seen {
    /// The bytes that the client sent and read.
    pub(crate) client: Client,
    /// Each request that the upstream received, with its response.
    pub(crate) asked: Vec<Asked>,
    /// The increments of the metrics.
    pub(crate) counted: Counted,
    /// The resources that remain in the end.
    pub(crate) left: Left,
}

impl Seen {
    /// The upstream's last response, as far as it was sent.
    pub(crate) fn said(&self) -> &Said {
        self.asked.last().map_or(&NO_ANSWER, |asked| &asked.said)
    }
}

/// A request that an upstream received.
pub(crate) struct Asked {
    pub(crate) request: Request,
    /// The response, as far as it was sent.
    pub(crate) said: Said,
    /// The bytes that had been written to the client when the request arrived.
    pub(crate) written_before: Vec<u8>,
}

/// Resources that should all be released.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Left {
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
    /// Record what is written to the gateway over each of its connections, in the order in which it opened them.
    recorders: Mutex<Vec<Recorder>>,
    /// The requests of this fault.
    asked: Mutex<Vec<Pending>>,
    held: Count,
    upstream: Detached,
}

/// A request whose response may still be in progress.
#[derive(Clone)]
struct Pending {
    request: Request,
    answer: Tape,
    written_before: Vec<u8>,
}

impl World {
    /// A gateway whose key for its upstreams is in this file.
    pub(crate) fn new(key: &Path) -> Self {
        let held = Count::default();
        let shared = Arc::new_cyclic(|shared| {
            let shared = Weak::<Shared>::clone(shared);
            let behave =
                move |request: &Request| shared.upgrade().map_or_else(Play::new, |shared| shared.play(request));
            let upstream = Detached::new(behave);
            Shared {
                fault: Mutex::default(),
                to_client: Mutex::default(),
                recorders: Mutex::default(),
                asked: Mutex::default(),
                held: held.clone(),
                upstream,
            }
        });
        let network = Network { dialer: Arc::new(Dialer(Arc::clone(&shared))), ..Network::default() };
        let inside =
            EmbeddedGateway::new(&config(key), network).unwrap_or_else(|error| panic!("the configuration: {error}"));
        Self { inside, shared, held, metrics: Metrics::default() }
    }

    /// Runs one fault.
    pub(crate) async fn run_fault(&mut self, fault: &Fault) -> Seen {
        set(&self.shared.fault, Some(fault.clone()));
        set(&self.shared.asked, Vec::new());
        let exchange = timeout(MAX_DURATION, self.exchange(fault)).await;
        let hung = exchange.is_err();
        // Idle connections are kept for a while; then nothing may be left.
        sleep(SETTLED).await;
        let permits = self.inside.in_flight();
        sleep(POOL_EXPIRY).await;
        let metrics = Metrics::read(&self.inside.metrics());
        let old = std::mem::replace(&mut self.metrics, metrics);
        Seen {
            client: exchange.unwrap_or_default(),
            asked: get(&self.shared.asked).into_iter().map(Pending::ended).collect(),
            counted: self.metrics.since(&old),
            left: Left {
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
        let (inside, ours) = (self.inside.clone(), ours.recorded(recorder));
        tokio::spawn(async move { inside.serve(ours).await });
        visit(client, fault, &self.inside).await
    }
}

impl Shared {
    fn play(&self, request: &Request) -> Play {
        let Some(fault) = get(&self.fault) else { return Play::new() };
        // Connections are numbered in the order in which they were opened.
        let answer = lock(&self.recorders)[request.connection].next();
        let written_before = get(&self.to_client).written().bytes;
        lock(&self.asked).push(Pending { request: request.clone(), answer, written_before });
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
    fn ended(self) -> Asked {
        let Self { request, answer, written_before } = self;
        Asked { request, said: Said::read(&answer.written()), written_before }
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

fn config(key: &Path) -> String {
    let mut text = format!("{KEYS}\n[limits]\nwrite_stall = \"30s\"\n");
    for (number, protocol) in PROTOCOLS.into_iter().enumerate() {
        let name = word(protocol);
        let (family, protocols) = match name {
            "images" => ("images", r#"["images_generations", "images_edits"]"#),
            _ => ("text", r#"["responses", "chat", "messages"]"#),
        };
        text += &format!(
            "[[upstreams]]\nname = \"{name}\"\nprotocol = \"{name}\"\nbase_url = \"http://127.0.0.{}:80/v1\"\n\
             api_key = {{ file = {key:?} }}\n\
             [[models]]\nid = \"{name}\"\nfamily = \"{family}\"\nprotocols = {protocols}\nstring_input = true\n\
             targets = [{{ upstream = \"{name}\", model = \"{THEIR_MODEL}\" }}]\n",
            number + 1,
        );
    }
    text
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
static NO_ANSWER: Said = Said { status: 0, body: Vec::new(), is_whole: false, is_closed: false };
/// The name of each model at its upstream.
pub(crate) const THEIR_MODEL: &str = "their-model";
/// Longer than all timeouts of a request together.
const MAX_DURATION: Duration = Duration::from_secs(3_600);
/// Longer than idle connections to upstreams are kept.
const POOL_EXPIRY: Duration = Duration::from_secs(100);
