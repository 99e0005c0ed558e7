//! `[metrics]`: the export of metrics to an OpenTelemetry collector.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::collector::{Collector, export_settings};
use crate::units::Time;
use crate::upstream::auth::Auth;
use crate::upstream::secret::Secret;

export_settings! {
    /// The export of metrics to an OpenTelemetry collector, over OTLP/HTTP.
    pub struct Metrics in "metrics" {
        /// The time from one export to the next. Default 1 min.
        #[serde(with = "Time")]
        pub interval: Duration = Duration::from_secs(60),
    }
}

impl Metrics {
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = self.collector().problems(&self.changed());
        if self.interval < SHORTEST_INTERVAL {
            problems.push(format!(
                "metrics.interval: is {:?}, but must be at least {SHORTEST_INTERVAL:?}",
                self.interval
            ));
        }
        problems
    }
}

/// The shortest time from one export to the next. Each has every series.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use crate::Config;

    #[test]
    fn metrics_are_exported_every_minute_and_at_most_every_second() {
        let parse = |line: &str| {
            let endpoint = "[metrics]\nendpoint = \"http://127.0.0.1:4318\"\n";
            Config::parse(&[endpoint, line].concat())
        };
        let metrics = parse("").unwrap().metrics;
        assert_eq!(metrics.interval.as_secs(), 60);
        assert!(metrics.collector().options().is_ok());
        assert!(parse("interval = \"1s\"").is_ok());
        assert_eq!(
            parse("interval = \"999ms\"").unwrap_err().to_string(),
            "metrics.interval: is 999ms, but must be at least 1s"
        );
        assert_eq!(
            parse("timeout = \"0s\"").unwrap_err().to_string(),
            "metrics.timeout: must be more than 0s"
        );
    }
}
