//! The client's side of a fault.

use std::time::Duration;

use server::EmbeddedGateway;
use testkit::Response;
use tokio::time::{sleep, timeout};

use crate::client;
use crate::fault::{Fault, Kind, Leave};
use crate::pipe::Pipe;

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

impl Client {
    /// A client that sent its request and read the complete response.
    fn answered(bytes: &[u8]) -> Self {
        Self {
            response: Response::parse(bytes),
            stayed: true,
            sent_head: true,
            sent_whole: true,
        }
    }
}

/// Sends a request over `pipe`, and reads the response as far as the fault permits.
pub(crate) async fn visit(pipe: Pipe, fault: &Fault, inside: &EmbeddedGateway) -> Client {
    let request = client::request(fault);
    match fault.kind {
        Kind::Upload(spot, how) => {
            upload(
                pipe,
                &request,
                spot.of(request.len()),
                how,
                fault.pace.at_once,
            )
            .await
        }
        _ => ask(pipe, &request, fault, inside).await,
    }
}

/// Sends the request up to a position, and disconnects; reads the response where it still can.
async fn upload(mut pipe: Pipe, request: &[u8], end: usize, how: Leave, at_once: usize) -> Client {
    let head = request
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .map_or(0, |at| at + 4);
    // The gateway may have answered and closed already.
    let _ = client::write(&mut pipe, &request[..end], at_once).await;
    let sent_whole = end == request.len();
    let stayed = sent_whole && how == Leave::Still;
    let response = match how {
        Leave::Close => None,
        Leave::Reset => {
            pipe.reset();
            None
        }
        Leave::HalfClose => {
            pipe.half_close().await;
            Response::parse(&client::read(&mut pipe, at_once, usize::MAX).await)
        }
        Leave::Still => Response::parse(&client::read(&mut pipe, at_once, usize::MAX).await),
    };
    Client {
        response,
        stayed,
        sent_head: end >= head,
        sent_whole,
    }
}

/// Sends the complete request, and reads.
async fn ask(mut pipe: Pipe, request: &[u8], fault: &Fault, inside: &EmbeddedGateway) -> Client {
    let at_once = fault.pace.at_once;
    // The gateway may have answered and closed already.
    let _ = client::write(&mut pipe, request, at_once).await;
    let mut bytes = Vec::new();
    match fault.kind {
        Kind::Leaves(spot, how) => {
            client::read_into(&mut bytes, &mut pipe, at_once, spot.of(LONG)).await;
            go(pipe, how).await;
            return Client {
                sent_head: true,
                sent_whole: true,
                ..Client::default()
            };
        }
        Kind::Shutdown(spot) => {
            let enough = spot.of(LONG);
            // Data that the upstream holds back does not arrive before the process exits.
            let begun = timeout(
                SETTLED,
                client::read_into(&mut bytes, &mut pipe, at_once, enough),
            )
            .await;
            inside.cut();
            if begun.is_ok() && bytes.len() < enough {
                return Client::answered(&bytes);
            }
        }
        Kind::Drain(spot) => {
            client::read_into(&mut bytes, &mut pipe, at_once, spot.of(LONG)).await;
            inside.leave();
        }
        _ => {}
    }
    client::read_into(&mut bytes, &mut pipe, at_once, usize::MAX).await;
    Client::answered(&bytes)
}

/// Disconnects in the middle of a response.
async fn go(mut pipe: Pipe, how: Leave) {
    match how {
        // It reads nothing, and waits until the gateway has timed out.
        Leave::Still => sleep(GIVEN_UP).await,
        Leave::Reset => pipe.reset(),
        Leave::HalfClose => pipe.half_close().await,
        Leave::Close => {}
    }
}

/// The time after which all resources are released.
pub(crate) const SETTLED: Duration = Duration::from_secs(1);
/// The time after which a client that reads nothing has timed out, and the stream behind it too.
const GIVEN_UP: Duration = Duration::from_secs(700);
/// About the length of a response.
const LONG: usize = 4_000;
