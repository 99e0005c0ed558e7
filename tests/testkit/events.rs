//! Splits a stream into server-sent events as defined by
//! <https://html.spec.whatwg.org/multipage/server-sent-events.html>.

/// The data of each complete event, as bytes that may be invalid UTF-8.
pub(crate) fn events(stream: &[u8]) -> Vec<Vec<u8>> {
    let (mut events, mut data) = (Vec::new(), None::<Vec<u8>>);
    for line in lines(stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(stream)) {
        if line.is_empty() {
            events.extend(data.take().filter(|data| !data.is_empty()));
        } else if let Some(value) = line
            .strip_prefix(b"data")
            .filter(|rest| matches!(rest.first(), None | Some(b':')))
        {
            let value = value.strip_prefix(b":").unwrap_or(value);
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match &mut data {
                Some(data) => data.extend([b"\n", value].concat()),
                None => data = Some(value.to_vec()),
            }
        }
    }
    events
}

/// The complete lines, each ended by CR, LF or both.
fn lines(mut rest: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        lines.push(&rest[..end]);
        let ended = if rest[end..].starts_with(b"\r\n") {
            2
        } else {
            1
        };
        rest = &rest[end + ended..];
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events end with an empty line, however lines end; comments, other fields and incomplete
    /// lines are ignored.
    #[test]
    fn events_are_cut_as_the_standard_says() {
        let read = |stream: &str| {
            events(stream.as_bytes())
                .into_iter()
                .map(|data| String::from_utf8(data).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            read("data: a\n\ndata:b\r\n\r\ndata: c\r\rdata: cut\n"),
            ["a", "b", "c"]
        );
        assert_eq!(
            read("\u{FEFF}data: a\n: data: b\nevent: x\ndatax: y\ndata: c\n\n"),
            ["a\nc"]
        );
        assert_eq!(read("data\n\ndata:\n\n: nothing\n\nid: 1\n\n"), [""; 0]);
        assert_eq!(events(b"data: \xFF\n\n"), [b"\xFF"]);
    }
}
