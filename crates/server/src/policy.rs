//! The policy: the part of a configuration that can be reloaded while the gateway serves.
//!
//! It is reloaded on SIGHUP and when the file changes. A request keeps the policy that it started
//! with, and an invalid file changes nothing.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use auth::KeyRing;
use catalog::{Catalog, Family};
use tokio::signal::unix::Signal;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use upstream::Network;

use crate::config::fixed::FixedSettings;
use crate::config::{Config, ConfigError};
use crate::keys::{self, GeneratedKey};
use crate::metrics::Metrics;
use crate::targets::Routes;

/// The keys, the models and their targets.
pub(crate) struct Policy {
    pub(crate) keys: KeyRing,
    pub(crate) catalog: Catalog,
    pub(crate) routes: Routes,
}

/// The current policy, which a reload replaces.
pub(crate) struct Policies(RwLock<Arc<Policy>>);

impl Policy {
    /// Builds the policy of a configuration, and returns the keys that were generated for it. Its
    /// upstreams are reached over `network`.
    pub(crate) fn read(
        config: &Config,
        from_file: bool,
        network: Network,
    ) -> Result<(Self, Vec<GeneratedKey>), ConfigError> {
        let (keys, generated) = keys::gather(config, from_file)?;
        let catalog = config.catalog()?;
        let routes = Routes::new(config, network)?;
        Ok((
            Self {
                keys,
                catalog,
                routes,
            },
            generated,
        ))
    }

    /// True if a model needs the embedded image engine (`images`) or text engine.
    pub(crate) fn needs_embedded(&self, images: bool) -> bool {
        let is_of = |family| (family == Family::Images) == images;
        self.catalog
            .iter()
            .any(|model| is_of(model.family) && self.routes.uses_embedded(model))
    }

    /// Builds the policy of a changed configuration. Unchanged upstreams keep their connections.
    fn reload(config: &Config, before: &Self, engines: Embedded) -> Result<Self, ConfigError> {
        let (keys, _) = keys::gather(config, true)?;
        let catalog = config.catalog()?;
        let routes = Routes::reload(config, &before.routes)?;
        let policy = Self {
            keys,
            catalog,
            routes,
        };
        for (images, is_loaded, kind) in [
            (false, engines.text, "text"),
            (true, engines.images, "image"),
        ] {
            if policy.needs_embedded(images) && !is_loaded && !before.needs_embedded(images) {
                let why = "which was not loaded at the start: restart to load it";
                return Err(ConfigError::one(format!(
                    "a model needs the embedded {kind} engine, {why}"
                )));
            }
        }
        Ok(policy)
    }
}

impl Policies {
    pub(crate) fn new(policy: Policy) -> Self {
        Self(RwLock::new(Arc::new(policy)))
    }

    pub(crate) fn current(&self) -> Arc<Policy> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, policy: Policy) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }
}

/// The embedded engines that were loaded at the start. None is loaded later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Embedded {
    pub(crate) text: bool,
    pub(crate) images: bool,
}

/// Reloads the configuration on each SIGHUP and each change of the file from now on, forever.
pub(crate) fn watch_file(
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
                    tracing::info!(
                        keys = policy.keys.entries().count(),
                        "configuration reloaded"
                    );
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
