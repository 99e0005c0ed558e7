//! Requests of another protocol for strict vendors: servers that refuse what the real ones refuse.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use simulator::{Play, Protocol, Request};
use testkit::dice::Dice;
use testkit::requests::TEXT_PROTOCOLS;
use testkit::strict::{self, SERVERS, Server};

use super::{Fault, Place};
use crate::gateways::BLOCK;

/// The strict vendors that are upstreams of a gateway.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vendors([&'static Server; 2]);

/// A request that one of them gets, or both.
#[derive(Clone)]
pub(crate) struct Strict {
    pub(super) client: Protocol,
    vendors: Vendors,
    /// The target that gets it.
    pub(super) place: Place,
    body: Arc<Value>,
}

impl Vendors {
    /// The vendors of the gateway for this block of faults. All of them take turns as the first target, and with
    /// each turn another one is the second.
    pub(crate) fn of_block(seed: u64, block: u64) -> Self {
        let count = SERVERS.len() as u64;
        let first = seed % count + block % count;
        let distance = 1 + (seed % count + block / count) % (count - 1);
        Self([first, first + distance].map(|at| &SERVERS[(at % count) as usize]))
    }

    /// The vendor that is this target.
    pub(crate) fn at(self, place: Place) -> &'static Server {
        self.0[usize::from(place == Place::Second)]
    }
}

impl Strict {
    /// Draws a request of a tenth of the faults, from a client whose protocol neither vendor has.
    pub(super) fn draw(seed: u64, number: u64) -> Option<Self> {
        let dice = &mut Dice::new(!seed, number);
        if !dice.once_in(10) {
            return None;
        }
        let vendors = Vendors::of_block(seed, number / BLOCK);
        let upstreams = vendors.0.map(|server| server.protocol);
        let is_other = |client: &Protocol| !upstreams.contains(client);
        let clients: Vec<_> = TEXT_PROTOCOLS.into_iter().filter(is_other).collect();
        let client = *dice.one(&clients);
        let body = strict::request(dice, client, "", &super::nonce(number), &upstreams);
        Some(Self {
            client,
            vendors,
            place: Place::First,
            body: Arc::new(body),
        })
    }

    /// The vendor that gets the request.
    pub(crate) fn server(&self) -> &'static Server {
        self.vendors.at(self.place)
    }

    /// The protocol of the vendor that is this target.
    pub(super) fn protocol(&self, place: Place) -> Protocol {
        self.vendors.at(place).protocol
    }

    /// The reason for which the vendor refuses a request of the gateway.
    pub(crate) fn refusal(&self, request: &Request) -> Option<String> {
        (self.server().refusal)(&request.json())
    }

    /// The refusal of the vendor.
    pub(super) fn refused(&self, request: &Request) -> Option<Play> {
        let message = self.refusal(request)?;
        Some(Play::json(400, &json!({"error": {"message": message}})))
    }

    /// The body of the client's request.
    pub(crate) fn asked(&self, fault: &Fault) -> Value {
        let mut body = Value::clone(&self.body);
        body["model"] = fault.model.as_str().into();
        body["stream"] = fault.stream.into();
        if self.client == Protocol::Chat && fault.stream {
            body["stream_options"] = json!({"include_usage": true});
        }
        body
    }
}

impl fmt::Debug for Strict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {}", self.vendors.0, self.body)
    }
}

/// The name of the vendor that is the first target, and of the model that it serves.
pub(crate) const VENDOR: &str = "vendor";
/// The name of the vendor that is the second target.
pub(crate) const OTHER_VENDOR: &str = "other-vendor";
/// The model with both targets.
pub(crate) const VENDORS: &str = "vendor-or-other-vendor";

/// Helpers with which tests of the judge build faults.
#[cfg(test)]
mod planted {
    use super::*;

    impl Strict {
        /// A request of a client of Messages for the vendors of these models.
        pub(crate) fn planted(models: [&str; 2]) -> Self {
            let server = |model| SERVERS.iter().find(|server| server.model == model);
            Self {
                client: Protocol::Messages,
                vendors: Vendors(models.map(|model| server(model).unwrap())),
                place: Place::First,
                body: Arc::new(Value::Null),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// 870 gateways have every vendor as the first target before every other one, whatever the seed.
    #[test]
    fn vendors_take_turns() {
        for seed in [0, 5, u64::MAX] {
            let pairs = (0..1_122).map(|block| {
                let vendors = Vendors::of_block(seed, block);
                [Place::First, Place::Second].map(|place| format!("{:?}", vendors.at(place)))
            });
            let pairs: BTreeSet<_> = pairs.filter(|[first, second]| first != second).collect();
            assert_eq!(pairs.len(), 1_122, "seed {seed}");
            let firsts =
                (0..34).map(|block| Vendors::of_block(seed, block).at(Place::First).preset);
            assert_eq!(firsts.collect::<BTreeSet<_>>().len(), 16, "seed {seed}");
        }
    }

    /// A vendor may refuse what a client of its own protocol sends to it.
    #[test]
    fn clients_speak_another_protocol() {
        let drawn: Vec<_> = (0..9_000)
            .filter_map(|number| Strict::draw(1, number))
            .collect();
        assert!((700..1_100).contains(&drawn.len()), "{}", drawn.len());
        for strict in drawn {
            let upstreams = [Place::First, Place::Second].map(|place| strict.protocol(place));
            assert!(!upstreams.contains(&strict.client), "{strict:?}");
        }
    }
}
