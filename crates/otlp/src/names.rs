//! The names of attributes: the names of the semantic conventions, in the versions that can be chosen, and
//! our own.
//!
//! - [HTTP spans](https://opentelemetry.io/docs/specs/semconv/http/http-spans/), which are stable;
//! - [generative AI](https://github.com/open-telemetry/semantic-conventions-genai/tree/v0.1.0), which
//!   are in development: see [`Semconv`].

use config::traces::Semconv;

/// The name of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    latest: &'static str,
    /// `None` if the attribute did not exist.
    v1_36: Option<&'static str>,
}

impl Name {
    /// The name in the latest version, which metrics have.
    pub(crate) const fn latest(self) -> &'static str {
        self.latest
    }

    /// The name in a version of the conventions, if it has the attribute.
    pub fn of(self, semconv: Semconv) -> Option<&'static str> {
        match semconv {
            Semconv::V2026_10 => Some(self.latest),
            Semconv::V1_36 => self.v1_36,
        }
    }
}

/// Declares names: `same` in all versions, `new` since version 1.36, or renamed `since` then.
macro_rules! names {
    ($($(#[$doc:meta])* $name:ident: $how:ident $latest:literal $(from $old:literal)?,)*) => {
        $($(#[$doc])* pub const $name: Name = Name {
            latest: $latest,
            v1_36: names!(@ $how $latest $($old)?),
        };)*

        /// All of them.
        pub const ALL: &[Name] = &[$($name),*];
    };
    (@ same $latest:literal) => { Some($latest) };
    (@ new $latest:literal) => { None };
    (@ renamed $latest:literal $old:literal) => { Some($old) };
}

names! {
    /// The method of the request.
    HTTP_METHOD: same "http.request.method",
    /// The path of the endpoint, with names in place of ids.
    HTTP_ROUTE: same "http.route",
    /// The scheme of the URL: `http` or `https`.
    URL_SCHEME: same "url.scheme",
    /// The path of the URL.
    URL_PATH: same "url.path",
    /// The status of the response.
    HTTP_STATUS: same "http.response.status_code",
    /// The code of the error.
    ERROR_TYPE: same "error.type",
    /// The host of the model server, or of the gateway as the client has named it.
    SERVER_ADDRESS: same "server.address",
    /// Its port.
    SERVER_PORT: same "server.port",
    /// The kind of the operation: `chat`, or `generate_content` for pictures.
    OPERATION: same "gen_ai.operation.name",
    /// The vendor of the model server.
    PROVIDER: renamed "gen_ai.provider.name" from "gen_ai.system",
    /// The model, as the target calls it.
    REQUEST_MODEL: same "gen_ai.request.model",
    /// True if a stream was asked for.
    REQUEST_STREAM: new "gen_ai.request.stream",
    /// The kind of content that was asked for, if it is no text.
    OUTPUT_TYPE: same "gen_ai.output.type",
    /// The time to the first content of a stream, in seconds.
    TIME_TO_FIRST_CHUNK: new "gen_ai.response.time_to_first_chunk",
    /// The tokens of the prompt.
    INPUT_TOKENS: same "gen_ai.usage.input_tokens",
    /// The tokens of the prompt that were read from a cache.
    CACHE_READ_TOKENS: new "gen_ai.usage.cache_read.input_tokens",
    /// The tokens of the prompt that were written to a cache.
    CACHE_WRITE_TOKENS: new "gen_ai.usage.cache_write.input_tokens",
    /// The tokens of the answer.
    OUTPUT_TOKENS: same "gen_ai.usage.output_tokens",
    /// The tokens of the answer that were used for reasoning.
    REASONING_TOKENS: new "gen_ai.usage.reasoning.output_tokens",
    /// The kind of content that tokens are of; an attribute of metrics alone.
    TOKEN_MODALITY: new "gen_ai.token.modality",
    /// The gateway's id of the request.
    REQUEST_ID: same "sluicegate.request_id",
    /// The name of the key.
    KEY: same "sluicegate.key",
    /// The client's name of the model.
    MODEL: same "sluicegate.model",
    /// The outcome, as in the log.
    OUTCOME: same "sluicegate.outcome",
    /// The name of an upstream, or `embedded`.
    TARGET: same "sluicegate.target",
    /// The upstream's id of the request.
    UPSTREAM_REQUEST_ID: same "sluicegate.upstream_request_id",
    /// The limits that have admitted the request.
    ADMITTED_BY: same "sluicegate.admitted_by",
    /// The limit that has refused the request.
    REFUSED_BY: same "sluicegate.refused_by",
    /// The fields of the request that the target could not be given.
    DROPPED: same "sluicegate.dropped",
    /// The time in queues of quotas, in milliseconds.
    QUEUE_MS: same "sluicegate.queue_ms",
    /// The time to the first event for the client, in milliseconds.
    FIRST_EVENT_MS: same "sluicegate.first_event_ms",
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The attributes of the conventions that we use, as read from their models: see the file.
    const CONVENTIONS: &str = include_str!("../tests/data/conventions.tsv");

    #[test]
    fn every_name_is_one_of_its_conventions_or_ours() {
        let versions = [(Semconv::V2026_10, "2026-10"), (Semconv::V1_36, "1.36")];
        for (semconv, version) in versions {
            let lines = CONVENTIONS.lines().filter(|line| !line.starts_with('#'));
            let known: Vec<_> = lines
                .filter_map(|line| line.split_once('\t'))
                .filter(|(versions, _)| versions.split(' ').any(|it| it == version))
                .filter_map(|(_, rest)| rest.split('\t').next())
                .collect();
            for name in ALL.iter().filter_map(|name| name.of(semconv)) {
                let is_ours = name.starts_with("sluicegate.");
                assert!(is_ours || known.contains(&name), "{version}: {name}");
            }
        }
    }
}
