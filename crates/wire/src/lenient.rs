//! Types that the lenient readers of the protocols share.
//!
//! A lenient reader tolerates every form of an answer whose meaning is clear, and is strict about
//! its end. The readers are in the crates of the protocols.

mod answer;
mod error;
mod members;

pub use self::answer::{Call, Tokens, rest};
pub use self::error::{MAX_INDEX, ReadError, bounded};
pub use self::members::{Arguments, Count, List, Members, Text};
