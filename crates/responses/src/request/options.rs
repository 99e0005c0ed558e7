//! Output options: text format, reasoning and truncation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wire::{Effort, Json, Object};

wire::open_structs! {
    /// The format and verbosity of the output text. The default is free text.
    pub struct TextOptions {
        /// The output format. `None` means free text.
        pub format: Option<Format>,
        /// Verbosity of the output.
        pub verbosity: Option<Verbosity>,
    }
}

impl Default for TextOptions {
    fn default() -> Self {
        Self {
            format: Some(Format::Text(PlainFormat::default())),
            verbosity: None,
            extra: Object::new(),
        }
    }
}

wire::tagged! {
    /// The format of the output text.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Format("type") {
        /// Free text.
        Text(PlainFormat) = "text",
        /// Any JSON object. The prompt must ask for JSON as well.
        JsonObject(PlainFormat) = "json_object",
        /// JSON that conforms to a schema.
        JsonSchema(JsonSchemaFormat) = "json_schema",
    }
}

wire::open_structs! {
    /// A format without options.
    #[derive(Default)]
    pub struct PlainFormat {}

    /// JSON that conforms to a schema.
    pub struct JsonSchemaFormat {
        /// The name of the schema.
        pub name: String,
        /// A description of the schema's purpose, for the model.
        pub description: Option<String>,
        /// The JSON Schema.
        pub schema: Json,
        /// True to enforce the schema exactly.
        pub strict: Option<bool>,
    }
}

wire::open_enum! {
    /// Verbosity of the output.
    pub enum Verbosity {
        /// Low verbosity.
        Low = "low",
        /// Medium verbosity.
        Medium = "medium",
        /// High verbosity.
        High = "high",
    }
}

/// Controls the model's reasoning. `effort` and `summary` are always serialized, as null if absent:
/// responses must have both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ReasoningOptions {
    /// Reasoning effort.
    pub effort: Option<Effort>,
    /// The detail of the reasoning summary.
    pub summary: Option<Summary>,
    /// The deprecated name of `summary`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generate_summary: Option<Summary>,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

impl ReasoningOptions {
    /// Returns the requested summary detail, under either name.
    #[must_use]
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref().or(self.generate_summary.as_ref())
    }
}

wire::open_enum! {
    /// The detail of the reasoning summary.
    pub enum Summary {
        /// The model decides.
        Auto = "auto",
        /// A short summary.
        Concise = "concise",
        /// A detailed summary.
        Detailed = "detailed",
    }
}

wire::open_enum! {
    /// The strategy for conversations that exceed the model's context window.
    #[derive(Default)]
    pub enum Truncation {
        /// Drop items from the middle of the conversation.
        Auto = "auto",
        /// Reject the request.
        #[default]
        Disabled = "disabled",
    }
}
