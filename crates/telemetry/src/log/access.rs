//! The line of a request in the access log. There is one for each request, so it is written by
//! hand: the formatter of other events, which visits each field through a trait object, takes
//! several times as long. A test compares the two.

use std::cell::RefCell;
use std::io::Write as _;

use jiff::Timestamp;
use policy::clock;
use serde::Serialize;
use tracing::Level;

use super::{QUEUE, json};

/// Declares the fields of the line of a request, each with the function that writes it.
macro_rules! access_line {
    ($($(#[$doc:meta])* $write:ident $name:ident: $type:ty,)*) => {
        /// The fields of the line of a request.
        #[derive(Clone, Copy, Debug)]
        pub struct AccessLine<'a> {
            $($(#[$doc])* pub $name: $type,)*
        }

        impl AccessLine<'_> {
            /// Returns true if the filter of the log permits the line. It may name the fields.
            fn is_enabled() -> bool {
                tracing::event_enabled!(target: "access", Level::INFO, $($name),*)
            }

            /// Emits the line as an event.
            fn emit(&self) {
                tracing::info!(target: "access", $($name = self.$name,)*);
            }
        }

        impl Scratch {
            fn write_fields(&mut self, line: &AccessLine<'_>) {
                $(self.$write(concat!(",\"", stringify!($name), "\":"), line.$name);)*
            }
        }
    };
}

access_line! {
    /// The gateway's id of the request.
    text request_id: &'a str,
    /// The client's own id of the request, if it is safe to log.
    optional_text client_request_id: Option<&'a str>,
    /// The id of the trace.
    optional_text trace_id: Option<&'a str>,
    /// The endpoint, from a closed list.
    text route: &'a str,
    /// `websocket` for a response over one.
    optional_text transport: Option<&'a str>,
    /// The name of the key.
    optional_text key: Option<&'a str>,
    /// The client's name of the model.
    optional_text model: Option<&'a str>,
    /// The upstream that has answered, or `embedded`.
    optional_text target: Option<&'a str>,
    /// The target that was asked as well, because the first one was slow.
    optional_text hedge: Option<&'a str>,
    /// The upstream's id of the request.
    optional_text upstream_request_id: Option<&'a str>,
    /// The status of the response; 499 if the client disconnected.
    value status: u16,
    /// The code of the error.
    optional_text code: Option<&'a str>,
    /// The internal cause of the error, which the client does not see.
    optional_text cause: Option<&'a str>,
    /// True if the request asks for a stream.
    value stream: bool,
    /// How the request ended: see [`Outcome`](crate::outcome::Outcome).
    text outcome: &'a str,
    /// The tokens of the prompt that the targets have reported.
    optional_value input_tokens: Option<u64>,
    /// The tokens of the answer that the targets have reported.
    optional_value output_tokens: Option<u64>,
    /// The kinds of content that the client's protocol cannot express.
    optional_text left_out: Option<&'a str>,
    /// The time in queues of quotas, in milliseconds.
    optional_value queued_ms: Option<f64>,
    /// The time to the first event of the stream, in milliseconds.
    optional_value first_event_ms: Option<f64>,
    /// The time to the last byte of the response, in milliseconds.
    value took_ms: f64,
}

impl AccessLine<'_> {
    /// Writes the line to the log if its filter permits it. In a process with another subscriber,
    /// the line is an event for that.
    pub fn log(&self) {
        let Some(queue) = QUEUE.get() else {
            return self.emit();
        };
        if !Self::is_enabled() {
            return;
        }
        let written = SCRATCH.try_with(|scratch| {
            let mut scratch = scratch.try_borrow_mut().ok()?;
            queue.push(scratch.write(self, clock::timestamp()));
            Some(())
        });
        if !matches!(written, Ok(Some(()))) {
            self.emit();
        }
    }
}

/// The buffers of a thread that writes lines.
#[derive(Debug, Default)]
struct Scratch {
    line: Vec<u8>,
    /// The second that `time` is about.
    second: Option<i64>,
    /// The time of the last line up to its second, such as `2027-01-31T08:09:10`.
    time: String,
}

impl Scratch {
    /// Returns the line with its line feed.
    fn write(&mut self, line: &AccessLine<'_>, at: Timestamp) -> &[u8] {
        self.line.clear();
        self.line.extend_from_slice(br#"{"timestamp":""#);
        self.write_time(at);
        self.line
            .extend_from_slice(br#"","level":"INFO","log":"access""#);
        self.write_fields(line);
        self.line.extend_from_slice(b"}\n");
        &self.line
    }

    /// Writes a time with six decimal places.
    fn write_time(&mut self, at: Timestamp) {
        let Ok(mut micros) = u32::try_from(at.subsec_microsecond()) else {
            // Before 1970. Writing to memory cannot fail.
            let _ = write!(self.line, "{at:.6}");
            return;
        };
        if self.second != Some(at.as_second()) {
            self.second = Some(at.as_second());
            self.time.clear();
            let whole = Timestamp::from_second(at.as_second()).unwrap_or(at);
            self.time.push_str(whole.to_string().trim_end_matches('Z'));
        }
        self.line.extend_from_slice(self.time.as_bytes());
        let mut fraction = *b".000000Z";
        for digit in fraction[1..7].iter_mut().rev() {
            *digit += u8::try_from(micros % 10).unwrap_or_default();
            micros /= 10;
        }
        self.line.extend_from_slice(&fraction);
    }

    fn optional_text(&mut self, member: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(member, text);
        }
    }

    fn text(&mut self, member: &str, text: &str) {
        // Without a branch for each byte.
        let is_plain = text.bytes().fold(true, |is_plain, byte| {
            is_plain & (b' '..0x7f).contains(&byte) & (byte != b'"') & (byte != b'\\')
        });
        if !is_plain {
            return self.value(member, text);
        }
        self.line.extend_from_slice(member.as_bytes());
        self.line.push(b'"');
        self.line.extend_from_slice(text.as_bytes());
        self.line.push(b'"');
    }

    fn optional_value(&mut self, member: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.value(member, value);
        }
    }

    fn value(&mut self, member: &str, value: impl Serialize) {
        self.line.extend_from_slice(member.as_bytes());
        json::write(value, &mut self.line);
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use proptest::prelude::*;
    use tracing::{Event, Subscriber};
    use tracing_subscriber::Layer;
    use tracing_subscriber::layer::{Context, SubscriberExt as _};

    use super::*;
    use crate::log::format;

    const LINE: AccessLine<'_> = AccessLine {
        request_id: "req_1",
        client_request_id: None,
        trace_id: None,
        route: "messages",
        transport: None,
        key: None,
        model: None,
        target: None,
        hedge: None,
        upstream_request_id: None,
        status: 200,
        code: None,
        cause: None,
        stream: false,
        outcome: "completed",
        input_tokens: None,
        output_tokens: None,
        left_out: None,
        queued_ms: None,
        first_event_ms: None,
        took_ms: 1.25,
    };

    /// Formats the events that it gets like the log.
    #[derive(Clone)]
    struct Formatted(Timestamp, Arc<Mutex<Vec<u8>>>);

    impl<S: Subscriber> Layer<S> for Formatted {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            self.1.lock().unwrap().extend(format::of(event, self.0));
        }
    }

    /// Returns the line as the formatter of other events writes it.
    fn formatted(line: &AccessLine<'_>, at: Timestamp) -> String {
        let kept = Formatted(at, Arc::default());
        let registry = tracing_subscriber::registry().with(kept.clone());
        tracing::subscriber::with_default(registry, || line.emit());
        String::from_utf8(kept.1.lock().unwrap().clone()).unwrap()
    }

    fn written(scratch: &mut Scratch, line: &AccessLine<'_>, at: &str) -> String {
        let line = scratch.write(line, at.parse().unwrap());
        String::from_utf8(line.to_vec()).unwrap()
    }

    #[test]
    fn p04_a_line_has_the_fields_that_are_known_in_order() {
        let line = AccessLine {
            client_request_id: Some("mine"),
            trace_id: Some("4bf92f3577b34da6a3ce929d0e0e4736"),
            transport: Some("websocket"),
            key: Some("a \"key\"\n"),
            model: Some("mödel"),
            target: Some("home"),
            hedge: Some("spare"),
            upstream_request_id: Some("x\\1"),
            status: 504,
            code: Some("timeout"),
            cause: Some("no\u{1}\u{2028}answer"),
            stream: true,
            outcome: "timeout",
            input_tokens: Some(u64::MAX),
            output_tokens: Some(0),
            left_out: Some("audio,image"),
            queued_ms: Some(0.5),
            first_event_ms: Some(12.0),
            took_ms: 1e21,
            ..LINE
        };
        let scratch = &mut Scratch::default();
        assert_eq!(
            written(scratch, &line, "2027-01-31T08:09:10.123456789Z"),
            concat!(
                r#"{"timestamp":"2027-01-31T08:09:10.123456Z","level":"INFO","log":"access","request_id":"req_1","#,
                r#""client_request_id":"mine","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","route":"messages","transport":"websocket","key":"a \"key\"\n","model":"mödel","target":"home","hedge":"spare","#,
                r#""upstream_request_id":"x\\1","status":504,"code":"timeout","cause":"no\u0001\u2028answer","stream":true,"#,
                r#""outcome":"timeout","input_tokens":18446744073709551615,"output_tokens":0,"#,
                r#""left_out":"audio,image","queued_ms":0.5,"first_event_ms":12.0,"took_ms":1e+21}"#,
                "\n"
            )
        );
        assert_eq!(
            written(scratch, &LINE, "2027-01-31T08:09:11.000001Z"),
            concat!(
                r#"{"timestamp":"2027-01-31T08:09:11.000001Z","level":"INFO","log":"access","request_id":"req_1","#,
                r#""route":"messages","status":200,"stream":false,"outcome":"completed","took_ms":1.25}"#,
                "\n"
            )
        );
    }

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-z_0-9]{0,40}",
            prop::collection::vec(any::<char>(), 0..20).prop_map(String::from_iter),
        ]
    }

    fn texts<const N: usize>() -> impl Strategy<Value = [Option<String>; N]> {
        prop::array::uniform(prop::option::of(text()))
    }

    fn time() -> impl Strategy<Value = Timestamp> {
        (-3_i64..4, -999_999_999..=999_999_999_i32).prop_map(|(second, nanoseconds)| {
            Timestamp::new(1_801_469_349 * second, nanoseconds).unwrap()
        })
    }

    proptest! {
        /// A line by hand has the bytes of the formatter of other events.
        #[test]
        fn p04_handwritten_line_matches_the_formatter(
            texts in texts::<10>(),
            ids in prop::array::uniform::<_, 3>(text()),
            trace_id in prop::option::of(text()),
            status: u16,
            stream: bool,
            tokens: [Option<u64>; 2],
            [queued_ms, first_event_ms] in prop::array::uniform(prop::option::of(prop::num::f64::ANY)),
            took_ms in prop::num::f64::ANY,
            times in prop::collection::vec(time(), 1..4),
        ) {
            let [client_request_id, key, model, target, hedge, upstream_request_id, code, cause, left_out, transport] =
                texts.each_ref().map(Option::as_deref);
            let [request_id, route, outcome] = ids.each_ref().map(String::as_str);
            let line = AccessLine {
                request_id, client_request_id, trace_id: trace_id.as_deref(), route, transport, key, model, target, hedge, upstream_request_id, status,
                code, cause, stream, outcome, left_out, queued_ms, first_event_ms, took_ms,
                input_tokens: tokens[0],
                output_tokens: tokens[1],
            };
            let mut scratch = Scratch::default();
            for at in times {
                let written = String::from_utf8(scratch.write(&line, at).to_vec()).unwrap();
                prop_assert_eq!(written, formatted(&line, at));
            }
        }
    }
}
