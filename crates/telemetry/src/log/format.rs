//! The format of a log line.

use std::fmt::{Debug, Write as _};
use std::io::Write as _;

use jiff::Timestamp;
use serde::Serialize;
use tracing::Event;
use tracing::field::{Field, Visit};

use super::json;

/// Formats an event as a JSON object with a line feed: timestamp, level, log name, and the fields
/// of the event.
pub(super) fn of(event: &Event<'_>, at: Timestamp) -> Vec<u8> {
    let mut line = Line {
        bytes: Vec::with_capacity(USUAL_LEN),
        text: String::new(),
    };
    let metadata = event.metadata();
    line.bytes.push(b'{');
    // Writing to memory cannot fail.
    let _ = write!(
        line.bytes,
        r#""timestamp":"{at:.6}","level":"{}","log":"#,
        metadata.level()
    );
    line.value(metadata.target());
    event.record(&mut line);
    line.bytes.extend_from_slice(b"}\n");
    line.bytes
}

struct Line {
    bytes: Vec<u8>,
    /// A scratch buffer for `Debug` output, which has to be escaped.
    text: String,
}

impl Line {
    fn field(&mut self, field: &Field, value: impl Serialize) {
        self.bytes.extend_from_slice(b",");
        self.value(field.name());
        self.bytes.push(b':');
        self.value(value);
    }

    fn value(&mut self, value: impl Serialize) {
        json::write(value, &mut self.bytes);
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.field(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.field(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.field(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.field(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.field(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let _ = write!(text, "{value:?}");
        self.field(field, &text);
        self.text = text;
    }
}

/// The usual length of an access log line.
const USUAL_LEN: usize = 512;

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::Subscriber;
    use tracing_subscriber::Layer;
    use tracing_subscriber::layer::{Context, SubscriberExt as _};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl<S: Subscriber> Layer<S> for Kept {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            self.0
                .lock()
                .unwrap()
                .extend(of(event, "2027-01-31T08:09:10.123456789Z".parse().unwrap()));
        }
    }

    /// An event is one line of JSON regardless of the content of its fields.
    #[test]
    fn p04_an_event_is_one_line_of_json_with_its_fields_in_order() {
        let kept = Kept::default();
        tracing::subscriber::with_default(
            tracing_subscriber::registry().with(kept.clone()),
            || {
                let absent: Option<&str> = None;
                tracing::info!(
                    target: "access",
                    id = "a\"b\nc",
                    absent,
                    status = 200_u16,
                    took_ms = 1.25,
                    stream = true,
                    ?absent,
                    "count {}",
                    1
                );
            },
        );
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert_eq!(
            text,
            concat!(
                r#"{"timestamp":"2027-01-31T08:09:10.123456Z","level":"INFO","log":"access","message":"count 1","#,
                r#""id":"a\"b\nc","status":200,"took_ms":1.25,"stream":true,"absent":"None"}"#,
                "\n"
            )
        );
    }
}
