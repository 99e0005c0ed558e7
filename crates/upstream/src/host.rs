//! One host: what it is asked over, and whether it is asked at all.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::EngineError;
use http::{HeaderMap, Method, Request, Response};
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};

use crate::breaker::Breaker;
use crate::connect::Connector;
use crate::host_attempt::HostAttempt;
use crate::http1::{Http1Connection, describe};
use crate::origin::Origin;
use crate::outgoing::{Outgoing, Sending};
use crate::pool::Pool;
use crate::{Failure, Options, Stage, headers};

pub(crate) struct Host {
    origin: Origin,
    /// What every request has.
    headers: HeaderMap,
    connector: Arc<Connector>,
    pool: Arc<Pool>,
    breaker: Mutex<Breaker>,
    connect: Duration,
    head: Duration,
    idle: Duration,
}

/// Why there is no answer over a connection.
enum Unanswered {
    /// The connection ended before it brought a single byte.
    Silent(Failure),
    /// Something else.
    Failed(Failure),
}

impl Host {
    pub(crate) fn new(origin: Origin, options: &Options, connector: Arc<Connector>) -> Self {
        Self {
            headers: headers::of_all(&origin, options),
            origin,
            connector,
            pool: Arc::default(),
            breaker: Mutex::new(Breaker::new(options.breaker)),
            connect: options.connect,
            head: options.head,
            idle: options.idle,
        }
    }

    /// HostAttempt to ask, if the breaker gives it.
    pub(crate) fn admit(self: &Arc<Self>) -> Option<HostAttempt> {
        Some(HostAttempt::new(Arc::clone(self), self.breaker(Breaker::admit)?))
    }

    pub(crate) fn is_open(&self, now: Instant) -> bool {
        self.breaker(|breaker, _| breaker.is_open(now.into_std()))
    }

    pub(crate) fn breaker<T>(&self, act: impl FnOnce(&mut Breaker, std::time::Instant) -> T) -> T {
        // No panic leaves the breaker half changed.
        let mut breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut breaker, Instant::now().into_std())
    }

    /// The longest pause between two pieces of a body.
    pub(crate) fn idle(&self) -> Duration {
        self.idle
    }

    /// Keeps a connection for the next request.
    pub(crate) fn keep(&self, link: Http1Connection) {
        self.pool.put(link);
    }

    /// Sends over a connection that waits, or else over a new one.
    ///
    /// A host may close a connection that waits just as a request is sent over it. When nothing at all comes back, that
    /// is what has happened, if it ends soon: the request is sent again, over a new connection. Later the host may have
    /// worked on it.
    pub(crate) async fn exchange(
        &self,
        outgoing: &Outgoing,
        deadline: Instant,
    ) -> Result<(Http1Connection, Response<Incoming>), Failure> {
        if let Some(link) = self.pool.take() {
            match self.send(link, outgoing, deadline).await {
                Ok(answer) => return Ok(answer),
                Err(Unanswered::Silent(_)) => {}
                Err(Unanswered::Failed(failure)) => return Err(failure),
            }
        }
        // Boxed, because it is rare, and large with TLS in it: every request would have room for it.
        let link = Box::pin(self.connect(deadline)).await?;
        self.send(link, outgoing, deadline).await.map_err(|unanswered| match unanswered {
            Unanswered::Silent(failure) | Unanswered::Failed(failure) => failure,
        })
    }

    async fn connect(&self, deadline: Instant) -> Result<Http1Connection, Failure> {
        let deadline = deadline.min(Instant::now() + self.connect);
        let io = self.connector.connect(&self.origin, deadline).await?;
        let no_http = |error| Failure::unsent(Stage::Connect, EngineError::Upstream(describe(&error)));
        Http1Connection::open(io).await.map_err(no_http)
    }

    async fn send(
        &self,
        mut link: Http1Connection,
        outgoing: &Outgoing,
        deadline: Instant,
    ) -> Result<(Http1Connection, Response<Incoming>), Unanswered> {
        let request = self.request(outgoing).map_err(Unanswered::Failed)?;
        let begun = Instant::now();
        let deadline = deadline.min(begun + self.head);
        let Ok(sent) = timeout_at(deadline, link.send(request)).await else {
            let late = EngineError::Timeout("no head of an answer".to_owned());
            return Err(Unanswered::Failed(Failure::unanswered(late)));
        };
        match sent {
            Ok(response) => Ok((link, response)),
            Err(ended) => {
                let error = EngineError::Upstream(describe(&ended.error));
                Err(match (ended.was_written, link.was_heard()) {
                    (false, _) => Unanswered::Silent(Failure::unsent(Stage::Head, error)),
                    (true, false) if begun.elapsed() < STALE => Unanswered::Silent(Failure::unanswered(error)),
                    (true, _) => Unanswered::Failed(Failure::unanswered(error)),
                })
            }
        }
    }

    fn request(&self, outgoing: &Outgoing) -> Result<Request<Sending>, Failure> {
        let no_target = |error: http::Error| Failure::unanswered(EngineError::Internal(error.to_string()));
        let mut request = Request::new(Sending::new(&outgoing.body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.origin.target(outgoing.path).map_err(no_target)?;
        *request.headers_mut() = headers::of_one(&self.headers, outgoing);
        Ok(request)
    }
}

/// A connection that had gone stale ends so soon after a request was sent over it.
const STALE: Duration = Duration::from_secs(1);
