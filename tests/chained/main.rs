//! Two gateways in a row: what is promised of one holds through another that relays it.
//!
//! The modules are those of the black box that are about answers and their form, unchanged; `server` puts each of their
//! questions to a gateway whose models are all served by a second one, with the embedded engines, over the protocol of
//! the question. The others stay with the black box: what is about the process itself, what is decided before a model is
//! asked, and what the model makes of a conversation. Those are the same with and without an upstream, and take time.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

#[path = "../black_box/client.rs"]
#[allow(dead_code, reason = "the helpers of more tests than these")]
mod client;
mod server;
#[path = "../black_box/stream.rs"]
#[allow(dead_code, reason = "the helpers of more tests than these")]
mod stream;

#[path = "../black_box/chat.rs"]
mod chat;
#[path = "../black_box/edits.rs"]
mod edits;
#[path = "../black_box/images.rs"]
mod images;
#[path = "../black_box/messages.rs"]
mod messages;
#[path = "../black_box/responses.rs"]
mod responses;

mod passing;
