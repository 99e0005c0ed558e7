//! The protocols over which clients send their requests.

use simulator::Protocol;
use testkit::dice::Dice;

use super::{Fault, Kind, Leave, Spot};

/// The protocol over which a client sends its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Http1,
    Http2 {
        /// The position in the response at which the client announces with `GOAWAY` that it is about to
        /// leave. It reads on.
        goaway: Option<Spot>,
    },
    /// A WebSocket of the Responses API, whose messages are the events of a stream.
    WebSocket,
}

impl Transport {
    /// Draws a WebSocket for a quarter of the clients that can use one, and HTTP/2 for a third of the others.
    pub(super) fn draw(dice: &mut Dice, seed: u64, fault: &Fault) -> Self {
        let is_http2 = dice.once_in(3);
        let spot = Spot(dice.among(0..1 << 16) as u16);
        let goaway = dice.once_in(4).then_some(spot);
        let is_websocket = Dice::new(seed ^ WEBSOCKET, fault.number).once_in(4);
        if is_websocket && fault.fits_websocket() {
            Self::WebSocket
        } else if is_http2 {
            Self::Http2 { goaway }
        } else {
            Self::Http1
        }
    }

    /// The transport of a request at the same time. The client of a WebSocket sends one request.
    pub(super) fn of_bystander(self) -> Self {
        match self {
            Self::WebSocket => Self::Http1,
            http => http,
        }
    }

    /// The position in a response at which a client of HTTP/2 sends `GOAWAY`.
    pub(crate) fn goaway(self) -> Option<Spot> {
        match self {
            Self::Http2 { goaway } => goaway,
            Self::Http1 | Self::WebSocket => None,
        }
    }

    /// Returns true if a response has headers.
    pub(crate) fn has_headers(self) -> bool {
        self != Self::WebSocket
    }
}

impl Fault {
    /// Returns true if the request can be a message of a WebSocket, which has no plain reply and no content coding.
    fn fits_websocket(&self) -> bool {
        self.client == Protocol::Responses && self.stream && self.upload().is_none()
    }

    /// Returns true if an HTTP/2 client closes its connection, and not only its stream.
    pub(crate) fn closes_connection(&self) -> bool {
        matches!(
            self.kind,
            Kind::Leaves(_, Leave::Close) | Kind::Upload(_, Leave::Close)
        )
    }
}

/// Distinguishes the draws of WebSockets from all others.
const WEBSOCKET: u64 = 0x6455;

#[cfg(test)]
mod tests {
    use super::*;

    /// About one of 28 clients uses a WebSocket: a quarter of those that stream, of one of four protocols.
    #[test]
    fn clients_that_stream_responses_may_use_a_websocket() {
        let all = (0..9_000).map(|number| Fault::draw(1, number));
        let (websocket, http): (Vec<_>, Vec<_>) =
            all.partition(|fault| fault.transport == Transport::WebSocket);
        assert!((300..500).contains(&websocket.len()), "{}", websocket.len());
        assert!(websocket.iter().all(Fault::fits_websocket));
        assert!(http.iter().any(Fault::fits_websocket));
    }
}
