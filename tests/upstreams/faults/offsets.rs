//! U8 at every byte: an honest stream is reset behind each of its bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use simulator::{Cut, Play, Protocol, Request, Simulator, honest};

use crate::house::{House, Plan, TEXT, word};
use crate::question::ask;
use crate::scene::{Got, Lane, honest_text};
use crate::stream::End;
use crate::told;

#[test]
fn u08_a_reset_behind_every_byte() {
    let streets: Vec<_> = [TEXT.as_slice(), &[Protocol::Images]].concat().into_iter().map(Street::new).collect();
    let mut plan = Plan::new("");
    for street in &streets {
        let name = word(street.upstream);
        plan = plan.upstream(name, street.upstream, &street.simulator.base_url(), "");
        plan = plan.model(name, street.upstream, &format!(r#"[{{ upstream = "{name}", model = "m" }}]"#));
    }
    let house = plan.start();
    std::thread::scope(|scope| {
        for street in &streets {
            let house = &house;
            scope.spawn(move || street.walk(house));
        }
    });
    house.gateway.await_quiet();
    assert_eq!(house.gateway.metric("sluicegate_panics_total"), 0.0);
}

/// An upstream that resets its streams where it is told to.
struct Street {
    upstream: Protocol,
    simulator: Simulator,
    state: Arc<State>,
}

/// What the upstream and the test tell each other.
#[derive(Default)]
struct State {
    /// Behind how many bytes it resets.
    cut: AtomicUsize,
    /// How many bytes of the last stream there are.
    length: AtomicUsize,
    /// How many of them the answer needs to be whole.
    needed: AtomicUsize,
}

impl Street {
    fn new(upstream: Protocol) -> Self {
        let state = Arc::<State>::default();
        let shared = Arc::clone(&state);
        let simulator = Simulator::start(move |request| shared.play(request)).unwrap();
        Self { upstream, simulator, state }
    }

    /// Resets behind every byte, for a client of the same protocol and for one of another.
    fn walk(&self, house: &House) {
        let others: Vec<_> = TEXT.into_iter().filter(|client| *client != self.upstream).collect();
        self.next_is_whole(house);
        for bytes in 0..self.state.length.load(Ordering::Relaxed) {
            self.reset_behind(bytes, house, self.upstream);
            if self.upstream != Protocol::Images {
                self.reset_behind(bytes, house, others[bytes % 2]);
            }
            // It also keeps the breaker closed.
            if bytes % 2 == 1 {
                self.next_is_whole(house);
            }
        }
    }

    fn reset_behind(&self, bytes: usize, house: &House, client: Protocol) {
        self.state.cut.store(bytes, Ordering::Relaxed);
        let got = self.ask(house, client);
        if bytes < self.state.needed.load(Ordering::Relaxed) {
            got.fails_at_once_or_later();
        } else {
            // Whether all of it comes through is the system's to say; that it ends once is not.
            let _: End<_> = told::stream(client, &got.response);
        }
    }

    fn next_is_whole(&self, house: &House) {
        self.state.cut.store(usize::MAX, Ordering::Relaxed);
        self.ask(house, self.upstream).is_whole();
    }

    fn ask(&self, house: &House, client: Protocol) -> Got {
        let response = house.ask(client, &ask(client, word(self.upstream), TEXT_ASKED, true));
        let lane = Lane { client, upstream: self.upstream };
        Got::new(lane, response, honest_text(lane, true, TEXT_ASKED))
    }
}

impl State {
    fn play(&self, request: &Request) -> Play {
        let play = honest::answer(request);
        let body = String::from_utf8(play.body_bytes()).unwrap();
        // Chat is whole once it has said why it ends: what follows may be missing.
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

const TEXT_ASKED: &str = "Hi";
