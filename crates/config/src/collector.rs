//! The collector of OpenTelemetry to which traces or metrics are exported.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use upstream::{Credential, Options};
use url::Url;

use crate::mask;
use crate::upstream::auth::Auth;
use crate::upstream::secret::Secret;
use crate::upstream::{headers, noted, read};

/// The settings of a collector, in `[traces]` or `[metrics]`.
#[derive(Clone, Copy, Debug)]
pub struct Collector<'a> {
    /// The name of the section.
    pub section: &'static str,
    /// The base URL. `None`: nothing is exported.
    pub endpoint: Option<&'a str>,
    pub(crate) api_key: Option<&'a Secret>,
    pub(crate) auth: Option<&'a Auth>,
    pub(crate) headers: &'a BTreeMap<String, String>,
    pub(crate) ca_file: Option<&'a Path>,
    /// The timeout for one export.
    pub timeout: Duration,
}

/// Declares a section of settings for exports. Its own settings, with their defaults, are added to the
/// collector's, which the sections have in common. With `flatten`, serde would accept unknown keys.
macro_rules! export_settings {
    (
        $(#[$doc:meta])*
        pub struct $name:ident in $section:literal {
            $($(#[$own_doc:meta])* pub $own:ident: $type:ty = $default:expr,)*
        }
    ) => {
        wire::read_objects!($name);

        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
        #[serde(remote = "Self", default, deny_unknown_fields)]
        pub struct $name {
            /// The base URL of the collector, to which `/v1/traces` or `/v1/metrics` is appended. Absent: nothing
            /// is exported.
            #[schemars(example = &"http://127.0.0.1:4318")]
            pub endpoint: Option<String>,
            /// The source of the API key of the collector: `{ env = "NAME" }` or `{ file = "path" }`. Absent:
            /// none.
            #[schemars(example = BTreeMap::from([("env", "OTLP_KEY")]))]
            api_key: Option<Secret>,
            /// The header that carries the key. Absent: a bearer token.
            #[schemars(example = &"bearer")]
            auth: Option<Auth>,
            /// Headers of every export.
            #[schemars(example = BTreeMap::from([("x-scope", "team")]))]
            headers: BTreeMap<String, String>,
            /// A PEM file of certificates to trust besides the public ones.
            #[schemars(example = &"/etc/sluicegate/collector.pem")]
            ca_file: Option<PathBuf>,
            /// The timeout for one export. Default 10 s.
            #[serde(with = "Time")]
            pub timeout: Duration,
            $($(#[$own_doc])* pub $own: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    endpoint: None,
                    api_key: None,
                    auth: None,
                    headers: BTreeMap::new(),
                    ca_file: None,
                    timeout: Duration::from_secs(10),
                    $($own: $default,)*
                }
            }
        }

        impl $name {
            /// Returns the names of the settings that do not have their defaults.
            pub(crate) fn changed(&self) -> Vec<&'static str> {
                let default = Self::default();
                let settings = [
                    ("api_key", self.api_key != default.api_key),
                    ("auth", self.auth != default.auth),
                    ("headers", self.headers != default.headers),
                    ("ca_file", self.ca_file != default.ca_file),
                    ("timeout", self.timeout != default.timeout),
                    $((stringify!($own), self.$own != default.$own),)*
                ];
                let changed = settings.into_iter().filter(|(_, is_changed)| *is_changed);
                changed.map(|(name, _)| name).collect()
            }

            /// The collector.
            pub fn collector(&self) -> Collector<'_> {
                Collector {
                    section: $section,
                    endpoint: self.endpoint.as_deref(),
                    api_key: self.api_key.as_ref(),
                    auth: self.auth.as_ref(),
                    headers: &self.headers,
                    ca_file: self.ca_file.as_deref(),
                    timeout: self.timeout,
                }
            }
        }
    };
}

pub(crate) use export_settings;

impl Collector<'_> {
    /// Converts it to the options of a client, or returns all its problems.
    pub fn options(&self) -> Result<Options, Vec<String>> {
        let mut problems = Vec::new();
        let endpoint = noted(Some(self.url()), &mut problems);
        let credential = noted(self.credential().transpose(), &mut problems);
        let headers = noted(Some(headers::fixed(self.headers)), &mut problems);
        let roots = self.ca_file.map(|path| read("ca_file", path));
        let roots = noted(roots, &mut problems);
        let Some(endpoint) = endpoint.filter(|_| problems.is_empty()) else {
            return Err(self.in_section(problems));
        };
        let mut options = Options::new(endpoint);
        options.credential = credential;
        options.headers = headers.unwrap_or_default();
        options.roots = roots;
        Ok(options)
    }

    /// Describes the collector and the source of its key.
    pub fn describe(&self) -> String {
        let none = || "without a key".to_owned();
        let key = self.api_key.map_or_else(none, Secret::describe);
        let endpoint = mask::line(self.endpoint.unwrap_or_default());
        format!("{endpoint}, {key}")
    }

    /// Returns the problems of a section in which the settings of these names do not have their defaults.
    pub(crate) fn problems(&self, changed: &[&str]) -> Vec<String> {
        let mut problems = Vec::new();
        if self.endpoint.is_none() {
            let needs = |name| format!("{name}: needs {}.endpoint", self.section);
            problems.extend(changed.iter().map(needs));
        }
        if self.timeout.is_zero() {
            problems.push("timeout: must be more than 0s".to_owned());
        }
        if matches!(self.api_key, Some(Secret::Command { .. })) {
            problems.push(
                "api_key: 'command' is not supported here; 'env' and 'file' are accepted"
                    .to_owned(),
            );
        }
        if self.endpoint.is_some() {
            problems.extend(self.url().err());
        }
        self.in_section(problems)
    }

    fn in_section(&self, problems: Vec<String>) -> Vec<String> {
        let problems = problems.into_iter();
        problems
            .map(|problem| format!("{}.{problem}", self.section))
            .collect()
    }

    fn url(&self) -> Result<Url, String> {
        let found = self.endpoint.unwrap_or_default();
        Url::parse(found).map_err(|error| {
            format!("endpoint: '{found}' is not a URL such as http://127.0.0.1:4318: {error}")
        })
    }

    fn credential(&self) -> Result<Option<Credential>, String> {
        let Some(secret) = self.api_key else {
            return Ok(None);
        };
        let auth = self.auth.unwrap_or(&Auth::Bearer);
        let credential = auth.credential(&secret.read()?);
        credential.map(Some).map_err(|error| error.to_string())
    }
}
