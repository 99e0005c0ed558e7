//! Telling what an image engine does.

use engine::{ImageEvent, Usage};
use images::Event;
use translate::inbound::Pictures;
use translate::relay::Images;
use wire::{ApiError, ErrorBody};

use crate::body::format::Manner;
use crate::clock;
use crate::outcome::{Ending, Outcome};

/// How pictures are told of.
pub(crate) struct Drawing;

/// The answer in the client's protocol, picture by picture.
pub(crate) struct Teller {
    pictures: Pictures,
    usage: Usage,
}

impl Teller {
    /// The answer before any picture.
    pub(super) fn new(pictures: Pictures) -> Self {
        Self { pictures, usage: Usage::default() }
    }

    /// Takes a step: its event, and how the answer ended when it was the last.
    pub(super) fn take(&mut self, step: &ImageEvent) -> (Option<Event>, Option<Ending>) {
        if let ImageEvent::Finished { usage, .. } = step {
            self.usage.input += usage.input_text + usage.input_image;
            self.usage.output += usage.output_image;
        }
        let event = self.pictures.event(step, clock::unix_seconds());
        let ended = self.pictures.are_all_there();
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

    /// Nothing is said before the first picture.
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
