//! Decodes the bytes of an answer to text, up to the first stop sequence.

/// Decodes the bytes of tokens to text and ends it at a stop sequence.
///
/// Text that could be the beginning of a stop sequence is held back until that is decided.
pub(crate) struct StopFilter {
    stops: Vec<String>,
    /// The first bytes of an incomplete character.
    partial: Vec<u8>,
    /// Text that could be the beginning of a stop sequence.
    held: String,
}

/// The result of pushing bytes into a [`StopFilter`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FilterOutput {
    /// Text that can be sent now.
    pub(crate) text: String,
    /// The stop sequence that follows it. Nothing more may be sent after one.
    pub(crate) stopped: Option<String>,
}

impl StopFilter {
    pub(crate) fn new(stops: &[String]) -> Self {
        let stops = stops
            .iter()
            .filter(|stop| !stop.is_empty())
            .cloned()
            .collect();
        Self {
            stops,
            partial: Vec::new(),
            held: String::new(),
        }
    }

    /// Adds bytes of the answer and returns the text that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> FilterOutput {
        self.partial.extend_from_slice(bytes);
        complete_characters(&mut self.partial, &mut self.held);
        if let Some((start, stop)) = self.first_stop() {
            self.held.truncate(start);
            return FilterOutput {
                text: std::mem::take(&mut self.held),
                stopped: Some(stop),
            };
        }
        let held = self.held.split_off(self.held.len() - self.undecided());
        FilterOutput {
            text: std::mem::replace(&mut self.held, held),
            stopped: None,
        }
    }

    /// Returns the text that was held back, at the end of the answer. An incomplete character is
    /// discarded.
    pub(crate) fn finish(self) -> String {
        self.held
    }

    /// The stop sequence that is complete first, and its position.
    fn first_stop(&self) -> Option<(usize, String)> {
        let found = self
            .stops
            .iter()
            .filter_map(|stop| Some((self.held.find(stop.as_str())?, stop)));
        let (start, stop) = found.min_by_key(|(start, stop)| (start + stop.len(), *start))?;
        Some((start, stop.clone()))
    }

    /// The length of the longest suffix of the held text that is a prefix of a stop sequence.
    fn undecided(&self) -> usize {
        let longest = |stop: &String| {
            (1..stop.len())
                .rev()
                .find(|length| ends_with_start(stop, *length, &self.held))
        };
        self.stops.iter().filter_map(longest).max().unwrap_or(0)
    }
}

/// Returns true if `text` ends with the first `length` bytes of `stop` and these are complete
/// characters.
fn ends_with_start(stop: &str, length: usize, text: &str) -> bool {
    stop.is_char_boundary(length) && text.ends_with(&stop[..length])
}

/// Moves complete characters from `bytes` to `text`; invalid UTF-8 becomes U+FFFD.
fn complete_characters(bytes: &mut Vec<u8>, text: &mut String) {
    let mut rest = bytes.as_slice();
    let kept = loop {
        match std::str::from_utf8(rest) {
            Ok(valid) => {
                text.push_str(valid);
                break 0;
            }
            Err(error) => {
                let (valid, after) = rest.split_at(error.valid_up_to());
                text.push_str(std::str::from_utf8(valid).unwrap_or_default());
                let Some(wrong) = error.error_len() else {
                    break after.len();
                };
                text.push(char::REPLACEMENT_CHARACTER);
                rest = &after[wrong..];
            }
        }
    };
    bytes.drain(..bytes.len() - kept);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text that passes the filter, and the stop sequence that ended it.
    fn filtered(pieces: &[&[u8]], stops: &[String]) -> (String, Option<String>) {
        let mut filter = StopFilter::new(stops);
        let mut text = String::new();
        for piece in pieces {
            let filtered = filter.push(piece);
            text += &filtered.text;
            if filtered.stopped.is_some() {
                return (text, filtered.stopped);
            }
        }
        (text + &filter.finish(), None)
    }

    /// The same, computed by checking each prefix of the complete text.
    fn naive(text: &str, stops: &[String]) -> (String, Option<String>) {
        let ends = text
            .char_indices()
            .map(|(at, letter)| at + letter.len_utf8());
        for end in ends {
            let complete = stops
                .iter()
                .filter(|stop| text[..end].ends_with(stop.as_str()));
            if let Some(stop) = complete.max_by_key(|stop| stop.len()) {
                return (text[..end - stop.len()].to_owned(), Some(stop.clone()));
            }
        }
        (text.to_owned(), None)
    }

    #[test]
    fn an_incomplete_character_is_held_back() {
        let mut filter = StopFilter::new(&[]);
        assert_eq!(filter.push(&"é".as_bytes()[..1]).text, "");
        assert_eq!(filter.push(&"é".as_bytes()[1..]).text, "é");
        assert_eq!(filter.push(&[b'a', 0xff, b'b']).text, "a\u{fffd}b");
    }

    #[test]
    fn a_possible_start_of_a_stop_text_is_held_back() {
        let mut filter = StopFilter::new(&["END".to_owned()]);
        assert_eq!(filter.push(b"the E").text, "the ");
        assert_eq!(filter.push(b"N").text, "");
        assert_eq!(filter.push(b"Z E").text, "ENZ ");
        assert_eq!(
            filter.push(b"ND!"),
            FilterOutput {
                text: String::new(),
                stopped: Some("END".to_owned())
            }
        );
    }

    proptest! {
        #[test]
        fn pieces_stop_where_the_whole_text_would(
            text in "[abé]{0,24}",
            stops in proptest::collection::vec("[abé]{1,4}", 0..4),
            cuts in proptest::collection::vec(0_usize..48, 0..8),
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            prop_assert_eq!(filtered(&pieces, &stops), naive(&text, &stops));
        }
    }
}
