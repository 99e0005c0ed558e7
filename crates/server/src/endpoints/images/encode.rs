//! Encodes the events of an image engine in the client's protocol.

use engine::{ImageEvent, Usage};
use images::Event;
use translate::inbound::Pictures;
use translate::relay::Images;
use wire::{ApiError, ErrorBody};

use crate::body::format::Manner;
use crate::clock;
use crate::outcome::{Ending, Outcome};

/// The stream format of image answers.
pub(crate) struct Drawing;

/// The encoder of an answer, image by image, which adds up its token usage.
pub(crate) struct Teller {
    pictures: Pictures,
    usage: Usage,
}

impl Teller {
    /// Creates the encoder of an answer without images so far.
    pub(super) fn new(pictures: Pictures) -> Self {
        Self { pictures, usage: Usage::default() }
    }

    /// Encodes an engine event; returns the event for the client, and how the answer ended if it was the last one.
    pub(super) fn take(&mut self, step: &ImageEvent) -> (Option<Event>, Option<Ending>) {
        if let ImageEvent::Finished { usage, .. } = step {
            self.usage.input += usage.input_text + usage.input_image;
            self.usage.output += usage.output_image;
        }
        let event = self.pictures.event(step, clock::unix_seconds());
        let ended = self.pictures.is_complete();
        (event, ended.then_some(Ending { outcome: Outcome::Completed, usage: Some(self.usage) }))
    }
}

impl Manner for Drawing {
    type Event = ImageEvent;
    type Traits = Pictures;
    type Waiting = ();
    type Teller = Teller;
    type Relay = Images;
    type Whole = upstream::ImageReply;

    /// Writes nothing: an image stream has no opening event.
    fn open((): (), pictures: Pictures, _: &mut Vec<u8>) -> Teller {
        Teller::new(pictures)
    }

    fn tell(teller: &mut Teller, step: ImageEvent, out: &mut Vec<u8>) -> Option<Ending> {
        let (event, ending) = teller.take(&step);
        drop(step);
        if let Some(event) = event {
            event.write(out);
        }
        ending
    }

    fn fail(teller: &mut Teller, error: &ApiError, out: &mut Vec<u8>) {
        if let Some(event) = teller.pictures.fail(error) {
            event.write(out);
        }
    }

    fn fail_waiting((): &mut (), error: &ApiError, out: &mut Vec<u8>) {
        let ErrorBody { error } = translate::in_stream(error).body();
        Event::Error(ErrorBody { error }).write(out);
    }

    fn keep_alive(_: &Teller, out: &mut Vec<u8>) {
        sse::comment("keep-alive", out);
    }
}
