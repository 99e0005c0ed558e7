//! Any bytes as a Responses request.

use crate::protocol::read_request;

/// Checks one input; a panic is a finding.
pub fn check(body: &[u8]) {
    read_request!(responses, body, |valid: responses::ValidRequest| {
        assert!(!valid.model.is_empty(), "a model is named");
        assert!(
            valid.max_output_tokens.is_none_or(|cap| cap > 0),
            "a cap leaves room for an answer"
        );
        // The members that the response repeats can be serialized, too.
        let head = responses::Head {
            id: String::new(),
            created_at: 0,
            model: valid.model.clone(),
        };
        let mut events = Vec::new();
        responses::Encoder::new(head, responses::Echo::of(&valid)).open(&mut events);
        assert!(
            events
                .iter()
                .all(|event| responses::Event::read(&event.data()).as_ref() == Ok(event))
        );
    });
}
