//! The certificates of the listeners, which are read again while the gateway serves.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use config::{Config, ConfigError, Limits, Tls};
use jiff::Timestamp;
use listen::TlsListener;
use net::{ServerFiles, ServerTls};
use policy::clock;
use telemetry::metrics::Metrics;
use tokio::sync::watch;
use tokio_rustls::rustls::ServerConfig;

/// A listener that can have a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    Clients,
    Admin,
}

/// The certificate of a listener with TLS.
pub(super) struct Certificate {
    listener: Listener,
    files: Tls,
    config: watch::Sender<Arc<ServerConfig>>,
    not_after: Duration,
}

impl Listener {
    /// All listeners.
    pub(crate) const ALL: [Self; 2] = [Self::Clients, Self::Admin];

    /// The name in the log and in the metrics.
    fn name(self) -> &'static str {
        match self {
            Self::Clients => "clients",
            Self::Admin => "admin",
        }
    }

    /// The section of its certificate in the configuration.
    pub(crate) fn section(self) -> &'static str {
        match self {
            Self::Clients => "tls",
            Self::Admin => "admin_tls",
        }
    }

    /// The files of its certificate, if it has TLS.
    pub(crate) fn files(self, config: &Config) -> Option<&Tls> {
        match self {
            Self::Clients => config.tls.as_ref(),
            Self::Admin => config.admin_tls.as_ref(),
        }
    }

    /// Reads the files of its certificate.
    pub(crate) fn read(self, files: &Tls, limits: &Limits) -> Result<ServerTls, String> {
        let protocols: &[&[u8]] = match self {
            Self::Clients if limits.http2_streams > 0 => &[b"h2", b"http/1.1"],
            _ => &[b"http/1.1"],
        };
        let pem = ServerFiles {
            certificate: &files.certificate,
            key: &files.key,
            client_ca: files.client_ca.as_deref(),
        };
        let section = self.section();
        pem.read(protocols)
            .map_err(|error| format!("{section}.{error}"))
    }
}

/// Returns why clients will not accept a certificate now, if it is too old or too new.
pub(crate) fn expiry_problem(tls: &ServerTls) -> Option<String> {
    let now = u64::try_from(clock::unix_seconds()).unwrap_or_default();
    if now > tls.not_after.as_secs() {
        return Some(format!("has expired on {}", date(tls.not_after)));
    }
    let is_early = now < tls.not_before.as_secs();
    is_early.then(|| format!("is not valid before {}", date(tls.not_before)))
}

/// A time since the Unix epoch, in words.
pub(crate) fn date(time: Duration) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).map_or_else(|_| "a distant day".to_owned(), |at| at.to_string())
}

impl Certificate {
    /// Reads the certificates of all listeners that have TLS.
    pub(super) fn load(config: &Config) -> Result<Vec<Self>, ConfigError> {
        let listeners = Listener::ALL.into_iter();
        let with_tls = listeners.filter_map(|listener| Some((listener, listener.files(config)?)));
        with_tls
            .map(|(listener, files)| {
                let tls = listener
                    .read(files, &config.limits)
                    .map_err(ConfigError::one)?;
                warn_of_expiry(listener, files, &tls);
                Ok(Self {
                    listener,
                    files: files.clone(),
                    config: watch::Sender::new(Arc::new(tls.config)),
                    not_after: tls.not_after,
                })
            })
            .collect()
    }

    /// The TLS of this listener, if it has it.
    pub(super) fn serve(
        certificates: &[Self],
        listener: Listener,
        limits: &Limits,
        metrics: &Arc<Metrics>,
    ) -> Option<TlsListener> {
        let found = certificates
            .iter()
            .find(|found| found.listener == listener)?;
        metrics.tls_certificate(listener.name(), found.not_after);
        let config = found.config.subscribe();
        let metrics = Arc::clone(metrics);
        Some(TlsListener::new(
            listener.name(),
            config,
            limits.first_byte,
            metrics,
        ))
    }

    /// The files that are read again when they change.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        let Tls {
            certificate,
            key,
            client_ca,
        } = self.files.clone();
        [Some(certificate), Some(key), client_ca]
            .into_iter()
            .flatten()
    }

    /// Takes the files that a new configuration names.
    pub(super) fn set_files(&mut self, config: &Config) {
        if let Some(files) = self.listener.files(config) {
            self.files = files.clone();
        }
    }

    /// Reads the files again. If they cannot be used, the previous certificate stays.
    pub(super) fn read_again(&self, limits: &Limits, metrics: &Metrics) {
        let listener = self.listener.name();
        let read = self.listener.read(&self.files, limits);
        metrics.tls_reloaded(listener, read.is_ok());
        match read {
            Ok(tls) => {
                warn_of_expiry(self.listener, &self.files, &tls);
                tracing::info!(
                    listener,
                    not_after = date(tls.not_after),
                    "certificate read"
                );
                metrics.tls_certificate(listener, tls.not_after);
                // Connections that are open keep theirs.
                self.config.send_replace(Arc::new(tls.config));
            }
            Err(error) => {
                tracing::error!(listener, %error, "certificate not read, keeping the previous one");
            }
        }
    }
}

fn warn_of_expiry(listener: Listener, files: &Tls, tls: &ServerTls) {
    if let Some(problem) = expiry_problem(tls) {
        let (section, file) = (listener.section(), files.certificate.display());
        tracing::warn!("{section}.certificate: {file} {problem}");
    }
}
