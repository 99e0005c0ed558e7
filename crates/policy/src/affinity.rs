//! Prompt-cache affinity: recognizes the requests of a conversation, so that they go to the target
//! that has the beginning of the conversation in its cache.

use std::hash::Hasher as _;

use siphasher::sip::SipHasher13;
use wire::{Object, TextOr};

/// A conversation, as a hash of the API key and the texts that all its requests have in common.
///
/// SipHash with a fixed key gives the same hash in every replica and every version; the standard
/// library does not promise that for its hasher. The key is no secret, because there is nothing to
/// gain: whoever can choose a target by the hash could send all requests to that target by their
/// cache key as well.
pub struct Conversation {
    hasher: SipHasher13,
    is_known: bool,
}

impl Conversation {
    /// A conversation of the API key with this id: the conversations of two keys are different
    /// ones, whatever they have in common.
    pub fn of(key: &str) -> Self {
        let mut hasher = SipHasher13::new();
        write(&mut hasher, key);
        Self {
            hasher,
            is_known: false,
        }
    }

    /// Adds a text that the conversation has in all its requests.
    pub fn add(&mut self, text: &str) {
        write(&mut self.hasher, text);
        self.is_known |= !text.is_empty();
    }

    /// Adds the content of a message: a text, or the texts that `text_of` finds in its parts. A
    /// text and a list with only that text give the same hash.
    pub fn add_content<T>(&mut self, content: &TextOr<T>, text_of: impl Fn(&T) -> Option<&str>) {
        match content {
            TextOr::Text(text) => self.add(text),
            TextOr::List(parts) => {
                for text in parts.iter().filter_map(text_of) {
                    self.add(text);
                }
            }
        }
    }

    /// Returns the hash, or `None` if nothing identifies the conversation.
    pub fn hash(&self) -> Option<u64> {
        self.is_known.then(|| self.hasher.finish())
    }
}

/// Returns the id of a target: a hash of the upstream's name and of the model's name there.
pub(crate) fn target_id(upstream: &str, model: Option<&str>) -> u64 {
    let mut hasher = SipHasher13::new();
    write(&mut hasher, upstream);
    if let Some(model) = model {
        write(&mut hasher, model);
    }
    hasher.finish()
}

/// Returns a member that is a text and not empty.
pub fn member<'a>(members: &'a Object, name: &str) -> Option<&'a str> {
    members.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// Writes a text with its length, so that texts cannot be confused with their concatenation. Of a
/// long one, such as an image, only the beginning and the end are written, which bounds the time.
fn write(hasher: &mut SipHasher13, text: &str) {
    let text = text.as_bytes();
    hasher.write(&(text.len() as u64).to_le_bytes());
    match (text.first_chunk::<HALF>(), text.last_chunk::<HALF>()) {
        (Some(first), Some(last)) if text.len() > 2 * HALF => {
            hasher.write(first);
            hasher.write(last);
        }
        _ => hasher.write(text),
    }
}

/// Half of the longest text that is written completely, in bytes.
const HALF: usize = 32 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target_order::{Candidate, order};

    fn hash(key: &str, texts: &[&str]) -> Option<u64> {
        let mut conversation = Conversation::of(key);
        texts.iter().for_each(|text| conversation.add(text));
        conversation.hash()
    }

    /// Every replica and version computes the same hashes. Another implementation of SipHash-1-3
    /// returned these, over each text after its length of 8 bytes.
    #[test]
    fn a_hash_is_the_same_everywhere() {
        assert_eq!(
            hash("team-a", &["Be brief.", "Hello."]),
            Some(0xfb23_e31b_0cb8_fb22)
        );
        assert_eq!(
            hash("team-b", &["Be brief.", "Hello."]),
            Some(0x101b_9a23_3be2_177d)
        );
        assert_eq!(target_id("gpu-1", None), 0xa202_d4c2_755b_889c);
    }

    #[test]
    fn nothing_is_no_conversation() {
        assert_eq!(hash("team-a", &[]), None);
        assert_eq!(hash("team-a", &["", ""]), None);
        assert!(hash("team-a", &["", "x"]).is_some());
        assert_ne!(hash("team-a", &["ab", "c"]), hash("team-a", &["a", "bc"]));
    }

    /// Two long texts of one length are distinguished by their beginnings and ends.
    #[test]
    fn long_texts_are_sampled() {
        let long = |from: usize, to: &str| {
            let mut text = "x".repeat(1 << 20);
            text.replace_range(from..from + to.len(), to);
            hash("team-a", &[&text])
        };
        assert_ne!(long(0, "a"), long(0, "b"));
        assert_ne!(long((1 << 20) - 1, "a"), long((1 << 20) - 1, "b"));
        assert_eq!(long(1 << 19, "a"), long(1 << 19, "b"));
    }

    /// 10,000 conversations are distributed by the weights of the targets.
    #[test]
    fn conversations_are_shared_by_weight() {
        let targets = [("gpu-1", 3), ("gpu-2", 1)].map(|(name, weight)| Candidate {
            id: target_id(name, Some("llama")),
            weight: Some(weight),
        });
        let mut firsts = [0_u32; 2];
        for number in 0..10_000 {
            let draw = hash("team-a", &[&format!("conversation-{number}")]).unwrap();
            firsts[order(&targets, draw)[0]] += 1;
        }
        assert!(u32::abs_diff(firsts[0], 7_500) < 200, "{firsts:?}");
    }
}
