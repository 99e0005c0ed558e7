//! Complete image replies: successes, and errors with status 200.

use engine::EngineError;
use http_body_util::BodyExt;
use network::{Peer, ok, post, send_once, single_host};
use sluicegate_answer::{ImageReply, Reported};
use strategies::png;

/// Reads a reply with status 200. Returns the bytes that were returned before its end, and its
/// error, if any.
async fn read(reply: String) -> (Vec<u8>, Option<EngineError>) {
    let serve = move |_, mut peer: Peer| {
        let reply = reply.clone();
        async move {
            peer.request().await;
            peer.send(reply.into_bytes()).await;
        }
    };
    let (_world, upstream) = single_host(serve);
    let incoming = send_once(&upstream, &post("{}")).await.unwrap();
    let mut streaming = match ImageReply::read(incoming, &Reported::default()).await {
        Ok(ImageReply::Whole(reply, _)) => return (reply.to_vec(), None),
        Ok(ImageReply::StreamingReply(streaming)) => streaming,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut returned = Vec::new();
    while let Some(frame) = streaming.frame().await {
        match frame {
            Ok(frame) => returned.extend_from_slice(&frame.into_data().unwrap()),
            Err(error) => return (returned, Some(error)),
        }
    }
    (returned, None)
}

/// A response with and without a `Content-Length`.
fn framed(body: &str) -> [String; 2] {
    [ok(body), format!("HTTP/1.1 200 OK\r\n\r\n{body}")]
}

fn reply(before: &str, picture: usize, after: &str) -> String {
    let traits =
        r#""created":1,"background":"opaque","output_format":"png","quality":"low","size":"16x16""#;
    format!(
        r#"{{{before}{traits},"data":[{{"b64_json":"{}"}}]{after}}}"#,
        png(picture)
    )
}

#[tokio::test]
async fn pictures_of_any_length_pass() {
    let usage = r#","usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2},"error":null"#;
    let note = format!(r#""note":"{}","#, "\\\"error\\\":1".repeat(2000));
    let long_note = format!(r#""note":"{}","#, "x".repeat(200 << 10));
    for body in [
        reply("", 96, usage),
        reply("", 100 << 10, usage),
        reply(r#""error":null,"#, 100 << 10, ""),
        reply(&note, 96, usage),
        reply(&note, 100 << 10, usage),
        reply(&long_note, 96, usage),
    ] {
        for framed in framed(&body) {
            let (returned, failed) = read(framed).await;
            assert!(failed.is_none(), "{failed:?}");
            assert!(
                returned == body.as_bytes(),
                "{} bytes of {}",
                returned.len(),
                body.len()
            );
        }
    }
}

/// Servers send white space while a model works. It is not forwarded, and no part of the length.
#[tokio::test]
async fn white_space_before_pictures_does_not_count() {
    for picture in [96, 100 << 10] {
        let body = reply("", picture, "");
        for blanks in [10, 2 << 10, 200 << 10] {
            for framed in framed(&format!("{}{body}", "\n".repeat(blanks))) {
                let (returned, failed) = read(framed).await;
                assert!(failed.is_none(), "{blanks}: {failed:?}");
                assert!(returned == body.as_bytes(), "{blanks}");
            }
        }
    }
}

/// An invalid image is a failure, and the reply never looks complete.
#[tokio::test]
async fn a_picture_of_any_length_has_its_head_and_its_tail() {
    for length in [96, 20 << 10, 100 << 10, 300 << 10] {
        let whole = png(length);
        let cut = &whole[..length - 12];
        let foreign = whole.replacen('A', "!", 1);
        let padded = format!("{}={}", &whole[..32], &whole[32..]);
        for picture in ["", cut, &foreign, &padded, TEXT] {
            let body = reply("", length, "").replace(&whole, picture);
            let later =
                format!(r#"{{"data":[{{"b64_json":"{whole}"}},{{"b64_json":"{picture}"}}]}}"#);
            for body in [body, later] {
                for framed in framed(&body) {
                    let (returned, failed) = read(framed).await;
                    assert!(
                        matches!(failed, Some(EngineError::Upstream(_))),
                        "{length}: {failed:?}"
                    );
                    assert!(returned.len() < body.len(), "the reply looks complete");
                }
            }
        }
    }
}

/// Images that are URLs are buffered, so that whoever needs their bytes can fetch them.
#[tokio::test]
async fn urls_are_buffered() {
    let url = format!("https://pictures.example/a.png?{}", "x".repeat(20 << 10));
    let body = format!(r#"{{"data":[{{"url":"{url}"}},{{"url":"{url}"}}]}}"#);
    for framed in framed(&body) {
        let (returned, failed) = read(framed).await;
        assert!(failed.is_none(), "{failed:?}");
        assert!(returned == body.as_bytes());
    }
}

/// An error in a reply with status 200 is a failure, however long it is.
#[tokio::test]
async fn an_error_of_any_length_is_no_success() {
    for length in [1, 20 << 10, 60 << 10, 200 << 10] {
        let message = "x".repeat(length);
        let error = format!(
            r#""error":{{"message":"{message}","type":"server_error","param":null,"code":null}}"#
        );
        for body in [
            format!("{{{error}}}"),
            format!(r#"{{"created":1,"note":"{message}",{error},"data":[]}}"#),
        ] {
            for framed in framed(&body) {
                let (returned, failed) = read(framed).await;
                assert!(
                    matches!(failed, Some(EngineError::Upstream(_))),
                    "{length}: {failed:?}"
                );
                assert!(
                    returned.len() < body.len(),
                    "{length}: the reply looks complete"
                );
                assert!(
                    length > 60 << 10 || returned.is_empty(),
                    "{length}: {} bytes were returned",
                    returned.len()
                );
            }
        }
    }
}

#[tokio::test]
async fn an_error_after_the_pictures_breaks_the_reply_off() {
    for picture in [20 << 10, 300 << 10] {
        let body = reply("", picture, r#","error":{"message":"It failed."}"#);
        for framed in framed(&body) {
            let (returned, failed) = read(framed).await;
            assert!(
                matches!(failed, Some(EngineError::Upstream(_))),
                "{failed:?}"
            );
            assert!(returned.len() < body.len());
        }
    }
}

#[tokio::test]
async fn a_long_reply_without_pictures_is_no_success() {
    for length in [20 << 10, 200 << 10] {
        for data in ["", r#","data":null"#] {
            let body = format!(r#"{{"message":"{}"{data}}}"#, "x".repeat(length));
            for framed in framed(&body) {
                let (returned, failed) = read(framed).await;
                assert!(
                    matches!(failed, Some(EngineError::Upstream(_))),
                    "{failed:?}"
                );
                assert!(returned.len() < body.len());
            }
        }
    }
}

/// The base64 of an error message.
const TEXT: &str = "eyJlcnJvciI6Im5vIGltYWdlIn0=";
