//! One connection: its messages, the responses that run on it, and its limits.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::FutureExt as _;
use futures_util::stream::{BoxStream, SelectAll, StreamExt as _};
use futures_util::{SinkExt as _, stream};
use gateway::connection::state::ConnectionState;
use gateway::exchange::body::budget::Share;
use gateway::state::GatewayState;
use telemetry::close_reason::CloseReason;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Duration, Instant, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use upstream::ClientSockets;
use wire::ApiError;

use crate::conversations::Conversations;
use crate::event::{self, ClientEvent, Kind, Lane, MAX_STREAMS};
use crate::handshake::Opening;
use crate::metered::Metered;
use crate::request::Turn;
use crate::turn::{self, Finished, Output};

/// Serves a WebSocket to its end. `socket` comes with the bytes that were read after the handshake.
/// The connection is closed after the running responses when `close` is ready.
pub async fn serve<S: AsyncRead + AsyncWrite + Send + Unpin>(
    state: &Arc<GatewayState>,
    connection: &Arc<ConnectionState>,
    opening: Opening,
    socket: (S, Bytes),
    close: impl Future<Output = ()> + Unpin,
) {
    let (socket, read) = socket;
    let share = state.budget.share(&opening.key);
    let socket = Metered::new(socket, share, read.len());
    let config = config(&state.limits);
    let role = Role::Server;
    let socket = WebSocketStream::from_partially_read(socket, read.into(), role, Some(config));
    let mut connection = Connection {
        socket: socket.await,
        running: Running {
            conversations: Conversations::new(state.conversations.share(&opening.key)),
            turns: stream::select_all([]),
            lanes: BTreeSet::new(),
            busy: BTreeSet::new(),
            waiting: VecDeque::new(),
            upstreams: ClientSockets::default(),
        },
        state,
        connection,
        opening,
        opened: Instant::now(),
        used: Instant::now(),
        pinged: None,
        ending: None,
    };
    let end = connection.run(close).await;
    connection.close(end).await;
}

/// The sizes of messages and buffers. The buffers grow as needed, so that idle connections are small.
fn config(limits: &config::Limits) -> WebSocketConfig {
    let message = config::bytes(limits.json_body);
    WebSocketConfig::default()
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
        .max_message_size(Some(message))
        .max_frame_size(Some(message))
}

struct Connection<'s, S> {
    socket: WebSocketStream<Metered<S>>,
    running: Running,
    state: &'s Arc<GatewayState>,
    connection: &'s Arc<ConnectionState>,
    opening: Opening,
    opened: Instant,
    /// The time of the latest event of the client, or end of a response.
    used: Instant,
    /// The time of a ping that is not answered.
    pinged: Option<Instant>,
    ending: Option<Ending>,
}

/// The requests of a connection.
struct Running {
    turns: SelectAll<BoxStream<'static, Output>>,
    /// The streams with a name that the client has used.
    lanes: BTreeSet<Lane>,
    /// The streams that have a running response.
    busy: BTreeSet<Lane>,
    /// The requests that wait for a response in their stream, or for one at all.
    waiting: VecDeque<Waiting>,
    conversations: Conversations,
    /// The connections to upstreams that offer WebSockets.
    upstreams: ClientSockets,
}

/// A request that waits.
struct Waiting {
    lane: Lane,
    event: ClientEvent,
    text: Bytes,
    /// Its part of the budget for bodies.
    _share: Share,
}

/// Why a connection begins no further response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Stopping,
    TooOld,
}

/// How a connection ends.
#[derive(Debug)]
enum End {
    /// The client has closed it, or is gone.
    Gone,
    /// The client does not answer.
    Dead(CloseReason),
    /// The gateway closes it, with this code and reason.
    Close(CloseCode, &'static str),
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Connection<'_, S> {
    async fn run(&mut self, mut close: impl Future<Output = ()> + Unpin) -> End {
        loop {
            self.running
                .start(self.state, self.connection, &self.opening, self.ending);
            if let Some(end) = self.end_if_done().await {
                return end;
            }
            let deadline = self.deadline();
            let has_turns = !self.running.turns.is_empty();
            let upstreams = self.running.upstreams.clone();
            let handled = tokio::select! {
                () = &mut close, if self.ending != Some(Ending::Stopping) => {
                    self.ending = Some(Ending::Stopping);
                    Ok(())
                }
                Some(output) = self.running.turns.next(), if has_turns => self.send(output).await,
                message = self.socket.next() => match message {
                    Some(Ok(message)) => self.receive(message).await,
                    Some(Err(error)) => Err(self.failed(&error)),
                    None => Err(End::Gone),
                },
                () = sleep_until(deadline) => self.expire().await,
                never = upstreams.keep_alive() => match never {},
            };
            if let Err(end) = handled {
                return end;
            }
        }
    }

    /// Returns the end of a connection that begins no further response, once it has none.
    async fn end_if_done(&mut self) -> Option<End> {
        if !self.running.busy.is_empty() {
            return None;
        }
        match self.ending? {
            Ending::Stopping => Some(End::Close(CloseCode::Away, "the server is shutting down")),
            Ending::TooOld => {
                let error = event::error(&None, &self.too_old());
                let sent = self.write(error).await;
                Some(
                    sent.err()
                        .unwrap_or(End::Close(CloseCode::Policy, "the connection is too old")),
                )
            }
        }
    }

    fn too_old(&self) -> ApiError {
        event::too_old(self.state.websocket.max_age.as_secs() / 60)
    }

    /// Sends an output of a response, and what is ready behind it.
    async fn send(&mut self, output: Output) -> Result<(), End> {
        let mut next = Some(output);
        let mut sent = 0;
        while let Some(output) = next.take() {
            match output {
                Output::Message(message) => self.feed(message).await?,
                Output::Ended(lane, finished) => self.ended(&lane, finished),
            }
            sent += 1;
            if sent < MAX_BATCH {
                next = self.running.turns.next().now_or_never().flatten();
            }
        }
        self.flush().await
    }

    /// Notes the end of a response.
    fn ended(&mut self, lane: &Lane, finished: Option<Finished>) {
        self.used = Instant::now();
        self.running.busy.remove(lane);
        if let Some(Finished { id, before, items }) = finished {
            self.running.conversations.keep(id, before, items);
        }
        if self.state.lifecycle.is_stopping() {
            self.ending.get_or_insert(Ending::Stopping);
        }
    }

    /// Handles a message of the client.
    async fn receive(&mut self, message: Message) -> Result<(), End> {
        self.pinged = None;
        let unfinished = self.socket.get_mut();
        match &message {
            // A header and a mask come before the payload.
            Message::Ping(payload) | Message::Pong(payload) => unfinished.finish(payload.len() + 6),
            _ => unfinished.finish(usize::MAX),
        }
        match message {
            Message::Text(text) => {
                self.used = Instant::now();
                self.create(text.into()).await
            }
            Message::Binary(_) => Err(End::Close(
                CloseCode::Unsupported,
                "messages are events in text",
            )),
            Message::Close(_) => Err(End::Gone),
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => Ok(()),
        }
    }

    /// Handles an event of the client.
    async fn create(&mut self, text: Bytes) -> Result<(), End> {
        let document = str::from_utf8(&text).unwrap_or_default();
        let event = match ClientEvent::read(document) {
            Ok(event) => event,
            Err(error) => return self.refuse(&None, &error).await,
        };
        if event.kind == Kind::Steer {
            return self.write(event::steering_failed(document)).await;
        }
        let lane = match event.lane() {
            Ok(lane) => lane,
            Err(error) => return self.refuse(&None, &error).await,
        };
        if let Err(error) = self.accept(lane.clone(), event, text) {
            return self.refuse(&lane, &error).await;
        }
        Ok(())
    }

    /// Puts a request in the queue of its stream.
    fn accept(&mut self, lane: Lane, event: ClientEvent, text: Bytes) -> Result<(), ApiError> {
        match self.ending {
            Some(Ending::Stopping) => return Err(event::stopping()),
            Some(Ending::TooOld) => return Err(self.too_old()),
            None => {}
        }
        if event.background == Some(true) {
            return Err(event::no_background());
        }
        let lanes = &mut self.running.lanes;
        if lane.is_some() && !lanes.contains(&lane) {
            if lanes.len() >= MAX_STREAMS {
                return Err(event::too_many_streams());
            }
            lanes.insert(lane.clone());
        }
        if self.running.waiting.len() >= MAX_WAITING {
            return Err(ApiError::concurrency_limit());
        }
        let share = self.state.budget.share(&self.opening.key);
        share.grow(text.len()).map_err(|refusal| refusal.error)?;
        self.running.waiting.push_back(Waiting {
            lane,
            event,
            text,
            _share: share,
        });
        Ok(())
    }

    async fn refuse(&mut self, lane: &Lane, error: &ApiError) -> Result<(), End> {
        self.write(event::error(lane, error)).await
    }

    /// The time of the next look at the timeouts.
    fn deadline(&self) -> Instant {
        let settings = &self.state.websocket;
        let socket = self.socket.get_ref();
        let ping = match self.pinged {
            Some(pinged) => pinged + settings.pong_timeout,
            None => socket.last_read() + settings.ping_interval,
        };
        let idle = self.is_idle().then(|| self.used + settings.idle_timeout);
        // A message that begins while the socket is waited for is not noticed before the next look.
        let began = socket.began().unwrap_or_else(Instant::now);
        let message = Some(began + self.state.limits.body_timeout);
        let age = self
            .ending
            .is_none()
            .then(|| self.opened + settings.max_age);
        let times = [idle, message, age].into_iter().flatten();
        times.fold(ping, Instant::min)
    }

    fn is_idle(&self) -> bool {
        self.running.busy.is_empty() && self.running.waiting.is_empty()
    }

    /// Acts on the timeouts that have passed.
    async fn expire(&mut self) -> Result<(), End> {
        let (now, settings) = (Instant::now(), &self.state.websocket);
        let socket = self.socket.get_ref();
        let has_passed = |since: Instant, time| now >= since + time;
        if let Some(pinged) = self.pinged {
            if socket.last_read() > pinged {
                self.pinged = None;
            } else if has_passed(pinged, settings.pong_timeout) {
                return Err(End::Dead(CloseReason::Unresponsive));
            }
        }
        let began = socket.began();
        if began.is_some_and(|began| has_passed(began, self.state.limits.body_timeout)) {
            self.connection.close(CloseReason::Unresponsive);
            return Err(End::Close(CloseCode::Policy, "the message takes too long"));
        }
        if self.is_idle() && has_passed(self.used, settings.idle_timeout) {
            self.connection.close(CloseReason::Idle);
            return Err(End::Close(CloseCode::Away, "the connection is idle"));
        }
        if has_passed(self.opened, settings.max_age) {
            self.ending.get_or_insert(Ending::TooOld);
        }
        if self.pinged.is_none() && has_passed(socket.last_read(), settings.ping_interval) {
            self.pinged = Some(now);
            let ping = Message::Ping(Bytes::new());
            return self
                .socket
                .send(ping)
                .await
                .map_err(|error| self.failed(&error));
        }
        Ok(())
    }

    async fn write(&mut self, message: String) -> Result<(), End> {
        self.feed(message).await?;
        self.flush().await
    }

    async fn feed(&mut self, message: String) -> Result<(), End> {
        let fed = self.socket.feed(Message::Text(message.into())).await;
        fed.map_err(|error| self.failed(&error))
    }

    async fn flush(&mut self) -> Result<(), End> {
        let flushed = self.socket.flush().await;
        flushed.map_err(|error| self.failed(&error))
    }

    /// Returns the end of a connection with an error
    /// ([RFC 6455, section 7.4.1](https://www.rfc-editor.org/rfc/rfc6455#section-7.4.1)).
    fn failed(&self, error: &Error) -> End {
        tracing::debug!(%error, "WebSocket ends");
        match error {
            Error::Capacity(CapacityError::MessageTooLong { .. }) => {
                End::Close(CloseCode::Size, "the message is larger than the limit")
            }
            Error::Utf8(_) => End::Close(CloseCode::Invalid, "the text is not UTF-8"),
            Error::Protocol(_) => End::Close(CloseCode::Protocol, "the frame is invalid"),
            _ if self.socket.get_ref().is_exhausted() => {
                End::Close(CloseCode::Again, "the service is overloaded")
            }
            _ => End::Gone,
        }
    }

    /// Ends the running responses, and closes the socket.
    async fn close(mut self, end: End) {
        drop(self.running);
        match end {
            // The answer to the close frame of the client, if there was one.
            End::Gone => drop(timeout(CLOSE_TIMEOUT, self.socket.flush()).await),
            End::Dead(reason) => return self.connection.close(reason),
            End::Close(code, reason) => {
                let frame = CloseFrame {
                    code,
                    reason: reason.into(),
                };
                let closing = async {
                    self.socket.close(Some(frame)).await?;
                    // The client closes its side too, unless it has sent something else before.
                    while self.socket.next().await.transpose()?.is_some() {}
                    Ok::<_, Error>(())
                };
                // There is nothing to do if the client does not.
                let _ = timeout(CLOSE_TIMEOUT, closing).await;
            }
        }
        let _ = self.socket.get_mut().shutdown().await;
    }
}

impl Running {
    /// Starts the requests that have to wait no longer.
    fn start(
        &mut self,
        state: &Arc<GatewayState>,
        connection: &Arc<ConnectionState>,
        opening: &Opening,
        ending: Option<Ending>,
    ) {
        if ending.is_some() {
            return self.waiting.clear();
        }
        while self.busy.len() < MAX_RUNNING {
            let is_free = |waiting: &Waiting| !self.busy.contains(&waiting.lane);
            let next = self.waiting.iter().position(is_free);
            let Some(next) = next.and_then(|next| self.waiting.remove(next)) else {
                return;
            };
            let previous = next.event.previous_response_id.as_deref();
            let turn = Turn {
                before: self.conversations.before(previous),
                generates: next.event.generate != Some(false),
                lane: next.lane.clone(),
                text: next.text,
            };
            self.busy.insert(next.lane);
            let headers = opening.headers.clone();
            let (state, upstreams) = (Arc::clone(state), self.upstreams.clone());
            let turn = turn::run(turn, headers, state, connection, upstreams);
            self.turns.push(turn);
        }
    }
}

/// The initial size of a buffer of a socket, in bytes.
const BUFFER: usize = 2048;
/// The number of running responses of a connection, as in the guide.
const MAX_RUNNING: usize = 16;
/// The number of requests that wait. The guide names no number.
const MAX_WAITING: usize = 64;
/// The number of events that are written before they are flushed.
const MAX_BATCH: usize = 32;
/// The time for which the client's part of closing is waited for.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
