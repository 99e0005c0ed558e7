//! The records of a journal: one line for each entry, which is its CRC-32 in eight hexadecimal
//! digits, a space and the entry as JSON. JSON has no newline inside, so a reader finds the next
//! record behind a damaged one.

use std::io;

use serde::Serialize;

use crate::usage::{Closed, Entry, Opened};

/// The largest length of a record, so that a reader knows a damaged file from a long record.
pub(crate) const MAX_RECORD: usize = 64 * 1024;

/// The length of the checksum and the space behind it.
const PREFIX: usize = 9;

/// The records of a part of a journal.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Records {
    /// The entries, each with the length of the part up to its end.
    pub(crate) entries: Vec<(Entry, usize)>,
    /// The number of damaged lines.
    pub(crate) corrupt: u64,
    /// The length of the part up to the end of its last whole line.
    pub(crate) len: usize,
}

/// An entry that is only written.
#[derive(Clone, Copy, Serialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub(crate) enum Borrowed<'a> {
    Opened(&'a Opened),
    Closed(&'a Closed),
}

/// Appends the record of `entry` to `out`.
///
/// # Errors
/// Returns an error, and leaves `out` as it was, if the record would be longer than
/// [`MAX_RECORD`].
pub(crate) fn encode(entry: Borrowed<'_>, out: &mut Vec<u8>) -> io::Result<()> {
    let start = out.len();
    out.extend_from_slice(&[b' '; PREFIX]);
    serde_json::to_writer(&mut *out, &entry)?;
    let digits = checksum(&out[start + PREFIX..]);
    out[start..start + digits.len()].copy_from_slice(&digits);
    out.push(b'\n');
    let len = out.len() - start;
    if len > MAX_RECORD {
        out.truncate(start);
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("a journal entry has {len} bytes: expected at most {MAX_RECORD}"),
        ));
    }
    Ok(())
}

/// Reads the whole lines of a part of a journal that begins with a line.
pub(crate) fn decode(part: &[u8]) -> Records {
    let mut records = Records::default();
    for line in part.split_inclusive(|byte| *byte == b'\n') {
        let Some(line) = line.strip_suffix(b"\n") else {
            break;
        };
        records.len += line.len() + 1;
        match decode_line(line) {
            Some(entry) => records.entries.push((entry, records.len)),
            None => records.corrupt += 1,
        }
    }
    records
}

fn decode_line(line: &[u8]) -> Option<Entry> {
    let (prefix, json) = line.split_at_checked(PREFIX)?;
    if prefix.strip_suffix(b" ")? != checksum(json) {
        return None;
    }
    serde_json::from_slice(json).ok()
}

/// Returns the CRC-32 as hexadecimal digits.
fn checksum(json: &[u8]) -> [u8; PREFIX - 1] {
    let mut rest = crc32fast::hash(json);
    let mut digits = [0; PREFIX - 1];
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(rest & 0xf) as usize];
        rest >>= 4;
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened() -> Entry {
        Entry::Opened(Opened {
            request_id: "r\n1".to_owned(),
            at_ms: 5,
            ..Opened::default()
        })
    }

    fn closed() -> Entry {
        Entry::Closed(Closed {
            request_id: "r1".to_owned(),
            status: 200,
            cost_nanos: Some(-3),
            ..Closed::default()
        })
    }

    fn encoded(entries: &[Entry]) -> Vec<u8> {
        let mut out = Vec::new();
        for entry in entries {
            let entry = match entry {
                Entry::Opened(opened) => Borrowed::Opened(opened),
                Entry::Closed(closed) => Borrowed::Closed(closed),
            };
            encode(entry, &mut out).unwrap();
        }
        out
    }

    #[test]
    fn a_record_is_a_line_of_checksum_and_json() {
        let entry = Entry::Opened(Opened {
            request_id: "r1".to_owned(),
            at_ms: 5,
            replica: "g".to_owned(),
            run: "n".to_owned(),
            key: "k".to_owned(),
            route: "/".to_owned(),
            model: "m".to_owned(),
            reserved_tokens: 7,
            reserved_nanos: 8,
        });
        let json = r#"{"entry":"opened","request_id":"r1","at_ms":5,"replica":"g","run":"n","key":"k","route":"/","model":"m","reserved_tokens":7,"reserved_nanos":8}"#;
        let text = String::from_utf8(encoded(&[entry])).unwrap();
        assert_eq!(text, format!("2ae7f18a {json}\n"));
    }

    #[test]
    fn every_cut_leaves_the_records_before_it() {
        let whole = encoded(&[opened(), closed()]);
        let first = encoded(&[opened()]).len();
        for cut in 0..whole.len() {
            let records = decode(&whole[..cut]);
            let expected = if cut < first { 0 } else { 1 };
            assert_eq!(records.entries.len(), expected, "{cut}");
            assert_eq!(records.corrupt, 0, "{cut}");
            assert_eq!(records.len, expected * first, "{cut}");
        }
        let records = decode(&whole);
        assert_eq!(
            records.entries,
            [(opened(), first), (closed(), whole.len())]
        );
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let first = encoded(&[opened()]).len();
        let whole = encoded(&[opened(), closed(), opened()]);
        for at in first..encoded(&[opened(), closed()]).len() {
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                let records = decode(&damaged);
                assert!(records.corrupt >= 1, "{at} {bit}");
                assert!(!records.entries.iter().any(|(entry, _)| *entry == closed()));
                assert_eq!(records.entries[0].0, opened());
            }
        }
    }

    #[test]
    fn a_record_that_is_too_long_is_refused() {
        let long = Opened {
            request_id: "r".repeat(MAX_RECORD),
            ..Opened::default()
        };
        let mut out = b"before\n".to_vec();
        let error = encode(Borrowed::Opened(&long), &mut out)
            .unwrap_err()
            .to_string();
        assert!(error.ends_with("bytes: expected at most 65536"), "{error}");
        assert_eq!(out, b"before\n");
    }
}
