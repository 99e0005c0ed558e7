//! A reader of the answers that servers really send.
//!
//! Servers bend the protocol, each in its own way: a start without usage, blocks that overlap,
//! calls without input, several `message_delta` events. [`Reader`] tolerates every form whose
//! meaning is clear, and is strict about the end: an answer is complete only if its server reports it
//! in a word that means it, and if its blocks are closed and its calls complete.
//!
//! The types and the [`Grammar`](crate::Grammar) of this crate are the protocol as its vendor
//! writes it down. This reader accepts every answer that they accept, and reads the same content.

mod blocks;
mod collector;
mod event;
mod reader;
mod stop;
mod usage;

pub use wire::lenient::{Call, ReadError, Tokens, Update};

pub use self::collector::{Answer, Collector, collect};
pub use self::reader::{Kind, Reader, reported_tokens};
pub use self::stop::Stop;
