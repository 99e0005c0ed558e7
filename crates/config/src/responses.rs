//! Settings of the Responses API.

use std::time::Duration;

use bytesize::ByteSize;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::units::{Size, Time};

wire::read_objects!(Responses);

/// Settings of the Responses API.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct Responses {
    /// The time for which answers are kept in memory. Absent: none is kept.
    #[serde(deserialize_with = "Time::deserialize_some")]
    #[schemars(with = "Option<Time>", example = &"1h")]
    pub keep: Option<Duration>,
    /// The memory for kept answers. Default 64 MiB.
    #[serde(with = "Size")]
    pub keep_bytes: ByteSize,
}

impl Default for Responses {
    fn default() -> Self {
        Self {
            keep: None,
            keep_bytes: ByteSize::mib(64),
        }
    }
}

impl Responses {
    /// The settings of a gateway without a file.
    pub fn without_file() -> Self {
        Self {
            keep: Some(Duration::from_secs(3600)),
            ..Self::default()
        }
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.keep == Some(Duration::ZERO) {
            problems.push(
                "responses.keep: must be more than 0s; to keep no answers, leave it out".to_owned(),
            );
        }
        if self.keep_bytes.as_u64() == 0 {
            problems.push(
                "responses.keep_bytes: must be more than 0; to keep no answers, leave out \
                 responses.keep"
                    .to_owned(),
            );
        }
        problems
    }
}
