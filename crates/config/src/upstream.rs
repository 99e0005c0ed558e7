//! Upstreams and the targets of models in the configuration file.

pub(crate) mod auth;
pub(crate) mod headers;
pub mod hedge;
pub(crate) mod preset;
mod provider;
mod proxy;
mod quirks;
pub(crate) mod rules;
pub(crate) mod secret;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Table;
use translate::quirks::Quirks;
use translate::rules::{Rule, Rules};
use upstream::{Credential, Options};
use url::Url;

use self::auth::Auth;
use self::preset::Preset;
use self::secret::Secret;
use crate::mask;
use crate::units::Time;

wire::read_objects!(Upstream, Target);

/// A model server. Settings that are absent come from its preset, if it has one.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Upstream {
    /// The name by which targets refer to it.
    #[schemars(example = &"house")]
    pub name: String,
    /// The vendor whose settings it has.
    #[schemars(extend("enum" = preset::names()), example = &"vllm")]
    pub preset: Option<String>,
    /// Its protocol. Absent: the default of its preset, which has to be set then.
    #[schemars(example = &"chat")]
    protocol: Option<Protocol>,
    /// The base URL, to which the paths of the protocol are appended: `https://host/v1`. Absent: the base URL of the preset.
    #[serde(default)]
    #[schemars(example = &"http://127.0.0.1:8000/v1")]
    base_url: String,
    /// A base URL on another host, used when the first one fails.
    #[schemars(example = &"https://eu.api.example.com/v1")]
    fallback_base_url: Option<String>,
    /// The source of the API key to send: `{ env = "NAME" }`, `{ file = "path" }`, or
    /// `{ command = ["program", "argument"], refresh = "45m" }`. Absent: the source of the preset, or none.
    #[schemars(example = BTreeMap::from([("env", "OPENAI_API_KEY")]))]
    api_key: Option<Secret>,
    /// The name of its account at the vendor. Upstreams of a protocol with the same account can open
    /// each other's seals of reasoning. Absent: the key is the account.
    #[schemars(example = &"production")]
    account: Option<String>,
    /// The header that carries the key. Absent: `x-api-key` for Messages, else a bearer token.
    #[schemars(example = &"bearer")]
    auth: Option<Auth>,
    /// Headers of every request. Headers of clients do not replace them.
    #[serde(default)]
    #[schemars(example = BTreeMap::from([("OpenAI-Project", "p-1")]))]
    headers: BTreeMap<String, String>,
    /// The headers of its responses that clients get.
    #[serde(default)]
    #[schemars(extend("examples" = [["openai-processing-ms"]]))]
    pass_headers: Vec<String>,
    /// Its deviations from the protocol, besides the deviations of its preset.
    #[serde(default, rename = "quirks", deserialize_with = "quirks::table")]
    #[schemars(with = "Quirks")]
    quirk_words: Table,
    /// The same, parsed.
    #[serde(skip)]
    pub quirks: Quirks,
    /// Rules of its vendor about the members and values of requests, besides those that the gateway
    /// knows.
    #[serde(default, rename = "rules")]
    own_rules: Vec<Rule>,
    /// The ids of rules that it does not have.
    #[serde(default)]
    #[schemars(extend("examples" = [["open-model-system"]]))]
    rules_off: Vec<String>,
    /// True if the rules about members also apply to requests that are relayed. Default false: a
    /// relayed request was written for its vendor.
    #[serde(default)]
    pub rules_on_relay: bool,
    /// All rules that it has.
    #[serde(skip)]
    pub rules: Rules,
    /// The header that binds the requests of a conversation to one of its servers.
    #[serde(skip)]
    pub affinity_header: Option<HeaderName>,
    /// The variable that its preset names for the key and that is not set.
    #[serde(skip)]
    unset_variable: Option<String>,
    /// The URL of a proxy that connects to it, or `env`.
    #[schemars(example = &"http://10.0.0.1:3128")]
    proxy: Option<String>,
    /// A PEM file of certificates to trust besides the public ones.
    #[schemars(example = &"/etc/sluicegate/ca.pem")]
    ca_file: Option<PathBuf>,
    /// True if it gets the ids of traces, in the header `traceparent`. Default false.
    #[serde(default)]
    pub trace: bool,
    /// The URL of the list of its models, relative to the base URL and on the same host, from which facts
    /// of its models come. Absent: they come from the configuration only.
    #[schemars(example = &"models")]
    model_list: Option<String>,
    /// The form in which image edits are sent to it.
    #[serde(default)]
    pub edits: EditForm,
    /// True if streams of clients over WebSocket go to it over its own WebSocket, which stays open
    /// with the connection of the client. Only for Responses. Default false.
    #[serde(default)]
    websocket: bool,
    /// The output limit that is sent if the protocol requires one and the client set none. Default
    /// 4096.
    #[serde(default = "max_tokens")]
    pub max_tokens: u64,
    /// True if it accepts `temperature`, `top_p` and `top_k`; some Messages servers do not. Default
    /// true.
    #[serde(default = "yes")]
    pub sampling: bool,
    /// How tokens are counted before a request. Absent: as its preset does, else `messages` for
    /// Messages and `off` for the other protocols.
    #[schemars(example = &"messages")]
    count_tokens: Option<CountTokens>,
    /// The timeout for connecting, including DNS and TLS. Default 5 s.
    #[serde(default = "connect", with = "Time")]
    connect_timeout: Duration,
    /// The timeout for the head of a stream. The head of a plain reply comes with its last token.
    /// Default 120 s.
    #[serde(default = "head_timeout", with = "Time")]
    head_timeout: Duration,
    /// The timeout between two events or comments of a stream, or two chunks of a plain reply.
    /// Default 300 s.
    #[serde(default = "event_idle", with = "Time")]
    event_idle: Duration,
}

/// The protocol of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Responses.
    Responses,
    /// Chat Completions.
    Chat,
    /// Messages.
    Messages,
    /// Images.
    Images,
}

wire::text_enum! {
    /// The way in which the tokens of a prompt are counted before it is sent to an upstream.
    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum CountTokens {
        /// By its endpoint `/messages/count_tokens`.
        Messages = "messages",
        /// By its endpoint `/responses/input_tokens`.
        Responses = "responses",
        /// By the gateway, from the length of the request. The reply is marked as an estimate.
        Estimate = "estimate",
        /// Not at all: it is left out.
        Off = "off",
    }
}

/// The form in which image edits are sent to an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EditForm {
    /// The form in which the client sent them.
    #[default]
    AsSent,
    /// JSON.
    Json,
    /// A multipart form.
    Multipart,
}

/// A target of a model: an upstream or an embedded engine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Target {
    /// The name of an upstream.
    #[schemars(example = &"house")]
    pub upstream: Option<String>,
    /// The upstream's name of the model. Absent: the client's.
    #[schemars(example = &"qwen3-coder")]
    pub model: Option<String>,
    /// An embedded engine, instead of an upstream.
    #[schemars(example = &"local")]
    pub engine: Option<EngineName>,
    /// The relative frequency with which it is tried first. If no target of the model has a weight,
    /// they are tried in order.
    #[schemars(example = 3)]
    pub weight: Option<u32>,
    /// The timeout for the first content of a stream, after which the next target is asked. The last
    /// target has none. Absent: the next target is asked only after a failure.
    #[serde(default, deserialize_with = "Time::deserialize_some")]
    #[schemars(with = "Option<Time>", example = &"5s")]
    pub first_content_timeout: Option<Duration>,
}

/// An embedded engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EngineName {
    /// The text engine.
    Local,
    /// The image engine.
    Easel,
}

impl Protocol {
    /// The value in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Messages => "messages",
            Self::Images => "images",
        }
    }
}

impl Upstream {
    /// Its protocol.
    pub fn protocol(&self) -> Protocol {
        self.protocol.unwrap_or(Protocol::Chat)
    }

    /// Adds what its preset prescribes, and parses its quirks.
    pub fn complete(&mut self) -> Result<(), String> {
        if self.quirk_words.contains_key("key_header") && self.auth.is_some() {
            return Err("quirks: 'key_header' and 'auth' are the same; set one of them".to_owned());
        }
        let preset = self.preset.as_deref().map(Preset::find).transpose()?;
        if let Some(preset) = preset {
            preset.complete(self)?;
        }
        if self.protocol.is_none() {
            return Err(
                "protocol: one of responses, chat, messages and images is needed, or a preset"
                    .to_owned(),
            );
        }
        if self.base_url.is_empty() {
            return Err("base_url: a URL such as https://host/v1 is needed".to_owned());
        }
        if self.max_tokens == 0 {
            return Err("max_tokens: must be more than 0".to_owned());
        }
        self.quirks = quirks::parse(&self.quirk_words)?;
        self.rules = rules::of(self)?;
        self.affinity_header = quirks::affinity_header(&self.quirks)?;
        if let Some(name) = &self.quirks.key_header {
            self.auth = Some(Auth::Header(headers::name("quirks: key_header", name)?));
        }
        Ok(())
    }

    /// Converts it to the options of the upstream client, with this key, or returns all its problems.
    pub fn options(
        &self,
        credential: Result<Option<Credential>, String>,
    ) -> Result<Options, Vec<String>> {
        let mut problems = Vec::new();
        let base = noted(Some(self.url("base_url", &self.base_url)), &mut problems);
        let fallback = self
            .fallback_base_url
            .as_ref()
            .map(|text| self.url("fallback_base_url", text));
        let fallback = noted(fallback, &mut problems);
        let credential = noted(credential.transpose(), &mut problems);
        let headers = noted(Some(self.headers()), &mut problems);
        let pass_headers = noted(Some(headers::passed(&self.pass_headers)), &mut problems);
        let proxy = self
            .proxy
            .as_ref()
            .map(|proxy| proxy::parse(proxy, &self.base_url));
        let proxy = noted(proxy, &mut problems);
        let roots = noted(
            self.ca_file.as_ref().map(|path| read("ca_file", path)),
            &mut problems,
        );
        if self.websocket && self.protocol() != Protocol::Responses {
            problems.push(format!(
                "websocket: an upstream of the protocol '{}' has none; 'responses' has one",
                self.protocol().as_str()
            ));
        }
        let Some(base) = base.filter(|_| problems.is_empty()) else {
            return Err(problems);
        };
        let mut options = Options::new(base);
        options.fallback_base_url = fallback;
        options.credential = credential;
        options.headers = headers.unwrap_or_default();
        options.pass_headers = pass_headers.unwrap_or_default();
        options.proxy = proxy.flatten();
        options.connect_timeout = self.connect_timeout;
        options.head_timeout = self.head_timeout;
        options.event_idle = self.event_idle;
        options.websocket = self.websocket;
        options.no_instructions_with_previous = self.quirks.no_instructions_with_previous;
        options.roots = roots;
        Ok(options)
    }

    /// Returns the options of the client that reads the list of its models, if it has one. `options` are
    /// the options for its requests.
    pub fn model_list_options(&self, options: &Options) -> Result<Option<Options>, String> {
        let Some(list) = &self.model_list else {
            return Ok(None);
        };
        let mut base = options.base_url.clone();
        base.set_path(&format!("{}/", base.path().trim_end_matches('/')));
        let url = base
            .join(list)
            .map_err(|error| format!("model_list: '{list}': {error}"))?;
        // The list is read with the key.
        if url.origin() != base.origin() {
            return Err(format!(
                "model_list: '{url}' is not on the host of the base URL"
            ));
        }
        let mut options = options.clone();
        options.base_url = url;
        options.fallback_base_url = None;
        Ok(Some(options))
    }

    /// The secret from which the keys of signature envelopes are derived. Gateways that share the
    /// upstream's key can open each other's envelopes, also after a restart. A seal has another form
    /// in each protocol.
    pub fn secret(&self) -> Vec<u8> {
        let key = self.api_key.as_ref().and_then(Secret::shared);
        let key = self.account.as_ref().or(key.as_ref());
        let key = key.unwrap_or(&self.name);
        format!("sluicegate envelope\n{:?}\n{key}", self.protocol()).into_bytes()
    }

    /// The interval at which its key is refreshed, if a command prints it.
    pub fn refresh(&self) -> Option<Duration> {
        match &self.api_key {
            Some(Secret::Command { refresh, .. }) => Some(*refresh),
            _ => None,
        }
    }

    /// Its host and port.
    pub fn server(&self) -> Option<(String, u16)> {
        let url = Url::parse(&self.base_url).ok()?;
        Some((url.host_str()?.to_owned(), url.port_or_known_default()?))
    }

    /// Describes its URLs, without the secrets that they can have, and the source of its key.
    pub fn describe(&self) -> String {
        let key = match (&self.api_key, &self.unset_variable) {
            (Some(secret), _) => secret.describe(),
            (None, Some(variable)) => format!("without a key: ${variable} is not set"),
            (None, None) => "without a key".to_owned(),
        };
        let fallback = self
            .fallback_base_url
            .as_ref()
            .map(|url| format!(", then {}", mask::line(url)))
            .unwrap_or_default();
        let websocket = match self.websocket {
            true => ", over WebSocket for clients that use it",
            false => "",
        };
        let base_url = mask::line(&self.base_url);
        format!("{base_url}{fallback}, {key}{websocket}")
    }

    /// Reads its key. A command is run, which blocks.
    pub fn credential(&self) -> Result<Option<Credential>, String> {
        let upstream = &self.name;
        let Some(secret) = &self.api_key else {
            // Servers on this machine usually need no key.
            if let Some(variable) = &self.unset_variable
                && self.base_url.starts_with("https:")
            {
                tracing::warn!(upstream, variable, "no key: the variable is not set");
            }
            return Ok(None);
        };
        let key = secret.read()?;
        if let Secret::File(path) = secret
            && secret::is_world_readable(path)
        {
            let file = path.display();
            tracing::warn!(upstream, %file, "the key file is world-readable: chmod o-r");
        }
        let credential = self.auth().credential(&key);
        credential.map(Some).map_err(|error| error.to_string())
    }

    /// How tokens are counted before a request.
    pub fn count_tokens(&self) -> CountTokens {
        let default = match self.protocol() {
            Protocol::Messages => CountTokens::Messages,
            _ => CountTokens::Off,
        };
        self.count_tokens.unwrap_or(default)
    }

    /// Removes the headers that the operator has fixed from the headers of a client.
    pub fn without_fixed(&self, mut headers: HeaderMap) -> HeaderMap {
        for name in self.headers.keys() {
            headers.remove(name);
        }
        headers
    }

    /// Its settings as lines of TOML, with the settings of its preset, without the secrets of its URL.
    pub fn to_toml(&self) -> String {
        let api_key = self.api_key.as_ref().map(Secret::to_toml);
        lines(
            self.protocol(),
            &mask::line(&self.base_url),
            api_key,
            &self.auth(),
            &self.quirk_words,
            self.count_tokens,
        )
    }

    fn auth(&self) -> Auth {
        let default = || Auth::default_of(self.protocol());
        self.auth.clone().unwrap_or_else(default)
    }

    /// Parses a base URL, and adds the prefix of paths.
    fn url(&self, name: &str, text: &str) -> Result<Url, String> {
        let mut url = Url::parse(text).map_err(|error| {
            format!("{name}: '{text}' is not a URL such as https://host/v1: {error}")
        })?;
        let path = url.path().trim_end_matches('/');
        if let Some(added) = PATHS
            .iter()
            .find(|added| path.ends_with(&format!("/v1{added}")))
        {
            return Err(format!(
                "{name}: '{text}' ends in '{added}', which is appended to it: leave that out"
            ));
        }
        if let Some(prefix) = &self.quirks.path_prefix {
            let path = [url.path().trim_end_matches('/'), prefix].concat();
            url.set_path(&path);
        }
        Ok(url)
    }

    /// The headers of every request. Messages requires a version; a client's own version replaces
    /// the default one.
    fn headers(&self) -> Result<HeaderMap, String> {
        let mut headers = headers::fixed(&self.headers)?;
        if self.protocol() == Protocol::Messages {
            headers
                .entry(HeaderName::from_static("anthropic-version"))
                .or_insert(HeaderValue::from_static("2023-06-01"));
        }
        Ok(headers)
    }
}

impl Target {
    /// Returns its first problem, apart from whether there is such an upstream.
    pub fn problem(&self) -> Option<&'static str> {
        if self.model.as_deref() == Some("") {
            return Some("model: is empty; to send the client's name of the model, leave it out");
        }
        let is_zero = self.first_content_timeout == Some(Duration::ZERO);
        is_zero.then_some("first_content_timeout: must be more than 0s")
    }
}

/// The paths of the protocols, which are appended to base URLs.
const PATHS: [&str; 5] = [
    "/chat/completions",
    "/responses",
    "/messages",
    "/images/generations",
    "/images/edits",
];

/// Returns what was found, or adds the problem to the list.
pub(crate) fn noted<T>(found: Option<Result<T, String>>, problems: &mut Vec<String>) -> Option<T> {
    found?.map_err(|problem| problems.push(problem)).ok()
}

/// Returns the settings of an upstream that a preset can have, as lines of TOML.
pub(crate) fn lines(
    protocol: Protocol,
    base_url: &str,
    api_key: Option<String>,
    auth: &Auth,
    quirks: &Table,
    count_tokens: Option<CountTokens>,
) -> String {
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let mut lines = vec![
        ("protocol", quoted(protocol.as_str())),
        ("base_url", quoted(base_url)),
    ];
    lines.extend(api_key.map(|api_key| ("api_key", api_key)));
    lines.push(("auth", auth.to_toml()));
    if !quirks.is_empty() {
        let mut words: Vec<_> = quirks
            .iter()
            .map(|(word, value)| format!("{word} = {value}"))
            .collect();
        words.sort_unstable();
        lines.push(("quirks", format!("{{ {} }}", words.join(", "))));
    }
    lines.extend(count_tokens.map(|word| ("count_tokens", quoted(word.as_str()))));
    let lines = lines
        .into_iter()
        .map(|(name, value)| format!("{name} = {value}\n"));
    lines.collect()
}

pub(crate) fn read(name: &str, path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{name}: {}: {error}", path.display()))
}

const fn max_tokens() -> u64 {
    4096
}

const fn yes() -> bool {
    true
}

const fn connect() -> Duration {
    Duration::from_secs(5)
}

const fn head_timeout() -> Duration {
    Duration::from_secs(120)
}

const fn event_idle() -> Duration {
    Duration::from_secs(300)
}
