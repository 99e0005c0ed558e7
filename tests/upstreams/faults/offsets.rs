//! U8 at every byte: an honest stream is reset behind each of its bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use simulator::{Cut, Protocol, Simulator, honest};

use crate::house::{House, Plan, TEXT, word};
use crate::question::ask;
use crate::scene::{Got, Lane};
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
    /// Behind how many bytes.
    cut: Arc<AtomicUsize>,
}

impl Street {
    fn new(upstream: Protocol) -> Self {
        let cut = Arc::new(AtomicUsize::new(usize::MAX));
        let reset_at = Arc::clone(&cut);
        let simulator = Simulator::start(move |request| match reset_at.load(Ordering::Relaxed) {
            usize::MAX => honest::answer(request),
            bytes => honest::answer(request).cut_at(bytes, Cut::Reset),
        });
        Self { upstream, simulator: simulator.unwrap(), cut }
    }

    /// Resets behind every byte, for a client of the same protocol and for one of another.
    fn walk(&self, house: &House) {
        let others: Vec<_> = TEXT.into_iter().filter(|client| *client != self.upstream).collect();
        let length = self.length(house);
        for bytes in 0..length {
            // The system may swallow what came shortly before a reset, so what is whole cannot be foretold exactly.
            self.cut.store(bytes, Ordering::Relaxed);
            self.ask(house, self.upstream).fails_at_once_or_later();
            if self.upstream != Protocol::Images {
                self.ask(house, others[bytes % 2]).fails_at_once_or_later();
            }
            // The next one is served as if nothing had been; so the breaker stays closed as well.
            self.cut.store(usize::MAX, Ordering::Relaxed);
            self.ask(house, self.upstream).is_whole();
        }
    }

    /// Up to where a reset loses something of the answer.
    fn length(&self, house: &House) -> usize {
        let _ = self.ask(house, self.upstream);
        let asked = self.simulator.requests().pop().unwrap();
        let body = honest::answer(&asked).body_bytes();
        let end = match self.upstream {
            // Without [DONE] an answer is whole all the same.
            Protocol::Chat => body.len() - "\n\ndata: [DONE]\n\n".len() + 1,
            _ => body.len() - 1,
        };
        assert_eq!(told::events(&body[..end]).len() + 1, told::events(&body).len(), "the last event is cut");
        end
    }

    fn ask(&self, house: &House, client: Protocol) -> Got {
        let body = ask(client, word(self.upstream), "Hi", true);
        let response = house.ask(client, &body);
        let lane = Lane { client, upstream: self.upstream };
        Got::new(lane, response, "You said: Hi".into())
    }
}
