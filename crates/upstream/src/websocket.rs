//! Streams of Responses over WebSocket: an event of the client asks for one, and the events of the
//! server are read as an event stream. The guide is
//! [WebSocket mode](https://developers.openai.com/api/docs/guides/websocket-mode).

mod handshake;

use bytes::Bytes;
use engine::EngineError;
use tokio::time::{Instant, timeout_at};
use tokio_tungstenite::tungstenite::Utf8Bytes;
use wire::{ElementEdit, Splice};

use self::handshake::Opened;
use crate::breaker::Outcome;
use crate::failure::Failure;
use crate::host::{self, Host};
use crate::outgoing::{Outgoing, Payload};
use crate::response_head::ResponseHead;
use crate::sockets::{ClientSockets, Event, Previous, Socket, Turn};
use crate::source::Source;

/// Asks for a stream over a WebSocket of the client's connection. If the host refuses to open one, or
/// the size of the request, the request goes over HTTP.
pub(crate) async fn exchange(
    host: &Host,
    sockets: &ClientSockets,
    outgoing: &Outgoing,
    deadline: Instant,
) -> Result<(Source, ResponseHead), Failure> {
    match exchange_over_socket(host, sockets, outgoing, deadline).await? {
        Some(answered) => Ok(answered),
        None => host.exchange(outgoing, deadline).await,
    }
}

/// Asks for a stream over a WebSocket, which is opened first if necessary. Returns `None` if the request
/// has to go over HTTP.
async fn exchange_over_socket(
    host: &Host,
    sockets: &ClientSockets,
    outgoing: &Outgoing,
    deadline: Instant,
) -> Result<Option<(Source, ResponseHead)>, Failure> {
    let create = create_event(&outgoing.body).filter(|_| !sockets.is_refused_by(host.id));
    let Some(create) = create else {
        return Ok(None);
    };
    if let Some(mut socket) = sockets.take(host.id, |sent| host.is_current(sent)) {
        match ask_again(host, sockets, &mut socket, (outgoing, &create), deadline).await {
            Ok(Some(first)) if first.is_refusal_with(TOO_OLD) => {}
            Ok(first) => return Ok(first.map(|first| answer(host, sockets, socket, first))),
            // Closed while it was idle, as in `Host::exchange`.
            Err(failure) if failure.closed_silently => {}
            Err(failure) => return Err(failure),
        }
    }
    match handshake::open(host, outgoing, deadline).await {
        Ok(Opened::Socket(mut socket)) => {
            let first = ask(host, &mut socket, create, deadline).await?;
            Ok(first.map(|first| answer(host, sockets, socket, first)))
        }
        Ok(Opened::Refused { is_final }) => {
            if is_final {
                sockets.note_refusal(host.id);
            }
            Ok(None)
        }
        Err(failed) => {
            if failed.was_connected {
                sockets.note_refusal(host.id);
            }
            Err(failed.failure)
        }
    }
}

/// Asks for a stream over a socket that has had others. What its server knows of the conversation is
/// left out, unless the server has forgotten it.
async fn ask_again(
    host: &Host,
    sockets: &ClientSockets,
    socket: &mut Socket,
    (outgoing, create): (&Outgoing, &Utf8Bytes),
    deadline: Instant,
) -> Result<Option<Event>, Failure> {
    let previous = sockets.previous_on(socket);
    if let Some(short) = previous.and_then(|previous| short_event(host, &outgoing.body, previous)) {
        match ask(host, socket, short, deadline).await? {
            Some(first) if first.is_refusal_with(FORGOTTEN) => {}
            first => return Ok(first),
        }
    }
    ask(host, socket, create.clone(), deadline).await
}

/// Asks for a stream, and waits for the first event. Returns `None` if the server has closed the socket
/// because the request is too big for a message, so that it was not processed.
async fn ask(
    host: &Host,
    socket: &mut Socket,
    event: Utf8Bytes,
    deadline: Instant,
) -> Result<Option<Event>, Failure> {
    let started = Instant::now();
    let deadline = deadline.min(started + host.head_timeout);
    match timeout_at(deadline, socket.ask(event)).await {
        Ok(Ok(first)) => Ok(Some(first)),
        Ok(Err(_)) if socket.has_refused_size() => Ok(None),
        Ok(Err(error)) => Err(Failure {
            error: EngineError::Upstream(error.to_string()),
            may_retry: false,
            closed_silently: host::is_stale(started, socket.connect_time),
            outcome: Outcome::Failure,
        }),
        Err(_) => {
            let error = EngineError::Unanswered("timeout for the first event".to_owned());
            Err(Failure::unanswered(error))
        }
    }
}

/// Returns the response that begins with this event: an event stream, or a refusal.
fn answer(
    host: &Host,
    sockets: &ClientSockets,
    socket: Box<Socket>,
    first: Event,
) -> (Source, ResponseHead) {
    let head = ResponseHead::of_event(first.refusal().as_ref());
    let turn = Turn::new(socket, (host.id, sockets.clone()), first);
    (Source::Turn(Box::new(turn)), head)
}

/// Returns the event that asks for the response to a request: its members, without `stream` and
/// `background`. Returns `None` if it is not UTF-8.
fn create_event(body: &Payload) -> Option<Utf8Bytes> {
    let whole = body.chunks().concat();
    into_text(&without_http(&whole))
}

/// Returns the same event with the new items alone. `None` if the host refuses its `instructions` there,
/// or if its input is not the one that was counted, as after an edit for the host.
fn short_event(host: &Host, body: &Payload, previous: &Previous) -> Option<Utf8Bytes> {
    let whole = body.chunks().concat();
    let mut splice = without_http(&whole);
    if host.no_instructions_with_previous && splice.has(&["instructions"]) {
        return None;
    }
    let mut count = 0;
    splice.edit_elements(&["input"], |_| {
        count += 1;
        match count > previous.known {
            true => ElementEdit::Keep,
            false => ElementEdit::Remove,
        }
    });
    if count != previous.all || count <= previous.known {
        return None;
    }
    let id = serde_json::to_vec(&previous.id).ok()?;
    splice.set("previous_response_id", &id);
    into_text(&splice)
}

fn without_http(body: &[u8]) -> Splice<'_> {
    let mut splice = Splice::new(body);
    splice.remove(&[], &["stream", "background"]);
    splice.set("type", br#""response.create""#);
    splice
}

fn into_text(splice: &Splice<'_>) -> Option<Utf8Bytes> {
    Bytes::from(splice.to_vec()).try_into().ok()
}

/// The code of the error at the end of the time that a server gives a connection, an hour for OpenAI.
const TOO_OLD: &str = "websocket_connection_limit_reached";
/// The code of the error about a response that the server does not know.
const FORGOTTEN: &str = "previous_response_not_found";
