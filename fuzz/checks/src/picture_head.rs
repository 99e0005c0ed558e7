//! Any bytes as a picture: the header is read without fear, and what is decoded keeps to the limits and to its header.

use picture::{Format, Head, MAX_PIXELS, MAX_SIDE, decode};

/// Checks one input; a panic is a finding.
pub fn check(bytes: &[u8]) {
    let head = match Head::read(bytes) {
        Ok(head) => head,
        Err(why) => return assert!(!why.to_string().is_empty(), "a refusal says why"),
    };
    assert_eq!(Format::sniff(bytes), Some(head.format), "one format");
    assert!((1..=MAX_SIDE).contains(&head.width) && (1..=MAX_SIDE).contains(&head.height), "no side over the limit");
    assert!(head.pixels() <= MAX_PIXELS, "no more pixels than the limit");
    // Larger ones are decoded the same, only slowly.
    if head.pixels() > MOST_PIXELS {
        return;
    }
    if let Ok(picture) = decode(bytes) {
        assert_eq!((picture.width(), picture.height()), (head.width, head.height), "the size that was told");
    }
}

const MOST_PIXELS: u64 = 1 << 20;
