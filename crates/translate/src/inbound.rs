//! The side of the client: its request to neutral, and neutral events to its own.

mod chat;
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
use crate::error::in_stream;

/// A request in neutral words.
#[derive(Clone, Debug, PartialEq)]
pub struct Inbound {
    /// The request.
    pub request: TextRequest,
    /// Fields that have no neutral word and were left out, as paths.
    pub dropped: Vec<String>,
}

/// What one answer is about, beyond what the model does.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// 128 random bits, from which the ids of the answer are made.
    pub bits: u128,
    /// When the answer was begun, in Unix seconds.
    pub created_at: i64,
}

/// A protocol in which clients talk about text.
pub trait ClientProtocol: Sized {
    /// A request that keeps every rule.
    type Request;
    /// What turns the doings of a model into events.
    type Encoder: Send;
    /// One event of a stream.
    type Event: Send;
    /// What gathers events into a reply.
    type Fold: Default + Send;
    /// The reply to a request that was not streamed.
    type Reply: Serialize;

    /// Says a request in neutral words.
    ///
    /// # Errors
    /// When something in it has no neutral word and cannot be left out.
    fn request(request: Self::Request) -> Result<Inbound, ApiError>;

    /// The encoder of the answer to `request`.
    fn encoder(request: &Self::Request, stamp: &Stamp) -> Self::Encoder;

    /// The events that open a stream.
    fn open(encoder: &mut Self::Encoder, out: &mut Vec<Self::Event>);

    /// The events of one thing that the model does; `now` is in Unix seconds.
    fn encode(encoder: &mut Self::Encoder, event: TextEvent, now: i64, out: &mut Vec<Self::Event>);

    /// The events of a failure.
    fn fail(encoder: &mut Self::Encoder, error: &ApiError, out: &mut Vec<Self::Event>);

    /// The bytes of an event.
    fn write(event: &Self::Event, out: &mut Vec<u8>);

    /// The bytes that keep a silent stream open.
    fn keep_alive(encoder: &Self::Encoder, out: &mut Vec<u8>);

    /// Takes an event into the fold. An event of our own encoder is never refused.
    fn gather(fold: &mut Self::Fold, event: &Self::Event) -> bool;

    /// The reply, when the events amount to one.
    fn reply(fold: Self::Fold) -> Option<Self::Reply>;
}

/// One answer in the client's protocol, as it grows.
///
/// A stream and a plain reply come from the same events: a stream writes them out, a reply is their fold.
pub struct Answer<D: ClientProtocol> {
    encoder: D::Encoder,
    scratch: Vec<D::Event>,
}

impl<D: ClientProtocol> Answer<D> {
    /// The answer to `request`, before anything was said.
    #[must_use]
    pub fn new(request: &D::Request, stamp: &Stamp) -> Self {
        Self { encoder: D::encoder(request, stamp), scratch: Vec::new() }
    }

    /// Writes what opens the stream.
    pub fn open(&mut self, out: &mut Vec<u8>) {
        D::open(&mut self.encoder, &mut self.scratch);
        self.drain(out);
    }

    /// Writes what the model does; `now` is in Unix seconds.
    pub fn event(&mut self, event: TextEvent, now: i64, out: &mut Vec<u8>) {
        D::encode(&mut self.encoder, event, now, &mut self.scratch);
        self.drain(out);
    }

    /// Writes the failure that ends the stream.
    pub fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        D::fail(&mut self.encoder, &in_stream(error), &mut self.scratch);
        self.drain(out);
    }

    /// Writes what keeps a silent stream open.
    pub fn keep_alive(&self, out: &mut Vec<u8>) {
        D::keep_alive(&self.encoder, out);
    }

    fn drain(&mut self, out: &mut Vec<u8>) {
        self.scratch.drain(..).for_each(|event| D::write(&event, out));
    }
}

/// The plain reply as the fold of the stream that would have been.
pub struct Reply<D: ClientProtocol> {
    encoder: D::Encoder,
    scratch: Vec<D::Event>,
    fold: D::Fold,
    whole: bool,
}

impl<D: ClientProtocol> Reply<D> {
    /// The reply to `request`, before anything was said.
    #[must_use]
    pub fn new(request: &D::Request, stamp: &Stamp) -> Self {
        Self { encoder: D::encoder(request, stamp), scratch: Vec::new(), fold: D::Fold::default(), whole: true }
    }

    /// Takes what the model does; `now` is in Unix seconds.
    pub fn event(&mut self, event: TextEvent, now: i64) {
        D::encode(&mut self.encoder, event, now, &mut self.scratch);
        for event in self.scratch.drain(..) {
            self.whole &= D::gather(&mut self.fold, &event);
        }
    }

    /// The reply, once the model has finished; nothing when it has not.
    #[must_use]
    pub fn finish(self) -> Option<D::Reply> {
        if self.whole { D::reply(self.fold) } else { None }
    }
}
