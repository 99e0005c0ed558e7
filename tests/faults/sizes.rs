//! L and M: the size limits are exact on every route and upstream protocol.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testkit::requests::RED;
use testkit::{CLIENT_KEY, Form, Request, exchange};

use crate::GATEWAY;
use crate::roads::{Asks, Road, roads};

/// A byte less than the limit, the limit and a byte more, each with whether it is accepted.
fn around(limit: usize) -> [(usize, bool); 3] {
    [(limit - 1, true), (limit, true), (limit + 1, false)]
}

/// On every route a body may be as long as its limit, with Content-Length and chunked; a longer one
/// is refused with 413, and no upstream request is sent. Edits have a separate limit.
#[test]
fn l05_a_body_may_be_as_large_as_the_limit_on_every_road() {
    let (gateway, simulator) =
        GATEWAY.with_upstream("json_body = \"16KiB\"\nedit_body = \"24KiB\"");
    let mut forwarded = 0;
    for road in roads() {
        let limit = if matches!(road.asks, Asks::Edit | Asks::Form) {
            24 << 10
        } else {
            16 << 10
        };
        for (length, is_accepted) in around(limit) {
            let body = road.body_of(length);
            let response = road.with(&body).send(gateway.address());
            if is_accepted {
                assert_eq!(
                    response.status,
                    200,
                    "{road:?} of {length}: {}",
                    response.text()
                );
            } else {
                assert_eq!(
                    road.refusal(&response),
                    (413, "request_too_large".to_owned()),
                    "{road:?} of {length}"
                );
                assert_eq!(response.header("x-should-retry"), Some("false"));
            }
            let status = if is_accepted { 200 } else { 413 };
            assert_eq!(
                exchange(gateway.address(), in_chunks(road, &body)).statuses(),
                [status],
                "{road:?} of {length}"
            );
            forwarded += if is_accepted { 2 } else { 0 };
        }
        assert_eq!(
            simulator.requests().len(),
            forwarded,
            "{road:?}: no upstream request is sent over the limit"
        );
    }
    gateway.await_quiet();
}

/// A picture of an edit, in any position, may be as large as the limit; a larger one is refused
/// with 413 with its field or part as `param`.
#[test]
fn m05_a_picture_may_be_as_large_as_the_limit_wherever_it_is() {
    let (gateway, simulator) = GATEWAY.with_upstream("picture = \"10KiB\"");
    let mut forwarded = 0;
    for (size, is_accepted) in around(10 << 10) {
        for (request, field) in edits(&red(), &picture(size)) {
            let response = request.bearer(CLIENT_KEY).send(gateway.address());
            if is_accepted {
                assert_eq!(
                    response.status,
                    200,
                    "{field} of {size}: {}",
                    response.text()
                );
                forwarded += 1;
                continue;
            }
            let error = &response.json()["error"];
            let found = (response.status, &error["code"], &error["param"]);
            assert_eq!(
                found,
                (413, &json!("request_too_large"), &json!(field)),
                "{error}"
            );
        }
    }
    assert_eq!(
        simulator.requests().len(),
        forwarded,
        "no upstream request is sent over the limit"
    );
    gateway.await_quiet();
}

/// On every route path and query may be as long as the limit; longer ones are refused with 414 in
/// the error format of its protocol.
#[test]
fn l04_a_target_may_be_as_long_as_the_limit_on_every_route() {
    let (gateway, _simulator) = GATEWAY.with_upstream("target = \"100\"");
    let query = |path: &str, length: usize| format!("?{}", "x".repeat(length - path.len() - 1));
    for (length, is_accepted) in around(100) {
        for road in roads() {
            let response = road.to(&query(road.path(), length)).send(gateway.address());
            let owed = (414, road.code("target_too_long", "invalid_request_error"));
            assert!(
                if is_accepted {
                    response.status == 200
                } else {
                    road.refusal(&response) == owed
                },
                "{road:?} of {length}"
            );
        }
        for path in ["/v1/models", "/v1/models/chat"] {
            let request =
                Request::get(&(path.to_owned() + &query(path, length))).bearer(CLIENT_KEY);
            assert_eq!(
                request.send(gateway.address()).status,
                if is_accepted { 200 } else { 414 },
                "{path} of {length}"
            );
        }
    }
}

/// On every route a head that is followed by a body may be as long as the limit; a longer one is
/// refused with 431.
#[test]
fn l04_a_head_may_be_as_long_as_the_limit_on_every_route() {
    let (gateway, simulator) = GATEWAY.with_upstream("head = \"10KiB\"");
    for road in roads() {
        let body = road.body_of(1000);
        for (length, is_accepted) in around(10 << 10) {
            let head = |filler: &str| {
                head(
                    road,
                    &format!("content-length: {}\r\nx: {filler}\r\n", body.len()),
                )
            };
            let filler = "y".repeat(length - head("").len());
            let status = if is_accepted { 200 } else { 431 };
            let heads = exchange(
                gateway.address(),
                [head(&filler).as_bytes(), &body].concat(),
            );
            assert_eq!(heads.statuses(), [status], "{road:?} of {length}");
        }
    }
    assert_eq!(simulator.requests().len(), 2 * roads().len());
}

/// The head of a request with these additional lines, after which the connection is closed.
fn head(road: Road, lines: &str) -> String {
    let (path, kind) = (road.path(), road.kind());
    format!(
        "POST {path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {CLIENT_KEY}\r\nconnection: close\r\n\
         content-type: {kind}\r\n{lines}\r\n"
    )
}

/// A request whose body is in two chunks.
fn in_chunks(road: Road, body: &[u8]) -> Vec<u8> {
    let mut bytes = head(road, "transfer-encoding: chunked\r\n").into_bytes();
    for chunk in [&body[..body.len() / 2], &body[body.len() / 2..]] {
        bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
        bytes.extend(chunk);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\n\r\n");
    bytes
}

/// Edits with `picture` in each possible place and `small` in the others, and the `param` of each
/// place.
fn edits(small: &[u8], picture: &[u8]) -> Vec<(Request, &'static str)> {
    let json = |change: Value| {
        let mut edit =
            json!({"model": "images", "prompt": "x", "images": [{"image_url": url(small)}]});
        edit.as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        Request::post("/v1/images/edits", &edit)
    };
    let form = Form::default().text("model", "images").text("prompt", "x");
    let [small_url, picture_url] =
        [small, picture].map(|picture| json!({"image_url": url(picture)}));
    vec![
        (
            json(json!({"images": [picture_url]})),
            "images[0].image_url",
        ),
        (
            json(json!({"images": [small_url, picture_url]})),
            "images[1].image_url",
        ),
        (json(json!({"mask": picture_url})), "mask"),
        (form.clone().file("image", picture).request(), "image"),
        (
            form.clone()
                .file("image[]", small)
                .file("image[]", picture)
                .request(),
            "image[]",
        ),
        (
            form.file("image", small).file("mask", picture).request(),
            "mask",
        ),
    ]
}

fn red() -> Vec<u8> {
    STANDARD.decode(RED).unwrap()
}

/// A picture file of this size. Readers of pictures ignore bytes after the end of the image.
fn picture(size: usize) -> Vec<u8> {
    let mut picture = red();
    picture.resize(size, 0);
    picture
}

fn url(picture: &[u8]) -> String {
    format!("data:image/png;base64,{}", STANDARD.encode(picture))
}
