//! Protocol-neutral requests to text models.

use wire::{Json, Object};

/// A request to a text model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextRequest {
    /// The model name, as known to the engine.
    pub model: String,
    /// The conversation so far, oldest first.
    pub turns: Vec<Turn>,
    /// The functions that the model may call.
    pub tools: Vec<Tool>,
    /// Constraints on calling the functions.
    pub tool_choice: ToolChoice,
    /// True if the model may make several calls in one turn. `None` lets the engine decide.
    pub parallel_calls: Option<bool>,
    /// The format of the output text.
    pub format: Format,
    /// The verbosity of the output. `None` lets the engine decide.
    pub verbosity: Option<Verbosity>,
    /// The maximum number of tokens to generate, including reasoning. `None` lets the engine
    /// decide.
    pub max_output_tokens: Option<u64>,
    /// Stop sequences, which end the output and are not part of it.
    pub stop: Vec<String>,
    /// The sampling parameters.
    pub sampling: Sampling,
    /// The reasoning settings.
    pub reasoning: Reasoning,
    /// The number of alternatives to report with the log probability of each output token; `None`
    /// if no probabilities are requested.
    pub logprobs: Option<u64>,
    /// The client's identifier for its end user.
    pub user: Option<String>,
    /// Statements of the client about the request, which the model does not see.
    pub labels: Labels,
    /// The beginnings of the prompt, before the conversation, that should be cached.
    pub cached: CachedPrefixes,
}

/// The beginnings of a prompt that should be cached, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachedPrefixes {
    /// The definitions of the tools.
    pub tools: Option<CacheLifetime>,
    /// The tools and the system instructions that precede the conversation.
    pub system: Option<CacheLifetime>,
}

/// The time for which a prefix of the prompt is kept in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheLifetime {
    /// The shorter time that a vendor offers: minutes.
    Short,
    /// The longer one: hours.
    Long,
}

/// Statements of a client about its request that no model sees.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Labels {
    /// The stable, pseudonymous id of the end user, by which a vendor detects abuse.
    pub safety_identifier: Option<String>,
    /// The cache key: requests with the same key are likely to share a cached prompt.
    pub prompt_cache_key: Option<String>,
    /// The requested service tier.
    pub service_tier: Option<String>,
    /// The client's own key-value pairs.
    pub metadata: Option<Object>,
}

/// One turn of a conversation. Consecutive turns may have the same role.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// System instructions.
    System(String),
    /// Input from the user.
    User(Vec<UserPart>),
    /// Earlier output of the model.
    Assistant(Vec<AssistantPart>),
    /// The result of a function call.
    Tool(ToolResult),
}

/// A content part of a user turn or a tool result.
#[derive(Clone, Debug, PartialEq)]
pub enum UserPart {
    /// Text.
    Text(String),
    /// An image.
    Image {
        /// The source of the image.
        source: ImageSource,
        /// The level of detail, such as `low` or `high`.
        detail: Option<String>,
    },
    /// A document.
    File {
        /// The file name.
        name: Option<String>,
        /// The media type.
        media_type: String,
        /// The content as padded base64 of the standard alphabet.
        data: String,
    },
    /// A document at a public https URL.
    FileUrl {
        /// The file name.
        name: Option<String>,
        /// The URL.
        url: String,
    },
    /// The end of a prefix of the prompt that should be cached. It belongs to the part before it.
    CacheBreakpoint(CacheLifetime),
}

/// The source of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageSource {
    /// Data included in the request.
    Inline {
        /// The media type stated by the client.
        media_type: String,
        /// The content as padded base64 of the standard alphabet.
        data: String,
    },
    /// A public https URL.
    Url(String),
}

/// A content part of an earlier model output.
#[derive(Clone, Debug, PartialEq)]
pub enum AssistantPart {
    /// Output text.
    Text(String),
    /// The text of a refusal.
    Refusal(String),
    /// Readable reasoning.
    Reasoning {
        /// The reasoning text.
        text: String,
        /// The signature by which the model recognizes its own reasoning.
        signature: Option<String>,
    },
    /// Encrypted reasoning, readable only by the model.
    RedactedReasoning(String),
    /// A function call.
    Call(ToolCall),
}

/// A function call made by the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// The id that the call's result refers to.
    pub id: String,
    /// The name of the function.
    pub name: String,
    /// The arguments as generated by the model: usually, but not necessarily, a JSON object.
    pub arguments: String,
    /// Opaque data by which the server recognizes its own call.
    pub seal: Option<String>,
}

/// The result of a function call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: String,
    /// The output of the tool.
    pub content: Vec<UserPart>,
    /// True if the tool reported a failure.
    pub is_error: bool,
}

/// A function that a model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The name of the function.
    pub name: String,
    /// A description for the model.
    pub description: Option<String>,
    /// A JSON Schema of the arguments, an object. `None` if the function takes no arguments.
    pub parameters: Option<Json>,
    /// True if the arguments must match the schema exactly. `None`: if the schema permits it.
    pub strict: Option<bool>,
}

/// A constraint on function calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No function may be called.
    None,
    /// At least one function must be called.
    Required,
    /// The function with this name must be called.
    Named(String),
}

/// The format of the output text.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Format {
    /// Free text.
    #[default]
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON that matches a schema.
    JsonSchema {
        /// The name of the schema.
        name: Option<String>,
        /// A description of its purpose, for the model.
        description: Option<String>,
        /// The JSON Schema.
        schema: Json,
        /// True if the output must match the schema exactly.
        strict: Option<bool>,
    },
}

wire::text_enum! {
    /// The verbosity of the output.
    pub enum Verbosity {
        Low = "low",
        Medium = "medium",
        High = "high",
    }
}

/// Sampling parameters. The engine chooses those that are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampling {
    /// Sampling temperature, 0 to 2; 0 always selects the most likely token.
    pub temperature: Option<f64>,
    /// Nucleus sampling: considers the most likely tokens up to this cumulative probability.
    pub top_p: Option<f64>,
    /// Considers this many of the most likely tokens.
    pub top_k: Option<u64>,
    /// Penalty for tokens that already appeared, −2 to 2.
    pub presence_penalty: Option<f64>,
    /// Penalty for tokens in proportion to how often they appeared, −2 to 2.
    pub frequency_penalty: Option<f64>,
    /// Random seed; the same seed and request give the same output, if the engine supports it.
    pub seed: Option<i64>,
}

/// Reasoning settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reasoning {
    /// The reasoning effort. `None` lets the engine and the model decide.
    pub effort: Option<Effort>,
    /// True if the model reasons when the request does not set an effort.
    pub by_default: bool,
    /// True if the client requests a summary of the reasoning. `None` lets the engine decide.
    pub summary: Option<bool>,
    /// True if the effort applies to the output alone and does not make the model reason.
    pub output_only: bool,
    /// True if the client requests the reasoning in the encrypted form that it can send back.
    pub encrypted: bool,
}

impl Reasoning {
    /// Returns true if the model should reason at all.
    #[must_use]
    pub fn wanted(&self) -> bool {
        self.effort
            .filter(|_| !self.output_only)
            .map_or(self.by_default, |effort| effort != Effort::None)
    }
}

wire::text_enum! {
    /// Reasoning effort, in increasing order.
    pub enum Effort {
        /// No reasoning.
        None = "none",
        Minimal = "minimal",
        Low = "low",
        Medium = "medium",
        High = "high",
        XHigh = "xhigh",
        Max = "max",
    }
}
