//! Reloads the configuration file while the gateway serves: on SIGHUP, and when the file changes.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use config::fixed::FixedSettings;
use config::{Config, ConfigError};
use policy::{Embedded, Policies, Policy};
use telemetry::metrics::Metrics;
use tokio::signal::unix::Signal;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// Reloads the configuration on each SIGHUP and each change of the file from now on, forever.
pub(super) fn watch_file(
    path: PathBuf,
    mut hangup: Signal,
    policies: Arc<Policies>,
    engines: Embedded,
    metrics: Arc<Metrics>,
) -> impl Future<Output = ()> + Send {
    let mut seen = file_version(&path).ok();
    let at_start = FixedSettings::read(&path);
    async move {
        loop {
            tokio::select! {
                _ = hangup.recv() => {}
                () = changed(&path, seen) => {}
            }
            seen = file_version(&path).ok();
            match reloaded(path.clone(), policies.current(), engines).await {
                Ok(policy) => {
                    tracing::info!(keys = policy.keys.entries().len(), "configuration reloaded");
                    policies.replace(policy);
                    metrics.reloaded(true);
                    warn_of_fixed_settings(at_start.as_ref(), &path);
                }
                Err(error) => {
                    tracing::error!(%error, "reload failed, keeping the previous configuration");
                    metrics.reloaded(false);
                }
            }
        }
    }
}

/// Reads the file in a thread of its own: the commands that print keys may take long.
async fn reloaded(
    path: PathBuf,
    before: Arc<Policy>,
    engines: Embedded,
) -> Result<Policy, ConfigError> {
    let read = spawn_blocking(move || {
        Config::load(&path).and_then(|config| Policy::reload(&config, &before, engines))
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

/// Waits until the file differs from the one that was `seen` last and has not changed for one poll
/// interval, so that a file is not read while it is being written. A deleted file is waited for.
async fn changed(path: &Path, seen: Option<FileVersion>) {
    let mut previous = seen;
    loop {
        sleep(POLL_INTERVAL).await;
        let found = file_version(path).ok();
        if found.is_some() && found != seen && found == previous {
            return;
        }
        previous = found;
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
