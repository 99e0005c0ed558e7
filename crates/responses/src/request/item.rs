//! The items of a conversation and the parts of their content.

use wire::{Json, TextOr};

use crate::status::Status;

wire::tagged! {
    /// One item of the conversation. The many other item types of hosted tools are `Other`.
    ///
    /// An item without a `type` is a message if it has a `role`; otherwise its kind is `""`.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Item("type") {
        /// A message of the user, the model or the system.
        Message(Message) = "message",
        /// A function call made by the model.
        FunctionCall(FunctionCall) = "function_call",
        /// The result of a function call.
        FunctionCallOutput(FunctionCallOutput) = "function_call_output",
        /// Reasoning of the model.
        Reasoning(Reasoning) = "reasoning",
        /// A call of a custom tool, whose input is free text.
        CustomToolCall(CustomToolCall) = "custom_tool_call",
        /// The result of a custom tool call.
        CustomToolCallOutput(CustomToolCallOutput) = "custom_tool_call_output",
        /// A reference to a stored item. Rejected unless the rules allow it.
        ItemReference(ItemReference) = "item_reference",
    }
    untagged { "role" => "message" }
}

wire::open_structs! {
    /// A message of the user, the model or the system.
    pub struct Message {
        /// The id that the response gave the message.
        pub id: Option<String>,
        /// The status that the response gave the message.
        pub status: Option<Status>,
        /// The role of the author.
        pub role: Role,
        /// The content, as a string or as parts.
        pub content: TextOr<Part>,
        /// For messages of the model: final answer or commentary.
        pub phase: Option<Phase>,
    }
}

wire::open_enum! {
    /// The role of a message's author.
    pub enum Role {
        /// The user.
        User = "user",
        /// The model.
        Assistant = "assistant",
        /// System instructions.
        System = "system",
        /// The successor of `system`.
        Developer = "developer",
    }
}

wire::open_enum! {
    /// The phase of a message of the model.
    pub enum Phase {
        /// Commentary on the way to the answer; calls follow.
        Commentary = "commentary",
        /// The answer that ends the turn.
        FinalAnswer = "final_answer",
    }
}

wire::open_structs! {
    /// A call of a function.
    pub struct FunctionCall {
        /// The id of the item, `fc_…`. Always present in output.
        pub id: Option<String>,
        /// The status of the item. Always present in output.
        pub status: Option<Status>,
        /// The call id, by which the result refers to the call.
        pub call_id: String,
        /// The name of the function.
        pub name: String,
        /// The arguments as the model wrote them, normally JSON text.
        pub arguments: String,
    }

    /// The result of a function call.
    pub struct FunctionCallOutput {
        /// The id of the call that this is the result of. Servers that know the call by the name of its
        /// function accept a result without one.
        pub call_id: Option<String>,
        /// The output of the function: a string, or text, image and file parts.
        pub output: TextOr<Part>,
    }

    /// Reasoning of the model.
    #[derive(Default)]
    pub struct Reasoning {
        /// The id of the item, `rs_…`. Always present in output.
        pub id: Option<String>,
        /// The reasoning summary.
        pub summary: Vec<ReasoningPart>,
        /// The reasoning text. Accepted from upstreams, never emitted by the encoder.
        pub content: Option<Vec<ReasoningPart>>,
        /// Encrypted, opaque reasoning content. Sent back in a later turn, it restores the
        /// reasoning for the model.
        pub encrypted_content: Option<String>,
    }
}

impl Reasoning {
    /// The beginning of the id of each reasoning item that the [`Encoder`](crate::Encoder) makes, which
    /// the ids of no server have.
    pub const OWN_ID: &'static str = "rs_sg_";
}

wire::tagged! {
    /// A part of the model's reasoning.
    #[derive(Clone, Debug, PartialEq)]
    pub enum ReasoningPart("type") {
        /// Summary text.
        Summary(TextPart) = "summary_text",
        /// Full reasoning text.
        Text(TextPart) = "reasoning_text",
    }
}

wire::open_structs! {
    /// A call of a custom tool, whose input is free text.
    pub struct CustomToolCall {
        /// The call id, by which the result refers to the call.
        pub call_id: String,
        /// The name of the tool.
        pub name: String,
        /// The input, as free text.
        pub input: String,
    }

    /// The result of a custom tool call.
    pub struct CustomToolCallOutput {
        /// The id of the call that this is the result of.
        pub call_id: String,
        /// The output of the tool.
        pub output: TextOr<Part>,
    }

    /// A reference to a stored item.
    pub struct ItemReference {
        /// The id of the item.
        pub id: String,
    }
}

wire::tagged! {
    /// One part of a message's content, or of a call's result.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Part("type") {
        /// Input text.
        InputText(TextPart) = "input_text",
        /// An image.
        Image(ImagePart) = "input_image",
        /// A document.
        File(FilePart) = "input_file",
        /// An audio recording.
        Audio(AudioPart) = "input_audio",
        /// Output text of the model.
        OutputText(TextPart) = "output_text",
        /// A refusal by the model.
        Refusal(RefusalPart) = "refusal",
        /// Text of either direction.
        Text(TextPart) = "text",
    }
}

wire::open_structs! {
    /// A text part.
    #[derive(Default)]
    pub struct TextPart {
        /// The text.
        pub text: String,
    }

    /// An image.
    #[derive(Default)]
    pub struct ImagePart {
        /// A data URL or a public https URL.
        pub image_url: Option<String>,
        /// Image detail level: `auto`, `low`, `high` or `original`.
        pub detail: Option<String>,
        /// The id of a stored file. Rejected unless the rules allow it.
        pub file_id: Option<String>,
    }

    /// A document.
    #[derive(Default)]
    pub struct FilePart {
        /// The name of the file.
        pub filename: Option<String>,
        /// The content as a data URL.
        pub file_data: Option<String>,
        /// A public https URL.
        pub file_url: Option<String>,
        /// The id of a stored file. Rejected unless the rules allow it.
        pub file_id: Option<String>,
    }

    /// An audio recording.
    pub struct AudioPart {
        /// The audio data and its format.
        pub input_audio: Json,
    }

    /// A refusal.
    #[derive(Default)]
    pub struct RefusalPart {
        /// The text of the refusal.
        pub refusal: String,
    }
}
