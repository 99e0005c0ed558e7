//! The operator's file: TOML, every key known, every mistake told.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use auth::{Entry, KeyHash, Pattern, Scope, Scopes};
use bytesize::ByteSize;
use catalog::{Catalog, Model};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer};

/// What an operator may set. The default is a gateway that works without a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Addresses for clients. A second one serves the same paths: the fallback address (spec §9.3).
    pub(crate) listen: Vec<SocketAddr>,
    /// The address for `/livez`, `/readyz` and `/metrics`. Off in a file unless set.
    pub(crate) admin: Option<SocketAddr>,
    /// How much and how long.
    pub(crate) limits: Limits,
    /// Who may ask.
    pub(crate) keys: Vec<Key>,
    /// The models; absent: the built-in ten.
    pub(crate) models: Option<Vec<ModelEntry>>,
    /// The embedded text engine.
    pub(crate) local: Local,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec![DEFAULT_LISTEN],
            admin: None,
            limits: Limits::default(),
            keys: Vec::new(),
            models: None,
            local: Local::default(),
        }
    }
}

/// How much and how long. Sizes read `"32MiB"`, durations `"600s"`.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Limits {
    /// Requests answered at once, over all keys; past it `gateway_concurrency_limit`. Default 256.
    pub(crate) concurrency: usize,
    /// Requests answered at once for one key. Default 64.
    pub(crate) concurrency_per_key: usize,
    /// Open client connections; newcomers wait past it. Default 10,000.
    pub(crate) connections: usize,
    /// The head of a request. Default 64 KiB, at least 8 KiB.
    pub(crate) head: ByteSize,
    /// A JSON body. Default 32 MiB.
    pub(crate) json_body: ByteSize,
    /// All bodies that are being uploaded, together. Default 512 MiB.
    pub(crate) body_memory: ByteSize,
    /// For the head of a request, and between requests. Default 30 s.
    #[serde(deserialize_with = "duration")]
    pub(crate) head_timeout: Duration,
    /// Between two pieces of a body. Default 15 s.
    #[serde(deserialize_with = "duration")]
    pub(crate) body_idle: Duration,
    /// For a whole body. Default 120 s.
    #[serde(deserialize_with = "duration")]
    pub(crate) body_timeout: Duration,
    /// For a whole request, as long as the official clients wait. Default 600 s.
    #[serde(deserialize_with = "duration")]
    pub(crate) request_timeout: Duration,
    /// A silent stream says that it is alive after this. Default 15 s.
    #[serde(deserialize_with = "duration")]
    pub(crate) keep_alive: Duration,
    /// A client that takes nothing for this long is given up. Default 30 s.
    #[serde(deserialize_with = "duration")]
    pub(crate) write_stall: Duration,
    /// After SIGTERM it goes on accepting for this long. Default 5 s.
    #[serde(deserialize_with = "duration")]
    pub(crate) lame_duck: Duration,
    /// Then open answers may finish for this long. Default 120 s.
    #[serde(deserialize_with = "duration")]
    pub(crate) drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrency: 256,
            concurrency_per_key: 64,
            connections: 10_000,
            head: ByteSize::kib(64),
            json_body: ByteSize::mib(32),
            body_memory: ByteSize::mib(512),
            head_timeout: Duration::from_secs(30),
            body_idle: Duration::from_secs(15),
            body_timeout: Duration::from_secs(120),
            request_timeout: Duration::from_secs(600),
            keep_alive: Duration::from_secs(15),
            write_stall: Duration::from_secs(30),
            lame_duck: Duration::from_secs(5),
            drain: Duration::from_secs(120),
        }
    }
}

impl Limits {
    /// The size of a JSON body in bytes.
    pub(crate) fn json_body_bytes(&self) -> usize {
        usize::try_from(self.json_body.as_u64()).unwrap_or(usize::MAX)
    }

    /// The size of a head in bytes; hyper takes no less than its own least.
    pub(crate) fn head_bytes(&self) -> usize {
        usize::try_from(self.head.as_u64()).unwrap_or(usize::MAX).max(LEAST_HEAD)
    }
}

/// One key: its hash, never the key.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Key {
    name: String,
    hash: String,
    scopes: Vec<String>,
    models: Option<Vec<String>>,
    expires: Option<String>,
}

/// One model, by what it promises.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelEntry {
    #[serde(flatten)]
    model: Model,
}

/// The embedded text engine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Local {
    /// A GGUF file of the llama family. Absent: the one that `cargo xtask fetch-model` brings.
    pub(crate) model: Option<PathBuf>,
    /// Threads for the arithmetic. Absent: one less than there are cores.
    pub(crate) threads: Option<usize>,
    /// Answers generated at once; the rest wait in order. Absent: 4.
    pub(crate) generations: Option<usize>,
}

/// Why there is no gateway. One line a problem.
#[derive(Debug)]
pub(crate) struct ConfigError(Vec<String>);

impl Config {
    /// Reads a file.
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        let name = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError::one(format!("{name}: {error}")))?;
        let config: Self = toml::from_str(&text).map_err(|error| ConfigError::one(format!("{name}: {error}")))?;
        let mut problems = config.limits.problems();
        if config.listen.is_empty() {
            problems.push("listen: at least one address is needed, such as \"127.0.0.1:8080\"".to_owned());
        }
        if problems.is_empty() { Ok(config) } else { Err(ConfigError(problems)).map_err(|error| error.within(&name)) }
    }

    /// The entries of its keys.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>, ConfigError> {
        let (mut entries, mut problems) = (Vec::new(), Vec::new());
        for key in &self.keys {
            match key.entry() {
                Ok(entry) => entries.push(entry),
                Err(found) => {
                    problems.extend(found.into_iter().map(|problem| format!("key '{}': {problem}", key.name)));
                }
            }
        }
        if problems.is_empty() { Ok(entries) } else { Err(ConfigError(problems)) }
    }

    /// Its models, or the built-in ten.
    pub(crate) fn catalog(&self) -> Result<Catalog, ConfigError> {
        match &self.models {
            None => Ok(Catalog::builtin()),
            Some(models) => Catalog::new(models.iter().map(|entry| entry.model.clone()).collect()).map_err(ConfigError),
        }
    }
}

impl Limits {
    fn problems(&self) -> Vec<String> {
        let zero = [
            ("limits.concurrency", self.concurrency == 0),
            ("limits.concurrency_per_key", self.concurrency_per_key == 0),
            ("limits.connections", self.connections == 0),
            ("limits.json_body", self.json_body.as_u64() == 0),
            ("limits.request_timeout", self.request_timeout.is_zero()),
            ("limits.keep_alive", self.keep_alive.is_zero()),
        ];
        let mut problems: Vec<_> = zero
            .iter()
            .filter(|(_, is_zero)| *is_zero)
            .map(|(name, _)| format!("{name}: must be more than 0"))
            .collect();
        if self.body_memory < self.json_body {
            problems.push("limits.body_memory: must be at least limits.json_body".to_owned());
        }
        problems
    }
}

impl Key {
    fn entry(&self) -> Result<Entry, Vec<String>> {
        let mut problems = Vec::new();
        let mut note = |problem: String| problems.push(problem);
        let hash = self.hash.parse::<KeyHash>().map_err(|error| note(format!("hash: {error}"))).ok();
        let scopes =
            self.scopes.iter().map(|scope| scope.parse::<Scope>().map_err(|error| note(format!("scopes: {error}"))));
        let scopes: Scopes = scopes.filter_map(Result::ok).fold(Scopes::default(), |all, one| all.union(one.into()));
        let models = self.models.as_ref().map(|models| {
            let patterns =
                models.iter().map(|model| model.parse::<Pattern>().map_err(|error| note(format!("models: {error}"))));
            patterns.filter_map(Result::ok).collect()
        });
        let expires = match self.expires.as_deref().map(expiry) {
            None => None,
            Some(Ok(at)) => Some(at),
            Some(Err(problem)) => {
                note(problem);
                None
            }
        };
        let Some(hash) = hash.filter(|_| problems.is_empty()) else { return Err(problems) };
        let mut entry = Entry::new(self.name.clone(), hash, scopes);
        (entry.models, entry.expires) = (models, expires);
        Ok(entry)
    }
}

/// The Unix second from which a key is refused: the end of a day in UTC, or a point in time.
pub(crate) fn expiry(text: &str) -> Result<i64, String> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at.as_second());
    }
    let next_day = text.parse::<Date>().and_then(Date::tomorrow).and_then(|day| day.to_zoned(TimeZone::UTC));
    next_day.map(|day| day.timestamp().as_second()).map_err(|_| {
        format!("expires: '{text}' is neither a date such as 2027-01-31 nor a time such as 2027-01-31T12:00:00Z")
    })
}

impl ConfigError {
    pub(crate) fn one(problem: String) -> Self {
        Self(vec![problem])
    }

    fn within(self, file: &impl std::fmt::Display) -> Self {
        Self(self.0.into_iter().map(|problem| format!("{file}: {problem}")).collect())
    }
}

impl From<auth::RingErrors> for ConfigError {
    fn from(found: auth::RingErrors) -> Self {
        Self(found.iter().map(ToString::to_string).collect())
    }
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for ConfigError {}

fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let read = SignedDuration::deserialize(from)?;
    Duration::try_from(read).map_err(|_| serde::de::Error::custom("a duration cannot be negative"))
}

/// Where clients are served without a file.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
/// Where operators are served without a file.
pub(crate) const DEFAULT_ADMIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9090);
/// hyper's own least size of a read buffer.
const LEAST_HEAD: usize = 8192;
