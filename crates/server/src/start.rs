//! Starts a gateway from a configuration.

mod key_refresh;
mod reload;

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use accounting::StoreError;
use admin::access::AdminAccess;
use admin::admin::Admin;
use auth::{KeyHash, Scope};
use config::state::State;
use config::{Config, ConfigError, Limits};
use gateway::state::{GatewayState, Parts};
use policy::accounting::Accounting;
use policy::keys::{self, GeneratedKey};
use policy::lease_store;
use policy::limit::lease_client::LeaseClient;
use policy::policy_keys::StoredKeys;
use policy::{Embedded, Policy};
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use upstream::Network;

use crate::engines;
use crate::listen::fd_limit;
use crate::listen::serve::{Stop, serve};

/// Starts, serves until a signal arrives, and shuts down.
pub(crate) async fn run(mut config: Config, file: Option<PathBuf>) -> Result<(), ConfigError> {
    // Handlers are installed first, so that a signal during the start is a shutdown too, and a
    // hangup does not end the process.
    let stop = catch_stop()?;
    let reload = file
        .map(|path| catch(SignalKind::hangup()).map(|hangup| (path, hangup)))
        .transpose()?;
    let accounting = Accounting::open(&config.state).await?.map(Arc::new);
    let stored = stored_keys(accounting.as_deref()).await?;
    let network = Network::default();
    let (policy, generated) = Policy::read_with(&config, reload.is_some(), network, stored)?;
    keys::warn_of_short_keys();
    fd_limit::clamp(&mut config);
    let listeners = bind(&config.listen, &config.limits)?;
    let admin_listener = bind(config.admin.as_slice(), &config.limits)?.pop();
    let needed = |images| policy.needs_embedded(images);
    let missing = engines::missing(needed(false), needed(true));
    for advice in &missing {
        tracing::warn!("{advice}");
    }
    let engines = engines::load(&config, needed(false), needed(true)).await?;
    let addresses: Vec<_> = listeners
        .iter()
        .filter_map(|listener| listener.local_addr().ok())
        .collect();
    let with_examples = config.models.is_none() && missing.is_empty();
    let keep_rows = config.state.keep_rows;
    let lease_client = open_lender(&config.state).await?;
    let access = admin_access(&config)?;
    let state = Arc::new(GatewayState::new(Parts {
        config: &config,
        policy,
        engines,
        addresses: &addresses,
        lease_client,
        accounting,
    }));
    let mut tasks = start_bookkeeping(&state, keep_rows).await?;
    if let Some(lease_client) = state.limiter.lease_client() {
        let (limiter, lifecycle) = (Arc::clone(&state.limiter), state.lifecycle.clone());
        let lending = Arc::clone(lease_client).run(limiter, lifecycle);
        tasks.push(tokio::spawn(lending));
    }
    let reload = reload.map(|(path, hangup)| {
        let policies = Arc::clone(&state.policies);
        let metrics = Arc::clone(&state.metrics);
        let engines = Embedded {
            text: state.text_engine.is_some(),
            images: state.image_engine.is_some(),
        };
        tokio::spawn(reload::watch_file(path, hangup, policies, engines, metrics))
    });
    let refresh = key_refresh::run(Arc::clone(&state.policies), Arc::clone(&state.metrics));
    let refresh = tokio::spawn(refresh);
    // Whoever reads it may change the file.
    print_banner(
        &addresses,
        admin_listener
            .as_ref()
            .and_then(|admin| admin.local_addr().ok()),
        &generated,
        with_examples,
    );
    let accounting = state.accounting.clone();
    let admin = Admin {
        state: Arc::clone(&state),
        access,
    };
    let admin = admin_listener.map(|listener| (listener, admin));
    serve(state, listeners, admin, stop).await;
    refresh.abort();
    tasks.iter().for_each(JoinHandle::abort);
    if let Some(accounting) = accounting {
        accounting.finish().await;
    }
    if let Some(reload) = reload {
        reload.abort();
    }
    Ok(())
}

/// Returns the keys of the store; none without one.
async fn stored_keys(accounting: Option<&Accounting>) -> Result<Arc<StoredKeys>, ConfigError> {
    let Some(accounting) = accounting else {
        return Ok(Arc::default());
    };
    let keys = accounting.keys().await.map_err(unreadable)?;
    Ok(Arc::new(StoredKeys::new(keys)))
}

/// Opens the store that lends the quotas, if there is one.
async fn open_lender(state: &State) -> Result<Option<Arc<LeaseClient>>, ConfigError> {
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

/// Returns the rules of access to the admin address. The key of the admin API is in the configuration
/// or in the environment.
fn admin_access(config: &Config) -> Result<AdminAccess, ConfigError> {
    let key = match config.state.admin_key().map_err(ConfigError::one)? {
        Some(key) => Some(key),
        None => keys::admin_key_of_environment()?.as_ref().map(KeyHash::of),
    };
    Ok(AdminAccess {
        key,
        hosts: config.state.admin_hosts.clone(),
    })
}

/// Starts the tasks of the store of keys and usage, once its budgets include the money already
/// spent.
async fn start_bookkeeping(
    state: &GatewayState,
    keep_rows: Option<Duration>,
) -> Result<Vec<JoinHandle<()>>, ConfigError> {
    let Some(accounting) = &state.accounting else {
        return Ok(Vec::new());
    };
    accounting
        .begin(&state.policies)
        .await
        .map_err(unreadable)?;
    let (watcher, cleaner) = (Arc::clone(accounting), Arc::clone(accounting));
    let keys = tokio::spawn(watcher.watch_keys(Arc::clone(&state.policies)));
    let rows = keep_rows.map(|age| tokio::spawn(cleaner.delete_old_rows(age)));
    Ok(rows.into_iter().chain([keys]).collect())
}

fn unreadable(error: StoreError) -> ConfigError {
    ConfigError::one(format!("state.accounting: {error}"))
}

fn bind(addresses: &[SocketAddr], limits: &Limits) -> Result<Vec<TcpListener>, ConfigError> {
    let bound = addresses.iter().map(|address| {
        listen(*address, limits).map_err(|error| {
            let advice = match error.kind() {
                io::ErrorKind::AddrInUse => "; stop what is there, or choose another with --listen",
                io::ErrorKind::PermissionDenied => {
                    "; choose a port above 1023, or another with --listen"
                }
                _ => "",
            };
            ConfigError::one(format!("cannot listen on {address}: {error}{advice}"))
        })
    });
    bound.collect()
}

/// Opens a listener whose connections have the configured send buffer.
fn listen(address: SocketAddr, limits: &Limits) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    socket.set_reuseaddr(true)?;
    // Accepted sockets inherit the listener's size, up to the maximum of the system.
    if let Some(size) = limits.send_buffer {
        socket.set_send_buffer_size(u32::try_from(size.as_u64()).unwrap_or(u32::MAX))?;
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)
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

/// Prints the addresses, and how to use the generated keys, with examples if the models are the
/// built-in ones.
fn print_banner(
    addresses: &[SocketAddr],
    admin: Option<SocketAddr>,
    generated: &[GeneratedKey],
    with_examples: bool,
) {
    let mut out = io::stdout().lock();
    // Serve even if standard output is closed.
    let _ = write_banner(&mut out, addresses, admin, generated, with_examples);
    let _ = out.flush();
}

fn write_banner(
    out: &mut impl io::Write,
    addresses: &[SocketAddr],
    admin: Option<SocketAddr>,
    generated: &[GeneratedKey],
    with_examples: bool,
) -> io::Result<()> {
    for address in addresses {
        writeln!(out, "sluicegate listens on http://{address}")?;
    }
    if let Some(admin) = admin {
        writeln!(out, "admin: http://{admin}/metrics /livez /readyz")?;
    }
    let Some(address) = addresses.first() else {
        return Ok(());
    };
    for GeneratedKey {
        scope,
        variable,
        key,
    } in generated
    {
        let key = key.expose();
        writeln!(
            out,
            "\n# A key for {}, made for this run. To keep it, set it before the start.",
            scope.as_str()
        )?;
        writeln!(out, "export {variable}={key}")?;
        if let Some((path, body, then)) = example(*scope).filter(|_| with_examples) {
            writeln!(
                out,
                "curl http://{address}{path} -H 'Authorization: Bearer {key}' \\"
            )?;
            writeln!(
                out,
                "  -H 'Content-Type: application/json' -d '{body}'{then}"
            )?;
        }
    }
    Ok(())
}

/// Returns an example request for a scope: its path, its body, and the command that handles the
/// reply.
fn example(scope: Scope) -> Option<(&'static str, &'static str, &'static str)> {
    match scope {
        Scope::Text => Some((
            "/v1/responses",
            r#"{"model":"alt-flash","input":"What is the capital of France?"}"#,
            "",
        )),
        Scope::Messages => Some((
            "/v1/messages",
            r#"{"model":"msg-sonnet-5","max_tokens":64,"messages":[{"role":"user","content":"Say hello."}]}"#,
            "",
        )),
        Scope::Images => Some((
            "/v1/images/generations",
            r#"{"model":"model-image-2.5-flare","prompt":"A paper boat on a pond","size":"1024x1024"}"#,
            SAVE,
        )),
        _ => None,
    }
}

/// A command that saves the image of a reply to a file.
const SAVE: &str = r#" \
  | python3 -c 'import base64, json, sys
open("boat.png", "wb").write(base64.b64decode(json.load(sys.stdin)["data"][0]["b64_json"]))'"#;
/// The exit status after a second signal.
const SECOND_SIGNAL: i32 = 130;
const BACKLOG: u32 = 1024;
