//! Any bytes as a Chat Completions request.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sluicegate_fuzz::read_request;

fuzz_target!(|body: &[u8]| read_request!(chat, body, |valid: chat::ValidRequest| {
    assert!(!valid.model.is_empty() && !valid.messages.is_empty(), "there is something to answer");
    assert!(valid.output_cap().is_none_or(|cap| cap > 0), "a cap leaves room for an answer");
}));
