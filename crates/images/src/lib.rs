#![doc = include_str!("../README.md")]

mod encode;
mod event;
mod form;
pub mod lenient;
mod request;
mod response;
mod source;
mod stream;
mod validate;

pub use encode::{Encoder, Settled};
pub use event::{Completed, Event, Preview};
pub use form::{Form, PartKind, name_lists, part, write as write_form};
pub use request::{
    Background, Edit, FormFile, Generation, Mask, OutputFormat, Quality, Reference, ResponseFormat,
};
pub use response::{Image, Reply, Response, TokensDetails, Usage};
pub use source::Source;
pub use stream::{Fold, Grammar, Offence, Operation, StreamError};
pub use validate::{Rules, ValidEdit, ValidGeneration, check_files};
