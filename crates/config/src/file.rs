//! The configuration file: TOML. Unknown keys are rejected and all problems are reported at once.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use auth::Entry;
use catalog::{Catalog, Facts};
use quota::PriceEntry;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::cors::Cors;
use crate::error::ConfigError;
use crate::fetch::Fetch;
use crate::key::Key;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::model_entry::ModelEntry;
use crate::parser_error;
use crate::quota::{Quota, QuotaRule, rules};
use crate::responses::Responses;
use crate::state::State;
use crate::tls::Tls;
use crate::traces::Traces;
use crate::upstream::Upstream;
use crate::websocket::WebSocket;

wire::read_objects!(Config, TextEngineConfig, ImageEngineConfig);

/// The configuration of a gateway. The default serves the built-in models without a file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct Config {
    /// The addresses that serve clients. All of them serve the same paths, so that a client can
    /// have a fallback address.
    pub listen: Vec<SocketAddr>,
    /// The address of `/livez`, `/readyz` and `/metrics`. Off in a file unless set.
    #[schemars(example = DEFAULT_ADMIN)]
    pub admin: Option<SocketAddr>,
    /// The certificate of the addresses that serve clients. Absent: they serve without TLS.
    pub tls: Option<Tls>,
    /// The certificate of the admin address. Absent: it serves without TLS.
    pub admin_tls: Option<Tls>,
    /// The web pages that may call the gateway.
    pub cors: Cors,
    /// Limits of sizes, times and concurrent work.
    pub limits: Limits,
    /// Limits of keys and models.
    pub quotas: Vec<Quota>,
    /// The prices of models, as clients name them: of a million tokens, as strings.
    pub prices: Vec<PriceEntry>,
    /// The stores of keys and usage.
    pub state: State,
    /// The keys of clients.
    pub keys: Vec<Key>,
    /// The models. Absent: the ten built-in ones.
    pub models: Option<Vec<ModelEntry>>,
    /// The facts of models, by the name that clients or a model server have for each one. The facts
    /// come from `models.facts`.
    #[schemars(extend("examples" = [{"qwen3-coder": {"max_input_tokens": 262_144}}]))]
    pub facts: BTreeMap<String, Facts>,
    /// The model servers that can be targets of models.
    pub upstreams: Vec<Upstream>,
    /// The embedded text engine.
    pub text_engine: TextEngineConfig,
    /// The embedded image engine.
    pub image_engine: ImageEngineConfig,
    /// The fetching of images that requests refer to by URL.
    pub fetch: Fetch,
    /// The responses that are kept.
    pub responses: Responses,
    /// The Responses API over WebSocket.
    pub websocket: WebSocket,
    /// The export of traces.
    pub traces: Traces,
    /// The export of metrics. Prometheus reads them at the admin address instead.
    pub metrics: Metrics,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec![DEFAULT_LISTEN],
            admin: None,
            tls: None,
            admin_tls: None,
            cors: Cors::default(),
            limits: Limits::default(),
            quotas: Vec::new(),
            prices: Vec::new(),
            state: State::default(),
            keys: Vec::new(),
            models: None,
            facts: BTreeMap::new(),
            upstreams: Vec::new(),
            text_engine: TextEngineConfig::default(),
            image_engine: ImageEngineConfig::default(),
            fetch: Fetch::default(),
            responses: Responses::default(),
            websocket: WebSocket::default(),
            traces: Traces::default(),
            metrics: Metrics::default(),
        }
    }
}

/// The embedded text engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct TextEngineConfig {
    /// A GGUF file of the llama family. Absent: the file that `cargo xtask fetch-model` downloads.
    #[schemars(example = &"/models/another.gguf")]
    pub model: Option<PathBuf>,
    /// Compute threads. Absent: one less than there are cores, or both of two.
    #[schemars(example = 2)]
    pub threads: Option<usize>,
    /// Concurrent generations; further ones wait in order. Absent: 4.
    #[schemars(example = 4)]
    pub generations: Option<usize>,
}

/// The embedded image engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct ImageEngineConfig {
    /// Images decoded and rendered at once. Absent: the number of cores.
    #[schemars(example = 2)]
    pub threads: Option<usize>,
}

impl Config {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// Returns all problems of the file, with its path.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text =
            std::fs::read_to_string(path).map_err(|error| ConfigError::one(error.to_string()));
        text.and_then(|text| Self::parse(&text))
            .map_err(|error| error.within(&path.display()))
    }

    /// Parses the text of a configuration file.
    ///
    /// # Errors
    /// Returns all problems of the text.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let mut config = read(text)?;
        let mut problems = config.limits.problems();
        problems.extend(config.complete_upstreams());
        problems.extend(rules(&config.quotas).err().unwrap_or_default());
        problems.extend(config.state.problems());
        problems.extend(config.quotas_without_store());
        problems.extend(config.fetch.problems());
        problems.extend(config.responses.problems());
        problems.extend(config.websocket.problems());
        problems.extend(config.cors.problems());
        problems.extend(config.traces.problems());
        problems.extend(config.metrics.problems());
        problems.extend(config.engine_problems());
        if config.listen.is_empty() {
            problems.push(
                "listen: at least one address is needed, such as \"127.0.0.1:8080\"".to_owned(),
            );
        }
        if problems.is_empty() {
            Ok(config)
        } else {
            Err(ConfigError::new(problems))
        }
    }

    /// Adds the settings of presets to its upstreams, and returns their problems.
    fn complete_upstreams(&mut self) -> Vec<String> {
        let mut problems = Vec::new();
        for (index, upstream) in self.upstreams.iter_mut().enumerate() {
            if upstream.name.is_empty() {
                problems.push(format!(
                    "upstreams[{index}].name: is empty, but must be a name by which targets refer to it"
                ));
            }
            if let Err(problem) = upstream.complete() {
                problems.push(format!("upstream '{}': {problem}", upstream.name));
            }
            if upstream.trace && self.traces.endpoint.is_none() {
                let problem = "needs traces.endpoint, because without it requests have no trace";
                problems.push(format!("upstream '{}': trace: {problem}", upstream.name));
            }
        }
        problems
    }

    /// Returns the problems of quotas that need a store.
    fn quotas_without_store(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (index, quota) in self.quotas.iter().enumerate() {
            if quota.has_budget() && self.state.accounting.is_none() {
                problems.push(format!(
                    "quotas[{index}].budget: needs state.accounting, because what was spent has to outlive the process"
                ));
            }
            if quota.is_for_lending() && self.state.limits.is_none() {
                problems.push(format!(
                    "quotas[{index}].on_lost_store: needs state.limits, the store that lends the quota"
                ));
            }
        }
        problems
    }

    fn engine_problems(&self) -> impl Iterator<Item = String> {
        let counts = [
            ("text_engine.threads", self.text_engine.threads),
            ("text_engine.generations", self.text_engine.generations),
            ("image_engine.threads", self.image_engine.threads),
        ];
        let zero = counts.into_iter().filter(|(_, count)| *count == Some(0));
        zero.map(|(name, _)| format!("{name}: must be more than 0"))
    }

    /// Returns the entries of its keys for the key ring.
    ///
    /// # Errors
    /// Returns the problems of all keys.
    pub fn entries(&self) -> Result<Vec<Entry>, ConfigError> {
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
            Err(ConfigError::new(problems))
        }
    }

    /// Returns its quotas, checked.
    ///
    /// # Errors
    /// Returns the problems of all quotas.
    pub fn quota_rules(&self) -> Result<Vec<QuotaRule>, ConfigError> {
        rules(&self.quotas).map_err(ConfigError::new)
    }

    /// Returns its models with the facts of their entries, else of their names, or the ten built-in ones.
    pub fn catalog(&self) -> Result<Catalog, ConfigError> {
        let Some(models) = &self.models else {
            return Ok(Catalog::builtin());
        };
        let models = models.iter().map(|entry| {
            let mut model = entry.model.clone();
            let named = self.facts.get(&model.id).cloned();
            model.facts = model.facts.or(&named.unwrap_or_default());
            model
        });
        Catalog::new(models.collect()).map_err(ConfigError::new)
    }
}

/// Reads the settings of a file. An error names the setting, such as `keys[1].scopes`.
fn read(text: &str) -> Result<Config, ConfigError> {
    let refuse = |error: &toml::de::Error, setting: &str| {
        ConfigError::one(parser_error::message(text, error, setting))
    };
    let file = toml::Deserializer::parse(text).map_err(|error| refuse(&error, "."))?;
    serde_path_to_error::deserialize(file)
        .map_err(|error| refuse(error.inner(), &error.path().to_string()))
}

/// The client address of a gateway without a file.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
/// The admin address of a gateway without a file.
pub const DEFAULT_ADMIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9090);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_come_from_the_entry_of_the_model_and_from_its_name() {
        let text = r#"
            [facts.named]
            max_input_tokens = 100000
            max_output_tokens = 4000

            [facts.small]
            capabilities = ["tools", "thinking"]

            [[models]]
            id = "named"
            family = "text"
            protocols = ["chat"]
            facts = { max_output_tokens = 1000 }
            targets = [{ upstream = "u", model = "small" }]
        "#;
        let catalog = Config::parse(text).unwrap().catalog().unwrap();
        let facts = &catalog.find("named").unwrap().facts;
        assert_eq!(
            toml::to_string(facts).unwrap(),
            "max_input_tokens = 100000\nmax_output_tokens = 1000\n"
        );
    }

    #[test]
    fn settings_without_effect_are_refused() {
        let quota = "[[quotas]]\nconcurrency = 1\n";
        for (settings, problem) in [
            (
                "[text_engine]\nthreads = 0\ngenerations = 0\n[image_engine]\nthreads = 0",
                "text_engine.threads: must be more than 0\ntext_engine.generations: must be more than 0\n\
                 image_engine.threads: must be more than 0",
            ),
            (
                "[websocket]\nkeep_bytes = 0",
                "websocket.keep_bytes: must be more than 0; to offer no WebSockets, set websocket.enabled to false",
            ),
            (
                &format!("{quota}on_lost_store = \"open\""),
                "quotas[0].on_lost_store: needs state.limits, the store that lends the quota",
            ),
        ] {
            let error = Config::parse(settings).unwrap_err();
            assert_eq!(error.to_string(), problem);
        }
    }

    #[test]
    fn unknown_and_impossible_facts_are_refused() {
        for (facts, expected) in [
            (
                "max_input_tokens = 0",
                "facts.m.max_input_tokens: invalid value: integer `0`, expected an integer above 0",
            ),
            (
                "max_tokens = 1",
                "facts.m.max_tokens: unknown field `max_tokens`",
            ),
            ("capabilities = [\"magic\"]", "unknown variant `magic`"),
        ] {
            let error = Config::parse(&format!("[facts.m]\n{facts}")).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
