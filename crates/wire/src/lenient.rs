//! Types that the lenient readers of the protocols share.
//!
//! A lenient reader tolerates every form of an answer whose meaning is clear, and is strict about
//! its end. The readers are in the crates of the protocols.

mod answer;
mod collector;
mod error;
mod form;
mod halves;
mod members;
mod order;
mod other;
mod reader;
mod update;
mod usage;

pub use self::answer::{Answer, Call, Tokens, rest};
pub use self::collector::{Collector, collect};
pub use self::error::{MAX_INDEX, ReadError, bounded};
pub use self::form::{Form, MAX_VARYING, TextPlace, Values, Varying};
pub use self::halves::Halves;
pub use self::members::{Arguments, Count, List, Members, Text, parse, reports_error, required};
pub use self::order::TextOrder;
pub use self::other::OtherContent;
pub use self::reader::AnswerReader;
pub use self::update::{Update, push};
pub use self::usage::{
    CountKind, Counts, Meaning, OPENAI, OpenAi, Reported, Spelling, Table, WRITES,
};
