//! An answer's bytes as text: in whole characters, and up to the first stop text.

/// Turns the bytes of tokens into text that may leave.
///
/// What could still become a stop text is held back until it cannot any more.
pub(crate) struct Outlet {
    stops: Vec<String>,
    /// The beginning of a character whose end has not come.
    partial: Vec<u8>,
    /// Text that could be the beginning of a stop text.
    held: String,
}

/// What became of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outflow {
    /// Text that may leave now.
    pub(crate) text: String,
    /// The stop text that came up after it, after which nothing may leave.
    pub(crate) stopped: Option<String>,
}

impl Outlet {
    pub(crate) fn new(stops: &[String]) -> Self {
        let stops = stops.iter().filter(|stop| !stop.is_empty()).cloned().collect();
        Self { stops, partial: Vec::new(), held: String::new() }
    }

    /// More bytes of the answer.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Outflow {
        self.partial.extend_from_slice(bytes);
        whole_characters(&mut self.partial, &mut self.held);
        if let Some((start, stop)) = self.first_stop() {
            self.held.truncate(start);
            return Outflow { text: std::mem::take(&mut self.held), stopped: Some(stop) };
        }
        let held = self.held.split_off(self.held.len() - self.undecided());
        Outflow { text: std::mem::replace(&mut self.held, held), stopped: None }
    }

    /// What was held back, once nothing more can come. The beginning of a character stays behind.
    pub(crate) fn finish(self) -> String {
        self.held
    }

    /// The stop text that is complete first, and where it begins.
    fn first_stop(&self) -> Option<(usize, String)> {
        let found = self.stops.iter().filter_map(|stop| Some((self.held.find(stop.as_str())?, stop)));
        let (start, stop) = found.min_by_key(|(start, stop)| (start + stop.len(), *start))?;
        Some((start, stop.clone()))
    }

    /// The length of the longest end of the held text that begins a stop text.
    fn undecided(&self) -> usize {
        let longest = |stop: &String| (1..stop.len()).rev().find(|length| begins(stop, *length, &self.held));
        self.stops.iter().filter_map(longest).max().unwrap_or(0)
    }
}

/// Whether `text` ends with the first `length` bytes of `stop`, taken as whole characters.
fn begins(stop: &str, length: usize, text: &str) -> bool {
    stop.is_char_boundary(length) && text.ends_with(&stop[..length])
}

/// Moves what is decided from `bytes` to `text`; what is no UTF-8 becomes U+FFFD.
fn whole_characters(bytes: &mut Vec<u8>, text: &mut String) {
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
                let Some(wrong) = error.error_len() else { break after.len() };
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

    /// All the text that leaves, and the stop text that ended it.
    fn pass(pieces: &[&[u8]], stops: &[String]) -> (String, Option<String>) {
        let mut outlet = Outlet::new(stops);
        let mut text = String::new();
        for piece in pieces {
            let flow = outlet.push(piece);
            text += &flow.text;
            if flow.stopped.is_some() {
                return (text, flow.stopped);
            }
        }
        (text + &outlet.finish(), None)
    }

    /// The same by looking at each prefix of the whole text.
    fn naive(text: &str, stops: &[String]) -> (String, Option<String>) {
        let ends = text.char_indices().map(|(at, letter)| at + letter.len_utf8());
        for end in ends {
            let complete = stops.iter().filter(|stop| text[..end].ends_with(stop.as_str()));
            if let Some(stop) = complete.max_by_key(|stop| stop.len()) {
                return (text[..end - stop.len()].to_owned(), Some(stop.clone()));
            }
        }
        (text.to_owned(), None)
    }

    #[test]
    fn half_a_character_waits_for_its_other_half() {
        let mut outlet = Outlet::new(&[]);
        assert_eq!(outlet.push(&"é".as_bytes()[..1]).text, "");
        assert_eq!(outlet.push(&"é".as_bytes()[1..]).text, "é");
        assert_eq!(outlet.push(&[b'a', 0xff, b'b']).text, "a\u{fffd}b");
    }

    #[test]
    fn what_may_become_a_stop_text_waits() {
        let mut outlet = Outlet::new(&["END".to_owned()]);
        assert_eq!(outlet.push(b"the E").text, "the ");
        assert_eq!(outlet.push(b"N").text, "");
        assert_eq!(outlet.push(b"Z E").text, "ENZ ");
        assert_eq!(outlet.push(b"ND!"), Outflow { text: String::new(), stopped: Some("END".to_owned()) });
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
            prop_assert_eq!(pass(&pieces, &stops), naive(&text, &stops));
        }
    }
}
