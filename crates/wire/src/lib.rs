#![doc = include_str!("../README.md")]

mod cursor;
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
mod overflow;
mod path;
mod read;
mod rewrite;
mod service_tier;
mod shape;
mod spelling;
mod splice;
mod stream;
mod structs;
mod tagged;
mod text_enum;
mod unsupported;
mod valid;
mod violation;

pub use cursor::{Cursor, Member};
pub use data_url::{DataUrl, DataUrlError, check_image_url, image_type};
pub use echo::truncate_for_error;
pub use error::{
    ApiError, ErrorBody, ErrorDetail, ErrorKind, Reported, Specifics, StreamCode, Style,
};
pub use id::{id, id_with_separator};
pub use json::{Json, Object, json_fault, or_default};
pub use number::{integer, integer_or_null};
pub use open::{TextOr, WordOr, read_word};
pub use options::{Effort, ToolMode};
pub use overflow::ContextOverflow;
pub use path::Path;
pub use read::{MAX_DEPTH, MAX_VALUES, depth, read};
pub use rewrite::Rewrite;
pub use service_tier::ServiceTier;
pub use shape::Shape;
pub use spelling::OpenMembers;
pub use splice::{ElementEdit, MemberEdit, MemberPath, ObjectView, Piece, Splice};
pub use stream::{EventError, StreamError, read_event};
pub use tagged::{Entries, Tagged, read_tagged, read_unknown, tagged_schema};
pub use violation::{Code, Problem, Violation, Violations, quoted};
