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
    if let Some(skimmed) = chat::Request::skim(body) {
        let mut read = chat::Request::read(body).expect("a request that is skimmed can be read");
        let verdict = |request: chat::Request| request.validate(&chat::Rules::default()).map(drop);
        assert_eq!(
            verdict(skimmed.clone()),
            verdict(read.clone()),
            "the messages that are passed over are valid"
        );
        read.messages.clone_from(&skimmed.messages);
        assert_eq!(skimmed, read, "nothing else is passed over");
    }
}
