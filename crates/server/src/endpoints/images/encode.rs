//! Encodes the events of an image engine in the client's protocol.

use engine::{ImageEvent, Usage};
use images::Event;
use translate::inbound::Pictures;
use translate::relay::End;

use crate::clock;

/// The encoder of an answer, image by image, which adds up its token usage.
pub(super) struct ImageEncoder {
    pub(super) pictures: Pictures,
    usage: Usage,
}

impl ImageEncoder {
    pub(super) fn new(pictures: Pictures) -> Self {
        Self {
            pictures,
            usage: Usage::default(),
        }
    }

    /// Encodes an engine event; returns the event for the client, and how the answer ended if it
    /// was the last one.
    pub(super) fn encode(&mut self, event: &ImageEvent) -> (Option<Event>, Option<End>) {
        if let ImageEvent::Finished { usage, .. } = event {
            self.usage.input += usage.input_text + usage.input_image;
            self.usage.output += usage.output_image;
        }
        let event = self.pictures.event(event, clock::unix_seconds());
        let ended = self.pictures.is_complete();
        (
            event,
            ended.then_some(End {
                incomplete: false,
                usage: Some(self.usage),
            }),
        )
    }
}
