//! From a configuration to a gateway that serves.

use std::future::Future;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;

use auth::Scope;
use engine::{ImageEngine, TextEngine};
use fetch::Fetcher;
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;
use upstream::Network;

use crate::body::upload::Budget;
use crate::config::{Config, ConfigError, Limits};
use crate::fd_limit;
use crate::gateway::Gateway;
use crate::keys::GeneratedKey;
use crate::lifecycle::Lifecycle;
use crate::limit::Limiter;
use crate::metrics::Metrics;
use crate::policy::{self, Embedded, Policies, Policy};
use crate::serve::{Stop, serve};

/// Starts, serves until a signal comes, and stops in order.
pub(crate) async fn run(mut config: Config, file: Option<PathBuf>) -> Result<(), ConfigError> {
    // Signals are caught from the first moment on, so that a stop during the start is a stop too, and a hangup no end.
    let stop = Signals::catch()?.obey();
    let following = file.map(|path| catch(SignalKind::hangup()).map(|hangup| (path, hangup))).transpose()?;
    let (policy, made) = Policy::read(&config, following.is_some(), Network::default())?;
    fd_limit::fit(&mut config);
    let listeners = bind(&config.listen, &config.limits)?;
    let admin = bind(config.admin.as_slice(), &config.limits)?.pop();
    let local = if policy.embeds(false) { load_local(&config).await? } else { None };
    let easel = if policy.embeds(true) { open_easel(&config) } else { None };
    let engines = Engines { local, easel };
    let addresses: Vec<_> = listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect();
    let gateway = assemble(config, policy, engines, &addresses);
    greet(&addresses, admin.as_ref().and_then(|admin| admin.local_addr().ok()), &made);
    let gateway = Arc::new(gateway);
    let following = following.map(|(path, hangup)| {
        let (policies, metrics) = (Arc::clone(&gateway.policies), Arc::clone(&gateway.metrics));
        let engines = Embedded { text: gateway.local.is_some(), images: gateway.easel.is_some() };
        tokio::spawn(policy::follow(path, hangup, policies, engines, metrics))
    });
    serve(gateway, listeners, admin, stop).await;
    if let Some(following) = following {
        following.abort();
    }
    Ok(())
}

/// The engines of this process, as far as they are built in.
#[derive(Default)]
pub(crate) struct Engines {
    local: Option<Arc<dyn TextEngine>>,
    easel: Option<Arc<dyn ImageEngine>>,
}

#[cfg(all(test, feature = "easel"))]
impl Engines {
    /// The image engine alone.
    pub(crate) fn drawing(config: &Config) -> Self {
        Self { local: None, easel: open_easel(config) }
    }
}

/// A gateway as the configuration wants it, which listens at `addresses`.
pub(crate) fn assemble(config: Config, policy: Policy, engines: Engines, addresses: &[SocketAddr]) -> Gateway {
    let Config { limits, fetch, .. } = config;
    Gateway {
        limiter: Limiter::new(limits.concurrency, limits.concurrency_per_key),
        budget: Budget::new(limits.body_memory.as_u64()),
        policies: Arc::new(Policies::new(policy)),
        local: engines.local,
        easel: engines.easel,
        fetcher: Fetcher::new(fetch.options(addresses, limits.picture)),
        fetches: Limiter::new(fetch.at_once, fetch.at_once_per_key),
        reading: Arc::new(Semaphore::new(available_parallelism().map_or(1, NonZero::get))),
        limits,
        metrics: Arc::new(Metrics::new()),
        lifecycle: Lifecycle::new(),
        started: Instant::now(),
    }
}

#[cfg(feature = "local")]
async fn load_local(config: &Config) -> Result<Option<Arc<dyn TextEngine>>, ConfigError> {
    let usual = text_engine::Options::default();
    let options = text_engine::Options {
        model: config.local.model.clone(),
        threads: config.local.threads.unwrap_or(usual.threads),
        generations: config.local.generations.unwrap_or(usual.generations),
        timeout: Some(config.limits.request_timeout),
        // Whoever is let in may wait: the limit of the gateway is the one that is told.
        waiting: config.limits.concurrency,
    };
    let loaded = tokio::task::spawn_blocking(move || text_engine::EmbeddedTextEngine::load(options)).await;
    match loaded {
        Ok(Ok(engine)) => Ok(Some(Arc::new(engine))),
        Ok(Err(error)) => Err(ConfigError::one(error.to_string())),
        Err(error) => Err(ConfigError::one(format!("the embedded model could not be loaded: {error}"))),
    }
}

#[cfg(not(feature = "local"))]
async fn load_local(_: &Config) -> Result<Option<Arc<dyn TextEngine>>, ConfigError> {
    Ok(None)
}

#[cfg(feature = "easel")]
fn open_easel(config: &Config) -> Option<Arc<dyn ImageEngine>> {
    let usual = image_engine::Options::default();
    let options = image_engine::Options { threads: config.easel.threads.unwrap_or(usual.threads), ..usual };
    Some(Arc::new(image_engine::EmbeddedImageEngine::new(options)))
}

#[cfg(not(feature = "easel"))]
fn open_easel(_: &Config) -> Option<Arc<dyn ImageEngine>> {
    None
}

fn bind(addresses: &[SocketAddr], limits: &Limits) -> Result<Vec<TcpListener>, ConfigError> {
    let bound = addresses.iter().map(|address| {
        listen(*address, limits).map_err(|error| {
            let advice = match error.kind() {
                io::ErrorKind::AddrInUse => "; stop what is there, or choose another with --listen",
                io::ErrorKind::PermissionDenied => "; choose a port above 1023, or another with --listen",
                _ => "",
            };
            ConfigError::one(format!("cannot listen on {address}: {error}{advice}"))
        })
    });
    bound.collect()
}

/// A listener whose connections have the buffers that the limits say.
fn listen(address: SocketAddr, limits: &Limits) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    // What is accepted has what the listener has. The system's own bound holds above it.
    if let Some(size) = limits.send_buffer {
        socket.set_send_buffer_size(u32::try_from(size.as_u64()).unwrap_or(u32::MAX))?;
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn catch(kind: SignalKind) -> Result<Signal, ConfigError> {
    signal(kind).map_err(|error| ConfigError::one(format!("cannot catch signals: {error}")))
}

/// The signals that end the process.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn catch() -> Result<Self, ConfigError> {
        Ok(Self { terminate: catch(SignalKind::terminate())?, interrupt: catch(SignalKind::interrupt())? })
    }

    /// Comes with the first signal; the second ends the process at once, whatever it is at.
    fn obey(mut self) -> impl Future<Output = Stop> {
        let (tell, told) = oneshot::channel();
        tokio::spawn(async move {
            let how = self.next().await;
            tracing::info!("stopping");
            // During the start nobody listens yet, and then it is told all the same.
            let _ = tell.send(how);
            self.next().await;
            std::process::exit(SECOND_SIGNAL);
        });
        async { told.await.unwrap_or(Stop::Immediate) }
    }

    async fn next(&mut self) -> Stop {
        tokio::select! {
            _ = self.terminate.recv() => Stop::Graceful,
            _ = self.interrupt.recv() => Stop::Immediate,
        }
    }
}

/// Tells a person what to do next.
fn greet(addresses: &[SocketAddr], admin: Option<SocketAddr>, made: &[GeneratedKey]) {
    let mut out = io::stdout().lock();
    // A closed standard output is no reason not to serve.
    let _ = write_greeting(&mut out, addresses, admin, made);
    let _ = out.flush();
}

fn write_greeting(
    out: &mut impl io::Write,
    addresses: &[SocketAddr],
    admin: Option<SocketAddr>,
    made: &[GeneratedKey],
) -> io::Result<()> {
    for address in addresses {
        writeln!(out, "sluicegate listens on http://{address}")?;
    }
    if let Some(admin) = admin {
        writeln!(out, "admin: http://{admin}/metrics /livez /readyz")?;
    }
    let Some(address) = addresses.first() else { return Ok(()) };
    for GeneratedKey { scope, variable, key } in made {
        let key = key.expose();
        writeln!(out, "\n# A key for {}, made for this run. To keep it, set it before the start.", scope.as_str())?;
        writeln!(out, "export {variable}={key}")?;
        if let Some((path, body, then)) = example(*scope) {
            writeln!(out, "curl http://{address}{path} -H 'Authorization: Bearer {key}' \\")?;
            writeln!(out, "  -H 'Content-Type: application/json' -d '{body}'{then}")?;
        }
    }
    Ok(())
}

/// A request to paste, for each capability that is served: its path, its body, and what is done with the reply.
fn example(scope: Scope) -> Option<(&'static str, &'static str, &'static str)> {
    match scope {
        Scope::Text => Some(("/v1/responses", r#"{"model":"alt-flash","input":"What is the capital of France?"}"#, "")),
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

/// Puts the picture of a reply into a file.
const SAVE: &str = r#" \
  | python3 -c 'import base64, json, sys
open("boat.png", "wb").write(base64.b64decode(json.load(sys.stdin)["data"][0]["b64_json"]))'"#;
/// The exit status when a second signal cuts the stop short.
const SECOND_SIGNAL: i32 = 130;
/// How many may wait in the system's queue for the listener.
const BACKLOG: u32 = 1024;
