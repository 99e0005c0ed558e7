//! A reader of the answers that servers really send.
//!
//! Servers leave out most members that the protocol has beside the images, and send some images as
//! URLs. [`Reader`] tolerates every form whose meaning is clear, and is strict about the images: a
//! stream is complete only with all of them, and each has to be a picture as far as
//! [`PictureCheck`] can see.
//!
//! The types and the [`Grammar`](crate::Grammar) of this crate are the protocol as its vendor
//! writes it down. If its images are pictures, this reader accepts every answer that they accept,
//! and reads the same content.

mod collector;
mod convert;
mod event;
mod file;
mod reader;

pub use wire::lenient::{ReadError, Tokens};

pub use self::collector::{Answer, Collector, collect};
pub use self::convert::write_as_stream;
pub use self::event::{Picture, reported_tokens, tokens};
pub use self::file::{PictureCheck, repaired};
pub use self::reader::{Reader, Traits, Update};
