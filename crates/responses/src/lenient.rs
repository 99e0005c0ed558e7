//! A reader of the answers that servers really send.
//!
//! Servers bend the protocol, each in its own way: events without numbers and indices, texts and
//! calls that are sent once, other ids at the end, an empty final output. [`Reader`] tolerates
//! every form whose meaning is clear, and is strict about the end: an answer is complete only if
//! its server reports it, if its calls are complete, and if no event contradicts an earlier one.
//!
//! The types and the [`Grammar`](crate::Grammar) of this crate are the protocol as its vendor
//! writes it down. This reader accepts every answer that they accept, and reads the same content.

mod collector;
mod defects;
mod event;
mod items;
mod kind;
mod reader;

pub use wire::lenient::{Call, ReadError, Tokens, Update};

pub use self::collector::{Answer, Collector, collect};
pub use self::defects::{ChangedId, IdOwner, Missing};
pub use self::reader::{Finish, Kind, Reader, reported_tokens};
