//! The configuration file: TOML. Unknown keys are rejected and all problems are reported at once.

mod fetch;
pub(crate) mod fixed;
#[cfg(feature = "postgres")]
mod journal_folder;
pub(crate) mod key;
mod limits;
pub(crate) mod pass_through;
pub(crate) mod quota;
mod responses;
pub(crate) mod state;
pub(crate) mod upstream;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::quota::PriceEntry;
use auth::Entry;
use bytesize::ByteSize;
use catalog::{Catalog, Model};
use jiff::SignedDuration;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use self::fetch::Fetch;
use self::key::Key;
pub(crate) use self::limits::Limits;
use self::quota::{Quota, QuotaRule};
pub(crate) use self::responses::Responses;
use self::state::State;

wire::read_objects!(Config, Local, Easel);

/// The configuration of a gateway. The default serves the built-in models without a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub(crate) struct Config {
    /// The addresses that serve clients. All of them serve the same paths, so that a client can
    /// have a fallback address.
    pub(crate) listen: Vec<SocketAddr>,
    /// The address of `/livez`, `/readyz` and `/metrics`. Off in a file unless set.
    pub(crate) admin: Option<SocketAddr>,
    pub(crate) limits: Limits,
    /// Limits of keys and models.
    pub(crate) quotas: Vec<Quota>,
    /// The prices of models, as clients name them.
    pub(crate) prices: Vec<PriceEntry>,
    /// The stores of keys and usage.
    pub(crate) state: State,
    pub(crate) keys: Vec<Key>,
    /// The models. Absent: the ten built-in ones.
    pub(crate) models: Option<Vec<ModelEntry>>,
    /// The model servers that can be targets of models.
    pub(crate) upstreams: Vec<upstream::Upstream>,
    /// The embedded text engine.
    pub(crate) local: Local,
    /// The embedded image engine.
    pub(crate) easel: Easel,
    pub(crate) fetch: Fetch,
    pub(crate) responses: Responses,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec![DEFAULT_LISTEN],
            admin: None,
            limits: Limits::default(),
            quotas: Vec::new(),
            prices: Vec::new(),
            state: State::default(),
            keys: Vec::new(),
            models: None,
            upstreams: Vec::new(),
            local: Local::default(),
            easel: Easel::default(),
            fetch: Fetch::default(),
            responses: Responses::default(),
        }
    }
}

/// One model: its properties and its targets.
#[derive(Clone, Debug)]
pub(crate) struct ModelEntry {
    /// Its targets. Empty: the embedded engine of its family.
    pub(crate) targets: Vec<upstream::Target>,
    pub(crate) model: Model,
}

/// Written by hand, because serde's `flatten` would accept unknown keys.
impl<'de> Deserialize<'de> for ModelEntry {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut settings = toml::Table::deserialize(from)?;
        let targets = settings
            .remove("targets")
            .map(toml::Value::try_into)
            .transpose()
            .map_err(D::Error::custom)?;
        let model = settings.try_into().map_err(D::Error::custom)?;
        Ok(Self {
            targets: targets.unwrap_or_default(),
            model,
        })
    }
}

/// The embedded text engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub(crate) struct Local {
    /// A GGUF file of the llama family. Absent: the file that `cargo xtask fetch-model` downloads.
    pub(crate) model: Option<PathBuf>,
    /// Compute threads. Absent: one less than there are cores, or both of two.
    pub(crate) threads: Option<usize>,
    /// Concurrent generations; further ones wait in order. Absent: 4.
    pub(crate) generations: Option<usize>,
}

/// The embedded image engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub(crate) struct Easel {
    /// Images decoded and rendered at once. Absent: the number of cores.
    #[cfg_attr(
        not(feature = "easel"),
        allow(dead_code, reason = "a file may set up what this build leaves out")
    )]
    pub(crate) threads: Option<usize>,
}

/// The problems that prevent the gateway from starting, one per line.
#[derive(Debug)]
pub struct ConfigError(pub(crate) Vec<String>);

impl Config {
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        let text =
            std::fs::read_to_string(path).map_err(|error| ConfigError::one(error.to_string()));
        text.and_then(|text| Self::parse(&text))
            .map_err(|error| error.within(&path.display()))
    }

    pub(crate) fn parse(text: &str) -> Result<Self, ConfigError> {
        let mut config: Self =
            toml::from_str(text).map_err(|error| ConfigError::one(masked(&error.to_string())))?;
        let mut problems = config.limits.problems();
        for upstream in &mut config.upstreams {
            if let Err(problem) = upstream.complete() {
                problems.push(format!("upstream '{}': {problem}", upstream.name));
            }
        }
        problems.extend(quota::rules(&config.quotas).err().unwrap_or_default());
        problems.extend(config.state.problems());
        for (index, quota) in config.quotas.iter().enumerate() {
            if quota.has_budget() && config.state.accounting.is_none() {
                problems.push(format!(
                    "quotas[{index}].budget: needs state.accounting, because what was spent has to outlive the process"
                ));
            }
        }
        problems.extend(config.fetch.problems());
        problems.extend(config.responses.problems());
        if config.easel.threads == Some(0) {
            problems.push("easel.threads: must be more than 0".to_owned());
        }
        if config.listen.is_empty() {
            problems.push(
                "listen: at least one address is needed, such as \"127.0.0.1:8080\"".to_owned(),
            );
        }
        if problems.is_empty() {
            Ok(config)
        } else {
            Err(ConfigError(problems))
        }
    }

    pub(crate) fn entries(&self) -> Result<Vec<Entry>, ConfigError> {
        let mut problems = Vec::new();
        let mut entries = Vec::new();
        for key in &self.keys {
            match key.entry() {
                Ok(entry) => entries.push(entry),
                Err(found) => problems.extend(
                    found
                        .iter()
                        .map(|problem| format!("key '{}': {problem}", key.name)),
                ),
            }
        }
        if problems.is_empty() {
            Ok(entries)
        } else {
            Err(ConfigError(problems))
        }
    }

    pub(crate) fn quota_rules(&self) -> Result<Vec<QuotaRule>, ConfigError> {
        quota::rules(&self.quotas).map_err(ConfigError)
    }

    /// Returns its models, or the ten built-in ones.
    pub(crate) fn catalog(&self) -> Result<Catalog, ConfigError> {
        match &self.models {
            None => Ok(Catalog::builtin()),
            Some(models) => Catalog::new(models.iter().map(|entry| entry.model.clone()).collect())
                .map_err(ConfigError),
        }
    }
}

impl ConfigError {
    pub(crate) fn one(problem: String) -> Self {
        Self(vec![problem])
    }

    fn within(self, file: &impl std::fmt::Display) -> Self {
        Self(
            self.0
                .into_iter()
                .map(|problem| format!("{file}: {problem}"))
                .collect(),
        )
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
    Duration::try_from(read).map_err(|_| D::Error::custom("a duration cannot be negative"))
}

/// Returns a message that quotes a line of a file without the user and the password of an address.
fn masked(message: &str) -> String {
    let line = |line: &str| match (line.find("://"), line.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => {
            format!("{}://…{}", &line[..scheme], &line[at..])
        }
        _ => line.to_owned(),
    };
    message.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Converts a configured size to a number of bytes in memory.
pub(crate) fn bytes(size: ByteSize) -> usize {
    usize::try_from(size.as_u64()).unwrap_or(usize::MAX)
}

/// The client address of a gateway without a file.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
/// The admin address of a gateway without a file.
pub(crate) const DEFAULT_ADMIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9090);

#[cfg(test)]
mod tests {
    use super::*;

    /// The parser quotes the line with the error.
    #[test]
    fn an_error_does_not_quote_a_password() {
        let line = "accounting = \"postgres://gate:secr@et@db.example/usage";
        let error = Config::parse(&format!("[state]\n{line}\n")).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("line 2, column "), "{error}");
        assert!(
            error.contains("2 | accounting = \"postgres://…@db.example/usage"),
            "{error}"
        );
        assert!(!error.contains("secr"), "{error}");
    }
}
