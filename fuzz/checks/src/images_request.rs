//! Any bytes as an Images request, for edits and for generations: every edit is a generation too.

use images::{Edit, Generation, Rules};

use crate::protocol::is_too_deep;

/// Checks one input; a panic is a finding.
pub fn check(body: &[u8]) {
    let Ok(edit) = Edit::read(body) else { return };
    assert!(!is_too_deep(body), "what nests too deep is refused");
    let written = serde_json::to_vec(&edit).expect("a request has a JSON form");
    assert_eq!(Edit::read(&written).as_ref(), Ok(&edit), "nothing is lost");
    let generation = Generation::read(body).expect("an edit is a generation with more members");
    assert_eq!(
        (&generation.prompt, generation.n),
        (&edit.generation.prompt, edit.generation.n)
    );
    if let Ok(valid) = edit.validate(&Rules::default()) {
        assert!(
            valid.sources().next().is_some(),
            "an edit starts from a picture"
        );
        assert!(
            generation.validate(&Rules::default()).is_ok(),
            "and keeps the rules of a generation"
        );
    }
}
