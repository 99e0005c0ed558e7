//! The response of an upstream, parsed from the bytes that it wrote: a client may only see a
//! success if this is one.

use std::io::Read as _;

use flate2::read::{MultiGzDecoder, ZlibDecoder};
use zstd_safe::{DCtx, InBuffer, OutBuffer};

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
    let mut decoded = Vec::new();
    let read = match header(head, "content-encoding") {
        Some("gzip") => MultiGzDecoder::new(&body[..])
            .read_to_end(&mut decoded)
            .is_ok(),
        Some("deflate") => ZlibDecoder::new(&body[..])
            .read_to_end(&mut decoded)
            .is_ok(),
        Some("zstd") => read_zstd(&body, &mut decoded),
        _ => return (body, is_whole),
    };
    (decoded, is_whole && read)
}

/// Decodes a frame of zstd as far as it goes. Returns true if it is whole.
fn read_zstd(body: &[u8], decoded: &mut Vec<u8>) -> bool {
    let (mut decoder, mut input) = (DCtx::create(), InBuffer::around(body));
    loop {
        let mut piece = Vec::with_capacity(1 << 16);
        let mut output = OutBuffer::around(&mut piece);
        let Ok(hint) = decoder.decompress_stream(&mut output, &mut input) else {
            return false;
        };
        decoded.extend(&piece);
        if hint == 0 || piece.is_empty() {
            return hint == 0;
        }
    }
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

    /// A body is decoded as far as it goes, and is whole only with its checksum. The bodies are from
    /// `zlib` and `gzip` of Python, and from `zstd -3 --no-check`.
    #[test]
    fn body_is_decoded_as_far_as_it_goes() {
        let hex = |digits: &str| -> Vec<u8> {
            let pairs = digits.as_bytes().chunks(2);
            let pairs = pairs.map(|pair| str::from_utf8(pair).unwrap());
            pairs
                .map(|pair| u8::from_str_radix(pair, 16).unwrap())
                .collect()
        };
        for (coding, body) in [
            ("deflate", "789cab564a54b232ac0500082a0209"),
            (
                "gzip",
                "1f8b0800000000000203ab564a54b232ac0500afac1b5607000000",
            ),
            ("zstd", "28b52ffd20073900007b2261223a317d"),
        ] {
            let read = |body: &[u8]| {
                let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: {coding}\r\n\r\n");
                let sent = UpstreamResponse::read(&Written {
                    bytes: [head.as_bytes(), body].concat(),
                    is_closed: true,
                });
                (String::from_utf8(sent.body).unwrap(), sent.is_whole)
            };
            let whole = hex(body);
            assert_eq!(read(&whole), ("{\"a\":1}".to_owned(), true), "{coding}");
            let (begun, is_whole) = read(&whole[..whole.len() - 1]);
            assert!("{\"a\":1}".starts_with(&begun) && !is_whole, "{coding}");
        }
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
