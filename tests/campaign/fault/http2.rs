//! The clients that speak HTTP/2.

use testkit::dice::Dice;

use super::{Fault, Kind, Leave, Spot};

/// The frames that a client sends on its HTTP/2 connection beside its request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Http2 {
    /// The position in the response at which it announces with `GOAWAY` that it is about to leave.
    /// It reads on.
    pub(crate) goaway: Option<Spot>,
}

impl Http2 {
    /// Draws HTTP/2 for a third of the clients.
    pub(super) fn draw(dice: &mut Dice) -> Option<Self> {
        let is_drawn = dice.once_in(3);
        let spot = Spot(dice.among(0..1 << 16) as u16);
        let goaway = dice.once_in(4).then_some(spot);
        is_drawn.then_some(Self { goaway })
    }
}

impl Fault {
    /// Returns true if an HTTP/2 client closes its connection, and not only its stream.
    pub(crate) fn closes_connection(&self) -> bool {
        matches!(
            self.kind,
            Kind::Leaves(_, Leave::Close) | Kind::Upload(_, Leave::Close)
        )
    }
}
