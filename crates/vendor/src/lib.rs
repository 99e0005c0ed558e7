#![doc = include_str!("../README.md")]

pub mod call_id;
pub mod envelope;
mod failure;

mod answer_error;
mod client_error;

use schemars::JsonSchema;
use serde::Deserialize;

pub use self::answer_error::{
    ErrorMarkers, engine_error, malformed, text, truncated, unreadable, usage,
};
pub use self::client_error::{api_error, in_stream};
pub use self::failure::{failure, message};

wire::text_enum! {
    /// A text generation protocol of an upstream, by its display name.
    #[derive(PartialOrd, Ord, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Protocol {
        Responses = "Responses",
        Chat = "Chat Completions",
        Messages = "Messages",
    }
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Self; 3] = [Self::Responses, Self::Chat, Self::Messages];
}

/// The maximum size of an event of an answer, in bytes: a large image as base64.
pub const MAX_EVENT: usize = 32 << 20;
