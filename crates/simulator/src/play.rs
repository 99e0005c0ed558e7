//! Scripted replies to requests, with control over every byte and the end of the connection.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

/// A scripted reply to a request: a sequence of steps. After the last one the connection continues
/// with the next request, unless a step has ended it.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Play {
    pub(crate) steps: Vec<Step>,
    /// Steps that are repeated endlessly after the others.
    pub(crate) forever: Vec<Step>,
}

/// One action of the server.
#[derive(Clone, Debug)]
pub enum Step {
    /// Writes these bytes.
    Bytes(Bytes),
    /// Writes a status line and headers, each with its CRLF, then the header of the framing and the
    /// empty line. They go out in one write with the body that follows immediately.
    Head(Bytes, Framing),
    /// Writes a chunk of the body with the framing of the head.
    Body(Bytes),
    /// Writes the last chunk if the framing of the head is chunked.
    End,
    /// Does nothing for this long.
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

/// The framing of a body, as declared in the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `content-length`.
    Length(usize),
    /// `transfer-encoding: chunked`.
    Chunked,
    /// Neither: the body ends with the connection.
    Bare,
}

/// The way in which a truncated body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// A RST.
    Reset,
    /// A FIN, in the middle of the body.
    Close,
    /// The proper end of a body: the last chunk, or a length that matches the truncated body.
    Clean,
    /// Nothing, until the peer closes.
    Hold,
}

impl Play {
    /// A play without steps: the connection continues without a reply.
    pub fn new() -> Self {
        Self::default()
    }

    /// A complete JSON reply.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::answer(
            status,
            &[("content-type", "application/json")],
            body.to_string(),
        )
    }

    /// A complete reply with `content-length`.
    pub fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Self {
        let body = body.into();
        Self::new()
            .head(status, headers, Framing::Length(body.len()))
            .body(body)
    }

    /// A complete stream: 200, `text/event-stream`, one chunk for each event. The events are in
    /// wire format, with their empty line.
    pub fn events<E: Into<Bytes>>(events: impl IntoIterator<Item = E>) -> Self {
        events
            .into_iter()
            .fold(Self::stream(), Self::body)
            .step(Step::End)
    }

    /// Only the head of a stream; chunks of the body and [`Step::End`] can be added.
    pub fn stream() -> Self {
        Self::new().head(200, EVENT_STREAM, Framing::Chunked)
    }

    /// Adds a step after the others.
    pub fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Adds bytes that are written without any framing.
    pub fn bytes(self, bytes: impl Into<Bytes>) -> Self {
        self.step(Step::Bytes(bytes.into()))
    }

    /// Adds a status line with the usual reason phrase, and headers. The header of the framing
    /// follows them.
    pub fn head(self, status: u16, headers: &[(&str, &str)], framing: Framing) -> Self {
        let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        self.step(Step::Head(head.into(), framing))
    }

    /// Adds a header to the head.
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        let added = format!("{name}: {value}\r\n");
        for step in &mut self.steps {
            if let Step::Head(head, _) = step {
                *head = [&head[..], added.as_bytes()].concat().into();
            }
        }
        self
    }

    /// Adds a chunk of the body, framed as the head declares.
    pub fn body(self, bytes: impl Into<Bytes>) -> Self {
        self.step(Step::Body(bytes.into()))
    }

    /// Adds a pause, measured by the clock of the runtime.
    pub fn pause(self, duration: Duration) -> Self {
        self.step(Step::Pause(duration))
    }

    /// Adds a wait for [`Simulator::release`](crate::Simulator::release).
    pub fn gate(self) -> Self {
        self.step(Step::Gate)
    }

    /// Adds a wait for the peer to close. Steps after it are never played.
    pub fn hold(self) -> Self {
        self.step(Step::Hold)
    }

    /// Adds a FIN, which ends the connection after all bytes before it have arrived.
    pub fn close(self) -> Self {
        self.step(Step::Close)
    }

    /// Adds a RST, which ends the connection and may discard bytes before it.
    pub fn reset(self) -> Self {
        self.step(Step::Reset)
    }

    /// Adds another play, whose steps come after these.
    pub fn then(mut self, other: Self) -> Self {
        self.steps.extend(other.steps);
        self.forever.extend(other.forever);
        self
    }

    /// Returns the step at this place, of those that are repeated endlessly too.
    pub(crate) fn step_at(&self, place: usize) -> Option<&Step> {
        let repeated = || {
            place
                .checked_sub(self.steps.len())?
                .checked_rem(self.forever.len())
        };
        self.steps
            .get(place)
            .or_else(|| self.forever.get(repeated()?))
    }

    /// Adds the steps of another play, repeated until the peer disconnects. Nothing can follow.
    pub fn forever(mut self, other: Self) -> Self {
        self.forever = other.steps;
        self
    }

    /// The complete body.
    #[must_use]
    pub fn body_bytes(&self) -> Vec<u8> {
        self.pieces().flatten().copied().collect()
    }

    /// The chunks of the body; in a stream, its events.
    pub fn pieces(&self) -> impl Iterator<Item = &Bytes> {
        self.steps.iter().filter_map(|step| match step {
            Step::Body(piece) => Some(piece),
            _ => None,
        })
    }

    /// Sends only the first `length` bytes of the body, then `cut`. If the body is shorter, `cut`
    /// happens at its end, before the last chunk.
    pub fn cut_at(self, length: usize, cut: Cut) -> Self {
        let mut left = length;
        self.cut(cut, |piece| {
            let kept = piece.slice(..piece.len().min(left));
            left -= kept.len();
            (!kept.is_empty()).then_some(kept)
        })
    }

    /// Sends only the first `count` chunks of the body, then `cut`.
    pub fn cut_after(self, count: usize, cut: Cut) -> Self {
        let mut left = count;
        self.cut(cut, |piece| {
            let is_kept = left > 0;
            left = left.saturating_sub(1);
            is_kept.then(|| piece.clone())
        })
    }

    /// Sends the same body in chunks of these sizes, which are repeated. Without sizes it is one
    /// chunk.
    pub fn chunked_by(self, sizes: &[usize]) -> Self {
        let mut body = Bytes::from(self.body_bytes());
        let mut sizes = sizes.iter().map(|size| (*size).max(1)).cycle();
        self.with_pieces(std::iter::from_fn(|| {
            let size = sizes.next().unwrap_or(usize::MAX).min(body.len());
            (size > 0).then(|| body.split_to(size))
        }))
    }

    /// Adds a pause before each chunk of the body.
    pub fn paced(mut self, pause: Duration) -> Self {
        let with_pause = |step| match step {
            Step::Body(_) => vec![Step::Pause(pause), step],
            _ => vec![step],
        };
        self.steps = self.steps.into_iter().flat_map(with_pause).collect();
        self
    }

    /// Replaces the body. A length in the head is adjusted.
    pub fn with_pieces<B: Into<Bytes>>(mut self, pieces: impl IntoIterator<Item = B>) -> Self {
        let pieces: Vec<Bytes> = pieces.into_iter().map(Into::into).collect();
        let at = self
            .steps
            .iter()
            .position(|step| matches!(step, Step::Body(_) | Step::End))
            .unwrap_or(self.steps.len());
        self.steps.retain(|step| !matches!(step, Step::Body(_)));
        self.steps
            .splice(at..at, pieces.into_iter().map(Step::Body));
        self.fit_length();
        self
    }

    /// Replaces each chunk of the body by the result of `keep`, up to the first `None`, and ends
    /// there with `cut`.
    fn cut(mut self, cut: Cut, mut keep: impl FnMut(&Bytes) -> Option<Bytes>) -> Self {
        let mut is_kept = true;
        let steps = self.steps.into_iter().filter_map(|step| match step {
            Step::Body(piece) => {
                let kept = if is_kept { keep(&piece) } else { None };
                is_kept = kept.is_some();
                kept.map(Step::Body)
            }
            Step::End => None,
            other => is_kept.then_some(other),
        });
        self = Self {
            steps: steps.collect(),
            forever: Vec::new(),
        };
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

    /// Sets a length in the head to the length of the body.
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
pub(crate) const EVENT_STREAM: &[(&str, &str)] = &[
    ("content-type", "text/event-stream; charset=utf-8"),
    ("cache-control", "no-cache"),
];

/// The usual reason phrase of a status.
fn reason(status: u16) -> &'static str {
    match status {
        101 => "Switching Protocols",
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
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Status",
    }
}
