//! The capabilities of a model in the form of
//! [Anthropic](https://platform.claude.com/docs/en/api/models/list). Its SDKs read all members without
//! a check, so that the object is whole or absent.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{Capability, Facts, Modality};

/// A capability that the model has or lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Support {
    /// True if the model has it.
    pub supported: bool,
}

/// The capabilities of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Capabilities {
    /// False: the gateway serves no batches.
    pub batch: Support,
    /// Citations of documents in the prompt.
    pub citations: Support,
    /// Calls of the client's tools by code that the vendor executes.
    pub code_execution: Support,
    /// Removal of old content by the server.
    pub context_management: ContextManagement,
    /// The efforts.
    pub effort: Effort,
    /// Images in the prompt.
    pub image_input: Support,
    /// PDF documents in the prompt.
    pub pdf_input: Support,
    /// The vendor's tools.
    pub server_tools: ServerTools,
    /// Answers by a JSON Schema.
    pub structured_outputs: Support,
    /// Reasoning.
    pub thinking: Thinking,
}

/// Removal of old content by the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ContextManagement {
    /// True if any of them is supported.
    pub supported: bool,
    /// Removal of reasoning.
    pub clear_thinking_20251015: Support,
    /// Removal of calls.
    pub clear_tool_uses_20250919: Support,
    /// Summaries of messages.
    pub compact_20260112: Support,
}

/// The efforts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Effort {
    /// True if any of them is supported.
    pub supported: bool,
    /// The effort `low`.
    pub low: Support,
    /// The effort `medium`.
    pub medium: Support,
    /// The effort `high`.
    pub high: Support,
    /// The effort `xhigh`.
    pub xhigh: Support,
    /// The effort `max`.
    pub max: Support,
}

/// The vendor's tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ServerTools {
    /// True if any of them is supported.
    pub supported: bool,
    /// Execution of code.
    pub code_execution: Support,
    /// Search of the web.
    pub web_search: Support,
}

/// Reasoning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Thinking {
    /// True if the model reasons.
    pub supported: bool,
    /// The values of `thinking.type` that the model accepts.
    pub types: ThinkingTypes,
}

/// The values of `thinking.type` that a model accepts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ThinkingTypes {
    /// `adaptive`.
    pub adaptive: Support,
    /// `between_tools`.
    pub between_tools: Support,
    /// `disabled`, which models that never reason accept as well.
    pub disabled: Support,
    /// `enabled`.
    pub enabled: Support,
}

impl Capabilities {
    /// Returns the capabilities if the facts decide all of them.
    pub(super) fn of(facts: &Facts) -> Option<Self> {
        let (known, media) = (
            facts.capabilities.as_ref()?,
            facts.input_modalities.as_ref()?,
        );
        let any = |words: &[Capability]| words.iter().any(|word| known.contains(word));
        let has = |word| Support {
            supported: known.contains(&word),
        };
        let takes = |medium| Support {
            supported: media.contains(&medium),
        };
        Some(Self {
            batch: Support { supported: false },
            citations: has(Capability::Citations),
            code_execution: has(Capability::ProgrammaticToolCalls),
            context_management: ContextManagement {
                supported: any(&[
                    Capability::ClearThinking,
                    Capability::ClearToolUses,
                    Capability::Compaction,
                ]),
                clear_thinking_20251015: has(Capability::ClearThinking),
                clear_tool_uses_20250919: has(Capability::ClearToolUses),
                compact_20260112: has(Capability::Compaction),
            },
            effort: Effort {
                supported: any(&[
                    Capability::EffortLow,
                    Capability::EffortMedium,
                    Capability::EffortHigh,
                    Capability::EffortXhigh,
                    Capability::EffortMax,
                ]),
                low: has(Capability::EffortLow),
                medium: has(Capability::EffortMedium),
                high: has(Capability::EffortHigh),
                xhigh: has(Capability::EffortXhigh),
                max: has(Capability::EffortMax),
            },
            image_input: takes(Modality::Image),
            pdf_input: takes(Modality::File),
            server_tools: ServerTools {
                supported: any(&[Capability::CodeExecution, Capability::WebSearch]),
                code_execution: has(Capability::CodeExecution),
                web_search: has(Capability::WebSearch),
            },
            structured_outputs: has(Capability::StructuredOutputs),
            thinking: Thinking {
                supported: any(&[
                    Capability::Thinking,
                    Capability::AdaptiveThinking,
                    Capability::AlwaysThinking,
                ]),
                types: ThinkingTypes {
                    adaptive: has(Capability::AdaptiveThinking),
                    between_tools: has(Capability::ThinkingBetweenTools),
                    disabled: Support {
                        supported: !any(&[Capability::AlwaysThinking]),
                    },
                    enabled: has(Capability::Thinking),
                },
            },
        })
    }
}
