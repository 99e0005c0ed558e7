//! Who may ask for what: the part of a configuration that can change while the gateway serves.
//!
//! It is read again on SIGHUP and when the file changes. A request keeps the policy that it began with; a file that
//! is wrong changes nothing.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use auth::KeyRing;
use catalog::{Catalog, Family};
use tokio::signal::unix::Signal;
use tokio::time::sleep;
use upstream::Network;

use crate::config::{Config, ConfigError};
use crate::keys::{self, GeneratedKey, Keys};
use crate::metrics::Metrics;
use crate::targets::Routes;

/// Keys, models, and who serves these.
pub(crate) struct Policy {
    pub(crate) keys: KeyRing,
    pub(crate) catalog: Catalog,
    pub(crate) routes: Routes,
}

/// The policy in force.
pub(crate) struct Policies(RwLock<Arc<Policy>>);

impl Policy {
    /// The policy of a configuration, and the keys that were made for it. Its upstreams are reached over `network`.
    pub(crate) fn read(
        config: &Config,
        from_file: bool,
        network: Network,
    ) -> Result<(Self, Vec<GeneratedKey>), ConfigError> {
        let Keys { ring, made } = keys::gather(config, from_file)?;
        let catalog = config.catalog()?;
        let routes = Routes::new(config, &catalog, network)?;
        Ok((Self { keys: ring, catalog, routes }, made))
    }

    /// Whether the embedded engine of text, or else that of images, may be asked.
    pub(crate) fn embeds(&self, images: bool) -> bool {
        let is_of = |family| (family == Family::Images) == images;
        self.catalog.iter().any(|model| is_of(model.family) && self.routes.stay(&model.id))
    }

    /// The policy of a file in the place of another: upstreams that stayed the same keep their connections.
    fn follow(config: &Config, before: &Self, engines: Embedded) -> Result<Self, ConfigError> {
        let ring = keys::gather(config, true)?.ring;
        let catalog = config.catalog()?;
        let routes = Routes::follow(config, &catalog, &before.routes)?;
        let policy = Self { keys: ring, catalog, routes };
        for (images, is_there, of) in [(false, engines.text, "text"), (true, engines.images, "images")] {
            if policy.embeds(images) && !is_there && !before.embeds(images) {
                let why = "no model needed it at the start: restart to load it";
                return Err(ConfigError::one(format!("a model needs the embedded engine of {of}; {why}")));
            }
        }
        Ok(policy)
    }
}

impl Policies {
    /// Puts the first policy in force.
    pub(crate) fn new(policy: Policy) -> Self {
        Self(RwLock::new(Arc::new(policy)))
    }

    /// The policy in force now.
    pub(crate) fn current(&self) -> Arc<Policy> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, policy: Policy) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }
}

/// Which embedded engines were loaded at the start; later none is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Embedded {
    pub(crate) text: bool,
    pub(crate) images: bool,
}

/// Reads the file again on each SIGHUP and each change of it, for ever.
pub(crate) async fn follow(
    path: PathBuf,
    mut hangup: Signal,
    policies: Arc<Policies>,
    engines: Embedded,
    metrics: Arc<Metrics>,
) {
    let mut seen = state(&path).ok();
    loop {
        tokio::select! {
            _ = hangup.recv() => {}
            () = changed(&path, seen) => {}
        }
        seen = state(&path).ok();
        let before = policies.current();
        match Config::load(&path).and_then(|config| Policy::follow(&config, &before, engines)) {
            Ok(policy) => {
                tracing::info!(keys = policy.keys.entries().count(), "keys, models and upstreams were read again");
                policies.replace(policy);
                metrics.reloaded(true);
            }
            Err(error) => {
                tracing::error!(%error, "the changed configuration is wrong: everything stays as it was");
                metrics.reloaded(false);
            }
        }
    }
}

/// Waits until the file is another one than was seen last, and has stayed so for a glance: one that is being written is
/// let be. One that is gone is waited for.
async fn changed(path: &Path, seen: Option<State>) {
    let mut glanced = seen;
    loop {
        sleep(GLANCE).await;
        let found = state(path).ok();
        if found.is_some() && found != seen && found == glanced {
            return;
        }
        glanced = found;
    }
}

/// By what a change of the file is noticed. Its number on the disk tells another file apart that was put in its place:
/// by a link, it may be as old and as long.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    modified: SystemTime,
    length: u64,
    number: (u64, u64),
}

fn state(path: &Path) -> io::Result<State> {
    let found = std::fs::metadata(path)?;
    Ok(State { modified: found.modified()?, length: found.len(), number: (found.dev(), found.ino()) })
}

/// How often the file is looked at.
const GLANCE: Duration = Duration::from_millis(250);
