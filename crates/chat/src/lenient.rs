//! A reader of the answers that servers really send.
//!
//! Servers bend the protocol, each in its own way: chunks without choices or roles, ids that
//! change, usage in any chunk, calls without index. [`Reader`] tolerates every form whose meaning
//! is clear, and is strict about the end: an answer is complete only if its server reports it in a
//! word that means it, and if its calls are complete.
//!
//! The types and the [`Grammar`](crate::Grammar) of this crate are the protocol as its vendor
//! writes it down. This reader accepts every answer that they accept, and reads the same content.

mod calls;
mod chunk;
mod collector;
mod defects;
mod finish;
mod frequent;
mod reader;
mod usage;

pub use wire::lenient::{Call, ReadError, Tokens, Update};

pub use self::collector::{Answer, Collector, collect};
pub use self::defects::{CallDefects, Defects, ListedContent};
pub use self::finish::Finish;
pub use self::frequent::FrequentReply;
pub use self::reader::{Reader, reported_tokens};
