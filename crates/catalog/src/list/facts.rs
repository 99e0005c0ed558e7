//! The facts of a model, under the names by which clients of each protocol read them.

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::Serialize;

use super::capabilities::Capabilities;
use crate::{Capability, Facts, Modality};

/// The facts of a model as returned to clients. Unknown ones are absent.
///
/// `max_input_tokens`, `max_tokens`, `capabilities`, `deprecated_at` and `retires_at` are Anthropic's.
/// OpenAI has only `shutdown_date`, so its clients read the members of other servers: `context_length`,
/// `architecture` and `supported_parameters` of OpenRouter, and `max_model_len` of vLLM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListedFacts {
    /// The tokens of the longest prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_input_tokens: Option<NonZeroU64>,
    /// The same, as OpenRouter names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_length: Option<NonZeroU64>,
    /// The same, as vLLM names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_model_len: Option<NonZeroU64>,
    /// The tokens of the longest answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<NonZeroU64>,
    /// The same, as Anthropic names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<NonZeroU64>,
    /// The media of prompts and answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub architecture: Option<Architecture>,
    /// The parameters of Chat Completions that the model supports, as far as `capabilities` decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supported_parameters: Option<Vec<&'static str>>,
    /// The capabilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// The time from which new clients are advised against the model, in RFC 3339 format.
    #[schemars(extend("format" = "date-time"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated_at: Option<String>,
    /// The time at which the model is switched off, in RFC 3339 format.
    #[schemars(extend("format" = "date-time"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retires_at: Option<String>,
    /// The same as a date in UTC.
    #[schemars(extend("format" = "date"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shutdown_date: Option<String>,
}

/// The media of prompts and answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Architecture {
    /// The media that a prompt may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_modalities: Option<BTreeSet<Modality>>,
    /// The media that an answer may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_modalities: Option<BTreeSet<Modality>>,
}

impl From<&Facts> for ListedFacts {
    fn from(facts: &Facts) -> Self {
        let time = |time: Option<jiff::Timestamp>| time.map(|time| time.to_string());
        let architecture = Architecture {
            input_modalities: facts.input_modalities.clone(),
            output_modalities: facts.output_modalities.clone(),
        };
        Self {
            max_input_tokens: facts.max_input_tokens,
            context_length: facts.max_input_tokens,
            max_model_len: facts.max_input_tokens,
            max_output_tokens: facts.max_output_tokens,
            max_tokens: facts.max_output_tokens,
            architecture: Some(architecture).filter(Architecture::is_known),
            supported_parameters: supported_parameters(facts),
            capabilities: Capabilities::of(facts),
            deprecated_at: time(facts.deprecated_at),
            retires_at: time(facts.retires_at),
            shutdown_date: facts.retires_at.map(|time| time.strftime("%F").to_string()),
        }
    }
}

impl Architecture {
    const fn is_known(&self) -> bool {
        self.input_modalities.is_some() || self.output_modalities.is_some()
    }
}

/// Returns the parameters that the capabilities imply, in the words of
/// [OpenRouter](https://openrouter.ai/docs/api-reference/parameters).
fn supported_parameters(facts: &Facts) -> Option<Vec<&'static str>> {
    let capabilities = facts.capabilities.as_ref()?;
    let parameters = capabilities.iter().flat_map(|capability| match capability {
        Capability::Tools => &["tools", "tool_choice"][..],
        Capability::ParallelToolCalls => &["parallel_tool_calls"],
        Capability::StructuredOutputs => &["response_format", "structured_outputs"],
        Capability::Thinking | Capability::AdaptiveThinking | Capability::AlwaysThinking => {
            &["reasoning"]
        }
        Capability::EffortLow
        | Capability::EffortMedium
        | Capability::EffortHigh
        | Capability::EffortXhigh
        | Capability::EffortMax => &["reasoning_effort"],
        _ => &[],
    });
    let mut parameters = Vec::from_iter(parameters.copied());
    // Words with the same parameter are neighbours.
    parameters.dedup();
    Some(parameters)
}
