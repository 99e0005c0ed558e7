//! The side of the upstream: a neutral request to its own protocol, and what it says to neutral events.

pub mod encode;
mod failure;
mod parse;

pub use self::failure::failure;
pub(crate) use self::failure::told;
pub use self::parse::{Reader, reply};
pub(crate) use self::parse::{check, check_finish};

/// A protocol that an upstream for text speaks.
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
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Responses, Self::Chat, Self::Messages];

    /// Its name, for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Responses => "Responses",
            Self::Chat => "Chat Completions",
            Self::Messages => "Messages",
        }
    }
}
