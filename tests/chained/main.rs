//! Two gateways in a row: the promises of one hold through another that relays to it.
//!
//! The modules are those of the black box about replies and their format, unchanged; `server` sends
//! their requests to a gateway whose models are all served by a second one, with the embedded
//! engines, over the protocol of the request. The others stay with the black box: the process
//! itself, decisions before a model is selected, and the model's handling of conversations. Those
//! are the same with and without an upstream, and take time.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

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

const GATEWAY: server::Chain = server::Chain(testkit::binary!());
