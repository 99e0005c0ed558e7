//! The upstream side: encodes neutral requests in the upstream's protocol and parses its answers into neutral events.

pub mod encode;
mod failure;
mod parse;
mod stream;

pub use self::failure::failure;
pub(crate) use self::failure::reported;
pub use self::parse::{Reader, reply};
pub(crate) use self::parse::{check, check_finish};
pub use self::stream::StreamReader;

/// A text generation protocol of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// Responses.
    Responses,
    /// Chat Completions.
    Chat,
    /// Messages.
    Messages,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Self; 3] = [Self::Responses, Self::Chat, Self::Messages];

    /// Returns the display name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Responses => "Responses",
            Self::Chat => "Chat Completions",
            Self::Messages => "Messages",
        }
    }
}
