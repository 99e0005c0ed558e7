//! Any bytes as a picture: the header is parsed without a panic, and the decoded picture keeps the
//! limits and matches its header.

use picture::{Format, Head, MAX_PIXELS, MAX_SIDE, decode};

/// Checks one input; a panic is a finding.
pub fn check(bytes: &[u8]) {
    let head = match Head::read(bytes) {
        Ok(head) => head,
        Err(why) => return assert!(!why.to_string().is_empty(), "a refusal says why"),
    };
    assert_eq!(Format::sniff(bytes), Some(head.format), "one format");
    assert!(
        (1..=MAX_SIDE).contains(&head.width) && (1..=MAX_SIDE).contains(&head.height),
        "no side over the limit"
    );
    assert!(head.pixels() <= MAX_PIXELS, "no more pixels than the limit");
    // Larger pictures are decoded in the same way, only slowly.
    if head.pixels() > MOST_PIXELS {
        return;
    }
    if let Ok(picture) = decode(bytes) {
        assert_eq!(
            (picture.width(), picture.height()),
            (head.width, head.height),
            "the size in the header"
        );
    }
}

const MOST_PIXELS: u64 = 1 << 20;
