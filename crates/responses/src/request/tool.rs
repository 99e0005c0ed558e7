//! The tools that the model may call, and the choice among them.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use wire::{Json, Object, ToolMode, WordOr};

wire::tagged! {
    /// A tool that the model may call. Hosted tools are `Other`.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Tool("type") {
        /// A function.
        Function(FunctionTool) = "function",
    }
}

/// A function that the model may call.
///
/// The Chat Completions form, with all fields nested in `function`, is accepted too. All fields are
/// always serialized, as null if absent: responses must have them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "FunctionToolForm")]
#[non_exhaustive]
pub struct FunctionTool {
    /// The name by which the model calls it.
    pub name: String,
    /// A description of its purpose, for the model.
    pub description: Option<String>,
    /// A JSON Schema of the arguments.
    pub parameters: Option<Json>,
    /// True to enforce the schema of the arguments exactly.
    pub strict: Option<bool>,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
    #[serde(skip)]
    is_nested: bool,
}

impl FunctionTool {
    /// Creates a tool that has only a name.
    #[must_use]
    pub fn new(name: String) -> Self {
        Self {
            name,
            description: None,
            parameters: None,
            strict: None,
            extra: Object::new(),
            is_nested: false,
        }
    }

    /// Returns true if it was read from the Chat Completions form. It is written in the form of this
    /// protocol.
    #[must_use]
    pub fn is_nested(&self) -> bool {
        self.is_nested
    }
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
        let FunctionToolForm {
            name,
            description,
            parameters,
            strict,
            function,
            mut extra,
        } = form;
        match (name, function) {
            (Some(name), _) => Ok(Self {
                name,
                description,
                parameters,
                strict,
                extra,
                is_nested: false,
            }),
            (None, Some(function)) => {
                extra.extend(function.extra);
                Ok(Self {
                    name: function.name,
                    description: function.description.or(description),
                    parameters: function.parameters.or(parameters),
                    strict: function.strict.or(strict),
                    extra,
                    is_nested: true,
                })
            }
            (None, None) => Err("missing field `name`"),
        }
    }
}

/// Controls whether the model calls tools: a mode, or an object that selects tools.
pub type ToolChoice = WordOr<ToolMode, ToolChoiceObject>;

wire::tagged! {
    /// A selection of tools. A selected hosted tool is `Other`.
    #[derive(Clone, Debug, PartialEq)]
    pub enum ToolChoiceObject("type") {
        /// The model must call this function.
        Function(FunctionChoice) = "function",
        /// The model may only call these tools.
        AllowedTools(AllowedTools) = "allowed_tools",
    }
}

wire::open_structs! {
    /// The function that the model must call. The Chat Completions form is accepted too.
    #[serde(try_from = "FunctionChoiceForm")]
    pub struct FunctionChoice {
        /// The name.
        pub name: String,
    }
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
        let FunctionChoiceForm {
            name,
            function,
            mut extra,
        } = form;
        match (name, function) {
            (Some(name), _) => Ok(Self { name, extra }),
            (None, Some(function)) => {
                extra.extend(function.extra);
                Ok(Self {
                    name: function.name,
                    extra,
                })
            }
            (None, None) => Err("missing field `name`"),
        }
    }
}

wire::open_structs! {
    /// The tools that the model may call, and whether it must call one.
    pub struct AllowedTools {
        /// `auto` or `required`. `None` means `auto`.
        pub mode: Option<ToolMode>,
        /// The tools, each in the form that `tool_choice` takes.
        pub tools: Vec<ToolChoiceObject>,
    }
}

/// Deserializes a field that may be absent, but not null.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// Returns the schema of an object that has at least one of two fields.
fn either_of(one: &str, other: &str) -> serde_json::Value {
    serde_json::json!([
        { "properties": { one: true }, "required": [one] },
        { "properties": { other: true }, "required": [other] },
    ])
}
