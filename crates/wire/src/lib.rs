#![doc = include_str!("../README.md")]

mod data_url;
mod echo;
mod error;
mod id;
mod json;
pub mod lenient;
mod number;
mod object;
mod open;
mod options;
mod path;
mod read;
mod shape;
mod splice;
mod stream;
mod structs;
mod tagged;
mod text_enum;
mod valid;
mod violation;

pub use data_url::{DataUrl, DataUrlError, check_image_url};
pub use echo::truncate_for_error;
pub use error::{ApiError, ErrorBody, ErrorDetail, ErrorKind, StreamCode};
pub use id::id;
pub use json::{Json, Object, json_fault, or_default};
pub use number::{integer, integer_or_null};
pub use open::{TextOr, WordOr, read_word};
pub use options::{Effort, ToolMode};
pub use path::Path;
pub use read::{MAX_DEPTH, MAX_VALUES, depth, read};
pub use shape::Shape;
pub use splice::{Piece, Splice};
pub use stream::{EventError, StreamError, read_event};
pub use tagged::{Entries, Tagged, read_tagged, read_unknown, tagged_schema};
pub use violation::{Code, Problem, Violation, Violations};
