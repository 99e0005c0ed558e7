//! The deviations of a model server from its protocol, as data, and the edits that requests to it
//! need.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::value::StrDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use vendor::Protocol;
use wire::Splice;

use crate::outbound::encode::{self, MaxTokensName, ThinkingForm, ToolIds};

/// The deviations of a server from its protocol. The default has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Quirks {
    /// True if it refuses `stream_options` of Chat Completions.
    pub no_stream_options: bool,
    /// The name of the output limit in Chat Completions. Absent: the one of the request.
    #[schemars(example = &"max_tokens")]
    pub max_tokens_name: Option<MaxTokensName>,
    /// True if it knows the role `system` and not `developer`.
    pub system_not_developer: bool,
    /// Members of requests that it refuses.
    #[schemars(extend("examples" = [["logprobs"]]))]
    pub drop_members: Vec<String>,
    /// True if assistant messages with calls have to bring back `reasoning_content`, or a thinking
    /// block in Messages (<https://api-docs.deepseek.com/guides/thinking_mode>).
    pub echo_reasoning: bool,
    /// True if it takes thinking blocks of Messages with an empty signature, as its own ones have
    /// (<https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md>).
    pub unsigned_thinking: bool,
    /// The ids of calls that it accepts.
    pub tool_ids: ToolIds,
    /// True if it refuses the settings of parallel calls.
    pub no_parallel_tools: bool,
    /// The form in which thinking is requested in Messages, by model.
    #[schemars(example = &"adaptive")]
    pub thinking: ThinkingByModel,
    /// A header that binds the requests of a conversation to the server that has it in its cache.
    #[schemars(example = &"x-session-affinity")]
    pub affinity_header: Option<String>,
    /// A path that is inserted between the path of the base URL and the path of the protocol.
    #[schemars(example = &"/openai/v1")]
    pub path_prefix: Option<String>,
    /// The header that carries the key.
    #[schemars(example = &"api-key")]
    pub key_header: Option<String>,
    /// True if it refuses `instructions` of Responses together with `previous_response_id`.
    pub no_instructions_with_previous: bool,
}

/// The form in which thinking is requested, by patterns of the upstream's names of models. A
/// pattern is a name, or the beginning of names and `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(with = "ThinkingSetting")]
pub struct ThinkingByModel(Vec<(String, ThinkingForm)>);

/// The form of the setting [`ThinkingByModel`].
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum ThinkingSetting {
    /// For all models.
    ForAll(ThinkingForm),
    /// By patterns of models.
    ByModel(BTreeMap<String, ThinkingForm>),
}

impl ThinkingByModel {
    /// Returns the form for a model. The longest pattern that matches decides.
    #[must_use]
    pub fn of(&self, model: &str) -> Option<ThinkingForm> {
        let matches = |(pattern, _): &&(String, ThinkingForm)| match pattern.strip_suffix('*') {
            Some(beginning) => model.starts_with(beginning),
            None => model == pattern,
        };
        let matching = self.0.iter().filter(matches);
        matching
            .max_by_key(|(pattern, _)| pattern.len())
            .map(|(_, thinking)| *thinking)
    }
}

/// A word for all models, or a table from patterns to words.
impl<'de> Deserialize<'de> for ThinkingByModel {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Forms;

        impl<'de> Visitor<'de> for Forms {
            type Value = ThinkingByModel;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word, or a table from patterns of models to words")
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Self::Value, E> {
                let word = ThinkingForm::deserialize(StrDeserializer::<E>::new(word))?;
                Ok(ThinkingByModel(vec![("*".to_owned(), word)]))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut forms = Vec::new();
                while let Some(form) = map.next_entry()? {
                    forms.push(form);
                }
                Ok(ThinkingByModel(forms))
            }
        }

        from.deserialize_any(Forms)
    }
}

impl Quirks {
    /// Returns the deviations that the encoding of a request for this model depends on.
    #[must_use]
    pub fn for_model(&self, model: &str) -> encode::Quirks {
        encode::Quirks {
            max_tokens_name: self.max_tokens_name,
            thinking: self.thinking.of(model),
            echo_reasoning: self.echo_reasoning,
            unsigned_thinking: self.unsigned_thinking,
            tool_ids: self.tool_ids,
            no_parallel_tools: self.no_parallel_tools,
            ..encode::Quirks::NONE
        }
    }

    /// Returns true if [`edit`](Self::edit) may change a request.
    #[must_use]
    pub fn edits_requests(&self) -> bool {
        self.no_stream_options
            || self.max_tokens_name.is_some()
            || self.system_not_developer
            || self.no_parallel_tools
            || !self.drop_members.is_empty()
    }

    /// Returns a request in the form that the server accepts, and the names of the members that
    /// were left out. `body` is a request in the server's protocol.
    #[must_use]
    pub fn edit<'a>(&'a self, protocol: Protocol, body: &[u8]) -> (Vec<u8>, Vec<&'a str>) {
        let mut splice = Splice::new(body);
        let mut dropped = self.refused(protocol);
        if protocol == Protocol::Chat
            && let Some(name) = self.max_tokens_name
            && !splice.rename(other(name), name.as_str())
        {
            dropped.push(other(name));
        }
        dropped.retain(|name| splice.has(&[*name]));
        splice.remove(&[], &dropped);
        if protocol == Protocol::Messages && self.no_parallel_tools {
            splice.remove(&["tool_choice"], &["disable_parallel_tool_use"]);
        }
        if self.system_not_developer {
            let list = match protocol {
                Protocol::Responses => "input",
                Protocol::Chat | Protocol::Messages => "messages",
            };
            splice.replace_in_each(list, "role", br#""developer""#, br#""system""#);
        }
        (splice.to_vec(), dropped)
    }

    /// The members that the server refuses.
    fn refused(&self, protocol: Protocol) -> Vec<&str> {
        let mut names: Vec<_> = self.drop_members.iter().map(String::as_str).collect();
        if protocol == Protocol::Chat && self.no_stream_options {
            names.push("stream_options");
        }
        if protocol != Protocol::Messages && self.no_parallel_tools {
            names.push("parallel_tool_calls");
        }
        names
    }
}

/// The name that is not `name`.
const fn other(name: MaxTokensName) -> &'static str {
    match name {
        MaxTokensName::MaxTokens => MaxTokensName::MaxCompletionTokens.as_str(),
        MaxTokensName::MaxCompletionTokens => MaxTokensName::MaxTokens.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The request as the server gets it, and the members that were left out.
    fn edited(quirks: &str, protocol: Protocol, body: &str) -> (String, Vec<String>) {
        let quirks: Quirks = serde_json::from_str(quirks).unwrap();
        assert!(quirks.edits_requests());
        let (edited, dropped) = quirks.edit(protocol, body.as_bytes());
        let dropped = dropped.into_iter().map(str::to_owned).collect();
        (String::from_utf8(edited).unwrap(), dropped)
    }

    #[test]
    fn the_output_limit_has_the_name_of_the_server() {
        for (name, body, expected, dropped) in [
            (
                "max_completion_tokens",
                r#"{"max_tokens": 7,"n":1}"#,
                r#"{"max_completion_tokens": 7,"n":1}"#,
                &[][..],
            ),
            (
                "max_tokens",
                r#"{"max_completion_tokens": 7}"#,
                r#"{"max_tokens": 7}"#,
                &[],
            ),
            (
                "max_tokens",
                r#"{"max_tokens": 7}"#,
                r#"{"max_tokens": 7}"#,
                &[],
            ),
            ("max_tokens", r#"{"n":1}"#, r#"{"n":1}"#, &[]),
            (
                "max_tokens",
                r#"{"max_completion_tokens":7,"max_tokens":8,"n":1}"#,
                r#"{"max_tokens":8,"n":1}"#,
                &["max_completion_tokens"],
            ),
        ] {
            let quirks = format!(r#"{{"max_tokens_name":"{name}"}}"#);
            let found = edited(&quirks, Protocol::Chat, body);
            assert_eq!(
                (found.0.as_str(), found.1),
                (
                    expected,
                    dropped.iter().map(|name| (*name).to_owned()).collect()
                )
            );
            assert_eq!(edited(&quirks, Protocol::Responses, body).0, body);
        }
    }

    #[test]
    fn members_that_the_server_refuses_are_left_out_and_named() {
        let body = r#"{"a":1,"stream_options":{"include_usage":true},"logprobs":null,"parallel_tool_calls":true,"b":{"logprobs":1}}"#;
        let quirks = r#"{"no_stream_options":true,"no_parallel_tools":true,"drop_members":["logprobs","store"]}"#;
        let (found, dropped) = edited(quirks, Protocol::Chat, body);
        assert_eq!(found, r#"{"a":1,"b":{"logprobs":1}}"#);
        assert_eq!(
            dropped,
            ["logprobs", "stream_options", "parallel_tool_calls"]
        );
        let body = r#"{"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}"#;
        let (found, dropped) = edited(quirks, Protocol::Messages, body);
        assert_eq!(found, r#"{"tool_choice":{"type":"auto"}}"#);
        assert!(dropped.is_empty());
    }

    #[test]
    fn developer_role_falls_back_to_system() {
        let quirks = r#"{"system_not_developer":true}"#;
        for (protocol, list) in [(Protocol::Chat, "messages"), (Protocol::Responses, "input")] {
            let body = format!(
                r#"{{"{list}":[ {{"role" : "developer","content":"developer"}},{{"content":[{{"role":"developer"}}],"role":"user"}},7,{{"role":"developer"}}]}}"#
            );
            let expected = format!(
                r#"{{"{list}":[ {{"role" : "system","content":"developer"}},{{"content":[{{"role":"developer"}}],"role":"user"}},7,{{"role":"system"}}]}}"#
            );
            assert_eq!(edited(quirks, protocol, &body).0, expected);
        }
        let text = r#"{"input":"developer"}"#;
        assert_eq!(edited(quirks, Protocol::Responses, text).0, text);
    }

    #[test]
    fn the_longest_pattern_decides_on_thinking() {
        let of = |quirks: &str| serde_json::from_str::<Quirks>(quirks).unwrap().thinking;
        let by_model = of(
            r#"{"thinking":{"*":"adaptive","claude-3*":"off","claude-3-7*":"budget","exact":"off"}}"#,
        );
        for (model, expected) in [
            ("claude-opus-5", ThinkingForm::Adaptive),
            ("claude-3-5-haiku", ThinkingForm::Off),
            ("claude-3-7-sonnet", ThinkingForm::Budget),
            ("exact", ThinkingForm::Off),
            ("exactly", ThinkingForm::Adaptive),
        ] {
            assert_eq!(by_model.of(model), Some(expected), "{model}");
        }
        assert_eq!(
            of(r#"{"thinking":"budget"}"#).of("any"),
            Some(ThinkingForm::Budget)
        );
        assert_eq!(of("{}").of("any"), None);
    }

    #[test]
    fn unknown_words_are_refused_with_the_known_ones() {
        let error = |quirks: &str| {
            serde_json::from_str::<Quirks>(quirks)
                .unwrap_err()
                .to_string()
        };
        let unknown = error(r#"{"colour":true}"#);
        assert!(
            unknown.starts_with("unknown field `colour`, expected one of `no_stream_options`, `max_tokens_name`, `system_not_developer`, `drop_members`, `echo_reasoning`, `unsigned_thinking`, `tool_ids`, `no_parallel_tools`, `thinking`, `affinity_header`, `path_prefix`, `key_header`"),
            "{unknown}"
        );
        let word = error(r#"{"thinking":"hard"}"#);
        assert!(
            word.starts_with("unknown variant `hard`, expected one of `adaptive`, `budget`, `off`"),
            "{word}"
        );
    }
}
