//! One response of a connection: an ordinary streaming request to the gateway, whose events become
//! messages, or a request that only prepares one.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use gateway::connection::state::ConnectionState;
use gateway::exchange::body::Body;
use gateway::service;
use gateway::state::GatewayState;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::{BodyExt as _, Collected, Limited};
use response_store::stored_input::no_response;
use serde::Deserialize;
use serde_json::value::RawValue;
use sse::Decoder;
use upstream::ClientSockets;
use wire::{ApiError, Splice};

use crate::conversations::{Before, Items, conversation};
use crate::event::{self, Lane};
use crate::request::{PREVIOUS, Turn, post};
use crate::warm_up;

/// A part of a response.
#[derive(Debug)]
pub(crate) enum Output {
    /// A message for the client.
    Message(String),
    /// The end of the response in this stream.
    Ended(Lane, Option<Finished>),
}

/// A response that can be continued.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) id: String,
    pub(crate) before: Before,
    /// The items of its input and of its output.
    pub(crate) items: Items,
}

/// A response in progress.
struct Running {
    turn: Turn,
    body: Option<Body>,
    decoder: Decoder,
    ready: Ready,
}

/// The messages that are ready, and what is known of the output.
#[derive(Default)]
struct Ready {
    messages: VecDeque<String>,
    /// The output items so far.
    done: Vec<String>,
    finished: Option<Finished>,
    has_ended: bool,
}

#[derive(Deserialize)]
struct EventView<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<ResponseView<'a>>,
}

#[derive(Deserialize)]
struct ResponseView<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    output: Option<Vec<&'a RawValue>>,
}

/// Sends the request of a turn to the gateway, with these headers, and returns its output. Dropping
/// it cancels the request.
pub(crate) fn run(
    turn: Turn,
    headers: HeaderMap,
    state: Arc<GatewayState>,
    connection: &Arc<ConnectionState>,
    sockets: ClientSockets,
) -> BoxStream<'static, Output> {
    let sockets = match turn.before.previous(&turn.text) {
        Some(previous) => sockets.continuing(previous),
        None => sockets,
    };
    let connection = Arc::new(ConnectionState::turn(connection, sockets));
    let first = async move {
        if !turn.generates {
            return Running::prepared(turn, headers, &state, &connection).await;
        }
        let request = post("/v1/responses", turn.body(), headers);
        let response = service::answer(&state, request, &connection).await;
        Running::begin(turn, response).await
    };
    let rest = |running| stream::unfold(running, Running::next);
    stream::once(first).flat_map(rest).boxed()
}

impl Running {
    fn new(turn: Turn) -> Self {
        Self {
            turn,
            body: None,
            decoder: Decoder::new(),
            ready: Ready::default(),
        }
    }

    /// Answers a request that only prepares a response.
    async fn prepared(
        turn: Turn,
        headers: HeaderMap,
        state: &Arc<GatewayState>,
        connection: &Arc<ConnectionState>,
    ) -> Self {
        let mut running = Self::new(turn);
        let (turn, ready) = (&running.turn, &mut running.ready);
        match warm_up::answer(turn, headers, state, connection).await {
            Ok(events) => {
                for event in events {
                    ready.add(event.kind(), event.data().into(), turn);
                }
            }
            Err(error) => ready.messages.push_back(event::error(&turn.lane, &error)),
        }
        running
    }

    async fn begin(turn: Turn, response: Response<Body>) -> Self {
        let mut running = Self::new(turn);
        let (head, body) = response.into_parts();
        if head.status == StatusCode::OK {
            running.body = Some(body);
        } else {
            let body = Limited::new(body, MAX_ERROR).collect().await;
            let body = body.map(Collected::to_bytes).unwrap_or_default();
            let Turn { lane, before, .. } = &running.turn;
            let refused = match before.id().filter(|_| event::is_about_previous(&body)) {
                // The gateway's own sentence would be about its store.
                Some(id) => event::error(lane, &no_response(id)),
                None => event::refused(lane, head.status.as_u16(), &head.headers, &body),
            };
            running.ready.messages.push_back(refused);
        }
        running
    }

    /// Returns the next output, and what follows it.
    async fn next(mut self) -> Option<(Output, Self)> {
        loop {
            if let Some(message) = self.ready.messages.pop_front() {
                return Some((Output::Message(message), self));
            }
            let Some(body) = &mut self.body else {
                return self.end();
            };
            let result = match body.frame().await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => self.read(piece),
                    Err(_) => Ok(()),
                },
                // The body is aborted where it cannot end with an event.
                Some(Err(_)) => Err(()),
                None => {
                    self.body = None;
                    Ok(())
                }
            };
            if result.is_err() {
                self.body = None;
                let error = event::error(&self.turn.lane, &ApiError::server_error());
                self.ready.messages.push_back(error);
            }
        }
    }

    /// Reads the events of a piece of the body.
    fn read(&mut self, piece: Bytes) -> Result<(), ()> {
        let (turn, ready) = (&self.turn, &mut self.ready);
        let read = self.decoder.each(piece, |event| {
            ready.add(&event.name(), event.data(), turn);
            ControlFlow::<()>::Continue(())
        });
        read.map(drop).map_err(drop)
    }

    fn end(mut self) -> Option<(Output, Self)> {
        let has_ended = std::mem::replace(&mut self.ready.has_ended, true);
        let finished = self.ready.finished.take();
        (!has_ended).then(|| (Output::Ended(self.turn.lane.clone(), finished), self))
    }
}

impl Ready {
    /// Adds the message of an event: its data, in the stream of the turn, and with the response that
    /// the client continues.
    fn add(&mut self, name: &str, data: Cow<'_, str>, turn: &Turn) {
        if data == "[DONE]" {
            return;
        }
        let edited = concerns_responses(name).then(|| self.note(&data, turn));
        let message = edited.flatten().unwrap_or(data);
        let message = event::with_lane(&turn.lane, message);
        self.messages.push_back(message.into_owned());
    }

    /// Notes the output of an event, and returns the event as the client gets it if it differs.
    fn note<'d>(&mut self, data: &str, turn: &Turn) -> Option<Cow<'d, str>> {
        let view: EventView<'_> = serde_json::from_str(data).ok()?;
        if view.kind == ITEM_DONE {
            self.done
                .extend(view.item.map(|item| item.get().to_owned()));
        }
        let response = view.response?;
        if ENDS.contains(&&*view.kind) {
            self.finish(response, turn);
        }
        let id = turn.before.id().filter(|_| turn.before.is_kept())?;
        let id = serde_json::Value::from(id).to_string();
        let mut splice = Splice::new(data.as_bytes());
        if !splice.replace(&["response", PREVIOUS], id.as_bytes()) {
            splice.add_missing(&["response"], &[(PREVIOUS, &id)]);
        }
        String::from_utf8(splice.to_vec()).ok().map(Cow::Owned)
    }

    /// Notes a response that can be continued.
    fn finish(&mut self, response: ResponseView<'_>, turn: &Turn) {
        let Some(id) = response.id.filter(|id| !id.is_empty()) else {
            return;
        };
        let done = std::mem::take(&mut self.done);
        // Some servers leave the output out of the last event.
        let items = match response.output.filter(|output| !output.is_empty()) {
            Some(output) => conversation(&turn.text, output.iter().map(|item| item.get())),
            None => conversation(&turn.text, done.iter().map(String::as_str)),
        };
        self.finished = Some(Finished {
            id: id.into_owned(),
            before: turn.before.clone(),
            items,
        });
    }
}

/// True for an event that has a response or a complete item, or whose stream does not name it.
fn concerns_responses(name: &str) -> bool {
    name == UNNAMED || name == ITEM_DONE || STATES.contains(&name)
}

const ITEM_DONE: &str = "response.output_item.done";
/// The events that have the complete response.
const STATES: &[&str] = &[
    "response.created",
    "response.queued",
    "response.in_progress",
    "response.completed",
    "response.incomplete",
    "response.failed",
];
/// The events of a response that can be continued.
const ENDS: &[&str] = &["response.completed", "response.incomplete"];
/// The name of an event without a name.
const UNNAMED: &str = "message";
/// The size of the body of an error, in bytes.
const MAX_ERROR: usize = 1 << 20;
