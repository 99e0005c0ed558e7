//! The frames of RFC 6455, valid and invalid, and what the gateway does with them: the cases of the
//! [Autobahn test suite](https://github.com/crossbario/autobahn-testsuite), sent as bytes.
//!
//! The suite's server echoes. Here `response.steer` does: the event that refuses it repeats its input.

use std::fmt;

use serde_json::Value;
use simulator::Simulator;
use testkit::{Connection, Gateway, in_parallel};

use crate::GATEWAY;
use crate::frames::{self, BINARY, CLOSE, FIRST_OF_TEXT, LAST, NEXT, PING, PONG, TEXT, frame};

/// Bytes that a client sends on one connection, and what it receives for them.
struct Case {
    /// The section of RFC 6455 that says so.
    section: &'static str,
    sent: Vec<u8>,
    received: Vec<Received>,
}

/// A frame of the gateway.
#[derive(Clone, PartialEq)]
enum Received {
    /// The event that repeats an input.
    Echo(String),
    /// An event of an error with this code.
    Refused(String),
    Pong(Vec<u8>),
    /// A close frame with this code, or without one.
    Close(Option<u16>),
    /// Any other frame.
    Other(u8),
}

use Received::{Close, Echo, Pong, Refused};

impl fmt::Debug for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shortened = |bytes: &[u8]| bytes[..bytes.len().min(32)].escape_ascii().to_string();
        match self {
            Echo(text) => write!(f, "Echo({}, {})", text.len(), shortened(text.as_bytes())),
            Refused(code) => write!(f, "Refused({code})"),
            Pong(payload) => write!(f, "Pong({})", shortened(payload)),
            Close(code) => write!(f, "Close({code:?})"),
            Self::Other(first) => write!(f, "Other({first:#x})"),
        }
    }
}

/// A case of these frames.
fn case<const N: usize>(
    section: &'static str,
    sent: [Vec<u8>; N],
    received: impl Into<Vec<Received>>,
) -> Case {
    let (sent, received) = (sent.concat(), received.into());
    Case {
        section,
        sent,
        received,
    }
}

/// A message whose answer repeats `input`.
fn message(input: impl AsRef<[u8]>) -> Vec<u8> {
    let (before, after) = MESSAGE.split_once('|').unwrap();
    [before.as_bytes(), input.as_ref(), after.as_bytes()].concat()
}

/// A message of this length, and its input.
fn message_of(length: usize) -> (Vec<u8>, Received) {
    let input = "*".repeat(length + 1 - MESSAGE.len());
    (message(&input), Echo(input))
}

fn echo(input: &str) -> Received {
    Echo(input.to_owned())
}

/// An answer to a message that is no event.
fn no_json() -> Received {
    Refused("invalid_json".to_owned())
}

/// Frames of a message in fragments of this size.
fn fragments(payload: &[u8], size: usize) -> Vec<u8> {
    let count = payload.chunks(size).len();
    let fragments = payload.chunks(size).enumerate().map(|(place, fragment)| {
        let begins = if place == 0 { FIRST_OF_TEXT } else { NEXT };
        let ends = if place + 1 == count { LAST } else { 0 };
        frame(begins | ends, fragment)
    });
    fragments.collect::<Vec<_>>().concat()
}

/// A close frame with a code and a reason.
fn close(code: u16, reason: impl AsRef<[u8]>) -> Vec<u8> {
    frame(CLOSE, [&code.to_be_bytes(), reason.as_ref()].concat())
}

/// Sends each case in one write, and in many.
#[track_caller]
fn check(cases: &[Case]) {
    let simulator = Simulator::honest().unwrap();
    let gateway = GATEWAY.before(&simulator, &format!("json_body = {LIMIT}"), "");
    let pieces = |case: &Case| [case.sent.len(), case.sent.len().div_ceil(500)];
    let visits = cases
        .iter()
        .flat_map(|case| pieces(case).map(|piece| (case, piece)));
    let visits: Vec<_> = visits.collect();
    let differences = in_parallel(&visits, |(case, piece)| case.difference(&gateway, *piece));
    let differences: Vec<_> = differences.into_iter().flatten().collect();
    assert!(differences.is_empty(), "{differences:#?}");
    gateway.await_quiet();
}

impl Case {
    /// Sends the bytes in pieces of this length. Describes what was received if it is something else.
    ///
    /// A message and a close frame follow. They are answered unless the connection was closed before.
    fn difference(&self, gateway: &Gateway, piece: usize) -> Option<String> {
        let mut connection = frames::open(gateway.address());
        let mut expected = self.received.clone();
        let mut sent = self.sent.clone();
        if !matches!(expected.last(), Some(Close(_))) {
            expected.extend([echo("alive"), Close(Some(1000))]);
        }
        sent.extend([frame(TEXT, message("alive")), close(1000, "")].concat());
        for piece in sent.chunks(piece) {
            // The gateway may have closed the connection already.
            connection.try_send(piece);
        }
        let found = received(connection);
        (found != expected).then(|| {
            let begin = sent[..sent.len().min(16)].escape_ascii();
            let section = self.section;
            format!("section {section}, {begin} by {piece}: {found:?} is not {expected:?}")
        })
    }
}

/// Receives frames to the end of a connection.
fn received(mut connection: Connection) -> Vec<Received> {
    let (bytes, _) = connection.rest();
    let frames = frames::frames(&bytes).into_iter();
    let received = frames.map(|(first, payload)| match first {
        TEXT => event(&serde_json::from_slice(payload).unwrap()),
        PONG => Pong(payload.to_vec()),
        CLOSE => Close(payload.first_chunk().map(|code| u16::from_be_bytes(*code))),
        other => Received::Other(other),
    });
    received.collect()
}

fn event(event: &Value) -> Received {
    match event["steer"]["input"].as_str() {
        Some(input) => echo(input),
        None => Refused(event["error"]["code"].as_str().unwrap().to_owned()),
    }
}

/// A WebSocket takes text in frames of every length, and closes on binary messages and on frames
/// without a mask. These are the cases 1 of Autobahn.
#[test]
fn h19_frames_have_any_length() {
    let mut cases = vec![
        case("5.2", [frame(TEXT, "")], [no_json()]),
        case("7.4.1", [frame(BINARY, "")], [Close(Some(1003))]),
    ];
    for length in [125, 126, 127, 128, 65_535, 65_536] {
        let (message, answer) = message_of(length);
        cases.push(case(
            "7.4.1",
            [frame(BINARY, &message)],
            [Close(Some(1003))],
        ));
        cases.push(case("5.2", [frame(TEXT, message)], [answer]));
    }
    // A frame of a client has a mask.
    for first in [TEXT, BINARY, PING, PONG, CLOSE] {
        let unmasked = [first, 5, b'H', b'e', b'l', b'l', b'o'].to_vec();
        cases.push(case("5.1", [unmasked], [Close(Some(1002))]));
    }
    check(&cases);
}

/// A ping on a WebSocket is answered by a pong with its payload, and a pong is not answered. These
/// are the cases 2 of Autobahn.
#[test]
fn h19_pings_are_answered() {
    let payload = |byte, length| vec![byte; length];
    let mut cases = vec![
        case(
            "5.5",
            [frame(PING, payload(0xfe, 126))],
            [Close(Some(1002))],
        ),
        case("5.5.3", [frame(PONG, ""), frame(PONG, "unsolicited")], []),
    ];
    for payload in [
        b"".to_vec(),
        b"Hello, world!".to_vec(),
        vec![0, 0xff, 0xfe],
        payload(0xfe, 125),
    ] {
        let pong = Pong(payload.clone());
        cases.push(case("5.5.2", [frame(PING, payload)], [pong]));
    }
    let ten: [_; 10] = std::array::from_fn(|number| format!("payload {number}").into_bytes());
    let pongs = ten.clone().map(Pong);
    cases.push(case(
        "5.5.2",
        ten.map(|payload| frame(PING, payload)),
        pongs,
    ));
    check(&cases);
}

/// A frame with a reserved bit closes its WebSocket, because no extension gives the bit a meaning.
/// These are the cases 3 of Autobahn.
#[test]
fn h19_reserved_bits_are_refused() {
    let bits = (1..8_u8).map(|bits| bits << 4);
    let cases = bits.flat_map(|bits| {
        [TEXT, BINARY, PING, PONG, CLOSE, FIRST_OF_TEXT].map(|first| {
            let sent = [frame(TEXT, message("before")), frame(first | bits, "")];
            case("5.2", sent, [echo("before"), Close(Some(1002))])
        })
    });
    check(&cases.collect::<Vec<_>>());
}

/// A frame with a reserved opcode closes its WebSocket. These are the cases 4 of Autobahn.
#[test]
fn h19_reserved_opcodes_are_refused() {
    let opcodes = (0x3..=0x7).chain(0xb..=0xf);
    let cases = opcodes.flat_map(|opcode| {
        ["", "payload"].map(|payload| {
            let sent = [
                frame(TEXT, message("before")),
                frame(LAST | opcode, payload),
            ];
            case("5.2", sent, [echo("before"), Close(Some(1002))])
        })
    });
    check(&cases.collect::<Vec<_>>());
}

/// The fragments of a message may be of any length and have control frames between them; fragments in
/// another order close the WebSocket. These are the cases 5 of Autobahn.
#[test]
fn h19_fragments_make_a_message() {
    let (whole, answer) = (message("fragments"), [echo("fragments")]);
    let (begin, end) = whole.split_at(20);
    let begin = || frame(FIRST_OF_TEXT, begin);
    let end = || frame(LAST, end);
    let ping = || frame(PING, "ping");
    let pong = Pong(b"ping".to_vec());
    let broken = || [Close(Some(1002))];
    let pong_and_answer = [pong.clone(), answer[0].clone()];
    check(&[
        case("5.4", [begin(), end()], answer.clone()),
        case("5.4", [fragments(&whole, 1)], answer.clone()),
        case(
            "5.4",
            [
                frame(FIRST_OF_TEXT, ""),
                frame(NEXT, ""),
                frame(LAST, &whole),
            ],
            answer.clone(),
        ),
        case(
            "5.4",
            [
                frame(FIRST_OF_TEXT, &whole),
                frame(NEXT, ""),
                frame(LAST, ""),
            ],
            answer.clone(),
        ),
        case(
            "5.4",
            [frame(FIRST_OF_TEXT, ""), frame(NEXT, ""), frame(LAST, "")],
            [no_json()],
        ),
        case("5.4", [begin(), ping(), end()], pong_and_answer),
        case(
            "5.4",
            [begin(), ping(), frame(NEXT, ""), ping(), end()],
            [pong.clone(), pong, answer[0].clone()],
        ),
        case("5.4", [begin(), frame(PONG, "pong"), end()], answer.clone()),
        // Control frames are not in fragments.
        case(
            "5.5",
            [frame(PING & !LAST, "ping"), frame(LAST, "")],
            broken(),
        ),
        case(
            "5.5",
            [frame(PONG & !LAST, "pong"), frame(LAST, "")],
            broken(),
        ),
        case("5.5", [frame(CLOSE & !LAST, ""), frame(LAST, "")], broken()),
        // There is nothing to continue.
        case("5.4", [end()], broken()),
        case("5.4", [frame(NEXT, "next"), end()], broken()),
        case(
            "5.4",
            [begin(), end(), end()],
            [answer[0].clone(), Close(Some(1002))],
        ),
        // A message begins in the middle of another one.
        case("5.4", [begin(), frame(TEXT, &whole)], broken()),
        case("5.4", [begin(), begin()], broken()),
        case("5.4", [begin(), frame(BINARY, &whole)], broken()),
    ]);
}

/// Text that is not UTF-8 closes its WebSocket at the first invalid fragment, and characters may be
/// split between fragments. These are the cases 6 of Autobahn.
#[test]
fn h19_j09_texts_are_utf8() {
    let mut cases = Vec::new();
    // The first and the last of each length, and those beside the surrogates.
    let characters =
        "\u{7f}\u{80}\u{7ff}\u{800}\u{d7ff}\u{e000}\u{fffd}\u{fffe}\u{ffff}\u{10000}\u{10ffff}";
    for text in [
        "Hello-\u{b5}@\u{df}\u{f6}\u{e4}\u{fc}\u{e0}\u{e1}-UTF-8!!",
        "\u{3ba}\u{1f79}\u{3c3}\u{3bc}\u{3b5}",
        characters,
    ] {
        cases.push(case("8.1", [frame(TEXT, message(text))], [echo(text)]));
        cases.push(case("8.1", [fragments(&message(text), 1)], [echo(text)]));
    }
    for invalid in INVALID_UTF8 {
        let whole = message(invalid);
        cases.push(case("8.1", [frame(TEXT, &whole)], [Close(Some(1007))]));
        cases.push(case("8.1", [fragments(&whole, 1)], [Close(Some(1007))]));
        // The connection is closed before the message ends.
        let begin = [invalid, b"..."].concat();
        cases.push(case(
            "8.1",
            [frame(FIRST_OF_TEXT, begin)],
            [Close(Some(1007))],
        ));
    }
    // An incomplete character at the end of a message.
    for incomplete in [&b"\xce"[..], b"\xe1\xbd", b"\xf0\x9d\x9c"] {
        cases.push(case("8.1", [frame(TEXT, incomplete)], [Close(Some(1007))]));
        cases.push(case(
            "8.1",
            [frame(FIRST_OF_TEXT, incomplete), frame(LAST, "")],
            [Close(Some(1007))],
        ));
    }
    check(&cases);
}

/// A close frame is answered by one with its code, or with 1002 if it is invalid, and nothing behind
/// it is read. These are the cases 7 of Autobahn.
#[test]
fn h19_h21_close_frames_are_answered() {
    let reason = |length| "*".repeat(length);
    let normal = || [Close(Some(1000))];
    let begin = || frame(FIRST_OF_TEXT, &message("")[..10]);
    let mut cases = vec![
        case("5.5.1", [close(1000, "Bye."), close(1000, "")], normal()),
        case("5.5.1", [close(1000, ""), frame(PING, "")], normal()),
        case(
            "5.5.1",
            [close(1000, ""), frame(TEXT, message("after"))],
            normal(),
        ),
        case("5.5.1", [close(1000, ""), frame(TEXT, b"\xff")], normal()),
        case(
            "5.5.1",
            [begin(), close(1000, ""), frame(LAST, "")],
            normal(),
        ),
        case(
            "5.5.1",
            [frame(TEXT, message("before")), close(1000, "")],
            [echo("before"), Close(Some(1000))],
        ),
        case("5.5.1", [frame(CLOSE, "")], [Close(None)]),
        case("5.5.1", [frame(CLOSE, [3])], [Close(Some(1002))]),
        case("5.5.1", [close(1000, reason(123))], normal()),
        case("5.5", [close(1000, reason(124))], [Close(Some(1002))]),
        case(
            "5.5.1",
            [close(1000, b"\xce\xba\xed\xa0\x80")],
            [Close(Some(1007))],
        ),
    ];
    for code in [
        1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999,
    ] {
        cases.push(case("7.4.1", [close(code, "")], [Close(Some(code))]));
        cases.push(case("7.4.1", [close(code, "Why?")], [Close(Some(code))]));
    }
    for code in [
        0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535,
    ] {
        cases.push(case("7.4.2", [close(code, "")], [Close(Some(1002))]));
        cases.push(case("7.4.2", [close(code, "Why?")], [Close(Some(1002))]));
    }
    check(&cases);
}

/// A message that is no event is refused, and the WebSocket stays open.
#[test]
fn h20_j01_texts_that_are_no_events_are_refused() {
    let deep = "[".repeat(10_000);
    let cases = [
        ("\n", "invalid_json"),
        ("{", "invalid_json"),
        ("null", "invalid_json"),
        ("[]", "invalid_json"),
        ("\"response.create\"", "invalid_json"),
        (&deep, "invalid_json"),
        ("{}", "missing_required_parameter"),
        (r#"{"type":1}"#, "invalid_type"),
        (r#"{"type":"session.update"}"#, "invalid_value"),
        (r#"{"type":"response.create","generate":0}"#, "invalid_type"),
    ];
    check(&cases.map(|(text, code)| case("5.6", [frame(TEXT, text)], [Refused(code.to_owned())])));
}

/// A message over a WebSocket may be as long as the limit, in one frame and in fragments of any
/// length; a longer one closes the WebSocket. These are the cases 9 and 10 of Autobahn.
#[test]
fn l05_messages_may_be_as_large_as_the_limit() {
    let (largest, answer) = message_of(LIMIT);
    let (larger, _) = message_of(LIMIT + 1);
    let too_large = || [Close(Some(1009))];
    let mut cases = vec![
        case("10.4", [frame(TEXT, &largest)], [answer.clone()]),
        case("10.4", [frame(TEXT, &larger)], too_large()),
        // The length is enough to refuse it.
        case("10.4", [frames::header(TEXT, u64::MAX >> 1)], too_large()),
        case("5.2", [frames::header(TEXT, u64::MAX)], too_large()),
    ];
    for size in [64, 1300, 65_536] {
        cases.push(case("10.4", [fragments(&largest, size)], [answer.clone()]));
        cases.push(case("10.4", [fragments(&larger, size)], too_large()));
    }
    let many = [(); 500].map(|()| frame(TEXT, message("small")));
    cases.push(case("5.4", many, vec![echo("small"); 500]));
    check(&cases);
}

/// The limit of a message, in bytes.
const LIMIT: usize = 128 << 10;
/// An event of a client that is answered by one with the same input, which goes where the bar is.
const MESSAGE: &str = r#"{"type":"response.steer","input":"|"}"#;
/// Bytes that are no UTF-8: incomplete, too long for their character, surrogates, beyond the last
/// character, and bytes that never occur
/// (<https://www.cl.cam.ac.uk/~mgk25/ucs/examples/UTF-8-test.txt>).
const INVALID_UTF8: [&[u8]; 20] = [
    b"\x80",
    b"\xbf",
    b"\xce*",
    b"\xe1\xbd*",
    b"\xf0\x9d\x9c*",
    b"\xc0\x80",
    b"\xc0\xaf",
    b"\xc1\xbf",
    b"\xe0\x80\xaf",
    b"\xe0\x9f\xbf",
    b"\xf0\x80\x80\xaf",
    b"\xf0\x8f\xbf\xbf",
    b"\xf8\x88\x80\x80\x80",
    b"\xed\xa0\x80",
    b"\xed\xbf\xbf",
    b"\xed\xa0\x80\xed\xb0\x80",
    b"\xf4\x90\x80\x80",
    b"\xf7\xbf\xbf\xbf",
    b"\xfe",
    b"\xff",
];
