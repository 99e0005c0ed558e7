//! One host: what it is asked over, and whether it is asked at all.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use engine::EngineError;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, RETRY_AFTER, TRANSFER_ENCODING,
    USER_AGENT,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use tokio::time::{Instant, timeout_at};

use crate::breaker::{Breaker, Outcome, Ticket};
use crate::connect::Connector;
use crate::incoming::{self, Incoming, IncomingBody, MediaKind};
use crate::link::Link;
use crate::options::OURS;
use crate::origin::Origin;
use crate::outgoing::{Outgoing, Sending};
use crate::pool::Pool;
use crate::{Failure, Options, Stage, retry_after};

pub(crate) struct Host {
    origin: Origin,
    /// What every request has.
    headers: HeaderMap,
    connector: Arc<Connector>,
    pool: Arc<Pool>,
    breaker: Mutex<Breaker>,
    limits: Limits,
}

#[derive(Clone, Copy)]
struct Limits {
    connect: Duration,
    head: Duration,
    idle: Duration,
}

/// Leave to ask a host once. What becomes of the request is told to the breaker, at the latest by dropping this.
pub(crate) struct Leave {
    host: Arc<Host>,
    ticket: Option<Ticket>,
}

/// An answer, and for how long the host asks to be left alone.
pub(crate) struct Answer {
    pub(crate) incoming: Incoming,
    pub(crate) pause: Option<Duration>,
}

/// Why there is no answer over a connection.
enum Unanswered {
    /// The connection was closed before it brought a single byte.
    Unheard(hyper::Error),
    Failed(Failure),
}

impl Host {
    pub(crate) fn new(origin: Origin, options: &Options, connector: Arc<Connector>) -> Self {
        Self {
            headers: headers(&origin, options),
            origin,
            connector,
            pool: Arc::default(),
            breaker: Mutex::new(Breaker::new(options.breaker)),
            limits: Limits { connect: options.connect, head: options.head, idle: options.idle },
        }
    }

    /// Leave to ask, if the breaker gives it.
    pub(crate) fn admit(self: &Arc<Self>) -> Option<Leave> {
        let ticket = self.breaker(Breaker::admit)?;
        Some(Leave { host: Arc::clone(self), ticket: Some(ticket) })
    }

    pub(crate) fn is_open(&self, now: Instant) -> bool {
        self.breaker(|breaker, _| breaker.is_open(now.into_std()))
    }

    fn breaker<T>(&self, act: impl FnOnce(&mut Breaker, std::time::Instant) -> T) -> T {
        let now = Instant::now().into_std();
        // No panic leaves the breaker half changed.
        act(&mut self.breaker.lock().unwrap_or_else(PoisonError::into_inner), now)
    }

    /// Sends over a connection that waits, or else over a new one.
    ///
    /// A host may close a connection that waits just as a request is sent over it. When nothing at all comes back, that
    /// is what has happened: the request is sent again, over a new connection.
    async fn exchange(
        &self,
        outgoing: &Outgoing,
        deadline: Instant,
    ) -> Result<(Link, Response<hyper::body::Incoming>), Failure> {
        if let Some(link) = self.pool.take() {
            match self.send(link, outgoing, deadline).await {
                Ok(answer) => return Ok(answer),
                Err(Unanswered::Unheard(_)) => {}
                Err(Unanswered::Failed(failure)) => return Err(failure),
            }
        }
        let link = self.connect(deadline).await?;
        self.send(link, outgoing, deadline).await.map_err(|unanswered| match unanswered {
            Unanswered::Unheard(error) => Failure::unanswered(upstream(&error)),
            Unanswered::Failed(failure) => failure,
        })
    }

    async fn connect(&self, deadline: Instant) -> Result<Link, Failure> {
        let deadline = deadline.min(Instant::now() + self.limits.connect);
        let io = self.connector.connect(&self.origin, deadline).await?;
        Link::open(io).await.map_err(|error| Failure::unsent(Stage::Connect, upstream(&error)))
    }

    async fn send(
        &self,
        mut link: Link,
        outgoing: &Outgoing,
        deadline: Instant,
    ) -> Result<(Link, Response<hyper::body::Incoming>), Unanswered> {
        let request = self.request(outgoing).map_err(Unanswered::Failed)?;
        let deadline = deadline.min(Instant::now() + self.limits.head);
        match timeout_at(deadline, link.send(request)).await {
            Ok(Ok(response)) => Ok((link, response)),
            Ok(Err(error)) if !link.was_heard() => Err(Unanswered::Unheard(error)),
            Ok(Err(error)) => Err(Unanswered::Failed(Failure::unanswered(upstream(&error)))),
            Err(_) => {
                let late = EngineError::Timeout("no head of an answer".to_owned());
                Err(Unanswered::Failed(Failure::unanswered(late)))
            }
        }
    }

    fn request(&self, outgoing: &Outgoing) -> Result<Request<Sending>, Failure> {
        let target = self.origin.target(outgoing.path);
        let target = target.map_err(|error| Failure::unanswered(EngineError::Internal(error.to_string())))?;
        let mut request = Request::new(Sending::new(&outgoing.body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = target;
        *request.headers_mut() = self.headers_for(outgoing);
        Ok(request)
    }

    fn headers_for(&self, outgoing: &Outgoing) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.insert(CONTENT_TYPE, outgoing.content_type.clone());
        if outgoing.accept_stream {
            headers.insert(ACCEPT, HeaderValue::from_static(EVENT_STREAM));
        }
        for (name, value) in &outgoing.headers {
            let is_ours = OURS.contains(name) || headers.get(name).is_some_and(HeaderValue::is_sensitive);
            if !is_ours {
                headers.insert(name, value.clone());
            }
        }
        headers
    }
}

impl Leave {
    /// Asks once, until `deadline` at the latest.
    pub(crate) async fn ask(mut self, outgoing: &Outgoing, deadline: Instant) -> Result<Answer, Failure> {
        let host = Arc::clone(&self.host);
        let judged = match host.exchange(outgoing, deadline).await {
            Ok((link, response)) => check(&response).map(|()| (link, response)),
            Err(failure) => Err(failure),
        };
        match judged {
            Ok((link, response)) => Ok(self.answer(link, response)),
            Err(failure) => {
                self.settle(Outcome::Failure);
                Err(failure)
            }
        }
    }

    fn answer(mut self, link: Link, response: Response<hyper::body::Incoming>) -> Answer {
        let (head, body) = response.into_parts();
        if head.status.is_server_error() {
            self.settle(Outcome::Failure);
        } else {
            self.begun();
        }
        // Two framings are one too many to know where a next answer would begin.
        let is_framed_once =
            !(head.headers.contains_key(CONTENT_LENGTH) && head.headers.contains_key(TRANSFER_ENCODING));
        let pause = pause(&head.headers);
        let incoming = Incoming {
            status: head.status,
            kind: MediaKind::of(&head.headers),
            retry_after: pause.map(retry_after::clamp),
            body: IncomingBody::new(body, link, is_framed_once, self),
        };
        Answer { incoming, pause }
    }

    /// The host answers. A probe need not wait for the end, which may be minutes away.
    fn begun(&mut self) {
        if self.ticket.as_ref().is_some_and(Ticket::is_probe) {
            self.settle(Outcome::Success);
            self.ticket = self.host.breaker(Breaker::admit);
        }
    }

    /// Tells the breaker, once.
    pub(crate) fn settle(&mut self, outcome: Outcome) {
        if let Some(ticket) = self.ticket.take() {
            self.host.breaker(|breaker, now| breaker.settle(ticket, outcome, now));
        }
    }

    /// The longest pause between two pieces of a body.
    pub(crate) fn idle(&self) -> Duration {
        self.host.limits.idle
    }

    /// Keeps a connection for the next request.
    pub(crate) fn keep(&self, link: Link) {
        self.host.pool.put(link);
    }
}

impl Drop for Leave {
    fn drop(&mut self) {
        self.settle(Outcome::Unknown);
    }
}

/// Refuses answers that nobody could read.
fn check(response: &Response<hyper::body::Incoming>) -> Result<(), Failure> {
    if response.status().is_informational() {
        let strange = EngineError::Upstream(format!("it answered {}", response.status()));
        return Err(Failure::unanswered(strange));
    }
    if response.headers().get_all(CONTENT_ENCODING).iter().any(|coding| coding != IDENTITY) {
        return Err(Failure::unanswered(EngineError::Upstream("its answer has a content encoding".to_owned())));
    }
    Ok(())
}

fn pause(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?;
    #[allow(clippy::disallowed_methods, reason = "a date in an answer is a date on the wall")]
    retry_after::parse(value, SystemTime::now())
}

/// These headers and no others: what the operator has set, and our own over it.
fn headers(origin: &Origin, options: &Options) -> HeaderMap {
    let mut headers = options.headers.clone();
    headers.insert(HOST, origin.authority.clone());
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(IDENTITY));
    headers.insert(ACCEPT, HeaderValue::from_static(JSON));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    if let Some(credential) = &options.credential {
        headers.insert(&credential.name, credential.value.clone());
    }
    headers
}

fn upstream(error: &hyper::Error) -> EngineError {
    EngineError::Upstream(incoming::describe(error))
}

const AGENT: &str = concat!("sluicegate/", env!("CARGO_PKG_VERSION"));
const IDENTITY: &str = "identity";
const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";
