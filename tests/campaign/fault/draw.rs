//! The drawing of a fault from a seed and a number.

use std::time::Duration;

use simulator::scenario::{self, Scenario};
use simulator::{Cut, Protocol};
use testkit::dice::Dice;
use testkit::requests::Question;

use super::coded::Coded;
use super::rewrite::Rewrite;
use super::{
    Change, Fault, Foreign, Hollow, Kind, Leave, Next, Pace, Place, Spot, Strict, Transport, next,
    other,
};
use crate::drawing::Drawing;

impl Fault {
    /// Draws the fault of this number in the campaign of this seed.
    pub(crate) fn draw(seed: u64, number: u64) -> Self {
        let dice = &mut Dice::new(seed, number);
        let strict = Strict::draw(seed, number);
        let (client, upstream) = match &strict {
            Some(strict) => (strict.client, strict.protocol(Place::First)),
            None => protocols(dice),
        };
        let question = if client == Protocol::Images || strict.is_some() {
            Question::Text
        } else {
            *dice.one(&Question::ALL)
        };
        let stream = !dice.once_in(4);
        let drawing = Drawing::draw(dice);
        let mut fault = Self {
            number,
            client,
            upstream,
            model: String::new(),
            stream,
            question,
            drawing,
            kind: Kind::draw(dice, upstream),
            pace: Pace::draw(dice),
            transport: Transport::Http1,
            is_hurried: dice.once_in(2),
            next: None,
            strict,
            coded: None,
            bystander: None,
        };
        if let Kind::Foreign(foreign) = fault.kind {
            fault.client = foreign.client;
            fault.upstream = foreign.upstream();
            fault.stream = foreign.streams();
            fault.question = Question::Text;
            fault.drawing = Drawing::SINGLE;
            fault.strict = None;
        }
        fault.coded = Coded::draw(seed, number, fault.client);
        fault.remove_other_failures();
        fault.next = Next::draw(dice, &fault).filter(|_| !fault.is_undecodable());
        fault.is_hurried &= !fault.holds();
        fault.model = next::model(&fault);
        fault.transport = Transport::draw(dice, seed, &fault);
        if !fault.kind.is_of_process() && dice.once_in(4) {
            fault.bystander = Some(Box::new(fault.bystander(dice)));
        }
        fault
    }

    /// Draws a request that nothing happens to, for the time of this one.
    fn bystander(&self, dice: &mut Dice) -> Self {
        let text = &PROTOCOLS[..3];
        let (client, upstream) = (*dice.one(text), *dice.one(text));
        // It ends within all timeouts.
        let pace = Pace {
            pieces: Vec::new(),
            pause: Duration::from_millis(dice.among(0..1_000) as u64),
            ..Pace::draw(dice)
        };
        Self {
            number: self.number | BYSTANDER,
            client,
            upstream,
            model: other(upstream),
            stream: !dice.once_in(4),
            question: Question::Text,
            kind: Kind::Nothing,
            pace,
            transport: self.transport.of_bystander(),
            next: None,
            strict: None,
            coded: None,
            bystander: None,
            ..self.clone()
        }
    }
}

/// Draws the protocols of a client and an upstream.
fn protocols(dice: &mut Dice) -> (Protocol, Protocol) {
    let client = *dice.one(&PROTOCOLS);
    if client == Protocol::Images {
        (client, client)
    } else {
        (client, *dice.one(&PROTOCOLS[..3]))
    }
}

impl Kind {
    pub(super) fn draw(dice: &mut Dice, upstream: Protocol) -> Self {
        let spot = Spot(dice.among(0..1 << 16) as u16);
        match dice.among(0..27) {
            0 => Self::Nothing,
            1..7 => Self::Cut(spot, *dice.one(&CUTS)),
            7 => Self::HeadCut(spot, *dice.one(&CUTS)),
            8..11 => Self::Changed(spot, Change::draw(dice)),
            11..15 => Self::Scenario(Self::scenario(dice)),
            15 if dice.once_in(2) => Self::Refused,
            15 => Self::Unreachable,
            16 | 17 => Self::Leaves(spot, *dice.one(&LEAVES)),
            18 => Self::Upload(spot, *dice.one(&LEAVES)),
            19 => Self::Shutdown(spot),
            20 => Self::Hollow(*dice.one(&HOLLOWS)),
            21..24 => Self::Rewritten(Rewrite::draw(dice, upstream)),
            24 | 25 => Self::Foreign(Foreign::draw(dice)),
            _ => Self::Drain(spot),
        }
    }

    /// Draws one of the simulator's finite scenarios, with random parameters.
    fn scenario(dice: &mut Dice) -> Scenario {
        loop {
            let name = dice.one(scenario::all()).template;
            if !ENDLESS.contains(&name) {
                let numbered = name.replace('N', &dice.among(0..600).to_string());
                return scenario::named(&numbered)
                    .unwrap_or_else(|| panic!("no scenario {numbered}"));
            }
        }
    }
}

impl Change {
    fn draw(dice: &mut Dice) -> Self {
        let byte = dice.byte();
        let some = [Self::Byte(byte), Self::Inserted(byte), Self::Removed];
        let events = [Self::EventLost, Self::EventDoubled, Self::EventLate];
        let changes = if dice.once_in(2) { &some } else { &events };
        *dice.one(changes)
    }
}

impl Pace {
    fn draw(dice: &mut Dice) -> Self {
        let pieces = match dice.among(0..4) {
            0 => Vec::new(),
            1 => vec![1 + dice.among(0..8)],
            _ => (0..1 + dice.among(0..6))
                .map(|_| 1 + dice.among(0..300))
                .collect(),
        };
        let pause = if dice.once_in(4) {
            Duration::from_millis(dice.among(1..20_000) as u64)
        } else {
            Duration::ZERO
        };
        Self {
            capacity: *dice.one(&CAPACITIES),
            at_once: *dice.one(&AT_ONCE),
            pieces,
            pause,
        }
    }
}

pub(super) const PROTOCOLS: [Protocol; 4] = [
    Protocol::Responses,
    Protocol::Chat,
    Protocol::Messages,
    Protocol::Images,
];
pub(super) const CUTS: [Cut; 4] = [Cut::Reset, Cut::Close, Cut::Clean, Cut::Hold];
const LEAVES: [Leave; 4] = [Leave::Close, Leave::Reset, Leave::HalfClose, Leave::Still];
pub(super) const HOLLOWS: [Hollow; 4] = [
    Hollow::Empty,
    Hollow::Unfinished,
    Hollow::Status(500),
    Hollow::Status(404),
];
const CAPACITIES: [usize; 5] = [64, 512, 4 << 10, 64 << 10, 1 << 20];
const AT_ONCE: [usize; 4] = [7, 100, 4 << 10, 64 << 10];

/// The bit that distinguishes the number of a bystander.
const BYSTANDER: u64 = 1 << 31;

/// Endless scenarios: a paused clock would never advance.
const ENDLESS: [&str; 4] = [
    "endless-deltas",
    "endless-line",
    "endless-comments-N",
    "endless-empty-data-N",
];
