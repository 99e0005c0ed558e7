//! The targets of the requested model: the second is tried if the first one fails.

use simulator::{Cut, Protocol};
use testkit::dice::Dice;
use testkit::requests::protocol_name;

use super::draw::{CUTS, HOLLOWS, PROTOCOLS};
use super::rewrite::Rewrite;
use super::{Fault, Kind, Spot, VENDOR, VENDORS};

/// The second target of a model, and the failure there.
#[derive(Clone, Debug)]
pub(crate) struct Next {
    pub(crate) upstream: Protocol,
    pub(crate) kind: Kind,
}

/// One of the two targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    First,
    Second,
}

impl Next {
    /// Draws a second target for some of the faults of upstreams.
    pub(super) fn draw(dice: &mut Dice, fault: &Fault) -> Option<Self> {
        let is_drawn = dice.once_in(4);
        let is_of_client = matches!(fault.kind, Kind::Leaves(..) | Kind::Upload(..));
        let has_none =
            is_of_client || fault.kind.is_of_process() || matches!(fault.kind, Kind::Foreign(_));
        let upstream = match &fault.strict {
            Some(strict) => strict.protocol(Place::Second),
            None if fault.client == Protocol::Images => fault.client,
            None => *dice.one(&PROTOCOLS[..3]),
        };
        let kind = Self::kind(dice, upstream);
        (is_drawn && !has_none).then_some(Self { upstream, kind })
    }

    /// Mostly nothing fails there.
    fn kind(dice: &mut Dice, upstream: Protocol) -> Kind {
        let spot = Spot(dice.among(0..1 << 16) as u16);
        match dice.among(0..8) {
            0 => Kind::Cut(spot, *dice.one(&CUTS)),
            1 => Kind::HeadCut(spot, Cut::Close),
            2 => Kind::Hollow(*dice.one(&HOLLOWS)),
            3 => Kind::Rewritten(Rewrite::draw(dice, upstream)),
            _ => Kind::Nothing,
        }
    }
}

impl Fault {
    /// The fault at one of the targets.
    pub(crate) fn at(&self, place: Place) -> Self {
        let mut fault = self.clone();
        if let (Place::Second, Some(next)) = (place, &self.next) {
            (fault.upstream, fault.kind) = (next.upstream, next.kind.clone());
            if let Some(strict) = &mut fault.strict {
                strict.place = place;
            }
        }
        fault
    }
}

/// The name of the model with the targets of a fault.
pub(super) fn model(fault: &Fault) -> String {
    match (&fault.strict, &fault.next) {
        (Some(_), None) => VENDOR.to_owned(),
        (Some(_), Some(_)) => VENDORS.to_owned(),
        (None, None) => protocol_name(fault.upstream).to_owned(),
        (None, Some(next)) => either(fault.upstream, next.upstream),
    }
}

/// The name of the model whose targets are the upstream of the first protocol, and another one of
/// the second.
pub(crate) fn either(first: Protocol, second: Protocol) -> String {
    format!("{}-or-{}", protocol_name(first), protocol_name(second))
}

/// The name of the other upstream of a protocol, and of its model.
pub(crate) fn other(protocol: Protocol) -> String {
    format!("other-{}", protocol_name(protocol))
}
