//! Named faults and quirks. The binary selects one by the model name of a request.
//!
//! A scenario is a conforming reply with one fault. Scenarios of streams send a conforming reply to requests for a
//! plain one, and scenarios of one protocol send conforming replies in the other protocols.

mod decoding;
mod ending;
mod events;
mod http;
mod protocol;
mod random;

use std::fmt;

pub use random::{Fault, fault};

use crate::honest;
use crate::play::Play;
use crate::request::Request;

/// A fault or quirk.
#[derive(Clone, Copy)]
pub struct Scenario {
    template: &'static str,
    rows: &'static [&'static str],
    about: &'static str,
    /// The value of each `N` in the template.
    numbers: [u64; 2],
    act: fn(&Request, [u64; 2]) -> Play,
}

/// Returns all scenarios, with default values for their numbers.
#[must_use]
pub fn all() -> &'static [Scenario] {
    ALL
}

/// Returns the scenario with this name, which has a number for each `N` of the template. A number at the end is
/// optional.
#[must_use]
pub fn named(name: &str) -> Option<Scenario> {
    ALL.iter().find_map(|scenario| scenario.read(name))
}

/// Plays the scenario selected by the model name of the request; other models get a conforming reply.
#[must_use]
pub fn answer(request: &Request) -> Play {
    named(&request.model()).map_or_else(|| honest::answer(request), |scenario| scenario.play(request))
}

impl Scenario {
    /// The name with `N` for each number: `reset-at-N`.
    #[must_use]
    pub fn template(&self) -> &'static str {
        self.template
    }

    /// The name with its numbers: `reset-at-200`.
    #[must_use]
    pub fn name(&self) -> String {
        let mut numbers = self.numbers.iter();
        let mut fill = |word: &str| if word == "N" { numbers.next().map(u64::to_string) } else { None };
        let words = self.template.split('-').map(|word| fill(word).unwrap_or_else(|| word.to_owned()));
        words.collect::<Vec<_>>().join("-")
    }

    /// The rows of the fault list that it covers, for example `U7`; empty if it is not a fault.
    #[must_use]
    pub fn rows(&self) -> &'static [&'static str] {
        self.rows
    }

    /// A description in one line.
    #[must_use]
    pub fn about(&self) -> &'static str {
        self.about
    }

    /// Returns the reply to a request.
    #[must_use]
    pub fn play(&self, request: &Request) -> Play {
        (self.act)(request, self.numbers)
    }

    /// Returns this scenario with the numbers of `name`, if the name matches the template.
    fn read(&self, name: &str) -> Option<Self> {
        if self.template.strip_suffix("-N") == Some(name) {
            return Some(*self);
        }
        let (mut numbers, mut found) = (self.numbers, 0);
        let (mut words, mut places) = (name.split('-'), self.template.split('-'));
        loop {
            match (words.next(), places.next()) {
                (None, None) => return Some(Self { numbers, ..*self }),
                (Some(word), Some("N")) => {
                    *numbers.get_mut(found)? = word.parse().ok()?;
                    found += 1;
                }
                (Some(word), Some(place)) if word == place => {}
                _ => return None,
            }
        }
    }
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scenario").field(&self.name()).finish()
    }
}

/// Defines `ALL`. Each line has the template with a default for each `N`, the rows that it covers, the function that
/// plays it, and its description.
macro_rules! scenarios {
    ($($template:literal $(($($number:literal),*))? [$($row:ident)*] $file:ident::$act:ident: $about:literal;)*) => {
        const ALL: &[Scenario] = &[$(Scenario {
            template: $template,
            rows: &[$(stringify!($row)),*],
            about: $about,
            numbers: pair(&[$($($number),*)?]),
            act: $file::$act,
        }),*];
    };
}

scenarios! {
    // Before the head, and the head.
    "close-before-head" [U6] http::close_before_head: "FIN without a byte";
    "reset-before-head" [U6] http::reset_before_head: "RST without a byte";
    "close-on-reuse" [U6] http::close_on_reuse: "FIN without a byte, on a connection that was used before";
    "reset-on-reuse" [U6] http::reset_on_reuse: "RST without a byte, on a connection that was used before";
    "stall-head" [U5] http::stall_head: "reads the request and sends nothing";
    "stall-in-head" [U5] http::stall_in_head: "half a head, then nothing";
    "delay-N" (250) [U5] http::delay: "a conforming reply after N milliseconds";
    "garbage-head" [U18] http::garbage_head: "a head that is not HTTP";
    "huge-head" [U18] http::huge_head: "a header of 100 KiB";
    "many-headers" [U18] http::many_headers: "10,000 headers";
    "private-headers" [U18] http::private_headers: "Set-Cookie, Server and other headers that must not be forwarded";
    "early-hints" [] http::early_hints: "103 before the reply";
    "http-10" [] http::http_10: "HTTP/1.0: no framing, the body ends with the connection";
    // Complete replies that are wrong.
    "status-N" (500) [U16 U17] http::status: "status N with an error in the protocol's format; a 401 repeats the key";
    "status-N-retry-N" (429, 7) [U15] http::status_retry: "the same with Retry-After: N";
    "status-429-retry-date" [U15] http::retry_date: "429 with a date in Retry-After";
    "status-429-retry-negative" [U15] http::retry_negative: "429 with Retry-After: -5";
    "status-429-retry-garbage" [U15] http::retry_garbage: "429 with Retry-After: soon";
    "flaky-N" (503) [U17] http::flaky: "status N for requests 0, 2, 4 …, conforming replies for the others";
    "error-200" [U12] http::error_200: "200 with an error object";
    "error-for-stream" [U12] http::error_for_stream: "200 with an error object under text/event-stream";
    "html-200" [U13] http::html_200: "200 with an HTML page of a middlebox";
    "html-502" [U13] http::html_502: "502 with an HTML page of a middlebox";
    "empty-200" [U13] http::empty_200: "200 with an empty body";
    "empty-204" [U13] http::empty_204: "204";
    "redirect" [U13] http::redirect: "307 to /redirected on the same server";
    "content-length-short" [U10] http::length_short: "a length that is 10 less than the body's";
    "content-length-long" [U10] http::length_long: "a length that is 10 more than the body's, then FIN";
    "two-answers" [U10 U22] http::two_answers: "a second, unrequested reply";
    "json-as-event-stream" [U11 U12] http::json_as_event_stream: "a plain reply under text/event-stream";
    "json-for-stream" [U12] http::json_for_stream: "a plain reply to a request for a stream";
    "stream-as-text" [U13] http::stream_as_text: "a stream under text/plain";
    "gzip" [S14] http::gzip: "a body with Content-Encoding: gzip, though the request does not accept it";
    // The end of a body.
    "stall-after-N" (3) [U7] ending::stall_after: "nothing after N events";
    "stall-at-N" (200) [U7] ending::stall_at: "nothing after N bytes of the body";
    "reset-at-N" (200) [U8] ending::reset_at: "RST after N bytes of the body";
    "reset-after-N" (3) [U8] ending::reset_after: "RST after N events";
    "close-at-N" (200) [U8] ending::close_at: "FIN after N bytes of the body, without its proper end";
    "eof-at-N" (200) [U9] ending::eof_at: "the proper end of a body after N bytes of it";
    "reset-after-end" [U8] ending::reset_after_end: "RST after the last byte";
    "eof-without-end" [U9] ending::eof_without_end: "a stream that ends properly before its terminal event";
    "no-done" [U9] ending::no_done: "a stream without its very last event: for Chat, without [DONE]";
    "empty-stream" [S9] ending::empty_stream: "a stream without events";
    "missing-blank-line" [S3] ending::missing_blank_line: "a stream whose last event has no empty line";
    "hold-after-end" [U20] ending::hold_after_end: "a stream that stays open after its terminal event";
    "after-end" [S7] ending::after_end: "a delta after the terminal event";
    "two-ends" [S7] ending::two_ends: "the terminal event twice";
    "done-after-end" [S7] ending::done_after_end: "[DONE] after the terminal event of protocols that have none";
    "delta-after-finish" [S7] ending::delta_after_finish:
        "a delta after the finish reason, before the terminal event";
    // Endless streams.
    "endless-line" [S4] ending::endless_line: "a line that never ends";
    "endless-deltas" [U19] ending::endless_deltas: "endless deltas as fast as they are read";
    "endless-comments-N" (10) [S10] ending::endless_comments: "a comment every N milliseconds, endlessly, and no event";
    "endless-empty-data-N" (10) [S10] ending::endless_empty_data: "an empty event every N milliseconds, endlessly";
    // Other encodings of a valid stream.
    "byte-by-byte" [S1] decoding::byte_by_byte: "a body in chunks of one byte";
    "chunked-N" (7) [S1] decoding::chunked: "a body in pieces of N bytes";
    "at-once" [S1] decoding::at_once: "a body in one piece";
    "drip-N" (50) [U21] decoding::drip: "N milliseconds before each event";
    "sse-crlf" [S2] decoding::crlf: "lines that end in CRLF";
    "sse-cr" [S2] decoding::cr: "lines that end in CR";
    "sse-bom" [S2] decoding::bom: "a byte order mark before the first event";
    "sse-comments" [S2] decoding::comments: "comments between the events";
    "sse-fields" [S2] decoding::fields: "id, retry and unknown fields in every event";
    "sse-no-space" [S2] decoding::no_space: "no space after the colons";
    "sse-multi-line" [S2] decoding::multi_line: "data over several lines";
    "huge-event-N" (2_048) [S4] decoding::huge_event: "an event with an unknown member of N KiB";
    "invalid-utf8" [S11] decoding::invalid_utf8: "invalid UTF-8 in a delta";
    // The content of events.
    "malformed-event" [S5] events::malformed: "a delta with truncated JSON";
    "not-an-object" [S5] events::not_an_object: "a delta that is a JSON string";
    "wrong-type" [S5] events::wrong_type: "a delta that is a number";
    "missing-delta" [S5] events::missing_delta: "a delta event without its delta";
    "unknown-event" [S6] events::unknown: "an event of an unknown type";
    "event-name-lies" [S13] events::wrong_name: "event: lines that do not match the data";
    "huge-index-N" (2_147_483_648) [S15] events::huge_index: "a delta of index N";
    "usage-missing" [S8] events::usage_missing: "a terminal event without usage";
    "usage-twice" [S8] events::usage_twice: "Chat: the usage twice";
    "failed-first" [U14] events::failed_first: "a failure before the first delta";
    "failed-middle" [U14] events::failed_middle: "a failure in the middle";
    "failed-last" [U14] events::failed_last: "a failure instead of the end";
    "limited-first" [U14] events::limited_first: "a rate limit error in the stream, before the first delta";
    // Quirks of kinds of servers.
    "responses-error-event" [U14] protocol::error_event:
        "Responses: an error event with a nested error, instead of response.failed";
    "responses-error-event-flat" [U14] protocol::error_event_flat: "Responses: an error event with flat fields";
    "vllm" [S6 U9] protocol::vllm: "Chat in the form of common open-source servers";
    "filtered" [S6] protocol::filtered: "Chat: filter results, and a first chunk with those of the prompt only";
    "think-tags" [] protocol::think_tags: "Chat: reasoning in the text, between tags";
    // Random faults.
    "fault-N" (0) [] random::play: "one of the faults above at any position of the reply, both chosen by the seed N";
}

/// Converts a number of a scenario to a size or an index.
fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

const fn pair(numbers: &[u64]) -> [u64; 2] {
    match numbers {
        [] => [0, 0],
        [first] => [*first, 0],
        [first, second, ..] => [*first, *second],
    }
}
