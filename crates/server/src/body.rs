//! Bodies of responses, and the reading of bodies of requests.

pub(crate) mod events;
pub(crate) mod form;
pub(crate) mod pieces;
pub(crate) mod plain;
pub(crate) mod upload;

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;

/// The body of any response.
pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;
