//! What a client does at the gateway, as the fault has it.

use std::time::Duration;

use server::EmbeddedGateway;
use tokio::time::{sleep, timeout};

use crate::client::{self, Response};
use crate::fault::{Fault, Kind, Leave};
use crate::pipe::Pipe;

/// What a client did, and what it got for it.
#[derive(Default)]
pub(crate) struct Client {
    /// What it read.
    pub(crate) response: Option<Response>,
    /// Whether it stayed to the end.
    pub(crate) stayed: bool,
    /// Whether the head of its request was sent.
    pub(crate) sent_head: bool,
    /// Whether all of it was.
    pub(crate) sent_whole: bool,
}

impl Client {
    /// A client that sent its request and stayed for all of the answer.
    fn answered(bytes: &[u8]) -> Self {
        Self { response: Response::parse(bytes), stayed: true, sent_head: true, sent_whole: true }
    }
}

/// Asks over `pipe`, and reads the answer as far as the fault lets it.
pub(crate) async fn visit(pipe: Pipe, fault: &Fault, inside: &EmbeddedGateway) -> Client {
    let request = client::request(fault);
    match fault.kind {
        Kind::Upload(spot, how) => upload(pipe, &request, spot.of(request.len()), how, fault.pace.at_once).await,
        _ => ask(pipe, &request, fault, inside).await,
    }
}

/// Sends the request up to a place, and leaves; reads the answer where it still can.
async fn upload(mut pipe: Pipe, request: &[u8], end: usize, how: Leave, at_once: usize) -> Client {
    let head = request.windows(4).position(|window| window == b"\r\n\r\n").map_or(0, |at| at + 4);
    // The gateway may have answered and closed before.
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
    Client { response, stayed, sent_head: end >= head, sent_whole }
}

/// Sends the whole request, and reads.
async fn ask(mut pipe: Pipe, request: &[u8], fault: &Fault, inside: &EmbeddedGateway) -> Client {
    let at_once = fault.pace.at_once;
    // The gateway may have answered and closed before.
    let _ = client::write(&mut pipe, request, at_once).await;
    let mut bytes = Vec::new();
    match fault.kind {
        Kind::Leaves(spot, how) => {
            client::read_into(&mut bytes, &mut pipe, at_once, spot.of(LONG)).await;
            go(pipe, how).await;
            return Client { sent_head: true, sent_whole: true, ..Client::default() };
        }
        Kind::Shutdown(spot) => {
            let enough = spot.of(LONG);
            // What is held back does not come before the end of the process.
            let begun = timeout(SETTLED, client::read_into(&mut bytes, &mut pipe, at_once, enough)).await;
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

/// Leaves in the midst of an answer.
async fn go(mut pipe: Pipe, how: Leave) {
    match how {
        // It reads nothing, and waits until the gateway has given up.
        Leave::Still => sleep(GIVEN_UP).await,
        Leave::Reset => pipe.reset(),
        Leave::HalfClose => pipe.half_close().await,
        Leave::Close => {}
    }
}

/// Everything is back after so long.
pub(crate) const SETTLED: Duration = Duration::from_secs(1);
/// A client that takes nothing has been given up after so long, and the stream behind it too.
const GIVEN_UP: Duration = Duration::from_secs(700);
/// About the length of an answer.
const LONG: usize = 4_000;
