//! Whole replies with pictures: those that pass, and those that are no success.

use engine::EngineError;
use http_body_util::BodyExt;
use sluicegate_upstream::ImageReply;

use crate::world::{Peer, asking, ok, one};

/// What a reply with status 200 is: its bytes as far as they are handed out, and how it failed.
async fn read(reply: String) -> (Vec<u8>, Option<EngineError>) {
    let serve = move |_, mut peer: Peer| {
        let reply = reply.clone();
        async move {
            peer.request().await;
            peer.say(reply.into_bytes()).await;
        }
    };
    let (_world, upstream) = one(serve);
    let incoming = upstream.send(&asking("{}")).await.unwrap();
    let mut passing = match ImageReply::read(incoming, &upstream).await {
        Ok(ImageReply::Whole(whole, _)) => return (whole.to_vec(), None),
        Ok(ImageReply::StreamingReply(passing)) => passing,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut passed = Vec::new();
    while let Some(frame) = passing.frame().await {
        match frame {
            Ok(frame) => passed.extend_from_slice(&frame.into_data().unwrap()),
            Err(error) => return (passed, Some(error)),
        }
    }
    (passed, None)
}

/// A reply, with its length told and without.
fn framed(body: &str) -> [String; 2] {
    [ok(body), format!("HTTP/1.1 200 OK\r\n\r\n{body}")]
}

fn reply(before: &str, picture: usize, after: &str) -> String {
    let settled = r#""created":1,"background":"opaque","output_format":"png","quality":"low","size":"16x16""#;
    format!(r#"{{{before}{settled},"data":[{{"b64_json":"{}"}}]{after}}}"#, "A".repeat(picture))
}

#[tokio::test]
async fn pictures_of_any_length_pass() {
    let usage = r#","usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2},"error":null"#;
    let note = format!(r#""note":"{}","#, "\\\"error\\\":1".repeat(2000));
    let long_note = format!(r#""note":"{}","#, "x".repeat(200 << 10));
    for body in [
        reply("", 4, usage),
        reply("", 100 << 10, usage),
        reply(r#""error":null,"#, 100 << 10, ""),
        reply(&note, 4, usage),
        reply(&note, 100 << 10, usage),
        reply(&long_note, 4, usage),
    ] {
        for framed in framed(&body) {
            let (passed, failed) = read(framed).await;
            assert!(failed.is_none(), "{failed:?}");
            assert!(passed == body.as_bytes(), "{} bytes of {}", passed.len(), body.len());
        }
    }
}

/// An error in a reply of success is a failure, however long it is.
#[tokio::test]
async fn an_error_of_any_length_is_no_success() {
    for length in [1, 20 << 10, 60 << 10, 200 << 10] {
        let message = "x".repeat(length);
        let error = format!(r#""error":{{"message":"{message}","type":"server_error","param":null,"code":null}}"#);
        for body in [format!("{{{error}}}"), format!(r#"{{"created":1,"note":"{message}",{error},"data":[]}}"#)] {
            for framed in framed(&body) {
                let (passed, failed) = read(framed).await;
                assert!(matches!(failed, Some(EngineError::Upstream(_))), "{length}: {failed:?}");
                assert!(passed.len() < body.len(), "{length}: nobody takes it for whole");
                assert!(length > 60 << 10 || passed.is_empty(), "{length}: {} bytes were passed", passed.len());
            }
        }
    }
}

#[tokio::test]
async fn an_error_after_the_pictures_breaks_the_reply_off() {
    for picture in [20 << 10, 300 << 10] {
        let body = reply("", picture, r#","error":{"message":"It failed."}"#);
        for framed in framed(&body) {
            let (passed, failed) = read(framed).await;
            assert!(matches!(failed, Some(EngineError::Upstream(_))), "{failed:?}");
            assert!(passed.len() < body.len());
        }
    }
}

#[tokio::test]
async fn a_long_reply_without_pictures_is_no_success() {
    for length in [20 << 10, 200 << 10] {
        for data in ["", r#","data":null"#] {
            let body = format!(r#"{{"message":"{}"{data}}}"#, "x".repeat(length));
            for framed in framed(&body) {
                let (passed, failed) = read(framed).await;
                assert!(matches!(failed, Some(EngineError::Upstream(_))), "{failed:?}");
                assert!(passed.len() < body.len());
            }
        }
    }
}
