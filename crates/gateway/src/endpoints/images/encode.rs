//! Encodes the events of an image engine in the client's protocol.

use engine::{ImageEvent, Usage};
use images::Event;
use policy::clock;
use policy::limit::{self, Counts};
use relay::End;
use translate::inbound::Pictures;

/// The encoder of an answer, image by image, which adds up its token usage.
pub(super) struct ImageEncoder {
    pub(super) pictures: Pictures,
    usage: Usage,
    /// The number of complete images.
    count: u64,
}

impl ImageEncoder {
    pub(super) fn new(pictures: Pictures) -> Self {
        Self {
            pictures,
            usage: Usage::default(),
            count: 0,
        }
    }

    /// Returns the counts of the answer so far. Its images have the requested size and quality.
    pub(super) fn counts(&self) -> Counts {
        Counts {
            usage: (self.count > 0).then_some(self.usage),
            pictures: limit::Pictures {
                count: self.count,
                ..limit::Pictures::default()
            },
            ..Counts::default()
        }
    }

    /// Encodes an engine event; returns the event for the client, and how the answer ended if it
    /// was the last one.
    pub(super) fn encode(&mut self, event: &ImageEvent) -> (Option<Event>, Option<End>) {
        if let ImageEvent::Finished { usage, .. } = event {
            self.usage.input += usage.input_text + usage.input_image;
            self.usage.image_input += usage.input_image;
            self.usage.output += usage.output_image;
            self.usage.image_output += usage.output_image;
            self.count += 1;
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
