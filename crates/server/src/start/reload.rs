//! Reloads the configuration file and the certificates while the gateway serves: on SIGHUP, and when
//! one of the files changes.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use config::fixed::FixedSettings;
use config::{Config, ConfigError, Limits};
use policy::{AtStart, Policies, Policy};
use telemetry::metrics::Metrics;
use tokio::signal::unix::Signal;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::certificates::Certificate;

/// Reloads what a gateway has read from its files.
pub(super) struct Reloader {
    pub(super) policies: Arc<Policies>,
    pub(super) certificates: Vec<Certificate>,
    /// The parts that were opened at the start.
    pub(super) opened: AtStart,
    /// The limits, which stay as they were at the start.
    pub(super) limits: Limits,
    pub(super) metrics: Arc<Metrics>,
}

/// Reloads the configuration on each SIGHUP and each change of a file from now on, forever.
pub(super) fn watch_files(
    path: PathBuf,
    mut hangup: Signal,
    mut running: Reloader,
) -> impl Future<Output = ()> + Send {
    let at_start = FixedSettings::read(&path);
    let mut files = WatchedFiles::new(&path, &running.certificates);
    async move {
        loop {
            tokio::select! {
                _ = hangup.recv() => {}
                () = files.changed() => {}
            }
            // From now on: a file that changes while it is read is read again.
            files = WatchedFiles::new(&path, &running.certificates);
            running.reload(&path, at_start.as_ref()).await;
            files.follow(&running.certificates);
        }
    }
}

impl Reloader {
    /// Reloads the configuration, and reads the certificates again. A certificate that was renewed is
    /// taken also if the configuration cannot be.
    async fn reload(&mut self, path: &Path, at_start: Option<&FixedSettings>) {
        let (policies, metrics) = (&self.policies, &self.metrics);
        match read(path.to_owned(), policies.current(), self.opened).await {
            Ok((config, policy)) => {
                tracing::info!(keys = policy.keys.entries().len(), "configuration reloaded");
                policies.replace(policy);
                metrics.reloaded(true);
                warn_of_fixed_settings(at_start, path);
                self.certificates
                    .iter_mut()
                    .for_each(|certificate| certificate.set_files(&config));
            }
            Err(error) => {
                tracing::error!(%error, "reload failed, keeping the previous configuration");
                metrics.reloaded(false);
            }
        }
        for certificate in &self.certificates {
            certificate.read_again(&self.limits, metrics);
        }
    }
}

/// Reads the file in a thread of its own: the commands that print keys may take long.
async fn read(
    path: PathBuf,
    before: Arc<Policy>,
    opened: AtStart,
) -> Result<(Config, Policy), ConfigError> {
    let read = spawn_blocking(move || {
        let config = Config::load(&path)?;
        let policy = Policy::reload(&config, &before, opened)?;
        Ok((config, policy))
    });
    read.await
        .unwrap_or_else(|error| Err(ConfigError::one(error.to_string())))
}

/// Logs the settings that have changed since the start and are not reloaded.
fn warn_of_fixed_settings(at_start: Option<&FixedSettings>, path: &Path) {
    let changed = at_start
        .zip(FixedSettings::read(path))
        .map(|(before, now)| now.changed_since(before).join(", "))
        .unwrap_or_default();
    if !changed.is_empty() {
        tracing::warn!(settings = changed, "changed settings need a restart");
    }
}

/// The files that are watched, with their versions when they were read.
struct WatchedFiles(Vec<(PathBuf, Option<FileVersion>)>);

impl WatchedFiles {
    fn new(path: &Path, certificates: &[Certificate]) -> Self {
        let of_certificates = certificates.iter().flat_map(Certificate::paths);
        let paths = std::iter::once(path.to_owned()).chain(of_certificates);
        let versions = paths.map(|path| {
            let version = file_version(&path).ok();
            (path, version)
        });
        Self(versions.collect())
    }

    /// Watches the files that certificates have now.
    fn follow(&mut self, certificates: &[Certificate]) {
        for path in certificates.iter().flat_map(Certificate::paths) {
            if !self.0.iter().any(|(watched, _)| *watched == path) {
                let version = file_version(&path).ok();
                self.0.push((path, version));
            }
        }
    }

    /// Waits until a file differs from its version and none has changed for one poll interval, so
    /// that a file is not read while it is being written. A deleted file is waited for.
    async fn changed(&self) {
        let mut previous = self.found();
        loop {
            sleep(POLL_INTERVAL).await;
            let found = self.found();
            let is_new = |((_, seen), found): (&(_, Option<FileVersion>), &Option<FileVersion>)| {
                found.is_some() && found != seen
            };
            if self.0.iter().zip(&found).any(is_new) && found == previous {
                return;
            }
            previous = found;
        }
    }

    fn found(&self) -> Vec<Option<FileVersion>> {
        let paths = self.0.iter();
        paths.map(|(path, _)| file_version(path).ok()).collect()
    }
}

/// The attributes that identify a version of the file. The device and inode detect a file that was
/// replaced by another one, for example through a symbolic link, with the same age and length.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileVersion {
    modified: SystemTime,
    length: u64,
    number: (u64, u64),
}

fn file_version(path: &Path) -> io::Result<FileVersion> {
    let found = std::fs::metadata(path)?;
    Ok(FileVersion {
        modified: found.modified()?,
        length: found.len(),
        number: (found.dev(), found.ino()),
    })
}

/// The interval at which the file is checked for changes.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
