//! Any bytes as a Messages request, and as one whose tokens are to be counted.

#![no_main]

use libfuzzer_sys::fuzz_target;
use messages::{Request, refusal};
use sluicegate_fuzz::read_request;

fuzz_target!(|body: &[u8]| {
    read_request!(messages, body, |valid: messages::ValidRequest| {
        assert!(valid.max_tokens.is_some_and(|cap| cap > 0), "a message has a cap");
        assert!(valid.into_inner().validate_for_count().is_ok(), "what can be answered can be counted");
    });
    if let Err(found) = Request::read(body) {
        assert!(!refusal(found).message.is_empty(), "a refusal has words");
    }
});
