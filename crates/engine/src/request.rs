//! What a caller wants of a text model, whichever protocol it was said in.

use wire::Json;

/// One request to a text model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextRequest {
    /// The model, by the name that the engine knows.
    pub model: String,
    /// The conversation so far, oldest first.
    pub turns: Vec<Turn>,
    /// Functions that the model may call.
    pub tools: Vec<Tool>,
    /// Whether it may, must or must not call them.
    pub tool_choice: ToolChoice,
    /// Whether it may call several at once. Absent: the engine decides.
    pub parallel_calls: Option<bool>,
    /// The form of the answer's text.
    pub format: Format,
    /// How much to say. Absent: the engine decides.
    pub verbosity: Option<Verbosity>,
    /// The most tokens to generate, reasoning included. Absent: the engine decides.
    pub max_output_tokens: Option<u64>,
    /// Texts that end the answer; they are not part of it.
    pub stop: Vec<String>,
    /// How the next token is drawn.
    pub sampling: Sampling,
    /// Whether and how the model thinks before it answers.
    pub reasoning: Reasoning,
    /// The caller's own name for its end user.
    pub user: Option<String>,
}

/// One turn of a conversation. Neighbouring turns may be of the same side.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// Instructions above the conversation.
    System(String),
    /// What the user said.
    User(Vec<UserPart>),
    /// What the model said and did.
    Assistant(Vec<AssistantPart>),
    /// What came of a call.
    Tool(ToolResult),
}

/// A piece of what a user, or a tool, says.
#[derive(Clone, Debug, PartialEq)]
pub enum UserPart {
    /// Text.
    Text(String),
    /// A picture.
    Image {
        /// Where its bytes are.
        source: ImageSource,
        /// How closely to look: `low`, `high` and the like.
        detail: Option<String>,
    },
    /// A document.
    File {
        /// Its name.
        name: Option<String>,
        /// Its media type.
        media_type: String,
        /// Its content: base64, standard alphabet, padded.
        data: String,
    },
}

/// Where the bytes of a picture are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageSource {
    /// Here.
    Inline {
        /// The media type that was claimed for them.
        media_type: String,
        /// The bytes as base64: standard alphabet, padded.
        data: String,
    },
    /// Behind a public https address.
    Url(String),
}

/// A piece of what the model said or did earlier.
#[derive(Clone, Debug, PartialEq)]
pub enum AssistantPart {
    /// Text of an answer.
    Text(String),
    /// Text of a refusal.
    Refusal(String),
    /// Thoughts that came before an answer.
    Reasoning {
        /// The text of them.
        text: String,
        /// The model's own seal on them, by which it knows them again.
        signature: Option<String>,
    },
    /// Thoughts that only the model can read.
    RedactedReasoning(String),
    /// A function call.
    Call(ToolCall),
}

/// A call that a model made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The id by which the result refers to it.
    pub id: String,
    /// The function.
    pub name: String,
    /// Its arguments as the model wrote them: usually, but not surely, a JSON object.
    pub arguments: String,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: String,
    /// What the tool said.
    pub content: Vec<UserPart>,
    /// Whether the tool says that it failed.
    pub is_error: bool,
}

/// A function that a model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its name, by which it is called.
    pub name: String,
    /// What it does, for the model.
    pub description: Option<String>,
    /// A JSON Schema of its arguments, an object. Absent: it takes none.
    pub parameters: Option<Json>,
    /// Whether the arguments must fit the schema exactly.
    pub strict: Option<bool>,
}

/// Whether functions may, must or must not be called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// None may be called.
    None,
    /// At least one must be called.
    Required,
    /// This one must be called.
    Named(String),
}

/// The form of the answer's text.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Format {
    /// Free text.
    #[default]
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON that fits a schema.
    JsonSchema {
        /// The schema's name.
        name: Option<String>,
        /// What it is for, for the model.
        description: Option<String>,
        /// The JSON Schema.
        schema: Json,
        /// Whether the answer must fit it exactly.
        strict: Option<bool>,
    },
}

/// How much to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verbosity {
    /// Little.
    Low,
    /// Middling.
    Medium,
    /// Much.
    High,
}

/// How the next token is drawn. What is absent is the engine's to choose.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampling {
    /// 0 takes the likeliest token; up to 2.
    pub temperature: Option<f64>,
    /// Draws among the likeliest tokens that make up this share.
    pub top_p: Option<f64>,
    /// Draws among so many of the likeliest tokens.
    pub top_k: Option<u64>,
    /// −2 to 2: against tokens that occurred.
    pub presence_penalty: Option<f64>,
    /// −2 to 2: against tokens by how often they occurred.
    pub frequency_penalty: Option<f64>,
    /// The same seed and request give the same answer, where the engine can.
    pub seed: Option<i64>,
}

/// Whether and how the model thinks before it answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reasoning {
    /// How hard. Absent: the engine and the model decide.
    pub effort: Option<Effort>,
    /// Whether the model is one that thinks, when the caller says nothing.
    pub by_default: bool,
    /// Whether the caller wants to see a summary of the thoughts. Absent: the engine decides.
    pub summary: Option<bool>,
}

impl Reasoning {
    /// Whether to think at all.
    #[must_use]
    pub fn wanted(&self) -> bool {
        self.effort.map_or(self.by_default, |effort| effort != Effort::None)
    }
}

/// How hard to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effort {
    /// Not at all.
    None,
    /// As little as can be.
    Minimal,
    /// A little.
    Low,
    /// Middling.
    Medium,
    /// A lot.
    High,
    /// More than a lot.
    XHigh,
    /// Whatever it takes.
    Max,
}
