//! The response of an upstream, parsed from the bytes that it wrote: a client may only see a
//! success if this is one.

use std::io::Read as _;

use flate2::read::MultiGzDecoder;

use crate::pipe::Written;

/// A response, delimited by its framing.
#[derive(Clone, Debug, Default)]
pub(crate) struct UpstreamResponse {
    /// 0 without a complete head.
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// True if the body is complete by its framing.
    pub(crate) is_whole: bool,
    /// True if the upstream itself closed or reset the connection.
    pub(crate) is_closed: bool,
}

impl UpstreamResponse {
    /// Parses the first response in the bytes that were written, which may be any bytes.
    pub(crate) fn read(written: &Written) -> Self {
        let mut bytes = &written.bytes[..];
        while let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            bytes = &bytes[end + 4..];
            let status = head
                .split(' ')
                .nth(1)
                .and_then(|status| status.parse().ok())
                .unwrap_or_default();
            // Informational responses precede the final one.
            if !(100..200).contains(&status) {
                let (body, is_whole) = decoded(&head, framed(&head, bytes));
                return Self {
                    status,
                    body,
                    is_whole,
                    is_closed: written.is_closed,
                };
            }
        }
        Self {
            is_closed: written.is_closed,
            ..Self::default()
        }
    }

    /// Returns true if the upstream neither finished its response nor closed the connection, so
    /// that the gateway waited for it.
    pub(crate) fn is_silent(&self) -> bool {
        !self.is_whole && !self.is_closed
    }

    pub(crate) fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// The value of a header.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .map(str::trim)
}

/// A body without its content coding, as far as it can be decoded.
fn decoded(head: &str, (body, is_whole): (Vec<u8>, bool)) -> (Vec<u8>, bool) {
    if header(head, "content-encoding") != Some("gzip") {
        return (body, is_whole);
    }
    let mut decoded = Vec::new();
    let read = MultiGzDecoder::new(&body[..]).read_to_end(&mut decoded);
    (decoded, is_whole && read.is_ok())
}

/// The body after a head, and whether all of it is there.
fn framed(head: &str, bytes: &[u8]) -> (Vec<u8>, bool) {
    if header(head, "transfer-encoding") == Some("chunked") {
        return chunks(bytes);
    }
    let Some(length) = header(head, "content-length") else {
        return (bytes.to_vec(), true);
    };
    let length = length.parse().unwrap_or_default();
    (
        bytes[..bytes.len().min(length)].to_vec(),
        bytes.len() >= length,
    )
}

fn chunks(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(line) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&rest[..line])
            .ok()
            .and_then(|size| usize::from_str_radix(size, 16).ok());
        let data = &rest[line + 2..];
        match size {
            Some(0) => return (body, data.starts_with(b"\r\n")),
            Some(size) if data.len() >= size + 2 => {
                body.extend(&data[..size]);
                rest = &data[size + 2..];
            }
            Some(size) => {
                body.extend(&data[..data.len().min(size)]);
                break;
            }
            None => break,
        }
    }
    (body, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes after the framed body are ignored, and informational responses are skipped.
    #[test]
    fn body_ends_where_its_framing_says() {
        let read = |bytes: &str| {
            let sent = UpstreamResponse::read(&Written {
                bytes: bytes.into(),
                is_closed: false,
            });
            (
                sent.status,
                String::from_utf8(sent.body).unwrap(),
                sent.is_whole,
            )
        };
        let hinted =
            "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}}";
        assert_eq!(read(hinted), (200, "{}".into(), true));
        assert_eq!(
            read("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}"),
            (200, "{}".into(), false)
        );
        let chunked = "HTTP/1.1 500 Oh\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n";
        assert_eq!(read(chunked), (500, "{}".into(), false));
        assert_eq!(
            read(&format!("{chunked}0\r\n\r\nmore")),
            (500, "{}".into(), true)
        );
        assert_eq!(
            read(&format!("{chunked}9\r\nab")),
            (500, "{}ab".into(), false)
        );
        assert_eq!(
            read("HTTP/1.0 200 OK\r\n\r\nall"),
            (200, "all".into(), true)
        );
        assert_eq!(read("220 mail"), (0, String::new(), false));
    }

    /// The gateway waits for an upstream as long as it has neither finished its response nor closed
    /// the connection.
    #[test]
    fn an_upstream_that_closed_is_not_silent() {
        let silent = |bytes: &str, is_closed| {
            UpstreamResponse::read(&Written {
                bytes: bytes.into(),
                is_closed,
            })
            .is_silent()
        };
        let cut = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}";
        assert!(silent(cut, false) && silent("", false));
        assert!(!silent(cut, true) && !silent("", true) && !silent(&format!("{cut} "), false));
    }
}
