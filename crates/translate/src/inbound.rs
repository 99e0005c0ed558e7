//! The client side: decodes requests into the neutral form and encodes neutral events for the
//! client.

/// Implements the methods of [`ClientProtocol`] that only call the encoder or the event.
macro_rules! delegate_to_crate {
    () => {
        fn open(encoder: &mut Self::Encoder, out: &mut Vec<Self::Event>) {
            encoder.open(out);
        }

        fn fail(encoder: &mut Self::Encoder, error: &ApiError, out: &mut Vec<Self::Event>) {
            encoder.fail(error, out);
        }

        fn write(event: &Self::Event, out: &mut Vec<u8>) {
            event.write(out);
        }
    };
}

mod chat;
mod freeform;
mod images;
mod messages;
mod responses;
mod shared;

use engine::{TextEvent, TextRequest};
use serde::Serialize;
use wire::ApiError;

pub use self::chat::Chat;
pub use self::images::{Pictures, image_request};
pub use self::messages::Messages;
pub use self::responses::Responses;
use vendor::in_stream;

/// A request in the neutral form.
#[derive(Clone, Debug, PartialEq)]
pub struct Inbound {
    /// The request.
    pub request: TextRequest,
    /// Paths of the fields that have no neutral form and were left out.
    pub dropped: Vec<String>,
}

/// The id and time of one answer.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// 128 random bits, from which the ids in the answer are derived.
    pub bits: u128,
    /// The time at which the answer was started, in Unix seconds.
    pub created_at: i64,
}

/// A client protocol for text generation.
///
/// ```
/// use engine::{Turn, UserPart};
/// use messages::{Request, Rules};
/// use sluicegate_translate::inbound::{ClientProtocol, Messages};
///
/// let body = br#"{"model":"m","max_tokens":64,"messages":[{"role":"user","content":"Hi."}]}"#;
/// let request = Request::read(body).unwrap().validate(&Rules::default()).unwrap();
/// let neutral = Messages::request(request).unwrap().request;
/// assert_eq!(neutral.turns, [Turn::User(vec![UserPart::Text("Hi.".into())])]);
/// assert_eq!(neutral.max_output_tokens, Some(64));
/// ```
pub trait ClientProtocol: Sized {
    /// A validated request.
    type Request;
    /// Encodes neutral events as events of this protocol.
    type Encoder: Send;
    /// One event of a stream.
    type Event: Send;
    /// Collects events into a reply.
    type Fold: Default + Send;
    /// The reply to a request without streaming.
    type Reply: Serialize;

    /// Converts a request to the neutral form.
    ///
    /// # Errors
    /// When part of it has no neutral form and cannot be left out.
    fn request(request: Self::Request) -> Result<Inbound, ApiError>;

    /// Creates the encoder of the answer to `request`.
    fn encoder(request: &Self::Request, stamp: &Stamp) -> Self::Encoder;

    /// Appends the opening events of a stream.
    fn open(encoder: &mut Self::Encoder, out: &mut Vec<Self::Event>);

    /// Appends the events that encode `event`; `now` is in Unix seconds.
    fn encode(encoder: &mut Self::Encoder, event: TextEvent, now: i64, out: &mut Vec<Self::Event>);

    /// Appends the events that report a failure.
    fn fail(encoder: &mut Self::Encoder, error: &ApiError, out: &mut Vec<Self::Event>);

    /// Serializes an event.
    fn write(event: &Self::Event, out: &mut Vec<u8>);

    /// Writes a keep-alive event or comment.
    fn keep_alive(_: &Self::Encoder, out: &mut Vec<u8>) {
        sse::comment("keep-alive", out);
    }

    /// Adds an event to the fold. Returns false if it violates the grammar, which events of
    /// [`Self::Encoder`] never do.
    fn gather(fold: &mut Self::Fold, event: &Self::Event) -> bool;

    /// Returns the reply, if the events form a complete one.
    fn reply(fold: Self::Fold) -> Option<Self::Reply>;
}

/// One streamed answer in the client's protocol.
///
/// A stream and a plain reply are made from the same events: a stream writes them out, a [`Reply`]
/// folds them.
pub struct Answer<D: ClientProtocol> {
    encoder: D::Encoder,
    scratch: Vec<D::Event>,
}

impl<D: ClientProtocol> Answer<D> {
    /// Creates the answer to `request`, before its first event.
    #[must_use]
    pub fn new(request: &D::Request, stamp: &Stamp) -> Self {
        Self {
            encoder: D::encoder(request, stamp),
            scratch: Vec::new(),
        }
    }

    /// Writes the opening events of the stream.
    pub fn open(&mut self, out: &mut Vec<u8>) {
        D::open(&mut self.encoder, &mut self.scratch);
        self.drain(out);
    }

    /// Writes one event; `now` is in Unix seconds.
    pub fn event(&mut self, event: TextEvent, now: i64, out: &mut Vec<u8>) {
        D::encode(&mut self.encoder, event, now, &mut self.scratch);
        self.drain(out);
    }

    /// Writes the failure that ends the stream.
    pub fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        D::fail(&mut self.encoder, &in_stream(error), &mut self.scratch);
        self.drain(out);
    }

    /// Writes a keep-alive event or comment.
    pub fn keep_alive(&self, out: &mut Vec<u8>) {
        D::keep_alive(&self.encoder, out);
    }

    fn drain(&mut self, out: &mut Vec<u8>) {
        self.scratch
            .drain(..)
            .for_each(|event| D::write(&event, out));
    }
}

/// A plain reply, built by folding the events that a stream would contain.
pub struct Reply<D: ClientProtocol> {
    encoder: D::Encoder,
    scratch: Vec<D::Event>,
    fold: D::Fold,
    valid: bool,
}

impl<D: ClientProtocol> Reply<D> {
    /// Creates the reply to `request`, before its first event.
    #[must_use]
    pub fn new(request: &D::Request, stamp: &Stamp) -> Self {
        Self {
            encoder: D::encoder(request, stamp),
            scratch: Vec::new(),
            fold: D::Fold::default(),
            valid: true,
        }
    }

    /// Adds one event; `now` is in Unix seconds.
    pub fn event(&mut self, event: TextEvent, now: i64) {
        D::encode(&mut self.encoder, event, now, &mut self.scratch);
        for event in self.scratch.drain(..) {
            self.valid &= D::gather(&mut self.fold, &event);
        }
    }

    /// Returns the reply, or `None` if the model has not finished.
    #[must_use]
    pub fn finish(self) -> Option<D::Reply> {
        if self.valid {
            D::reply(self.fold)
        } else {
            None
        }
    }
}
