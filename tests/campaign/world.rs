//! A gateway in memory with its upstreams, and one fault after another put to it.

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
    stage: Arc<Stage>,
    /// The sides of connections that the gateway holds.
    held: Count,
    /// The metrics after the last fault.
    metrics: Metrics,
}

/// What one fault came to.
pub(crate) struct Seen {
    /// What the client sent and read.
    pub(crate) client: Client,
    /// Each request that the upstream saw, with its answer.
    pub(crate) asked: Vec<Asked>,
    /// What the metrics have more than before.
    pub(crate) counted: Counted,
    /// What is left over when all is over.
    pub(crate) left: Left,
}

impl Seen {
    /// The upstream's last answer, as far as it came.
    pub(crate) fn said(&self) -> &Said {
        self.asked.last().map_or(&NO_ANSWER, |asked| &asked.said)
    }
}

/// A request that an upstream saw.
pub(crate) struct Asked {
    pub(crate) request: Request,
    /// The answer, as far as it came.
    pub(crate) said: Said,
    /// What had been written to the client when the request came.
    pub(crate) written_before: Vec<u8>,
}

/// What should be nothing.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Left {
    pub(crate) permits: usize,
    pub(crate) connections: usize,
    pub(crate) tasks: usize,
    pub(crate) panics: f64,
    /// It took longer than every limit together.
    pub(crate) hung: bool,
}

/// Where the upstreams play.
struct Stage {
    fault: Mutex<Option<Fault>>,
    /// What is written to the client.
    to_client: Mutex<Tape>,
    /// Keep what is written to the gateway over each of its connections, in the order in which it opened them.
    recorders: Mutex<Vec<Recorder>>,
    /// The requests of this fault.
    asked: Mutex<Vec<Pending>>,
    held: Count,
    upstream: Detached,
}

/// A request whose answer may still be on its way.
#[derive(Clone)]
struct Pending {
    request: Request,
    answer: Tape,
    written_before: Vec<u8>,
}

impl World {
    /// A gateway whose key for its upstreams stands in this file.
    pub(crate) fn new(key: &Path) -> Self {
        let held = Count::default();
        let stage = Arc::new_cyclic(|stage| {
            let stage = Weak::<Stage>::clone(stage);
            let behave = move |request: &Request| stage.upgrade().map_or_else(Play::new, |stage| stage.play(request));
            let upstream = Detached::new(behave);
            Stage {
                fault: Mutex::default(),
                to_client: Mutex::default(),
                recorders: Mutex::default(),
                asked: Mutex::default(),
                held: held.clone(),
                upstream,
            }
        });
        let network = Network { dialer: Arc::new(Dialer(Arc::clone(&stage))), ..Network::default() };
        let inside =
            EmbeddedGateway::new(&config(key), network).unwrap_or_else(|error| panic!("the configuration: {error}"));
        Self { inside, stage, held, metrics: Metrics::default() }
    }

    /// Lets one fault happen.
    pub(crate) async fn suffer(&mut self, fault: &Fault) -> Seen {
        set(&self.stage.fault, Some(fault.clone()));
        set(&self.stage.asked, Vec::new());
        let exchange = timeout(FOR_EVER, self.exchange(fault)).await;
        let hung = exchange.is_err();
        // Connections wait for a next request for a while; then nothing may be left.
        sleep(SETTLED).await;
        let permits = self.inside.in_flight();
        sleep(FORGOTTEN).await;
        let metrics = Metrics::read(&self.inside.metrics());
        let old = std::mem::replace(&mut self.metrics, metrics);
        Seen {
            client: exchange.unwrap_or_default(),
            asked: get(&self.stage.asked).into_iter().map(Pending::ended).collect(),
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

    /// Lets a client come, as the fault has it.
    async fn exchange(&self, fault: &Fault) -> Client {
        let (ours, client) = pair(fault.pace.capacity, &self.held);
        let recorder = Recorder::default();
        set(&self.stage.to_client, recorder.next());
        let (inside, ours) = (self.inside.clone(), ours.recorded(recorder));
        tokio::spawn(async move { inside.serve(ours).await });
        visit(client, fault, &self.inside).await
    }
}

impl Stage {
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
    /// The request with all of its answer.
    fn ended(self) -> Asked {
        let Self { request, answer, written_before } = self;
        Asked { request, said: Said::read(&answer.written()), written_before }
    }
}

/// The network of a gateway in memory.
struct Dialer(Arc<Stage>);

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
            let (stage, theirs) = (Arc::clone(&self.0), theirs.recorded(self.0.recorder()));
            tokio::spawn(async move { stage.upstream.serve(theirs).await });
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

/// The answer of nobody.
static NO_ANSWER: Said = Said { status: 0, body: Vec::new(), is_whole: false, is_closed: false };
/// The name of each model at its upstream.
pub(crate) const THEIR_MODEL: &str = "their-model";
/// Longer than all limits of a request together.
const FOR_EVER: Duration = Duration::from_secs(3_600);
/// So long idle connections to upstreams are kept at most.
const FORGOTTEN: Duration = Duration::from_secs(100);
