#![doc = include_str!("../README.md")]

#[cfg(feature = "decode")]
mod decode;
mod head;
mod orientation;
#[cfg(feature = "decode")]
mod weight;

#[cfg(feature = "decode")]
pub use decode::decode;
pub use head::{Format, Head, MAX_PIXELS, MAX_SIDE, Unreadable};
#[cfg(feature = "decode")]
pub use weight::{MOST_BY_BYTE, most_pixels};
