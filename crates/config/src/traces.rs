//! `[traces]`: the export of traces to an OpenTelemetry collector.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use upstream::{Credential, Options};
use url::Url;

use crate::units::Time;
use crate::upstream::auth::Auth;
use crate::upstream::secret::Secret;
use crate::upstream::{headers, noted, read};

wire::read_objects!(Traces);

/// The export of traces to an OpenTelemetry collector, over OTLP/HTTP.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct Traces {
    /// The base URL of the collector, to which `/v1/traces` is appended. Absent: requests have no trace.
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
    /// The part of the requests that is exported, from 0 to 1, if a request neither failed nor was
    /// slow nor continues a trace of its client. Default 1.
    pub ratio: f64,
    /// The duration from which on a request is slow, so that it is always exported. Default 30 s.
    #[serde(with = "Time")]
    pub slow: Duration,
    /// The timeout for one export. Default 10 s.
    #[serde(with = "Time")]
    pub timeout: Duration,
    /// The version of the conventions for generative AI. Default 2026-10.
    pub semconv: Semconv,
}

impl Default for Traces {
    fn default() -> Self {
        Self {
            endpoint: None,
            api_key: None,
            auth: None,
            headers: BTreeMap::new(),
            ca_file: None,
            ratio: 1.0,
            slow: Duration::from_secs(30),
            timeout: Duration::from_secs(10),
            semconv: Semconv::default(),
        }
    }
}

/// A version of the semantic conventions for generative AI, whose names the spans have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Semconv {
    /// The conventions of October 2026, release 0.1.0 of their own repository.
    #[default]
    #[serde(rename = "2026-10")]
    V2026_10,
    /// Release 1.36.0 of the general conventions, for dashboards that were made before.
    #[serde(rename = "1.36")]
    V1_36,
}

impl Traces {
    /// Converts it to the options of a client of the collector, or returns all its problems.
    pub fn options(&self) -> Result<Options, Vec<String>> {
        let mut problems = Vec::new();
        let endpoint = noted(Some(self.endpoint()), &mut problems);
        let credential = noted(self.credential().transpose(), &mut problems);
        let headers = noted(Some(headers::fixed(&self.headers)), &mut problems);
        let roots = self.ca_file.as_ref().map(|path| read("ca_file", path));
        let roots = noted(roots, &mut problems);
        let Some(endpoint) = endpoint.filter(|_| problems.is_empty()) else {
            return Err(problems);
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
        let key = self.api_key.as_ref().map_or_else(none, Secret::describe);
        let endpoint = self.endpoint.as_deref().unwrap_or_default();
        format!("{endpoint}, {key}")
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !(0.0..=1.0).contains(&self.ratio) {
            problems.push(format!(
                "traces.ratio: {} is not between 0 and 1",
                self.ratio
            ));
        }
        if self.timeout.is_zero() {
            problems.push("traces.timeout: must be more than 0s".to_owned());
        }
        if matches!(self.api_key, Some(Secret::Command { .. })) {
            problems.push(
                "traces.api_key: 'command' is not supported here; 'env' and 'file' are accepted"
                    .to_owned(),
            );
        }
        if self.endpoint.is_some()
            && let Err(problem) = self.endpoint()
        {
            problems.push(format!("traces.{problem}"));
        }
        problems
    }

    fn endpoint(&self) -> Result<Url, String> {
        let found = self.endpoint.as_deref().unwrap_or_default();
        Url::parse(found).map_err(|error| {
            format!("endpoint: '{found}' is not a URL such as http://127.0.0.1:4318: {error}")
        })
    }

    fn credential(&self) -> Result<Option<Credential>, String> {
        let Some(secret) = &self.api_key else {
            return Ok(None);
        };
        let auth = self.auth.as_ref().unwrap_or(&Auth::Bearer);
        let credential = auth.credential(&secret.read()?);
        credential.map(Some).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;

    fn problem(lines: &str) -> String {
        let error = Config::parse(&format!("[traces]\n{lines}\n")).unwrap_err();
        error.to_string()
    }

    #[test]
    fn a_collector_needs_only_its_endpoint() {
        let text = "[traces]\nendpoint = \"http://127.0.0.1:4318\"\n";
        let traces = Config::parse(text).unwrap().traces;
        assert_eq!(traces.ratio, 1.0);
        assert_eq!(traces.slow.as_secs(), 30);
        assert_eq!(traces.timeout.as_secs(), 10);
        assert!(traces.options().is_ok());
    }

    #[test]
    fn settings_that_cannot_work_are_named() {
        assert_eq!(
            problem("endpoint = \"http://c\"\nratio = 1.5"),
            "traces.ratio: 1.5 is not between 0 and 1"
        );
        assert_eq!(
            problem("endpoint = \"http://c\"\napi_key = { command = [\"cat\"] }"),
            "traces.api_key: 'command' is not supported here; 'env' and 'file' are accepted"
        );
        assert_eq!(
            problem("endpoint = \"collector\""),
            "traces.endpoint: 'collector' is not a URL such as http://127.0.0.1:4318: relative URL \
             without a base"
        );
        let found = problem("endpoint = \"http://c\"\nsemconv = \"1.28\"");
        assert!(
            found.contains("unknown variant `1.28`, expected `2026-10` or `1.36`"),
            "{found}"
        );
    }

    #[test]
    fn an_upstream_that_gets_trace_ids_needs_traces() {
        let upstream = "[[upstreams]]\nname = \"a\"\nprotocol = \"chat\"\n\
                        base_url = \"http://a.example\"\ntrace = true\n";
        let error = Config::parse(upstream).unwrap_err();
        assert_eq!(
            error.to_string(),
            "upstream 'a': trace: needs traces.endpoint, because without it requests have no trace"
        );
        let traces = "[traces]\nendpoint = \"http://127.0.0.1:4318\"\n";
        assert!(Config::parse(&[traces, upstream].concat()).is_ok());
    }
}
