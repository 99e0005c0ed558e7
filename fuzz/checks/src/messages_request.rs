//! Any bytes as a Messages request, and as a token count request.

use messages::{Request, Rules, refusal};

use crate::protocol::read_request;

/// Checks one input; a panic is a finding.
pub fn check(body: &[u8]) {
    read_request!(messages, body, |valid: messages::ValidRequest| {
        assert!(
            valid.max_tokens.is_some_and(|cap| cap > 0),
            "a message has a cap"
        );
        assert!(
            valid
                .into_inner()
                .validate_for_count(&Rules::default())
                .is_ok(),
            "what can be answered can be counted"
        );
    });
    if let Err(found) = Request::read(body) {
        assert!(!refusal(found).message.is_empty(), "a refusal has words");
    }
}
