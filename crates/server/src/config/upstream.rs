//! Upstreams and the targets of models in the configuration file.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use upstream::{Credential, Options};
use url::Url;

use super::duration;

wire::read_objects!(Upstream, Target);

/// A model server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub(crate) struct Upstream {
    /// The name by which targets refer to it.
    pub(crate) name: String,
    pub(crate) protocol: Protocol,
    /// The base URL, to which the paths of the protocol are appended: `https://host/v1`.
    base_url: String,
    /// A base URL on another host, used when the first one fails.
    fallback_base_url: Option<String>,
    /// The API key to send. Absent: none.
    api_key: Option<Secret>,
    /// The header that carries the key. Absent: `x-api-key` for Messages, else a bearer token.
    auth: Option<Auth>,
    /// A PEM file of certificates to trust besides the public ones.
    ca_file: Option<PathBuf>,
    /// True if its streams violate the protocol's event grammar, so that they are parsed and
    /// re-encoded even for clients of the same protocol.
    #[serde(default)]
    pub(crate) repair: bool,
    #[serde(default)]
    pub(crate) edits: EditForm,
    /// The output limit that is sent if the protocol requires one and the client set none. Default
    /// 4096.
    #[serde(default = "max_tokens")]
    pub(crate) max_tokens: u64,
    /// True if it accepts `temperature`, `top_p` and `top_k`; some Messages servers do not. Default
    /// true.
    #[serde(default = "yes")]
    pub(crate) sampling: bool,
    /// The timeout for connecting, including DNS and TLS. Default 5 s.
    #[serde(default = "connect", deserialize_with = "duration")]
    connect_timeout: Duration,
    /// The timeout for the head of a stream; that of a plain reply comes with its last token.
    /// Default 120 s.
    #[serde(default = "head_timeout", deserialize_with = "duration")]
    head_timeout: Duration,
    /// The timeout between two events or comments of a stream, or two chunks of a plain reply.
    /// Default 300 s.
    #[serde(default = "event_idle", deserialize_with = "duration")]
    event_idle: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Protocol {
    Responses,
    Chat,
    Messages,
    Images,
}

/// The form in which image edits are sent to an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EditForm {
    /// The form in which the client sent them.
    #[default]
    AsSent,
    Json,
    Multipart,
}

/// The source of a secret, which is never in the configuration itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Secret {
    Env(String),
    /// A file that contains only the secret and white space.
    File(PathBuf),
}

/// The header that carries the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum Auth {
    /// `Authorization: Bearer …`.
    #[serde(rename = "bearer")]
    Bearer,
    /// `x-api-key: …`.
    #[serde(rename = "x-api-key")]
    XApiKey,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub(crate) struct Target {
    pub(crate) upstream: Option<String>,
    /// The upstream's name of the model. Absent: the client's.
    pub(crate) model: Option<String>,
    /// An embedded engine, instead of an upstream.
    pub(crate) engine: Option<EngineName>,
    /// The relative frequency with which it is tried first. If no target of the model has a weight,
    /// they are tried in order.
    pub(crate) weight: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EngineName {
    /// The text engine.
    Local,
    /// The image engine.
    Easel,
}

impl Protocol {
    /// The value in the configuration.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Messages => "messages",
            Self::Images => "images",
        }
    }
}

impl Upstream {
    /// Converts it to the options of the upstream client, with its key, or returns all its
    /// problems.
    pub(crate) fn options(&self) -> Result<Options, Vec<String>> {
        let mut problems = Vec::new();
        let base = noted(Some(url("base_url", &self.base_url)), &mut problems);
        let fallback = self
            .fallback_base_url
            .as_ref()
            .map(|text| url("fallback_base_url", text));
        let fallback = noted(fallback, &mut problems);
        let credential = noted(
            self.api_key.as_ref().map(|secret| self.credential(secret)),
            &mut problems,
        );
        let roots = noted(
            self.ca_file.as_ref().map(|path| read("ca_file", path)),
            &mut problems,
        );
        let Some(base) = base.filter(|_| problems.is_empty()) else {
            return Err(problems);
        };
        let mut options = Options::new(base);
        options.fallback_base_url = fallback;
        options.credential = credential;
        options.headers = self.headers();
        options.connect = self.connect_timeout;
        options.head = self.head_timeout;
        options.idle = self.event_idle;
        options.roots = roots;
        Ok(options)
    }

    /// The secret from which the keys of signature envelopes are derived. Gateways that share the
    /// upstream's key can open each other's envelopes, also after a restart.
    pub(crate) fn secret(&self) -> Vec<u8> {
        let key = self.api_key.as_ref().and_then(|secret| secret.read().ok());
        format!(
            "sluicegate envelope\n{}",
            key.as_ref().unwrap_or(&self.name)
        )
        .into_bytes()
    }

    /// Describes its URLs and the source of its key.
    pub(crate) fn describe(&self) -> String {
        let key = match &self.api_key {
            None => "without a key".to_owned(),
            Some(Secret::Env(name)) => format!("key from ${name}"),
            Some(Secret::File(path)) if is_world_readable(path) => {
                format!("key from {}, which is world-readable", path.display())
            }
            Some(Secret::File(path)) => format!("key from {}", path.display()),
        };
        let fallback = self
            .fallback_base_url
            .as_ref()
            .map(|url| format!(", then {url}"))
            .unwrap_or_default();
        format!("{}{fallback}, {key}", self.base_url)
    }

    fn credential(&self, secret: &Secret) -> Result<Credential, String> {
        let key = secret.read()?;
        if let Secret::File(path) = secret
            && is_world_readable(path)
        {
            let upstream = &self.name;
            let file = path.display();
            tracing::warn!(upstream, %file, "the key file is world-readable: chmod o-r");
        }
        let credential = match self.auth {
            Some(Auth::Bearer) => Credential::bearer(&key),
            Some(Auth::XApiKey) => Credential::x_api_key(&key),
            None if self.protocol == Protocol::Messages => Credential::x_api_key(&key),
            None => Credential::bearer(&key),
        };
        credential.map_err(|error| error.to_string())
    }

    /// The default headers. Messages requires a version with every request; a client's own version
    /// replaces it.
    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if self.protocol == Protocol::Messages {
            headers.insert(
                HeaderName::from_static("anthropic-version"),
                HeaderValue::from_static("2023-06-01"),
            );
        }
        headers
    }
}

impl Secret {
    fn read(&self) -> Result<String, String> {
        let found = match self {
            Self::Env(name) => std::env::var(name)
                .map_err(|_| format!("api_key: the environment has no variable '{name}'")),
            Self::File(path) => std::fs::read_to_string(path)
                .map_err(|error| format!("api_key: {}: {error}", path.display())),
        };
        Ok(found?.trim().to_owned())
    }
}

/// Returns what was found, or adds the problem to the list.
fn noted<T>(found: Option<Result<T, String>>, problems: &mut Vec<String>) -> Option<T> {
    found?.map_err(|problem| problems.push(problem)).ok()
}

fn url(name: &str, text: &str) -> Result<Url, String> {
    Url::parse(text)
        .map_err(|error| format!("{name}: '{text}' is not a URL such as https://host/v1: {error}"))
}

fn read(name: &str, path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{name}: {}: {error}", path.display()))
}

/// True if every user of the machine can read the file.
fn is_world_readable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o004 != 0)
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
