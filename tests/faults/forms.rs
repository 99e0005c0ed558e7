//! M: malformed multipart forms, and forms with unexpected parts.

use std::net::Shutdown;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use simulator::{Protocol, Simulator};
use testkit::requests::RED;
use testkit::{CLIENT_KEY, Config, Connection, Gateway, Request, Response, await_that};

use crate::GATEWAY;

/// A multipart boundary that is missing, empty, too long, has invalid characters or does not match
/// the body is refused with 400.
#[test]
fn m01_invalid_boundary_is_rejected() {
    let test = EditTest::new("");
    let whole = edit().bytes();
    let long = "b".repeat(71);
    for parameter in [
        "",
        "; boundary",
        "; boundary=",
        "; boundary=\"\"",
        &format!("; boundary={long}"),
        "; boundary=\"s\\gb\"",
        "; boundary=sg{b}",
        "; boundary=SGB",
        "; boundary=\"sgb",
        "; charset=sgb",
    ] {
        let response = test.send(&whole, &format!("multipart/form-data{parameter}"));
        assert_eq!(response.status, 400, "{parameter:?}: {}", response.text());
        assert_eq!(response.json()["error"]["type"], "invalid_request_error");
    }
    test.nobody_was_asked();
    for kind in [
        "multipart/form-data; boundary=\"sgb\"",
        "Multipart/Form-Data; charset=utf-8; Boundary=sgb",
    ] {
        assert_eq!(test.send(&whole, kind).status, 200, "{kind}");
    }
}

/// Repeated settings and masks are refused with 400 that names the field, pictures are accepted under
/// any of their names, and texts and files with unknown names are sent on.
#[test]
fn m06_parts_that_come_twice_or_are_unknown() {
    let test = EditTest::new("");
    for (name, value) in [
        ("prompt", "y"),
        ("model", "images"),
        ("size", "64x64"),
        ("stream", "false"),
    ] {
        let response = test.post(edit().text(name, value).text(name, value));
        assert_eq!(
            (response.status, &response.json()["error"]["param"]),
            (400, &json!(name)),
            "{}",
            response.text()
        );
    }
    let response = test.post(
        edit()
            .file("mask", "m.png", &png())
            .file("mask", "m.png", &png()),
    );
    assert_eq!(
        (response.status, &response.json()["error"]["param"]),
        (400, &json!("mask")),
        "{}",
        response.text()
    );
    let response = test.post(edit().part("filename=\"a.png\"", b"nameless"));
    assert_eq!(response.status, 400, "{}", response.text());
    test.nobody_was_asked();
    let response = test.post(edit().file("other", "x.bin", b"\0\x01"));
    assert_eq!(response.status, 200, "{}", response.text());
    let forwarded = test.forwarded_body();
    assert!(
        forwarded.contains("name=\"other\"; filename=\"x.bin\"")
            && forwarded.contains("\r\n\r\n\0\x01\r\n"),
        "{forwarded}"
    );
    let mixed = edit()
        .file("image[]", "b.png", &png())
        .file("image", "c.png", &png());
    let response = test.post(mixed.text("unknown", "x"));
    assert_eq!(response.status, 200, "{}", response.text());
    let forwarded = test.forwarded_body();
    assert_eq!(
        forwarded.matches("name=\"image[]\"").count(),
        3,
        "{forwarded}"
    );
    assert!(
        forwarded.contains("name=\"unknown\"\r\n\r\nx\r\n"),
        "{forwarded}"
    );
}

/// The file name that a client sends is neither used, logged nor forwarded: the upstream receives a
/// name of the gateway's.
#[test]
fn m07_names_of_files_are_of_no_use() {
    let test = EditTest::new("");
    for name in [
        "filename=\"../../canary.png\"",
        "filename=\"/etc/canary\"",
        "filename=\"C:\\\\canary.exe\"",
        "filename=\"a\\\"; name=\\\"mask\\\"; canary=\\\"b\"",
        "filename=\"canary\u{202e}gnp.%1b[31m\"",
        "filename*=UTF-8''..%2f..%2fcanary%00.png",
        "filename=\"plain\"; filename*=UTF-8''canary",
        "filename=\"\"",
    ] {
        let form = Form::new().text("prompt", "x").text("model", "images");
        let response = test.post(form.part(&format!("name=\"image\"; {name}"), &png()));
        assert_eq!(response.status, 200, "{name}: {}", response.text());
        assert!(!response.text().contains("canary"));
        let forwarded = test.forwarded_body();
        assert!(
            forwarded.contains("name=\"image\"; filename=\"picture.png\"")
                && !forwarded.contains("canary"),
            "{forwarded}"
        );
    }
    for name in [&"a".repeat(64 << 10), "\u{1b}[31m", "a\0b", "a\nb"] {
        let response = test.post(edit().part(
            &format!("name=\"image\"; filename=\"{name}canary\""),
            &png(),
        ));
        assert_eq!(response.status, 400, "{name:.20}: {}", response.text());
        let id = response.header("x-request-id").unwrap().to_owned();
        await_that("it is logged", || {
            test.gateway.log.lock().unwrap().contains(&id)
        });
    }
    assert!(!test.gateway.log.lock().unwrap().contains("canary"));
}

/// Encoding headers of a part are ignored: file parts are raw bytes, text parts are UTF-8, and a
/// nested form is not accepted as a picture.
#[test]
fn m08_codings_of_parts_are_not_heeded() {
    let test = EditTest::new("");
    let image = |headers: &str, data: &[u8]| {
        let form = Form::new().text("prompt", "x").text("model", "images");
        test.post(form.part(
            &format!("name=\"image\"; filename=\"a\"\r\n{headers}"),
            data,
        ))
    };
    for headers in [
        "Content-Transfer-Encoding: base64",
        "Content-Transfer-Encoding: quoted-printable\r\nContent-Type: image/png",
        "Content-Encoding: gzip",
        "Content-Type: text/html",
    ] {
        assert_eq!(
            image(headers, &png()).status,
            200,
            "{headers}: the bytes are a picture"
        );
    }
    let nested = b"--inner\r\nContent-Disposition: file; filename=\"a.png\"\r\n\r\nx\r\n--inner--";
    for (headers, data) in [
        ("Content-Transfer-Encoding: base64", RED.as_bytes()),
        ("Content-Type: multipart/mixed; boundary=inner", nested),
    ] {
        let response = image(headers, data);
        assert_eq!(
            (response.status, &response.json()["error"]["param"]),
            (400, &json!("image")),
            "{}",
            response.text()
        );
    }
    let latin = |data: &[u8]| {
        let head = "name=\"prompt\"\r\nContent-Type: text/plain; charset=iso-8859-1";
        test.post(
            Form::new()
                .part(head, data)
                .text("model", "images")
                .file("image", "a", &png()),
        )
        .status
    };
    assert_eq!(
        (latin(b"caf\xe9"), latin("caf\u{e9}".as_bytes())),
        (400, 200)
    );
}

/// The preamble before the first boundary and the epilogue after the last are ignored, and
/// boundaries may have trailing spaces.
#[test]
fn m10_preamble_and_epilogue_are_ignored() {
    let test = EditTest::new("");
    let whole = edit().bytes();
    let text = String::from_utf8_lossy(&whole).into_owned();
    let padded: Vec<u8> = {
        let place = text.find("--sgb\r\n").unwrap() + "--sgb".len();
        [&whole[..place], b" \t", &whole[place..]].concat()
    };
    for form in [
        [b"This is a form.\r\n", &whole[..]].concat(),
        [&whole[..], b"And that was it.\r\n"].concat(),
        padded,
    ] {
        let response = test.send(&form, KIND);
        assert_eq!(
            response.status,
            200,
            "{:.80}: {}",
            String::from_utf8_lossy(&form),
            response.text()
        );
    }
}

/// No upstream request is sent before the body of a form has ended, even after its last boundary: a
/// client that disconnects there is noticed.
#[test]
fn m10_c01_a_form_ends_with_its_body() {
    let test = EditTest::new("");
    let form = edit().bytes();
    let head = "POST /v1/images/edits HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\nauthorization: Bearer ";
    let mut open = format!(
        "{head}{CLIENT_KEY}\r\ncontent-type: {KIND}\r\n\r\n{:x}\r\n",
        form.len()
    )
    .into_bytes();
    open.extend_from_slice(&form);
    let mut raw = Connection::open(test.gateway.address());
    assert!(raw.try_send(&open));
    await_that("it is read", || {
        test.gateway.sum("sluicegate_connections ") == 1.0
    });
    drop(raw);
    let gone = "sluicegate_requests_total{route=\"image_edits\",status=\"499\"";
    await_that("it is seen to be gone", || test.gateway.sum(gone) == 1.0);
    test.nobody_was_asked();
}

/// A form whose body does not arrive is refused with 408, and no upstream request is sent.
#[test]
fn m11_a_form_that_does_not_come_is_given_up() {
    let test = EditTest::new("body_idle = \"200ms\"");
    let form = edit().bytes();
    let whole = request(&form, KIND).bytes();
    for left in [10, 40, form.len()] {
        let mut connection = Connection::open(test.gateway.address());
        connection.send(&whole[..whole.len() - left]);
        let response = connection.response();
        assert_eq!(
            (response.status, &response.json()["error"]["code"]),
            (408, &json!("request_timeout")),
            "{}",
            response.text()
        );
        assert!(connection.is_closed());
    }
    test.nobody_was_asked();
}

/// A client that disconnects in the middle of its form is counted as `client_closed`, no upstream
/// request is sent, and its memory is released.
#[test]
fn m12_a_client_that_leaves_in_the_middle_of_its_form() {
    // There is room for one form at a time.
    let test =
        EditTest::new("edit_body = \"64KiB\"\njson_body = \"64KiB\"\nbody_memory = \"64KiB\"");
    let large = edit().text("unknown", &"x".repeat(40 << 10));
    let whole = request(&large.bytes(), KIND).bytes();
    for how in [Shutdown::Both, Shutdown::Write] {
        let before = test.gateway.sum(GONE);
        let mut connection = Connection::open(test.gateway.address());
        connection.send(&whole[..whole.len() - 10]);
        connection.disconnect(how);
        await_that("it is counted", || test.gateway.sum(GONE) == before + 1.0);
    }
    test.nobody_was_asked();
    assert_eq!(
        test.post(edit().text("unknown", &"x".repeat(40 << 10)))
            .status,
        200,
        "there is room again"
    );
}

/// A gateway in front of a conforming upstream, which receives edits as forms.
struct EditTest {
    gateway: Gateway,
    simulator: Simulator,
}

impl EditTest {
    fn new(limits: &str) -> Self {
        let simulator = Simulator::honest().unwrap();
        let plan = Config::new(limits).upstream(
            "images",
            Protocol::Images,
            &simulator.base_url(),
            "edits = \"multipart\"",
        );
        let gateway = plan
            .model("images", Protocol::Images, r#"[{ upstream = "images" }]"#)
            .start(GATEWAY);
        Self { gateway, simulator }
    }

    fn send(&self, form: &[u8], kind: &str) -> Response {
        request(form, kind).send(self.gateway.address())
    }

    fn post(&self, form: Form) -> Response {
        self.send(&form.bytes(), KIND)
    }

    /// Returns the body of the last request that the upstream received.
    fn forwarded_body(&self) -> String {
        String::from_utf8_lossy(&self.simulator.requests().pop().unwrap().body).into_owned()
    }

    #[track_caller]
    fn nobody_was_asked(&self) {
        assert!(self.simulator.requests().is_empty());
        self.gateway.await_quiet();
        assert_eq!(self.gateway.metric("sluicegate_panics_total"), 0.0);
    }
}

fn request(form: &[u8], kind: &str) -> Request {
    Request::post_bytes("/v1/images/edits", form)
        .bearer(CLIENT_KEY)
        .header("content-type", kind)
}

/// A builder of multipart forms.
struct Form(Vec<u8>);

impl Form {
    fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a part with these disposition parameters, which may be followed by further headers.
    fn part(mut self, head: &str, data: &[u8]) -> Self {
        self.0
            .extend(format!("--sgb\r\nContent-Disposition: form-data; {head}\r\n\r\n").bytes());
        self.0.extend(data);
        self.0.extend(b"\r\n");
        self
    }

    fn text(self, name: &str, value: &str) -> Self {
        self.part(&format!("name=\"{name}\""), value.as_bytes())
    }

    fn file(self, name: &str, file: &str, data: &[u8]) -> Self {
        self.part(&format!("name=\"{name}\"; filename=\"{file}\""), data)
    }

    fn bytes(mut self) -> Vec<u8> {
        self.0.extend(b"--sgb--\r\n");
        self.0
    }
}

/// A valid edit.
fn edit() -> Form {
    Form::new()
        .text("prompt", "x")
        .text("model", "images")
        .file("image", "a.png", &png())
}

fn png() -> Vec<u8> {
    STANDARD.decode(RED).unwrap()
}

const KIND: &str = "multipart/form-data; boundary=sgb";
/// The counter of requests whose clients disconnected.
const GONE: &str = "sluicegate_requests_total{route=\"image_edits\",status=\"499\"";
