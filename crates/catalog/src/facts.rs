//! Facts of a model that clients ask for before they send a request: its limits, the media it takes
//! and returns, its capabilities, and the end of its life.

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

wire::objects!(Facts);

/// The facts of a model. Absent ones are unknown, and clients do not see them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(remote = "Self", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Facts {
    /// The tokens of the longest prompt: the context window.
    #[schemars(example = 262_144)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_input_tokens: Option<NonZeroU64>,
    /// The tokens of the longest answer.
    #[schemars(example = 32_768)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<NonZeroU64>,
    /// The media that a prompt may have.
    #[schemars(extend("examples" = [["text", "image"]]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_modalities: Option<BTreeSet<Modality>>,
    /// The media that an answer may have.
    #[schemars(extend("examples" = [["text"]]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_modalities: Option<BTreeSet<Modality>>,
    /// Everything that the model can do: it cannot do the rest.
    #[schemars(extend("examples" = [["tools", "structured_outputs"]]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<BTreeSet<Capability>>,
    /// The time from which new clients are advised against the model.
    #[schemars(with = "Option<String>", extend("format" = "date-time"), example = &"2026-10-01T00:00:00Z")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated_at: Option<Timestamp>,
    /// The time at which the model is switched off.
    #[schemars(with = "Option<String>", extend("format" = "date-time"), example = &"2027-10-01T00:00:00Z")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retires_at: Option<Timestamp>,
}

impl Facts {
    /// Returns these facts, with the unknown ones from `others`.
    #[must_use]
    pub fn or(self, others: &Self) -> Self {
        let others = others.clone();
        Self {
            max_input_tokens: self.max_input_tokens.or(others.max_input_tokens),
            max_output_tokens: self.max_output_tokens.or(others.max_output_tokens),
            input_modalities: self.input_modalities.or(others.input_modalities),
            output_modalities: self.output_modalities.or(others.output_modalities),
            capabilities: self.capabilities.or(others.capabilities),
            deprecated_at: self.deprecated_at.or(others.deprecated_at),
            retires_at: self.retires_at.or(others.retires_at),
        }
    }

    /// Returns the facts on which a client can rely if either of two servers may answer: the smaller
    /// limits and what both can do. A fact that one of them lacks is unknown, but a model ends with
    /// the first server that gives it up.
    #[must_use]
    pub fn of_either(&self, other: &Self) -> Self {
        Self {
            max_input_tokens: self.max_input_tokens.min(other.max_input_tokens),
            max_output_tokens: self.max_output_tokens.min(other.max_output_tokens),
            input_modalities: common(
                self.input_modalities.as_ref(),
                other.input_modalities.as_ref(),
            ),
            output_modalities: common(
                self.output_modalities.as_ref(),
                other.output_modalities.as_ref(),
            ),
            capabilities: common(self.capabilities.as_ref(), other.capabilities.as_ref()),
            deprecated_at: earlier(self.deprecated_at, other.deprecated_at),
            retires_at: earlier(self.retires_at, other.retires_at),
        }
    }

    /// Returns the names of the facts that clients ask for and that are unknown. The dates are not
    /// among them, because most models have none.
    #[must_use]
    pub fn unknown(&self) -> Vec<&'static str> {
        let unknown = self.names().into_iter().filter(|(_, is_known)| !is_known);
        unknown
            .map(|(name, _)| name)
            .filter(|name| !DATES.contains(name))
            .collect()
    }

    /// Returns the names of the facts that are known.
    #[must_use]
    pub fn known(&self) -> Vec<&'static str> {
        let known = self.names().into_iter().filter(|(_, is_known)| *is_known);
        known.map(|(name, _)| name).collect()
    }

    /// Returns the name of each fact, and true if it is known.
    fn names(&self) -> [(&'static str, bool); 7] {
        let [deprecated_at, retires_at] = DATES;
        [
            ("max_input_tokens", self.max_input_tokens.is_some()),
            ("max_output_tokens", self.max_output_tokens.is_some()),
            ("input_modalities", self.input_modalities.is_some()),
            ("output_modalities", self.output_modalities.is_some()),
            ("capabilities", self.capabilities.is_some()),
            (deprecated_at, self.deprecated_at.is_some()),
            (retires_at, self.retires_at.is_some()),
        ]
    }
}

/// The names of the dates.
const DATES: [&str; 2] = ["deprecated_at", "retires_at"];

fn common<T: Ord + Copy>(
    one: Option<&BTreeSet<T>>,
    other: Option<&BTreeSet<T>>,
) -> Option<BTreeSet<T>> {
    Some(one? & other?)
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

wire::text_enum! {
    /// A kind of content, in the words of [OpenRouter](https://openrouter.ai/docs/models).
    #[derive(PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[non_exhaustive]
    pub enum Modality {
        /// Text.
        Text = "text",
        /// Images.
        Image = "image",
        /// Documents, such as PDF.
        File = "file",
        /// Audio.
        Audio = "audio",
        /// Video.
        Video = "video",
    }
}

wire::text_enum! {
    /// Something that a model can do, beside the media that it takes and returns.
    #[derive(PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[non_exhaustive]
    pub enum Capability {
        /// Calls of the client's tools.
        Tools = "tools",
        /// Several calls in one answer.
        ParallelToolCalls = "parallel_tool_calls",
        /// Answers by a JSON Schema.
        StructuredOutputs = "structured_outputs",
        /// Reasoning, with a budget that the request sets.
        Thinking = "thinking",
        /// Reasoning whose amount the model decides.
        AdaptiveThinking = "adaptive_thinking",
        /// Reasoning that cannot be turned off.
        AlwaysThinking = "always_thinking",
        /// Updates between calls although reasoning is turned off.
        ThinkingBetweenTools = "thinking_between_tools",
        /// The effort `low`.
        EffortLow = "effort_low",
        /// The effort `medium`.
        EffortMedium = "effort_medium",
        /// The effort `high`.
        EffortHigh = "effort_high",
        /// The effort `xhigh`.
        EffortXhigh = "effort_xhigh",
        /// The effort `max`.
        EffortMax = "effort_max",
        /// Citations of documents in the prompt.
        Citations = "citations",
        /// The vendor's search of the web.
        WebSearch = "web_search",
        /// The vendor's execution of code.
        CodeExecution = "code_execution",
        /// Calls of the client's tools by such code.
        ProgrammaticToolCalls = "programmatic_tool_calls",
        /// Removal of old reasoning by the server.
        ClearThinking = "clear_thinking",
        /// Removal of old calls by the server.
        ClearToolUses = "clear_tool_uses",
        /// Summaries of old messages by the server.
        Compaction = "compaction",
    }
}
