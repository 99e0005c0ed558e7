//! What the server does in answer to a request, as raw as TCP lets it.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

/// What the server does in answer to a request: steps, one after another. When the last is done the connection goes on
/// with the next request, unless a step has ended it.
#[derive(Clone, Debug, Default)]
pub struct Play {
    steps: Vec<Step>,
    /// Comes after the steps, over and over.
    forever: Vec<Step>,
}

/// One thing that the server does.
#[derive(Clone, Debug)]
pub enum Step {
    /// Writes these bytes.
    Bytes(Bytes),
    /// Writes a status line and headers, each with its CRLF, then the header of the framing and the empty line. They go
    /// out in one write with what follows at once.
    Head(Bytes, Framing),
    /// Writes a piece of the body, framed as the head has said: one chunk, or the bytes alone.
    Body(Bytes),
    /// Writes the last chunk, when the head has said that there are chunks.
    End,
    /// Does nothing for so long.
    Pause(Duration),
    /// Waits for [`Simulator::release`](crate::Simulator::release).
    Gate,
    /// Waits until the peer closes.
    Hold,
    /// Sends a FIN, and waits until the peer closes.
    Close,
    /// Sends a RST.
    Reset,
}

/// How a head says where its body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `content-length`.
    Length(usize),
    /// `transfer-encoding: chunked`.
    Chunked,
    /// Nothing is said.
    Bare,
}

/// What comes where a body is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// A RST.
    Reset,
    /// A FIN, in the middle of the body.
    Close,
    /// The proper end of a body: the last chunk, or a length that is no more than what is left.
    Clean,
    /// Nothing, until the peer closes.
    Hold,
}

impl Play {
    /// Nothing at all.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A whole answer of JSON.
    #[must_use]
    pub fn json(status: u16, body: &Value) -> Self {
        Self::answer(status, &[("content-type", "application/json")], body.to_string())
    }

    /// A whole answer with `content-length`.
    #[must_use]
    pub fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Self {
        let body = body.into();
        Self::new().head(status, headers, Framing::Length(body.len())).body(body)
    }

    /// A whole stream: 200, `text/event-stream`, one chunk for each event. The events are as they stand on the wire,
    /// with their empty line.
    #[must_use]
    pub fn events<E: Into<Bytes>>(events: impl IntoIterator<Item = E>) -> Self {
        events.into_iter().fold(Self::stream(), Self::body).step(Step::End)
    }

    /// The head of a stream alone: pieces of the body may follow, and [`Step::End`].
    #[must_use]
    pub fn stream() -> Self {
        Self::new().head(200, EVENT_STREAM, Framing::Chunked)
    }

    /// A whole stream in one chunk.
    #[must_use]
    pub fn sse(stream: impl Into<Bytes>) -> Self {
        Self::events([stream.into()])
    }

    /// Adds a step.
    #[must_use]
    pub fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Adds bytes, as they are.
    #[must_use]
    pub fn bytes(self, bytes: impl Into<Bytes>) -> Self {
        self.step(Step::Bytes(bytes.into()))
    }

    /// Adds a head.
    #[must_use]
    pub fn head(self, status: u16, headers: &[(&str, &str)], framing: Framing) -> Self {
        let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        self.step(Step::Head(head.into(), framing))
    }

    /// Adds a piece of the body.
    #[must_use]
    pub fn body(self, bytes: impl Into<Bytes>) -> Self {
        self.step(Step::Body(bytes.into()))
    }

    /// Adds a pause.
    #[must_use]
    pub fn pause(self, duration: Duration) -> Self {
        self.step(Step::Pause(duration))
    }

    /// Adds a wait for [`Simulator::release`](crate::Simulator::release).
    #[must_use]
    pub fn gate(self) -> Self {
        self.step(Step::Gate)
    }

    /// Adds a wait for the peer to close.
    #[must_use]
    pub fn hold(self) -> Self {
        self.step(Step::Hold)
    }

    /// Adds a FIN.
    #[must_use]
    pub fn close(self) -> Self {
        self.step(Step::Close)
    }

    /// Adds a RST.
    #[must_use]
    pub fn reset(self) -> Self {
        self.step(Step::Reset)
    }

    /// Adds another play, whose steps come after these.
    #[must_use]
    pub fn then(mut self, other: Self) -> Self {
        self.steps.extend(other.steps);
        self.forever.extend(other.forever);
        self
    }

    /// Adds the steps of another play, over and over until the peer is gone. Nothing can follow.
    #[must_use]
    pub fn forever(mut self, other: Self) -> Self {
        self.forever = other.steps;
        self
    }

    /// The body, whatever its pieces.
    #[must_use]
    pub fn body_bytes(&self) -> Vec<u8> {
        self.pieces().flatten().copied().collect()
    }

    /// The pieces of the body: of a stream, its events.
    pub fn pieces(&self) -> impl Iterator<Item = &Bytes> {
        self.steps.iter().filter_map(|step| match step {
            Step::Body(piece) => Some(piece),
            _ => None,
        })
    }

    /// Sends only the first `length` bytes of the body, then `cut`. A longer length than the body's cuts at its end,
    /// before the last chunk.
    #[must_use]
    pub fn cut_at(self, length: usize, cut: Cut) -> Self {
        let mut left = length;
        self.cut(cut, |piece| {
            let kept = piece.slice(..piece.len().min(left));
            left -= kept.len();
            (!kept.is_empty()).then_some(kept)
        })
    }

    /// Sends only the first `count` pieces of the body, then `cut`.
    #[must_use]
    pub fn cut_after(self, count: usize, cut: Cut) -> Self {
        let mut left = count;
        self.cut(cut, |piece| {
            let is_kept = left > 0;
            left = left.saturating_sub(1);
            is_kept.then(|| piece.clone())
        })
    }

    /// Sends all of the body but not its end, and waits until the peer closes.
    #[must_use]
    pub fn then_hold(self) -> Self {
        self.cut_after(usize::MAX, Cut::Hold)
    }

    /// Sends the same body in other pieces, of these sizes; then from the first size again.
    #[must_use]
    pub fn chunked_by(self, sizes: &[usize]) -> Self {
        let mut body = Bytes::from(self.body_bytes());
        let mut pieces = Vec::new();
        let mut sizes = sizes.iter().map(|size| (*size).max(1)).cycle();
        while !body.is_empty() {
            let size = sizes.next().unwrap_or(usize::MAX).min(body.len());
            pieces.push(body.split_to(size));
        }
        self.with_pieces(pieces)
    }

    /// Sends each piece of the body this long after the one before.
    #[must_use]
    pub fn paced(mut self, pause: Duration) -> Self {
        let with_pause = |step| match step {
            Step::Body(_) => vec![Step::Pause(pause), step],
            _ => vec![step],
        };
        self.steps = self.steps.into_iter().flat_map(with_pause).collect();
        self
    }

    /// Sends another body under the same head. A length in the head is made to fit.
    #[must_use]
    pub fn with_pieces<B: Into<Bytes>>(mut self, pieces: impl IntoIterator<Item = B>) -> Self {
        let pieces: Vec<Bytes> = pieces.into_iter().map(Into::into).collect();
        let at =
            self.steps.iter().position(|step| matches!(step, Step::Body(_) | Step::End)).unwrap_or(self.steps.len());
        self.steps.retain(|step| !matches!(step, Step::Body(_)));
        self.steps.splice(at..at, pieces.into_iter().map(Step::Body));
        self.fit_length();
        self
    }

    /// Every step in its turn; without end when some come over and over.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().chain(self.forever.iter().cycle())
    }

    /// Keeps of the body what `keep` gives of its pieces, up to the first `None`, and ends there.
    fn cut(mut self, cut: Cut, mut keep: impl FnMut(&Bytes) -> Option<Bytes>) -> Self {
        let mut is_kept = true;
        self.steps = std::mem::take(&mut self.steps)
            .into_iter()
            .filter_map(|step| match step {
                Step::Body(piece) => {
                    let kept = if is_kept { keep(&piece) } else { None };
                    is_kept = kept.is_some();
                    kept.map(Step::Body)
                }
                Step::End => None,
                other => is_kept.then_some(other),
            })
            .collect();
        self.forever.clear();
        match cut {
            Cut::Reset => self.reset(),
            Cut::Close => self.close(),
            Cut::Hold => self.hold(),
            Cut::Clean => {
                self.fit_length();
                self.step(Step::End)
            }
        }
    }

    fn fit_length(&mut self) {
        let length = self.pieces().map(Bytes::len).sum();
        for step in &mut self.steps {
            if let Step::Head(_, Framing::Length(stated)) = step {
                *stated = length;
            }
        }
    }
}

/// The headers of a stream of events.
pub(crate) const EVENT_STREAM: &[(&str, &str)] =
    &[("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache")];

/// The usual words for a status.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Status",
    }
}
