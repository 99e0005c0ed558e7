//! Streams of Responses over WebSocket: an event of the client asks for one, and the events of the
//! server are read as an event stream. The guide is
//! [WebSocket mode](https://developers.openai.com/api/docs/guides/websocket-mode).

mod handshake;

use bytes::Bytes;
use engine::EngineError;
use tokio::time::{Instant, timeout_at};
use tokio_tungstenite::tungstenite::Utf8Bytes;
use wire::Splice;

use self::handshake::Opened;
use crate::breaker::Outcome;
use crate::failure::Failure;
use crate::host::{self, Host};
use crate::incoming::Source;
use crate::outgoing::{Outgoing, Payload};
use crate::response_head::ResponseHead;
use crate::sockets::{ClientSockets, Socket, Turn};

/// Asks for a stream over a WebSocket of the client's connection, which is opened if there is none.
/// If the host refuses to open one, the request goes over HTTP.
pub(crate) async fn exchange(
    host: &Host,
    sockets: &ClientSockets,
    outgoing: &Outgoing,
    deadline: Instant,
) -> Result<(Source, ResponseHead), Failure> {
    let create = create_event(&outgoing.body).filter(|_| !sockets.is_refused_by(host.id));
    let Some(create) = create else {
        return over_http(host, outgoing, deadline).await;
    };
    if let Some(socket) = sockets.take(host.id, |sent| host.is_current(sent)) {
        match ask(host, sockets, socket, &create, deadline).await {
            Ok(None) => {}
            Ok(Some(answer)) => return Ok(answer),
            // Closed while it was idle, as in `Host::exchange`.
            Err(failure) if failure.closed_silently => {}
            Err(failure) => return Err(failure),
        }
    }
    match handshake::open(host, outgoing, deadline).await {
        Ok(Opened::Socket(socket)) => {
            let answer = ask(host, sockets, socket, &create, deadline).await?;
            answer.ok_or_else(|| Failure::unanswered(EngineError::Upstream(TOO_OLD.to_owned())))
        }
        Ok(Opened::Refused { is_final }) => {
            if is_final {
                sockets.note_refusal(host.id);
            }
            over_http(host, outgoing, deadline).await
        }
        Err(failed) => {
            if failed.was_connected {
                sockets.note_refusal(host.id);
            }
            Err(failed.failure)
        }
    }
}

/// Sends a request over HTTP.
pub(crate) async fn over_http(
    host: &Host,
    outgoing: &Outgoing,
    deadline: Instant,
) -> Result<(Source, ResponseHead), Failure> {
    let (connection, head) = host.exchange(outgoing, deadline).await?;
    Ok((Source::Http1(connection), head))
}

/// Asks for a stream, and waits for the first event. Returns `None` if the socket is as old as the
/// host permits.
async fn ask(
    host: &Host,
    sockets: &ClientSockets,
    mut socket: Box<Socket>,
    create: &Utf8Bytes,
    deadline: Instant,
) -> Result<Option<(Source, ResponseHead)>, Failure> {
    let started = Instant::now();
    let deadline = deadline.min(started + host.head_timeout);
    let first = match timeout_at(deadline, socket.ask(create.clone())).await {
        Ok(Ok(first)) => first,
        Ok(Err(error)) => {
            return Err(Failure {
                error: EngineError::Upstream(error.to_string()),
                may_retry: false,
                closed_silently: host::is_stale(started, socket.connect_time),
                outcome: Outcome::Failure,
            });
        }
        Err(_) => {
            let error = EngineError::Unanswered("timeout for the first event".to_owned());
            return Err(Failure::unanswered(error));
        }
    };
    let refusal = first.refusal();
    if refusal.as_ref().is_some_and(|refusal| refusal.is_too_old) {
        return Ok(None);
    }
    let head = ResponseHead::of_event(refusal.map(|refusal| refusal.status));
    let turn = Turn::new(socket, (host.id, sockets.clone()), first);
    Ok(Some((Source::Turn(Box::new(turn)), head)))
}

/// Returns the event that asks for the response to a request: its members, without those of HTTP.
/// `None` if it is no text.
fn create_event(body: &Payload) -> Option<Utf8Bytes> {
    let whole = body.chunks().concat();
    let mut splice = Splice::new(&whole);
    splice.remove(&[], &["stream", "background"]);
    splice.set("type", br#""response.create""#);
    Bytes::from(splice.to_vec()).try_into().ok()
}

/// The failure of a new connection that its server calls too old.
const TOO_OLD: &str = "the server refuses requests over its new WebSocket";
