//! Recognizes the content of a response by its first bytes: servers do not always declare the
//! right media type.

use bytes::{Buf, Bytes};
use engine::EngineError;
use upstream::IncomingBody;

/// The kind of content that a body begins like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// A JSON object.
    Json,
    /// An event stream.
    Events,
    Other,
}

/// The first bytes of a body, without the white space and the byte order mark before them.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) content: Content,
    /// The received bytes, from the first one that counts. Empty if the body has no such byte.
    pub(crate) bytes: Bytes,
}

impl Opening {
    /// Reads a body up to the byte that shows its content. Servers send white space as a sign of
    /// life while a model works, however long it takes, so none of it is kept. `is_event_stream` is
    /// true if the media type is `text/event-stream`: then any field may begin the stream.
    ///
    /// # Errors
    /// When the body fails.
    pub(crate) async fn read(
        body: &mut IncomingBody,
        is_event_stream: bool,
    ) -> Result<Self, EngineError> {
        let mut bytes = Bytes::new();
        while let Some(chunk) = body.chunk().await? {
            bytes = without_blanks(join(bytes, chunk));
            if let Some(content) = content(&bytes, is_event_stream) {
                return Ok(Self { content, bytes });
            }
        }
        let content = Content::Other;
        Ok(Self { content, bytes })
    }
}

/// Returns the content that begins with these bytes, or `None` if more of them have to be known.
fn content(bytes: &[u8], is_event_stream: bool) -> Option<Content> {
    if bytes.starts_with(b"{") {
        return Some(Content::Json);
    }
    if bytes.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(bytes) {
        return None;
    }
    let begins_stream = |start: &&[u8]| bytes.starts_with(start);
    if is_event_stream || STREAM_STARTS.iter().any(begins_stream) {
        return Some(Content::Events);
    }
    let may_begin_stream = |start: &&[u8]| start.starts_with(bytes);
    (!STREAM_STARTS.iter().any(may_begin_stream)).then_some(Content::Other)
}

/// Removes white space, a byte order mark, and white space after it.
fn without_blanks(mut bytes: Bytes) -> Bytes {
    skip_white_space(&mut bytes);
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.advance(BYTE_ORDER_MARK.len());
        skip_white_space(&mut bytes);
    }
    bytes
}

fn skip_white_space(bytes: &mut Bytes) {
    bytes.advance(bytes.len() - bytes.trim_ascii_start().len());
}

fn join(before: Bytes, chunk: Bytes) -> Bytes {
    if before.is_empty() {
        chunk
    } else {
        [before, chunk].concat().into()
    }
}

/// The beginnings of a line of an event stream: a comment, or a field with its colon
/// (<https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation>).
const STREAM_STARTS: [&[u8]; 5] = [b":", b"data:", b"event:", b"id:", b"retry:"];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_show_the_content() {
        for (bytes, expected) in [
            ("{", Some(Content::Json)),
            ("data:{}", Some(Content::Events)),
            ("event: x", Some(Content::Events)),
            ("id: 1", Some(Content::Events)),
            ("retry: 1", Some(Content::Events)),
            (": ping", Some(Content::Events)),
            ("", None),
            ("dat", None),
            ("retry", None),
            ("data {}", Some(Content::Other)),
            ("Data: {}", Some(Content::Other)),
            ("[1]", Some(Content::Other)),
            ("<html>", Some(Content::Other)),
        ] {
            assert_eq!(content(bytes.as_bytes(), false), expected, "{bytes}");
        }
        assert_eq!(content(b"\xef\xbb", true), None);
        assert_eq!(content(b"x: 1", true), Some(Content::Events));
        assert_eq!(content(b"{", true), Some(Content::Json));
    }

    #[test]
    fn blanks_and_one_byte_order_mark_are_removed() {
        for (bytes, rest) in [
            ("{}", "{}"),
            (" \r\n\t{} ", "{} "),
            ("\u{feff}{}", "{}"),
            ("\n\u{feff}\n{}", "{}"),
            ("\u{feff}\u{feff}{}", "\u{feff}{}"),
            (" \n", ""),
        ] {
            assert_eq!(without_blanks(Bytes::from(bytes)), rest, "{bytes:?}");
        }
    }
}
