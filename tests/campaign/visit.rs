//! The client's side of a fault.

use std::time::Duration;

use server::EmbeddedGateway;
use testkit::Response;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::WebSocketStream;

use crate::client::ClientExchange;
use crate::fault::{Fault, Kind, Leave, Spot, Transport};
use crate::http1::Http1Exchange;
use crate::http2::{Http2Connection, Http2Exchange};
use crate::pipe::Pipe;
use crate::websocket::{self, WebSocketExchange};

/// The actions of a client, and the response it got.
#[derive(Default)]
pub(crate) struct Client {
    /// The response that it read.
    pub(crate) response: Option<Response>,
    /// True if it stayed to the end.
    pub(crate) stayed: bool,
    /// True if the head of its request was sent.
    pub(crate) sent_head: bool,
    /// True if all of its request was sent.
    pub(crate) sent_whole: bool,
}

/// A client's side of a connection.
pub(crate) enum ClientConnection {
    Http1(Pipe),
    Http2(Http2Connection),
    WebSocket(Box<WebSocketStream<Pipe>>),
}

impl ClientConnection {
    /// The side of the client of this fault.
    pub(crate) async fn open(pipe: Pipe, fault: &Fault) -> Self {
        match fault.transport {
            Transport::Http1 => Self::Http1(pipe),
            Transport::Http2 { .. } => {
                Self::Http2(Http2Connection::open(pipe, fault.pace.at_once).await)
            }
            Transport::WebSocket => Self::WebSocket(Box::new(websocket::open(pipe, fault).await)),
        }
    }

    /// The same connection for the bystander of a fault. `None` if it has to open its own: beside
    /// HTTP/1.1 or a WebSocket, and if the fault closes the connection.
    pub(crate) fn shared(&self, fault: &Fault) -> Option<Self> {
        match self {
            Self::Http2(connection) if !fault.closes_connection() => {
                Some(Self::Http2(connection.clone()))
            }
            _ => None,
        }
    }

    /// Sends the request of a fault, and reads the response as far as the fault permits.
    pub(crate) async fn visit(self, fault: &Fault, inside: &EmbeddedGateway) -> Client {
        match self {
            Self::Http1(pipe) => visit(Http1Exchange::new(pipe, fault), fault, inside).await,
            Self::Http2(connection) => {
                visit(Http2Exchange::new(connection, fault), fault, inside).await
            }
            Self::WebSocket(socket) => {
                visit(WebSocketExchange::new(*socket, fault), fault, inside).await
            }
        }
    }
}

async fn visit(
    mut exchange: impl ClientExchange,
    fault: &Fault,
    inside: &EmbeddedGateway,
) -> Client {
    if let Kind::Upload(spot, how) = fault.kind {
        return upload(exchange, spot, how).await;
    }
    exchange.send(None).await;
    match fault.kind {
        Kind::Leaves(spot, how) => {
            exchange.read(spot.of(LONG)).await;
            exchange.leave(how).await;
            if how == Leave::Still {
                // It reads nothing, and waits until the gateway has timed out.
                sleep(GIVEN_UP).await;
            }
            return Client {
                sent_head: true,
                sent_whole: true,
                ..Client::default()
            };
        }
        Kind::Shutdown(spot) => {
            // Data that the upstream holds back does not arrive before the process exits.
            let _ = timeout(SETTLED, exchange.read(spot.of(LONG))).await;
            inside.cut();
        }
        Kind::Drain(spot) => {
            exchange.read(spot.of(LONG)).await;
            inside.leave();
        }
        _ => {}
    }
    exchange.read(usize::MAX).await;
    Client {
        response: exchange.response(),
        stayed: true,
        sent_head: true,
        sent_whole: true,
    }
}

/// Sends the request up to a position, and leaves; reads the response where it still can.
async fn upload(mut exchange: impl ClientExchange, spot: Spot, how: Leave) -> Client {
    let sent = exchange.send(Some(spot)).await;
    exchange.leave(how).await;
    exchange.read(usize::MAX).await;
    // A client that closes or resets may not see the end of a response, which has begun if the request was whole:
    // a form is without its last line break.
    let stays = matches!(how, Leave::HalfClose | Leave::Still);
    let response = exchange.response();
    let response = response.filter(|response| stays || response.is_complete());
    Client {
        response,
        stayed: sent.whole && how == Leave::Still,
        sent_head: sent.head,
        sent_whole: sent.whole,
    }
}

/// The time after which all resources are released.
pub(crate) const SETTLED: Duration = Duration::from_secs(1);
/// The time after which a client that reads nothing has timed out, and the stream behind it too.
const GIVEN_UP: Duration = Duration::from_secs(700);
/// About the length of a response.
pub(crate) const LONG: usize = 4_000;
