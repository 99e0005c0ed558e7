//! Starts a gateway from a configuration.

mod banner;
pub(crate) mod certificates;
mod refresh;
mod reload;
mod sockets;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use accounting::StoreError;
use admin::access::AdminAccess;
use admin::admin::Admin;
use admin::api::About;
use admin::console::PlayKey;
use admin::sessions::Sessions;
use auth::{Key, KeyHash};
use config::state::State;
use config::{Config, ConfigError};
use gateway::state::{GatewayState, Parts};
use listen::{Listeners, Stop, serve};
use otlp::exporters::{Exporters, RunningExporters};
use policy::accounting::Accounting;
use policy::clock;
use policy::keys::{self, GeneratedKey};
use policy::lease_store;
use policy::limit::lease_client::LeaseClient;
use policy::policy_keys::StoredKeys;
use policy::{AtStart, Policy};
use telemetry::requests::trace_queue::TraceQueue;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use upstream::Network;

use self::banner::{Addresses, Banner};
use self::certificates::{Certificate, Listener};
use self::reload::Reloader;
use self::sockets::Sockets;
use crate::engines;
use crate::fd_limit;

/// A gateway that has started, and does not serve yet.
struct Started {
    state: Arc<GatewayState>,
    listeners: Listeners,
    /// The tasks that run beside the requests.
    tasks: JoinSet<()>,
    exporters: RunningExporters,
}

/// Starts, serves until a signal arrives, and shuts down.
pub(crate) async fn run(config: Config, file: Option<PathBuf>) -> Result<(), ConfigError> {
    // Handlers are installed first, so that a signal during the start is a shutdown too, and a
    // hangup does not end the process.
    let stop = catch_stop()?;
    let reload = file
        .map(|path| catch(SignalKind::hangup()).map(|hangup| (path, hangup)))
        .transpose()?;
    let Started {
        state,
        listeners,
        mut tasks,
        exporters,
    } = start(config, reload).await?;
    serve(Arc::clone(&state), listeners, stop).await;
    tasks.abort_all();
    exporters.finish().await;
    if let Some(accounting) = &state.accounting {
        accounting.finish().await;
    }
    Ok(())
}

/// Opens the stores and the sockets, loads the engines, starts the tasks, and prints the addresses.
async fn start(
    mut config: Config,
    reload: Option<(PathBuf, Signal)>,
) -> Result<Started, ConfigError> {
    let accounting = Accounting::open(&config.state).await?.map(Arc::new);
    let stored = stored_keys(accounting.as_deref()).await?;
    let network = Network::default();
    let exporters = exporters(&config, &network)?;
    let (policy, generated) = Policy::read_with(&config, reload.is_some(), network, stored)?;
    keys::warn_of_short_keys();
    let certificates = Certificate::load(&config)?;
    fd_limit::clamp(&mut config);
    let sockets = Sockets::bind(&config)?;
    let (access, admin_key) = admin_access(&config, !generated.is_empty())?;
    let (clients, admin_address) = (sockets.client_addresses(), sockets.admin_address());
    let queue = exporters.queue();
    let (state, has_all_engines) = make_state(&config, policy, &clients, accounting, queue).await?;
    let rendered = Arc::clone(&state);
    let exporters = exporters.start(Arc::clone(&state.policies), move || {
        rendered.render_metrics()
    });
    let tls = |listener| Certificate::serve(&certificates, listener, &state.limits, &state.metrics);
    let [tls, admin_tls] = [Listener::Clients, Listener::Admin].map(tls);
    let tasks = start_tasks(&state, config.state.keep_rows, reload, certificates).await?;
    let served = Addresses::new(&clients, tls.is_some());
    // Whoever reads it may change the file.
    let banner = Banner {
        clients: served,
        admin: Addresses::new(admin_address.as_slice(), admin_tls.is_some()),
        sessions: &access.sessions,
        generated: &generated,
        admin_key: admin_key.as_ref(),
        with_examples: config.models.is_none() && has_all_engines,
    };
    banner.print();
    let admin = Admin {
        state: Arc::clone(&state),
        access,
        play_keys: play_keys(&generated),
        is_secure: admin_tls.is_some(),
        about: about(served),
    };
    let listeners = sockets.listeners(tls, admin_tls, admin);
    Ok(Started {
        state,
        listeners,
        tasks,
        exporters,
    })
}

fn about(served: Addresses<'_>) -> About {
    About {
        version: env!("CARGO_PKG_VERSION"),
        features: FEATURES.to_vec(),
        started: clock::unix_seconds(),
        listen: served.urls().collect(),
    }
}

/// The keys that were made for this run, for the console.
fn play_keys(generated: &[GeneratedKey]) -> Vec<PlayKey> {
    let keys = generated.iter().map(|generated| PlayKey {
        name: generated.scope.as_str().to_owned(),
        key: generated.key.expose().to_owned(),
        scopes: vec![generated.scope.as_str()],
    });
    keys.collect()
}

/// Loads the engines, opens the lease store, and makes the state of the gateway. Returns true with it
/// if this build has all engines that the models need.
async fn make_state(
    config: &Config,
    policy: Policy,
    addresses: &[SocketAddr],
    accounting: Option<Arc<Accounting>>,
    traces: Option<Arc<TraceQueue>>,
) -> Result<(Arc<GatewayState>, bool), ConfigError> {
    let needed = |images| policy.needs_embedded(images);
    let missing = engines::missing(needed(false), needed(true));
    for advice in &missing {
        tracing::warn!("{advice}");
    }
    let engines = engines::load(config, needed(false), needed(true)).await?;
    let state = GatewayState::new(Parts {
        config,
        policy,
        engines,
        addresses,
        lease_client: open_lease_client(&config.state).await?,
        accounting,
        traces,
    });
    Ok((Arc::new(state), missing.is_empty()))
}

/// Makes the exporters of traces and metrics.
pub(crate) fn exporters(config: &Config, network: &Network) -> Result<Exporters, ConfigError> {
    Exporters::new(config, network, env!("CARGO_PKG_VERSION")).map_err(ConfigError::new)
}

/// Starts the tasks that run beside the requests, until they are dropped.
async fn start_tasks(
    state: &GatewayState,
    keep_rows: Option<Duration>,
    reload: Option<(PathBuf, Signal)>,
    certificates: Vec<Certificate>,
) -> Result<JoinSet<()>, ConfigError> {
    let mut tasks = JoinSet::new();
    start_accounting(&mut tasks, state, keep_rows).await?;
    if let Some(lease_client) = state.limiter.lease_client() {
        let (limiter, lifecycle) = (Arc::clone(&state.limiter), state.lifecycle.clone());
        tasks.spawn(Arc::clone(lease_client).run(limiter, lifecycle));
    }
    let (policies, metrics) = (Arc::clone(&state.policies), Arc::clone(&state.metrics));
    if let Some((path, hangup)) = reload {
        let opened = AtStart {
            text: state.text_engine.is_some(),
            images: state.image_engine.is_some(),
            store: state.accounting.is_some(),
        };
        let running = Reloader {
            policies: Arc::clone(&policies),
            certificates,
            opened,
            limits: state.limits.clone(),
            metrics: Arc::clone(&metrics),
        };
        tasks.spawn(reload::watch_files(path, hangup, running));
    }
    tasks.spawn(refresh::run(policies, metrics));
    Ok(tasks)
}

/// Returns the keys of the store; none without one.
async fn stored_keys(accounting: Option<&Accounting>) -> Result<Arc<StoredKeys>, ConfigError> {
    let Some(accounting) = accounting else {
        return Ok(Arc::default());
    };
    let keys = accounting.keys().await.map_err(unreadable)?;
    Ok(Arc::new(StoredKeys::new(keys)))
}

/// Returns a client of the lease store, if quotas are shared.
async fn open_lease_client(state: &State) -> Result<Option<Arc<LeaseClient>>, ConfigError> {
    let Some(address) = state.limits().map_err(ConfigError::one)? else {
        return Ok(None);
    };
    let unusable = |error| ConfigError::one(format!("state.limits: {error}"));
    let store = lease_store::open(address, state.holder(), &state.namespace, state.lease)
        .map_err(unusable)?;
    lease_store::check(&store).await.map_err(unusable)?;
    let lease_client = LeaseClient::new(Arc::new(store), state.lease, state.lost_lease);
    Ok(Some(Arc::new(lease_client)))
}

/// Returns the rules of access to the admin address, and the admin key if it was made for this run. The
/// key is in the configuration or in the environment; a gateway that makes the keys of its clients makes
/// this one, too.
fn admin_access(
    config: &Config,
    makes_keys: bool,
) -> Result<(AdminAccess, Option<Key>), ConfigError> {
    let configured = match config.state.admin_key().map_err(ConfigError::one)? {
        Some(key) => Some(key),
        None => keys::admin_key_of_environment()?.as_ref().map(KeyHash::of),
    };
    let made = match configured {
        None if makes_keys => Some(keys::generate()?),
        _ => None,
    };
    let access = AdminAccess {
        key: configured.or_else(|| made.as_ref().map(KeyHash::of)),
        hosts: config.state.admin_hosts.clone(),
        sessions: Sessions::default(),
    };
    Ok((access, made))
}

/// Starts the tasks of the store of keys and usage, once its budgets include the money already
/// spent.
async fn start_accounting(
    tasks: &mut JoinSet<()>,
    state: &GatewayState,
    keep_rows: Option<Duration>,
) -> Result<(), ConfigError> {
    let Some(accounting) = &state.accounting else {
        return Ok(());
    };
    let begun = accounting.begin(&state.policies).await;
    begun.map_err(unreadable)?;
    tasks.spawn(Arc::clone(accounting).watch_keys(Arc::clone(&state.policies)));
    if let Some(age) = keep_rows {
        tasks.spawn(Arc::clone(accounting).delete_old_rows(age));
    }
    Ok(())
}

fn unreadable(error: StoreError) -> ConfigError {
    ConfigError::one(format!("state.accounting: {error}"))
}

fn catch(kind: SignalKind) -> Result<Signal, ConfigError> {
    signal(kind).map_err(|error| ConfigError::one(format!("cannot catch signals: {error}")))
}

/// Catches the signals that shut the process down. The future resolves with the first one; the
/// second one exits the process immediately.
fn catch_stop() -> Result<impl Future<Output = Stop>, ConfigError> {
    let mut terminate = catch(SignalKind::terminate())?;
    let mut interrupt = catch(SignalKind::interrupt())?;
    let (sender, receiver) = oneshot::channel();
    tokio::spawn(async move {
        let mut sender = Some(sender);
        loop {
            let stop = tokio::select! {
                _ = terminate.recv() => Stop::Graceful,
                _ = interrupt.recv() => Stop::Immediate,
            };
            let Some(sender) = sender.take() else {
                std::process::exit(SECOND_SIGNAL)
            };
            tracing::info!("shutdown started");
            // During the start the receiver is not polled yet; it gets the value later.
            let _ = sender.send(stop);
        }
    });
    Ok(async { receiver.await.unwrap_or(Stop::Immediate) })
}

/// The exit status after a second signal.
const SECOND_SIGNAL: i32 = 130;

/// The features of this build.
pub(crate) const FEATURES: &[&str] = &[
    #[cfg(feature = "image-engine")]
    "image-engine",
    #[cfg(feature = "text-engine")]
    "text-engine",
    #[cfg(feature = "jemalloc")]
    "jemalloc",
    #[cfg(feature = "postgres")]
    "postgres",
    #[cfg(feature = "sqlite")]
    "sqlite",
    #[cfg(feature = "valkey")]
    "valkey",
];
