//! `[traces]`: the export of traces to an OpenTelemetry collector.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::collector::{Collector, export_settings};
use crate::units::Time;
use crate::upstream::auth::Auth;
use crate::upstream::secret::Secret;

export_settings! {
    /// The export of traces to an OpenTelemetry collector, over OTLP/HTTP.
    pub struct Traces in "traces" {
        /// The part of the requests that is exported, from 0 to 1, if a request neither failed nor was
        /// slow nor continues a trace of its client. Default 1.
        pub ratio: f64 = 1.0,
        /// The duration from which on a request is slow, so that it is always exported. Default 30 s.
        #[serde(with = "Time")]
        pub slow: Duration = Duration::from_secs(30),
        /// The version of the conventions for generative AI. Default 2026-10.
        pub semconv: Semconv = Semconv::default(),
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
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = self.collector().problems(&self.changed());
        if !(0.0..=1.0).contains(&self.ratio) {
            problems.push(format!(
                "traces.ratio: {} is not between 0 and 1",
                self.ratio
            ));
        }
        problems
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
        assert!(traces.collector().options().is_ok());
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
    fn settings_without_a_collector_are_refused() {
        assert_eq!(
            problem("ratio = 0.5\nheaders = { x-scope = \"a\" }"),
            "traces.headers: needs traces.endpoint\ntraces.ratio: needs traces.endpoint"
        );
        let error = Config::parse("[metrics]\ninterval = \"2m\"\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "metrics.interval: needs metrics.endpoint"
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
