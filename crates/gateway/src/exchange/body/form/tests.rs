//! Forms in every chunking, truncated at every byte, and over every limit.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytesize::ByteSize;
use futures_util::StreamExt;
use http_body::Frame;
use http_body_util::StreamBody;
use images::Source;

use super::*;
use crate::connection::client_body::client_body;
use crate::exchange::body::budget::Budget;

/// Returns a form with the mask before the pictures, text with an accent, and a part with an
/// unknown name.
fn form() -> Vec<u8> {
    let mut form = Vec::new();
    let mut part = |head: &str, data: &[u8]| {
        form.extend_from_slice(b"--sgb\r\nContent-Disposition: form-data; ");
        form.extend_from_slice(head.as_bytes());
        form.extend_from_slice(b"\r\n\r\n");
        form.extend_from_slice(data);
        form.extend_from_slice(b"\r\n");
    };
    part(
        "name=\"mask\"; filename=\"m.png\"\r\nContent-Type: image/png",
        b"\x89PNG\r\n\x1a\nmask",
    );
    part(
        "name=\"prompt\"",
        "Put the first on the second \u{2014} caf\u{e9}".as_bytes(),
    );
    part(
        "name=\"image[]\"; filename=\"upload\"\r\nContent-Type: application/octet-stream",
        b"\x89PNG\r\n\x1a\n\r\n--sg",
    );
    part("name=\"svg[model]\"", b"x");
    part(
        "name=\"image[]\"; filename=\"../../b\"",
        b"\xff\xd8\xff\xe0 a jpeg file",
    );
    part("name=\"n\"", b"2");
    form.extend_from_slice(b"--sgb--\r\n");
    form
}

fn chunks(bytes: &[u8], size: usize) -> Vec<Bytes> {
    bytes.chunks(size).map(Bytes::copy_from_slice).collect()
}

async fn read_within(
    chunks: Vec<Bytes>,
    limits: &Limits,
    budget: &Budget,
) -> Result<Edit, Refusal> {
    let frames =
        futures_util::stream::iter(chunks).map(|chunk| Ok::<_, Infallible>(Frame::data(chunk)));
    let incoming = Incoming::new(
        client_body(StreamBody::new(frames)),
        1 << 24,
        limits,
        budget.share("key"),
    );
    read("sgb".to_owned(), incoming, limits).await
}

/// A budget that one key can take completely.
fn budget(bytes: u64) -> Budget {
    Budget::new(bytes, bytes)
}

async fn read_chunks(chunks: Vec<Bytes>) -> Result<Edit, Refusal> {
    read_within(chunks, &Limits::default(), &budget(1 << 24)).await
}

async fn code(form: &[u8]) -> &'static str {
    read_chunks(chunks(form, 1000))
        .await
        .map_or_else(|refusal| refusal.error.code, |_| "none")
}

/// A form is read the same in chunks of every size, also if its data resembles a boundary.
#[tokio::test]
async fn m09_a_form_is_the_same_in_every_chunking() {
    let form = form();
    let whole = read_chunks(chunks(&form, form.len())).await.unwrap();
    let (generation, sources, mask) = whole.clone().into_sources();
    assert_eq!(
        (generation.prompt.as_str(), generation.n),
        ("Put the first on the second \u{2014} caf\u{e9}", Some(2))
    );
    let types: Vec<_> = sources
        .iter()
        .map(|source| source.media_type().unwrap())
        .collect();
    assert_eq!(
        types,
        ["image/png", "image/jpeg"],
        "detected from their bytes, in the order of their parts"
    );
    assert!(
        matches!(&sources[0], Source::Inline { bytes, .. } if bytes.as_ref() == b"\x89PNG\r\n\x1a\n\r\n--sg")
    );
    assert!(mask.is_some());
    for size in 1..form.len() {
        assert_eq!(
            read_chunks(chunks(&form, size)).await.unwrap(),
            whole,
            "in chunks of {size}"
        );
    }
}

/// A form that is truncated at any byte is refused with 400 and releases its memory.
#[tokio::test]
async fn m02_truncated_form_is_rejected_and_releases_its_memory() {
    let form = form();
    let (limits, budget) = (Limits::default(), budget(4096));
    // The line break after the last boundary is not part of the form.
    for length in 0..form.len() - 2 {
        let refused = read_within(chunks(&form[..length], 7), &limits, &budget)
            .await
            .unwrap_err();
        assert_eq!(
            refused.error.code, "invalid_value",
            "truncated to {length} bytes"
        );
    }
    assert!(
        read_within(chunks(&form, 7), &limits, &budget)
            .await
            .is_ok(),
        "all memory is released"
    );
}

/// A form with too many parts is refused with 400, however small they are.
#[tokio::test]
async fn m03_parts_are_counted() {
    let part = "--sgb\r\nContent-Disposition: form-data; name=\"unknown\"\r\n\r\n\r\n";
    let with = |parts: usize| [part.repeat(parts).as_bytes(), &form()].concat();
    // The form itself has six parts.
    assert_eq!(code(&with(58)).await, "none");
    let refused = read_chunks(chunks(&with(59), 1000)).await.unwrap_err();
    assert!(
        refused.error.message.contains("more than 64 parts"),
        "{}",
        refused.error.message
    );
    let refused = read_chunks(chunks(part.repeat(100_000).as_bytes(), 64 * 1024))
        .await
        .unwrap_err();
    assert!(
        refused.error.message.contains("more than 64 parts"),
        "{}",
        refused.error.message
    );
}

/// A part whose headers do not end is refused after a few kilobytes.
#[tokio::test]
async fn m04_a_head_without_an_end_is_given_up_early() {
    for start in [
        "--sgb\r\nContent-Disposition: form-data; name=\"",
        "no boundary at all ",
        "--sgb",
    ] {
        let pulled = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&pulled);
        let endless = futures_util::stream::iter(0..10_000).map(move |i| {
            counted.fetch_add(1, Ordering::Relaxed);
            let chunk = if i == 0 {
                Bytes::from(start.to_owned())
            } else {
                Bytes::from_static(&[b' '; 1000])
            };
            Ok::<_, Infallible>(Frame::data(chunk))
        });
        let limits = Limits::default();
        let incoming = Incoming::new(
            client_body(StreamBody::new(endless)),
            1 << 24,
            &limits,
            budget(1 << 24).share("key"),
        );
        let refused = read("sgb".to_owned(), incoming, &limits).await.unwrap_err();
        assert!(
            refused.error.message.contains("head of a part is too long"),
            "{}",
            refused.error.message
        );
        assert!(
            pulled.load(Ordering::Relaxed) < 12,
            "{start:?}: {pulled:?} chunks"
        );
    }
}

/// Part headers that are too long or too many are refused with 400, also if they arrive in one
/// chunk.
#[tokio::test]
async fn m04_a_head_in_one_piece_is_held_to_its_limits() {
    let with = |headers: &str| {
        format!(
            "--sgb\r\nContent-Disposition: form-data; name=\"prompt\"\r\n{headers}\r\nx\r\n--sgb--"
        )
        .into_bytes()
    };
    let message = async |headers: String| {
        let form = with(&headers);
        read_chunks(chunks(&form, form.len()))
            .await
            .unwrap_err()
            .error
            .message
    };
    assert!(
        message(format!("X-Long: {}\r\n", "x".repeat(8 << 10)))
            .await
            .contains("head of a part is too long")
    );
    let lines = |count: usize| {
        (0..count)
            .map(|i| format!("X-{i}: x\r\n"))
            .collect::<String>()
    };
    assert!(message(lines(16)).await.contains("more than 16 headers"));
    assert!(
        message(lines(15)).await.contains("image"),
        "only the picture is missing"
    );
}

/// A part that is too large is refused with 413, and the error names the part.
#[tokio::test]
async fn m05_oversized_part_is_rejected_by_name() {
    let limits = Limits {
        picture: ByteSize::b(100),
        ..Limits::default()
    };
    let budget = budget(1 << 24);
    let part = |name: &str, data: &str| {
        format!("--sgb\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{data}\r\n--sgb--")
    };
    for (name, data) in [
        ("image", "x".repeat(101)),
        ("mask", "x".repeat(101)),
        ("prompt", "x".repeat(101)),
    ] {
        let refused = read_within(chunks(part(name, &data).as_bytes(), 50), &limits, &budget)
            .await
            .unwrap_err();
        assert_eq!(
            (refused.error.code, refused.error.param.as_deref()),
            ("request_too_large", Some(name))
        );
    }
    let text = part("prompt", &"x".repeat((1 << 20) + 1));
    let refused = read_chunks(chunks(text.as_bytes(), 5000))
        .await
        .unwrap_err();
    assert_eq!(
        (refused.error.code, refused.error.param.as_deref()),
        ("request_too_large", Some("prompt"))
    );
}

/// Forms without part names, boundaries or CRLF line breaks are refused with 400.
#[tokio::test]
async fn m02_m10_damaged_forms_are_refused() {
    for form in [
        &b""[..],
        b"--sgb--\r\n\x00",
        b"--sgb\r\nContent-Disposition: form-data\r\n\r\nno name\r\n--sgb--",
        b"--sgb\r\n\r\nno head\r\n--sgb--",
        b"--sgb\nContent-Disposition: form-data; name=\"prompt\"\n\nbare line feeds\n--sgb--",
        b"--sgb\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\n\xff\xfe\r\n--sgb--",
        b"--other\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\nx\r\n--other--",
    ] {
        let code = code(form).await;
        assert!(
            ["invalid_value", "missing_required_parameter"].contains(&code),
            "{code}: {form:?}"
        );
    }
}

/// Bytes after the last boundary are ignored if they are few.
#[tokio::test]
async fn m10_an_epilogue_is_short() {
    for (bytes, expected) in [(0, "none"), (1000, "none"), (3000, "invalid_value")] {
        let form = [form(), vec![b'x'; bytes]].concat();
        assert_eq!(code(&form).await, expected, "{bytes} bytes");
    }
}

/// A boundary has 1 to 70 characters of the set that RFC 2046 allows.
#[test]
fn m01_boundary_syntax_follows_rfc_2046() {
    let long = "x".repeat(70);
    for (content_type, expected) in [
        ("multipart/form-data; boundary=abc".to_owned(), Some("abc")),
        (
            "Multipart/Form-Data; charset=utf-8; BOUNDARY=\"a b\"".to_owned(),
            Some("a b"),
        ),
        (
            format!("multipart/form-data; boundary={long}"),
            Some(long.as_str()),
        ),
        (format!("multipart/form-data; boundary={long}x"), None),
        ("multipart/form-data".to_owned(), None),
        ("multipart/form-data; boundary=".to_owned(), None),
        ("multipart/form-data; boundary=\"\"".to_owned(), None),
        ("multipart/form-data; boundary=\"a\\\"b\"".to_owned(), None),
        ("multipart/form-data; boundary=a{b}".to_owned(), None),
        ("multipart/form-data; boundary=\"a;b\"".to_owned(), None),
    ] {
        assert_eq!(
            boundary(&content_type).ok().as_deref(),
            expected,
            "{content_type}"
        );
    }
}
