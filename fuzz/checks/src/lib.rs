//! The checks of the fuzz targets, one module per target: the input is any bytes, and a panic is a
//! finding.
//!
//! They are separate from the targets, which need the fuzzer, so that an ordinary test
//! (`tests/replay.rs`) can run them on the committed corpus with every assertion of a debug build.

pub mod auth_header;
pub mod chat_events;
pub mod chat_request;
pub mod content_coding;
pub mod data_url;
pub mod fetch_address;
pub mod images_events;
pub mod images_form;
pub mod images_request;
pub mod messages_events;
pub mod messages_request;
pub mod picture_head;
mod protocol;
pub mod responses_events;
pub mod responses_request;
pub mod sse_decode;
pub mod translate_relay;
pub mod translate_request;
pub mod translate_stream;

/// The check of one input.
pub type Check = fn(&[u8]);

/// Every target by its name, which is also the name of its folder in `fuzz/corpus`.
pub const TARGETS: &[(&str, Check)] = &[
    ("auth_header", auth_header::check),
    ("chat_events", chat_events::check),
    ("chat_request", chat_request::check),
    ("content_coding", content_coding::check),
    ("data_url", data_url::check),
    ("fetch_address", fetch_address::check),
    ("images_events", images_events::check),
    ("images_form", images_form::check),
    ("images_request", images_request::check),
    ("messages_events", messages_events::check),
    ("messages_request", messages_request::check),
    ("picture_head", picture_head::check),
    ("responses_events", responses_events::check),
    ("responses_request", responses_request::check),
    ("sse_decode", sse_decode::check),
    ("translate_relay", translate_relay::check),
    ("translate_request", translate_request::check),
    ("translate_stream", translate_stream::check),
];

/// The longest prefix of an input that is UTF-8, for targets that read text.
fn leading_text(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}
