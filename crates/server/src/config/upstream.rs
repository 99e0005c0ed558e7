//! Model servers that requests are handed to, and which of them serve a model.

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
    /// By what targets refer to it.
    pub(crate) name: String,
    /// What it speaks.
    pub(crate) protocol: Protocol,
    /// To what the paths of the protocol are appended: `https://host/v1`.
    base_url: String,
    /// The same paths at another host, asked when the first one fails.
    fallback_base_url: Option<String>,
    /// Its own key. Absent: none is sent.
    api_key: Option<Secret>,
    /// How the key is shown. Absent: as `x-api-key` to Messages, else as a bearer.
    auth: Option<Auth>,
    /// A PEM file of certificates to trust beside the public ones.
    ca_file: Option<PathBuf>,
    /// Whether its streams bend the grammar, so that they are read and written anew even for clients of its own
    /// protocol.
    #[serde(default)]
    pub(crate) repair: bool,
    /// The form in which edits go to it.
    #[serde(default)]
    pub(crate) edits: EditForm,
    /// The cap on the output that is asked for where its protocol demands one and the client set none. Default 4096.
    #[serde(default = "max_tokens")]
    pub(crate) max_tokens: u64,
    /// Whether it takes `temperature`, `top_p` and `top_k`: some versions of Messages do not. Default true.
    #[serde(default = "yes")]
    pub(crate) sampling: bool,
    /// For a connection to stand, its name looked up and TLS spoken. Default 5 s.
    #[serde(default = "connect", deserialize_with = "duration")]
    connect_timeout: Duration,
    /// For the head of an answer. Default 120 s.
    #[serde(default = "patience", deserialize_with = "duration")]
    head_timeout: Duration,
    /// Between two events of an answer, and for the first. Default 120 s.
    #[serde(default = "patience", deserialize_with = "duration")]
    pub(crate) event_idle: Duration,
}

/// What an upstream speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Protocol {
    /// Responses.
    Responses,
    /// Chat Completions.
    Chat,
    /// Messages.
    Messages,
    /// Images: generations and edits.
    Images,
}

/// The form in which edits go to an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EditForm {
    /// As the client sent them.
    #[default]
    AsSent,
    /// As JSON.
    Json,
    /// As a multipart form.
    Multipart,
}

/// Where a key is, which never stands in the file itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Secret {
    /// In a variable of the environment.
    Env(String),
    /// In a file, alone but for white space.
    File(PathBuf),
}

/// How a key is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum Auth {
    /// `Authorization: Bearer …`.
    #[serde(rename = "bearer")]
    Bearer,
    /// `x-api-key: …`.
    #[serde(rename = "x-api-key")]
    XApiKey,
}

/// One that may serve a model.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub(crate) struct Target {
    /// The name of an upstream.
    pub(crate) upstream: Option<String>,
    /// What the upstream calls the model. Absent: as the client does.
    pub(crate) model: Option<String>,
    /// An embedded engine instead.
    pub(crate) engine: Option<EngineName>,
    /// How often it is asked first, in proportion. When none of a model's targets states one, they are asked in order.
    pub(crate) weight: Option<u32>,
}

/// An embedded engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EngineName {
    /// The text engine.
    Local,
    /// The image engine.
    Easel,
}

impl Protocol {
    /// Its word.
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
    /// It as its client takes it, with its key, or everything that is wrong with it.
    pub(crate) fn options(&self) -> Result<Options, Vec<String>> {
        let mut problems = Vec::new();
        let base = url("base_url", &self.base_url, &mut problems);
        let fallback = self.fallback_base_url.as_ref().and_then(|text| url("fallback_base_url", text, &mut problems));
        let credential = self.api_key.as_ref().and_then(|secret| match self.credential(secret) {
            Ok(credential) => Some(credential),
            Err(problem) => {
                problems.push(problem);
                None
            }
        });
        let roots = self.ca_file.as_ref().and_then(|path| read("ca_file", path, &mut problems));
        let Some(base) = base.filter(|_| problems.is_empty()) else { return Err(problems) };
        let mut options = Options::new(self.name.clone(), base);
        options.fallback_base_url = fallback;
        options.credential = credential;
        options.headers = self.headers();
        options.connect = self.connect_timeout;
        options.head = self.head_timeout;
        options.idle = self.event_idle;
        options.roots = roots;
        Ok(options)
    }

    /// What the envelopes for its seals are made with: all that share its key can open them, after a restart too.
    pub(crate) fn secret(&self) -> Vec<u8> {
        let key = self.api_key.as_ref().and_then(|secret| secret.read().ok());
        format!("sluicegate envelope\n{}", key.as_ref().unwrap_or(&self.name)).into_bytes()
    }

    /// Where it is and where its key comes from, for people.
    pub(crate) fn describe(&self) -> String {
        let key = match &self.api_key {
            None => "without a key".to_owned(),
            Some(Secret::Env(name)) => format!("key from ${name}"),
            Some(Secret::File(path)) if is_open(path) => {
                format!("key from {}, which everyone can read", path.display())
            }
            Some(Secret::File(path)) => format!("key from {}", path.display()),
        };
        let fallback = self.fallback_base_url.as_ref().map(|url| format!(", then {url}")).unwrap_or_default();
        format!("{}{fallback}, {key}", self.base_url)
    }

    fn credential(&self, secret: &Secret) -> Result<Credential, String> {
        let key = secret.read()?;
        if let Secret::File(path) = secret
            && is_open(path)
        {
            let (upstream, file) = (&self.name, path.display());
            tracing::warn!(upstream, %file, "everyone on this machine can read the key: chmod o-r");
        }
        let shown = match self.auth {
            Some(Auth::Bearer) => Credential::bearer(&key),
            Some(Auth::XApiKey) => Credential::x_api_key(&key),
            None if self.protocol == Protocol::Messages => Credential::x_api_key(&key),
            None => Credential::bearer(&key),
        };
        shown.map_err(|error| error.to_string())
    }

    /// Messages wants a version with every request; a client's own takes its place.
    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if self.protocol == Protocol::Messages {
            headers.insert(HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));
        }
        headers
    }
}

impl Secret {
    fn read(&self) -> Result<String, String> {
        match self {
            Self::Env(name) => match std::env::var(name) {
                Ok(key) => Ok(key.trim().to_owned()),
                Err(_) => Err(format!("api_key: the environment has no variable '{name}'")),
            },
            Self::File(path) => match std::fs::read_to_string(path) {
                Ok(key) => Ok(key.trim().to_owned()),
                Err(error) => Err(format!("api_key: {}: {error}", path.display())),
            },
        }
    }
}

impl Target {
    /// What it refers to.
    ///
    /// # Errors
    /// When it names neither or both, or something that goes with the other.
    pub(crate) fn refers(&self) -> Result<TargetRef<'_>, String> {
        match (&self.upstream, self.engine) {
            (Some(name), None) => Ok(TargetRef::Upstream(name)),
            (None, Some(_)) if self.model.is_some() => Err("'model' goes with 'upstream' alone".to_owned()),
            (None, Some(engine)) => Ok(TargetRef::Engine(engine)),
            _ => Err("one of 'upstream' and 'engine' is needed".to_owned()),
        }
    }
}

/// What a target refers to.
pub(crate) enum TargetRef<'a> {
    /// The upstream of that name.
    Upstream(&'a str),
    /// An embedded engine.
    Engine(EngineName),
}

fn url(name: &str, text: &str, problems: &mut Vec<String>) -> Option<Url> {
    match Url::parse(text) {
        Ok(url) => Some(url),
        Err(error) => {
            problems.push(format!("{name}: '{text}' is no URL such as https://host/v1: {error}"));
            None
        }
    }
}

/// Whether everyone on the machine can read a file.
fn is_open(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o004 != 0)
}

fn read(name: &str, path: &Path, problems: &mut Vec<String>) -> Option<Vec<u8>> {
    match std::fs::read(path) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            problems.push(format!("{name}: {}: {error}", path.display()));
            None
        }
    }
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

const fn patience() -> Duration {
    Duration::from_secs(120)
}
