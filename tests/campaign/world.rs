//! A gateway in memory with its upstreams, and one fault after another put to it.

use std::collections::BTreeMap;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use server::Inside;
use simulator::{Detached, Play, Request};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};
use upstream::{BoxFuture, Connection, Dial, Network};

use crate::client::{self, Response};
use crate::fault::{Fault, Kind, Leave};
use crate::law::KEYS;
use crate::pipe::{Count, Pipe, Record, pair};
use crate::question::{PROTOCOLS, word};
use crate::said::Said;

/// A gateway with its upstreams.
pub(crate) struct World {
    inside: Inside,
    stage: Arc<Stage>,
    /// The sides of connections that the gateway holds.
    held: Count,
    ended: Ended,
}

/// What one fault came to.
pub(crate) struct Seen {
    /// What the client read.
    pub(crate) response: Option<Response>,
    /// Whether the client stayed to the end.
    pub(crate) stayed: bool,
    /// The upstream's last answer, as far as it came.
    pub(crate) said: Said,
    /// The requests that upstreams saw.
    pub(crate) asked: Vec<Request>,
    /// Whether the head of a request came through.
    pub(crate) was_asked: bool,
    /// The outcomes that were counted: of requests, and of streams by name.
    pub(crate) requests: f64,
    pub(crate) streams: BTreeMap<String, f64>,
    /// What is left over when all is over.
    pub(crate) left: Left,
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
    /// What it has written in answer to the last request.
    written: Record,
    held: Count,
    upstream: Detached,
}

/// The counters of a gateway.
#[derive(Clone, Default)]
struct Ended {
    requests: f64,
    panics: f64,
    streams: BTreeMap<String, f64>,
}

impl World {
    /// A gateway whose key for its upstreams stands in this file.
    pub(crate) fn new(key: &Path) -> Self {
        let held = Count::default();
        let stage = Arc::new_cyclic(|stage| {
            let stage = Weak::<Stage>::clone(stage);
            let behave = move |request: &Request| stage.upgrade().map_or_else(Play::new, |stage| stage.play(request));
            let upstream = Detached::new(behave);
            Stage { fault: Mutex::default(), written: Record::default(), held: held.clone(), upstream }
        });
        let network = Network { dialer: Arc::new(Dialer(Arc::clone(&stage))), ..Network::default() };
        let inside = Inside::new(&config(key), network).unwrap_or_else(|error| panic!("the configuration: {error}"));
        Self { inside, stage, held, ended: Ended::default() }
    }

    /// Lets one fault happen.
    pub(crate) async fn suffer(&mut self, fault: &Fault) -> Seen {
        set(&self.stage.fault, Some(fault.clone()));
        self.stage.written.take();
        let before = self.stage.upstream.requests().len();
        let exchange = timeout(FOR_EVER, self.exchange(fault)).await;
        let hung = exchange.is_err();
        let (response, stayed, was_asked) = exchange.unwrap_or_default();
        // Connections wait for a next request for a while; then nothing may be left.
        sleep(SETTLED).await;
        let permits = self.inside.in_flight();
        sleep(FORGOTTEN).await;
        let ended = Ended::of(&self.inside.metrics());
        let old = std::mem::replace(&mut self.ended, ended);
        Seen {
            response,
            stayed,
            said: Said::read(&self.stage.written.take()),
            asked: self.stage.upstream.requests().split_off(before),
            was_asked,
            requests: self.ended.requests - old.requests,
            streams: self.ended.streams_since(&old),
            left: Left {
                permits,
                connections: self.held.get(),
                tasks: Handle::current().metrics().num_alive_tasks(),
                panics: self.ended.panics - old.panics,
                hung,
            },
        }
    }

    /// What the client read, whether it stayed, and whether it asked.
    async fn exchange(&self, fault: &Fault) -> (Option<Response>, bool, bool) {
        let (ours, mut client) = pair(fault.pace.capacity, &self.held);
        let inside = self.inside.clone();
        tokio::spawn(async move { inside.serve(ours).await });
        let request = client::request(fault);
        let head = request.windows(4).position(|window| window == b"\r\n\r\n").map_or(0, |at| at + 4);
        let at_once = fault.pace.at_once;
        match fault.kind {
            Kind::Upload(spot, how) => {
                let end = spot.of(request.len());
                // The gateway may have answered and closed before.
                let _ = client::write(&mut client, &request[..end], at_once).await;
                let is_whole = end == request.len();
                (leave(client, how, at_once).await, is_whole && how == Leave::Still, end >= head)
            }
            Kind::Leaves(spot, how) => {
                let _ = client::write(&mut client, &request, at_once).await;
                client::read(&mut client, at_once, spot.of(LONG)).await;
                if how == Leave::Still {
                    // It reads nothing, and waits until the gateway has given up.
                    sleep(GIVEN_UP).await;
                }
                match how {
                    Leave::Reset => client.reset(),
                    Leave::HalfClose => client.half_close().await,
                    Leave::Close | Leave::Still => {}
                }
                (None, false, true)
            }
            Kind::Shutdown(spot) => {
                let _ = client::write(&mut client, &request, at_once).await;
                let enough = spot.of(LONG);
                let mut bytes = Vec::new();
                // What is held back does not come before the end of the process.
                let begun = timeout(SETTLED, client::read_into(&mut bytes, &mut client, at_once, enough)).await;
                self.inside.cut();
                if begun.is_err() || bytes.len() >= enough {
                    client::read_into(&mut bytes, &mut client, at_once, usize::MAX).await;
                }
                (Response::parse(&bytes), true, true)
            }
            Kind::Drain(spot) => {
                let _ = client::write(&mut client, &request, at_once).await;
                let mut bytes = client::read(&mut client, at_once, spot.of(LONG)).await;
                self.inside.leave();
                client::read_into(&mut bytes, &mut client, at_once, usize::MAX).await;
                (Response::parse(&bytes), true, true)
            }
            _ => {
                let _ = client::write(&mut client, &request, at_once).await;
                let bytes = client::read(&mut client, at_once, usize::MAX).await;
                (Response::parse(&bytes), true, true)
            }
        }
    }
}

/// Leaves; when the client only fell silent, what it is told.
async fn leave(mut client: Pipe, how: Leave, at_once: usize) -> Option<Response> {
    match how {
        Leave::Close => None,
        Leave::Reset => {
            client.reset();
            None
        }
        Leave::HalfClose => {
            client.half_close().await;
            Response::parse(&client::read(&mut client, at_once, usize::MAX).await)
        }
        Leave::Still => Response::parse(&client::read(&mut client, at_once, usize::MAX).await),
    }
}

impl Stage {
    fn play(&self, request: &Request) -> Play {
        let Some(fault) = get(&self.fault) else { return Play::new() };
        self.written.take();
        fault.play(request)
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
            let (stage, theirs) = (Arc::clone(&self.0), theirs.recorded(self.0.written.clone()));
            tokio::spawn(async move { stage.upstream.serve(theirs).await });
            Ok(Box::new(ours) as Box<dyn Connection>)
        })
    }
}

impl Ended {
    fn of(metrics: &str) -> Self {
        let mut ended = Self::default();
        for (name, value) in metrics.lines().filter_map(|line| line.rsplit_once(' ')) {
            let value = || value.parse::<f64>().unwrap_or_default();
            if name.starts_with("sluicegate_requests_total{") {
                ended.requests += value();
            } else if name.starts_with("sluicegate_streams_ended_total{") {
                let outcome = name.split("outcome=\"").nth(1).and_then(|rest| rest.split('"').next());
                *ended.streams.entry(outcome.unwrap_or(name).to_owned()).or_default() += value();
            } else if name == "sluicegate_panics_total" {
                ended.panics = value();
            }
        }
        ended
    }

    fn streams_since(&self, old: &Self) -> BTreeMap<String, f64> {
        let since = |(name, count): (&String, &f64)| (name.clone(), count - old.streams.get(name).unwrap_or(&0.0));
        self.streams.iter().map(since).filter(|(_, count)| *count > 0.0).collect()
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
             targets = [{{ upstream = \"{name}\", model = \"their-model\" }}]\n",
            number + 1,
        );
    }
    text
}

fn set<T>(place: &Mutex<T>, value: T) {
    *place.lock().unwrap_or_else(PoisonError::into_inner) = value;
}

fn get<T: Clone>(place: &Mutex<T>) -> T {
    place.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Longer than all limits of a request together.
const FOR_EVER: Duration = Duration::from_secs(3_600);
/// Everything is back after so long.
const SETTLED: Duration = Duration::from_secs(1);
/// So long idle connections to upstreams are kept at most.
const FORGOTTEN: Duration = Duration::from_secs(100);
/// A client that takes nothing has been given up after so long, and the stream behind it too.
const GIVEN_UP: Duration = Duration::from_secs(700);
/// About the length of an answer.
const LONG: usize = 4_000;
