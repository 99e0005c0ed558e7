//! The TLS handshakes of clients.

use std::future::poll_fn;
use std::io;
use std::num::NonZero;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use telemetry::metrics::Metrics;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::rustls::server::Acceptor;
use tokio_rustls::rustls::{Error, ServerConfig};
use tokio_rustls::server::TlsStream;

/// The TLS of a listener.
pub struct TlsListener {
    /// The name of the listener in the log and in the metrics.
    name: &'static str,
    /// The current configuration, which a reload replaces.
    config: watch::Receiver<Arc<ServerConfig>>,
    /// The time for a handshake.
    time: Duration,
    /// Permits to compute: a signature takes up to a millisecond of a thread that open streams need
    /// too.
    computing: Semaphore,
    metrics: Arc<Metrics>,
    log: Mutex<FailureLog>,
}

/// Failures since the last line of the log.
struct FailureLog {
    failures: u64,
    /// The time of the next line.
    next: Instant,
}

impl TlsListener {
    /// The TLS of a listener. A handshake has to be complete within `time`.
    pub fn new(
        name: &'static str,
        config: watch::Receiver<Arc<ServerConfig>>,
        time: Duration,
        metrics: Arc<Metrics>,
    ) -> Self {
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let log = FailureLog {
            failures: 0,
            next: Instant::now(),
        };
        Self {
            name,
            config,
            time,
            computing: Semaphore::new((threads / 2).max(1)),
            metrics,
            log: Mutex::new(log),
        }
    }

    /// Completes the handshake of a client. `None` if it fails, which is counted and logged.
    pub(crate) async fn accept(&self, socket: TcpStream) -> Option<TlsStream<TcpStream>> {
        let accepted = timeout(self.time, self.handshake(socket)).await;
        match accepted.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(stream) => Some(stream),
            Err(error) => {
                self.failed(&error);
                None
            }
        }
    }

    async fn handshake(&self, socket: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let hello = LazyConfigAcceptor::new(Acceptor::default(), socket).await?;
        let config = Arc::clone(&self.config.borrow());
        let mut rest = pin!(hello.into_stream(config));
        // The first poll computes. The others wait for the client, and need no permit.
        let computing = self.computing.acquire().await.map_err(io::Error::other)?;
        let computed = poll_fn(|cx| Poll::Ready(rest.as_mut().poll(cx))).await;
        drop(computing);
        match computed {
            Poll::Ready(accepted) => accepted,
            Poll::Pending => rest.await,
        }
    }

    /// Counts a failure. The log has at most one line in ten seconds, with the latest failure and the
    /// number of those since the line before.
    fn failed(&self, error: &io::Error) {
        let reason = reason(error);
        self.metrics.tls_handshake_failed(self.name, reason);
        tracing::debug!(listener = self.name, reason, %error, "TLS handshake failed");
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.failures += 1;
        let now = Instant::now();
        if now >= log.next {
            let failures = std::mem::take(&mut log.failures);
            log.next = now + LOG_INTERVAL;
            tracing::warn!(listener = self.name, failures, reason, %error, "TLS handshakes failed");
        }
    }
}

/// The reason of a failure, from a closed list.
fn reason(error: &io::Error) -> &'static str {
    let cause = error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<Error>());
    match (cause, error.kind()) {
        (Some(Error::NoCertificatesPresented | Error::InvalidCertificate(_)), _) => {
            "client_certificate"
        }
        // Clients report so that they do not accept the certificate of the gateway.
        (Some(Error::AlertReceived(_)), _) => "client_alert",
        (Some(Error::PeerIncompatible(_) | Error::NoApplicationProtocol), _) => "incompatible",
        (Some(_), _) => "not_tls",
        (None, io::ErrorKind::TimedOut) => "timeout",
        (None, _) => "closed",
    }
}

/// The least time between two lines of the log.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
