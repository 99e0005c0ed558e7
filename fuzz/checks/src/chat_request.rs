//! Any bytes as a Chat Completions request.

use crate::protocol::read_request;

/// Checks one input; a panic is a finding.
pub fn check(body: &[u8]) {
    read_request!(chat, body, |valid: chat::ValidRequest| {
        assert!(
            !valid.model.is_empty() && !valid.messages.is_empty(),
            "there is something to answer"
        );
        assert!(
            valid.output_cap().is_none_or(|cap| cap > 0),
            "a cap leaves room for an answer"
        );
    });
}
