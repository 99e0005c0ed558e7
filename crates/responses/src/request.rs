//! The request body of `POST /v1/responses`. See
//! <https://platform.openai.com/docs/api-reference/responses/create>.

mod item;
mod options;
mod tool;

pub use wire::{Effort, ToolMode};
use wire::{Json, Object, TextOr, Violations};

pub use self::item::{
    AudioPart, CustomToolCall, CustomToolCallOutput, FilePart, FunctionCall, FunctionCallOutput,
    ImagePart, Item, ItemReference, Message, Part, Phase, Reasoning, ReasoningPart, RefusalPart,
    Role, TextPart,
};
pub use self::options::{
    Format, JsonSchemaFormat, PlainFormat, ReasoningOptions, Summary, TextOptions, Truncation,
    Verbosity,
};
pub use self::tool::{
    AllowedTools, FunctionChoice, FunctionTool, Tool, ToolChoice, ToolChoiceObject,
};

wire::open_structs! {
    /// A request for a response.
    ///
    /// Optional fields are `None` when absent or null; unrecognized fields are kept in `extra`.
    #[derive(Default)]
    pub struct Request {
        /// The id of the model.
        pub model: String,
        /// The conversation, oldest item first: all of it, unless the request refers to a stored
        /// part. A string is one user message.
        pub input: TextOr<Item>,
        /// System instructions that precede the conversation.
        pub instructions: Option<String>,
        /// Maximum number of tokens to generate, including reasoning tokens; at least 1.
        #[serde(default, deserialize_with = "wire::integer_or_null")]
        #[schemars(range(min = 1))]
        pub max_output_tokens: Option<i64>,
        /// True to stream the response as server-sent events.
        pub stream: Option<bool>,
        /// Options of the stream.
        pub stream_options: Option<StreamOptions>,
        /// The tools that the model may call.
        pub tools: Option<Vec<Tool>>,
        /// Controls whether the model calls tools, and which.
        pub tool_choice: Option<ToolChoice>,
        /// True if the model may make several calls in one turn.
        pub parallel_tool_calls: Option<bool>,
        /// Maximum number of calls of hosted tools, at least 1.
        #[serde(default, deserialize_with = "wire::integer_or_null")]
        #[schemars(range(min = 1))]
        pub max_tool_calls: Option<i64>,
        /// Sampling temperature, 0 to 2.
        #[schemars(range(min = 0, max = 2))]
        pub temperature: Option<f64>,
        /// Nucleus sampling: the probability mass to sample from, 0 to 1.
        #[schemars(range(min = 0, max = 1))]
        pub top_p: Option<f64>,
        /// Penalty for tokens that already appeared, −2 to 2.
        #[schemars(range(min = -2, max = 2))]
        pub presence_penalty: Option<f64>,
        /// Penalty for tokens in proportion to how often they appeared, −2 to 2.
        #[schemars(range(min = -2, max = 2))]
        pub frequency_penalty: Option<f64>,
        /// Number of alternatives to report per output token, 0 to 20.
        #[serde(default, deserialize_with = "wire::integer_or_null")]
        #[schemars(range(min = 0, max = 20))]
        pub top_logprobs: Option<i64>,
        /// The format of the output text.
        pub text: Option<TextOptions>,
        /// Controls the model's reasoning.
        pub reasoning: Option<ReasoningOptions>,
        /// Additional output to include; see [`Request::includes`].
        pub include: Option<Vec<String>>,
        /// Up to 16 key-value pairs of the client's own, repeated in the response.
        pub metadata: Option<Object>,
        /// False if the response is not to be stored. Whether it is stored is for the server to
        /// decide.
        pub store: Option<bool>,
        /// The id of the response to continue. Rejected unless the rules allow it.
        pub previous_response_id: Option<String>,
        /// The stored conversation to continue. Rejected unless the rules allow it.
        pub conversation: Option<Json>,
        /// A reference to a stored prompt. Rejected unless the rules allow it.
        pub prompt: Option<Json>,
        /// True to process the request in the background. Rejected if true, unless the rules allow
        /// it.
        pub background: Option<bool>,
        /// The strategy for conversations that exceed the model's context window.
        pub truncation: Option<Truncation>,
        /// The requested service tier.
        pub service_tier: Option<String>,
        /// The client's identifier for its end user.
        pub user: Option<String>,
        /// The successor of `user`.
        pub safety_identifier: Option<String>,
        /// Cache key: requests with the same key are likely to share a cached prompt.
        pub prompt_cache_key: Option<String>,
    }
}

impl Request {
    /// The value of `include` that requests encrypted reasoning content.
    pub const ENCRYPTED_REASONING: &'static str = "reasoning.encrypted_content";

    /// The value of `include` that requests log probabilities of output tokens.
    pub const LOGPROBS: &'static str = "message.output_text.logprobs";

    /// Parses a request body.
    ///
    /// # Errors
    /// Returns every violation of the request schema, each with its path.
    pub fn read(body: &[u8]) -> Result<Self, Violations> {
        wire::read(body)
    }

    /// Returns true if the client requested a stream.
    #[must_use]
    pub fn streams(&self) -> bool {
        self.stream == Some(true)
    }

    /// Returns true if the deltas of the stream are to be padded.
    #[must_use]
    pub fn includes_obfuscation(&self) -> bool {
        self.stream_options
            .as_ref()
            .and_then(|options| options.include_obfuscation)
            == Some(true)
    }

    /// Returns true if `include` contains the value.
    #[must_use]
    pub fn includes(&self, value: &str) -> bool {
        self.include
            .iter()
            .flatten()
            .any(|included| included == value)
    }
}

wire::open_structs! {
    /// Options of the stream.
    #[derive(Default)]
    pub struct StreamOptions {
        /// True to pad the deltas, so that their sizes reveal less about their content.
        pub include_obfuscation: Option<bool>,
    }
}
