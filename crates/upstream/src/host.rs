//! One host: its connection pool, its circuit breaker and its timeouts.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use engine::EngineError;
use http::header::{
    ACCEPT, CONNECTION, CONTENT_TYPE, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderName, HeaderValue, Method, Request};
use net::Connection;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;

use crate::breaker::{Breaker, Outcome};
use crate::connect::Connector;
use crate::credential::{Credential, CurrentCredential};
use crate::event_memory::EventMemory;
use crate::failure::Failure;
use crate::health::HostHealth;
use crate::http1::unsent::{self, Unsent};
use crate::http1::{ConnectionEnded, Http1Connection};
use crate::options::Options;
use crate::origin::Origin;
use crate::outgoing::Outgoing;
use crate::pool::Pool;
use crate::request_headers::{self, HostHeaders};
use crate::response_head::ResponseHead;
use crate::sockets::HostId;
use crate::source::Source;

pub(crate) struct Host {
    origin: Origin,
    /// The headers of every request, with the first credential.
    headers: HostHeaders,
    credential: Arc<CurrentCredential>,
    /// The headers of responses that are for the client.
    pub(crate) pass_headers: Vec<HeaderName>,
    connector: Arc<Connector>,
    pub(crate) pool: Arc<Pool>,
    breaker: Mutex<Breaker>,
    pub(crate) connect_timeout: Duration,
    pub(crate) head_timeout: Duration,
    /// The timeout between two chunks of a body.
    pub(crate) idle_timeout: Duration,
    /// The memory for the long events of its streams.
    pub(crate) event_memory: EventMemory,
    /// True if streams of Responses may go over a WebSocket.
    pub(crate) has_websocket: bool,
    /// True if it refuses `instructions` together with `previous_response_id`.
    pub(crate) no_instructions_with_previous: bool,
    pub(crate) id: HostId,
}

impl Host {
    pub(crate) fn new(
        origin: Origin,
        options: &Options,
        credential: Arc<CurrentCredential>,
        connector: Arc<Connector>,
        event_memory: EventMemory,
    ) -> Self {
        let mut headers = request_headers::for_host(origin.authority.clone(), &options.headers);
        if let Some(first) = &options.credential {
            first.set(&mut headers);
        }
        Self {
            headers: HostHeaders::new(headers),
            credential,
            pass_headers: options.pass_headers.clone(),
            origin,
            connector,
            pool: Arc::default(),
            breaker: Mutex::new(Breaker::new(options.breaker)),
            connect_timeout: options.connect_timeout,
            head_timeout: options.head_timeout,
            idle_timeout: options.event_idle,
            event_memory,
            has_websocket: options.websocket,
            no_instructions_with_previous: options.no_instructions_with_previous,
            id: HostId::new(),
        }
    }

    pub(crate) fn breaker<T>(&self, act: impl FnOnce(&mut Breaker, std::time::Instant) -> T) -> T {
        // A panic cannot leave the breaker in an inconsistent state.
        let mut breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut breaker, Instant::now().into_std())
    }

    /// The health of the host, for operators.
    pub(crate) fn health(&self) -> HostHealth {
        HostHealth {
            host: self
                .origin
                .authority
                .to_str()
                .unwrap_or_default()
                .to_owned(),
            circuit: self.breaker(|breaker, now| breaker.circuit(now)),
            idle_connections: self.pool.len(),
        }
    }

    /// Sends a request over an idle connection, or over a new one.
    ///
    /// A host may close an idle connection just as a request is sent over it. If the connection
    /// closes soon after sending, without a single byte of a response, that is what happened: the
    /// request is sent again, over a new connection. If it closes later, the host may have worked
    /// on the request.
    pub(crate) async fn exchange(
        &self,
        outgoing: &Outgoing,
        deadline: Instant,
    ) -> Result<(Source, ResponseHead), Failure> {
        if let Some(connection) = self.pool.take() {
            match self.send_to_host(connection, outgoing, deadline).await {
                Err(Failure {
                    closed_silently: true,
                    ..
                }) => {}
                sent => return sent,
            }
        }
        // Boxed, because it is rare, and large because of TLS: unboxed, the future of every request
        // would be larger.
        let started = Instant::now();
        let connect_deadline = deadline.min(started + self.connect_timeout);
        let io = Box::pin(self.connect(connect_deadline)).await?;
        let connection = Http1Connection::new(io, started.elapsed());
        self.send_to_host(connection, outgoing, deadline).await
    }

    /// Opens a connection, with TLS if the host has it.
    pub(crate) async fn connect(&self, deadline: Instant) -> Result<Box<dyn Connection>, Failure> {
        self.connector.connect(&self.origin, deadline).await
    }

    async fn send_to_host(
        &self,
        mut connection: Box<Http1Connection>,
        outgoing: &Outgoing,
        deadline: Instant,
    ) -> Result<(Source, ResponseHead), Failure> {
        let request = self.request(outgoing)?;
        let started = Instant::now();
        // The head of a plain reply comes with its last token.
        let deadline = match outgoing.accept_stream {
            true => deadline.min(started + self.head_timeout),
            false => deadline,
        };
        let has_body = outgoing.method != Method::HEAD;
        let mut timer = std::mem::take(&mut connection.timer);
        let sent = {
            let mut sending = pin!(connection.send(request, has_body, |status, headers| {
                ResponseHead::of(status, headers, &self.pass_headers)
            }));
            let until_deadline = |cx: &mut Context<'_>| match sending.as_mut().poll(cx) {
                Poll::Ready(sent) => Poll::Ready(Some(sent)),
                Poll::Pending => timer.poll(cx, deadline).map(|()| None),
            };
            poll_fn(until_deadline).await
        };
        connection.timer = timer;
        let Some(sent) = sent else {
            return Err(Failure::unanswered(EngineError::Unanswered(
                "response head timeout".to_owned(),
            )));
        };
        match sent {
            Ok(head) => Ok((Source::Http1(connection), head)),
            Err(ConnectionEnded { error, was_written }) => {
                let error = EngineError::Upstream(error.to_string());
                let was_stale =
                    !connection.has_received() && is_stale(started, connection.connect_time());
                Err(Failure {
                    error,
                    may_retry: !was_written,
                    closed_silently: !was_written || was_stale,
                    outcome: Outcome::Failure,
                })
            }
        }
    }

    /// Returns the request that opens a WebSocket for streams such as the one that `outgoing` asks
    /// for, and its credential if that is no longer the first one.
    pub(crate) fn upgrade(
        &self,
        outgoing: &Outgoing,
    ) -> Result<(Request<()>, Option<Credential>), Failure> {
        let scheme = if self.origin.tls.is_some() {
            "wss"
        } else {
            "ws"
        };
        let authority = self.origin.authority.to_str().unwrap_or_default();
        let target = self.origin.target(&outgoing.path).map_err(invalid)?;
        let request = Request::get(format!("{scheme}://{authority}{target}")).body(());
        let mut request = request.map_err(invalid)?;
        let credential = self.credential.replacement();
        let mut headers = self.headers.merged(credential.as_ref(), outgoing);
        headers.remove(CONTENT_TYPE);
        headers.remove(ACCEPT);
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        let key = HeaderValue::try_from(generate_key()).map_err(|error| invalid(error.into()))?;
        headers.insert(SEC_WEBSOCKET_KEY, key);
        *request.headers_mut() = headers;
        Ok((request, credential))
    }

    /// Returns true if requests carry this credential, which is `None` for the first one.
    pub(crate) fn is_current(&self, sent: Option<&Credential>) -> bool {
        self.credential.replacement().as_ref() == sent
    }

    fn request(&self, outgoing: &Outgoing) -> Result<Unsent, Failure> {
        let target = self.origin.target(&outgoing.path).map_err(invalid)?;
        let length = outgoing.body.len();
        let mut head = Vec::with_capacity(HEAD_CAPACITY + unsent::joined(&outgoing.body));
        for part in [outgoing.method.as_str(), " ", &target, " HTTP/1.1\r\n"] {
            head.extend_from_slice(part.as_bytes());
        }
        let credential = self.credential.replacement();
        self.headers.write(&mut head, credential.as_ref(), outgoing);
        // RFC 9110 §8.6: also for a body that a POST could have and does not.
        if length > 0 || outgoing.method == Method::POST {
            for part in ["content-length: ", &length.to_string(), "\r\n"] {
                head.extend_from_slice(part.as_bytes());
            }
        }
        head.extend_from_slice(b"\r\n");
        Ok(Unsent::new(head, &outgoing.body))
    }
}

/// Returns true if a request that was sent at `started` has failed as soon as one over a connection
/// that its host had closed before: the host says so within a round trip.
pub(crate) fn is_stale(started: Instant, connect_time: Duration) -> bool {
    started.elapsed() < MAX_STALE.min(connect_time + STALE_MARGIN)
}

/// The failure of a request whose target is no URL.
fn invalid(error: http::Error) -> Failure {
    Failure::unanswered(EngineError::Internal(error.to_string()))
}

/// A request fails within this time and the time of connecting, if the connection it was sent over was
/// already closed by the host: connecting takes at least a round trip.
const STALE_MARGIN: Duration = Duration::from_millis(250);
/// The longest time in which it fails.
const MAX_STALE: Duration = Duration::from_secs(1);
/// The memory for the head of a request: usual heads are shorter.
const HEAD_CAPACITY: usize = 512;
