//! Any bytes as a Messages request: what is read is written and read again the same, and what is refused is told.

#![no_main]

use libfuzzer_sys::fuzz_target;
use messages::{Request, Rules, refusal};

fuzz_target!(|body: &[u8]| match Request::read(body) {
    Ok(request) => {
        let written = serde_json::to_vec(&request).expect("a request has a JSON form");
        assert_eq!(Request::read(&written).as_ref(), Ok(&request), "nothing is lost");
        let counted = request.clone().validate_for_count();
        if let Ok(valid) = request.validate(&Rules::default()) {
            assert!(valid.max_tokens.is_some_and(|cap| cap > 0), "a message has a cap");
            assert!(counted.is_ok(), "what can be answered can be counted");
        }
    }
    Err(found) => {
        assert!(!found.is_empty(), "a refusal says why");
        assert!(!refusal(found).message.is_empty(), "in words");
    }
});
