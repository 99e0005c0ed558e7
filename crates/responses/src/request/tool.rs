//! What the model may call, and whether it may, must or must not (wire-reference §1.4).

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use wire::{Json, Object, WordOr};

wire::tagged! {
    /// What the model may call. Hosted tools are `Other`.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Tool("type") {
        /// A function.
        Function(FunctionTool) = "function",
    }
}

/// A function that the model may call.
///
/// The form of Chat Completions, with everything inside `function`, is taken for this one. All fields are always
/// written, as responses must (wire-reference §1.4).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "FunctionToolForm")]
pub struct FunctionTool {
    /// Its name, by which it is called.
    pub name: String,
    /// What it does, for the model.
    pub description: Option<String>,
    /// A JSON Schema of its arguments.
    pub parameters: Option<Json>,
    /// Whether the arguments must fit the schema exactly.
    pub strict: Option<bool>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(extend("anyOf" = either_of("name", "function")))]
struct FunctionToolForm {
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "String")]
    name: Option<String>,
    description: Option<String>,
    parameters: Option<Json>,
    strict: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "FunctionDefinition")]
    function: Option<FunctionDefinition>,
    #[serde(flatten)]
    extra: Object,
}

#[derive(Deserialize, JsonSchema)]
struct FunctionDefinition {
    name: String,
    description: Option<String>,
    parameters: Option<Json>,
    strict: Option<bool>,
    #[serde(flatten)]
    extra: Object,
}

impl TryFrom<FunctionToolForm> for FunctionTool {
    type Error = &'static str;

    fn try_from(form: FunctionToolForm) -> Result<Self, Self::Error> {
        let FunctionToolForm { name, description, parameters, strict, function, mut extra } = form;
        match (name, function) {
            (Some(name), _) => Ok(Self { name, description, parameters, strict, extra }),
            (None, Some(function)) => {
                extra.extend(function.extra);
                Ok(Self {
                    name: function.name,
                    description: function.description.or(description),
                    parameters: function.parameters.or(parameters),
                    strict: function.strict.or(strict),
                    extra,
                })
            }
            (None, None) => Err("missing field `name`"),
        }
    }
}

/// Whether tools may, must or must not be called: a word, or an object that names them.
pub type ToolChoice = WordOr<ToolMode, ToolChoiceObject>;

wire::open_enum! {
    /// Whether tools may, must or must not be called.
    pub enum ToolMode {
        /// They must not.
        None = "none",
        /// The model decides.
        Auto = "auto",
        /// At least one must.
        Required = "required",
    }
}

wire::tagged! {
    /// Which tools may or must be called. A hosted tool that must be called is `Other`.
    #[derive(Clone, Debug, PartialEq)]
    pub enum ToolChoiceObject("type") {
        /// This function must be called.
        Function(FunctionChoice) = "function",
        /// Only these may be called.
        AllowedTools(AllowedTools) = "allowed_tools",
    }
}

/// The function that must be called. The form of Chat Completions is taken for this one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "FunctionChoiceForm")]
pub struct FunctionChoice {
    /// Its name.
    pub name: String,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(extend("anyOf" = either_of("name", "function")))]
struct FunctionChoiceForm {
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "String")]
    name: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "FunctionName")]
    function: Option<FunctionName>,
    #[serde(flatten)]
    extra: Object,
}

#[derive(Deserialize, JsonSchema)]
struct FunctionName {
    name: String,
    #[serde(flatten)]
    extra: Object,
}

impl TryFrom<FunctionChoiceForm> for FunctionChoice {
    type Error = &'static str;

    fn try_from(form: FunctionChoiceForm) -> Result<Self, Self::Error> {
        let FunctionChoiceForm { name, function, mut extra } = form;
        match (name, function) {
            (Some(name), _) => Ok(Self { name, extra }),
            (None, Some(function)) => {
                extra.extend(function.extra);
                Ok(Self { name: function.name, extra })
            }
            (None, None) => Err("missing field `name`"),
        }
    }
}

/// The tools that alone may be called, and whether one must.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AllowedTools {
    /// `auto`, which it also is when absent, or `required`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolMode>,
    /// The tools, each as `tool_choice` would name it.
    pub tools: Vec<ToolChoiceObject>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// Reads a member that may be absent but not null.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// The schema of an object that has at least one of two members.
fn either_of(one: &str, other: &str) -> serde_json::Value {
    serde_json::json!([
        { "properties": { one: true }, "required": [one] },
        { "properties": { other: true }, "required": [other] },
    ])
}
