//! How to answer: the form of the text, the thinking, and what to do when the conversation is too long.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wire::{Json, Object};

/// The form of the answer's text. The default is free text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TextOptions {
    /// Free text or JSON. Absent: free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// How much to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<Verbosity>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self { format: Some(Format::Text(PlainFormat::default())), verbosity: None, extra: Object::new() }
    }
}

wire::tagged! {
    /// Free text or JSON.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Format("type") {
        /// Free text.
        Text(PlainFormat) = "text",
        /// Any JSON object; the prompt must ask for JSON too.
        JsonObject(PlainFormat) = "json_object",
        /// JSON that fits a schema.
        JsonSchema(JsonSchemaFormat) = "json_schema",
    }
}

/// A form of which there is no more to say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlainFormat {
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// JSON that fits a schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JsonSchemaFormat {
    /// The schema's name.
    pub name: String,
    /// What it is for, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema.
    pub schema: Json,
    /// Whether the answer must fit it exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

wire::open_enum! {
    /// How much to say.
    pub enum Verbosity {
        /// Little.
        Low = "low",
        /// Middling.
        Medium = "medium",
        /// Much.
        High = "high",
    }
}

/// Whether and how to think. `effort` and `summary` are always written, as responses must (wire-reference §1.5).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReasoningOptions {
    /// How hard.
    pub effort: Option<Effort>,
    /// How much of the thoughts to tell.
    pub summary: Option<Summary>,
    /// The old name of `summary`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generate_summary: Option<Summary>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

impl ReasoningOptions {
    /// How much of the thoughts to tell, under either of its names.
    #[must_use]
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref().or(self.generate_summary.as_ref())
    }
}

wire::open_enum! {
    /// How hard to think.
    pub enum Effort {
        /// Not at all.
        None = "none",
        /// As little as can be.
        Minimal = "minimal",
        /// A little.
        Low = "low",
        /// Middling.
        Medium = "medium",
        /// A lot.
        High = "high",
        /// More than a lot.
        XHigh = "xhigh",
        /// Whatever it takes.
        Max = "max",
    }
}

wire::open_enum! {
    /// How much of the thoughts to tell.
    pub enum Summary {
        /// The model decides.
        Auto = "auto",
        /// Little.
        Concise = "concise",
        /// Much.
        Detailed = "detailed",
    }
}

wire::open_enum! {
    /// What to do with a conversation that is too long for the model.
    #[derive(Default)]
    pub enum Truncation {
        /// Leave out of its middle.
        Auto = "auto",
        /// Refuse it.
        #[default]
        Disabled = "disabled",
    }
}
