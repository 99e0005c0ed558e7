//! U8 at all offsets: a valid stream is reset after each of its bytes, or after every fourth of
//! them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use grammar::Judged as _;
use simulator::{Cut, Play, Protocol, Request, Simulator, honest};
use testkit::requests::{self, PROTOCOLS, TEXT_PROTOCOLS, ask, protocol_name};
use testkit::upstreams::{Lane, Outcome, honest_text};
use testkit::{Config, Connection, Gateway};

use super::is_whole_or_fails;
use crate::GATEWAY;

/// A stream that is reset after any byte fails, and the next one is served normally.
#[test]
fn u08_a_reset_behind_every_fourth_byte() {
    resets((first()..).step_by(APART));
}

/// The same for all bytes, which takes a minute of CPU time: `cargo xtask nightly --only
/// cuts` runs it.
#[test]
#[ignore = "takes a minute of CPU time: `cargo xtask nightly --only cuts`"]
fn a_reset_behind_each_byte() {
    resets(0..);
}

/// The first offset of the sample, which differs between the trees that are tested.
fn first() -> usize {
    let seed = std::env::var("SLUICEGATE_TEST_SEED").map_or(0, |seed| seed.parse::<u64>().unwrap());
    (seed % APART as u64) as usize
}

/// Resets streams of each protocol after so many of their bytes.
fn resets(behind: impl Iterator<Item = usize> + Clone + Send) {
    // To clients of the same protocol, and in turn to clients of the other protocols.
    let others = |upstream| {
        TEXT_PROTOCOLS
            .into_iter()
            .filter(|client| *client != upstream)
            .collect()
    };
    let relayed = PROTOCOLS.map(|upstream| Street::new("relayed", upstream, vec![upstream]));
    let translated =
        TEXT_PROTOCOLS.map(|upstream| Street::new("translated", upstream, others(upstream)));
    let streets: Vec<_> = relayed.into_iter().chain(translated).collect();
    let mut plan = Config::new("");
    for street in &streets {
        let name = &street.name;
        plan = plan.upstream(name, street.upstream, &street.simulator.base_url(), "");
        plan = plan.model(
            name,
            street.upstream,
            &format!(r#"[{{ upstream = "{name}", model = "m" }}]"#),
        );
    }
    let gateway = plan.start(GATEWAY);
    std::thread::scope(|scope| {
        for street in &streets {
            let (gateway, behind) = (&gateway, behind.clone());
            scope.spawn(move || street.walk(gateway, behind));
        }
    });
    gateway.await_quiet();
    assert_eq!(gateway.metric("sluicegate_panics_total"), 0.0);
}

/// An upstream that resets its streams at a chosen offset, and its clients.
struct Street {
    name: String,
    upstream: Protocol,
    clients: Vec<Protocol>,
    simulator: Simulator,
    state: Arc<State>,
    /// The upstream's complete stream.
    whole: String,
}

/// State that the upstream and the test share.
#[derive(Default)]
struct State {
    /// The number of bytes after which it resets.
    cut: AtomicUsize,
    /// The length of the last stream in bytes.
    length: AtomicUsize,
    /// The number of bytes after which the reply is complete.
    needed: AtomicUsize,
}

impl Street {
    fn new(name: &str, upstream: Protocol, clients: Vec<Protocol>) -> Self {
        let state = Arc::<State>::default();
        let shared = Arc::clone(&state);
        let simulator = Simulator::start(move |request| shared.play(request)).unwrap();
        let whole = honest_text(
            Lane {
                client: clients[0],
                upstream,
            },
            true,
            ASKED,
        );
        Self {
            name: format!("{name}-{}", protocol_name(upstream)),
            upstream,
            clients,
            simulator,
            state,
            whole,
        }
    }

    /// Resets the stream at each of these offsets, up to its length.
    fn walk(&self, gateway: &Gateway, behind: impl Iterator<Item = usize>) {
        let mut connection = Connection::open(gateway.address());
        self.is_served(&mut connection);
        let length = self.state.length.load(Ordering::Relaxed);
        for (number, bytes) in behind.take_while(|bytes| *bytes < length).enumerate() {
            self.state.cut.store(bytes, Ordering::Relaxed);
            let got = self.ask(&mut connection, self.clients[number % self.clients.len()]);
            if bytes < self.state.needed.load(Ordering::Relaxed) {
                got.fails_at_once_or_later();
            } else {
                is_whole_or_fails(&got);
            }
            // A complete stream now and then also keeps the circuit breaker closed.
            if number % 4 == 3 {
                self.is_served(&mut connection);
            }
        }
    }

    /// The next stream is served normally.
    fn is_served(&self, connection: &mut Connection) {
        self.state.cut.store(usize::MAX, Ordering::Relaxed);
        self.ask(connection, self.clients[0]).is_whole();
    }

    fn ask(&self, connection: &mut Connection, client: Protocol) -> Outcome {
        connection.send(requests::request(client, &ask(client, &self.name, ASKED, true)).bytes());
        let lane = Lane {
            client,
            upstream: self.upstream,
        };
        Outcome::new(lane, connection.response(), self.whole.clone())
    }
}

impl State {
    fn play(&self, request: &Request) -> Play {
        let play = honest::answer(request);
        let body = String::from_utf8(play.body_bytes()).unwrap();
        // A Chat reply is complete once it has its finish reason: the rest may be missing.
        let needed = match body.find("\"finish_reason\":\"") {
            Some(finish) => finish + body[finish..].find("\n\n").unwrap() + 2,
            None => body.len(),
        };
        self.length.store(body.len(), Ordering::Relaxed);
        self.needed.store(needed, Ordering::Relaxed);
        match self.cut.load(Ordering::Relaxed) {
            usize::MAX => play,
            bytes => play.cut_at(bytes, Cut::Reset),
        }
    }
}

const ASKED: &str = "Hi";
/// The distance of two offsets of the sample.
const APART: usize = 4;
