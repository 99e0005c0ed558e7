//! Picture replies that are too long to be buffered, and edits that are forwarded in the other
//! format.

use std::io::Cursor;
use std::sync::atomic::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{DynamicImage, ImageFormat, Rgba, RgbaImage};
use memchr::memmem;
use serde_json::json;
use simulator::{Cut, Framing, Play, Protocol, Request as Asked, Simulator, Step, honest};
use testkit::log;
use testkit::requests::request;
use testkit::upstreams::{FaultTest, PATIENT};
use testkit::{CLIENT_KEY, Config, Connection, Form, Gateway, Request, Response};

use crate::GATEWAY;

/// A long reply is relayed byte for byte. It has a length only if all of it has come before its head
/// is sent: a part of it may need a repair later.
#[test]
fn a_long_reply_passes_as_it_came() {
    let test = FaultTest::playing(GATEWAY, honest::answer, "", PATIENT);
    let response = ask(&test);
    let honest = honest_body(&test.simulator.requests()[0]);
    assert!(
        honest.len() > LONG,
        "it is not read before it goes on: {}",
        honest.len()
    );
    assert_eq!(
        (response.status, response.header("content-type")),
        (200, Some("application/json"))
    );
    assert!(response.is_complete() && response.body == honest);
    assert_eq!(outcome(&test, &response), "completed");
    test.end();
}

/// A reply without a length is complete, too: it ends with its JSON.
#[test]
fn a_long_reply_without_a_length_passes_too() {
    let test = FaultTest::playing(
        GATEWAY,
        |request| slowly(&honest_body(request), Framing::Chunked, Step::End),
        "",
        PATIENT,
    );
    let response = ask(&test);
    assert_eq!(
        (response.status, response.header("content-length")),
        (200, None)
    );
    assert!(response.is_complete() && response.body == honest_body(&test.simulator.requests()[0]));
    assert_eq!(outcome(&test, &response), "completed");
    test.end();
}

/// A long reply that is truncated by the upstream is truncated for the client, and never looks
/// complete.
#[test]
fn u08_a_long_reply_breaks_off() {
    for end in [Step::Reset, Step::Close] {
        for framing in [Framing::Chunked, Framing::Length(30_000)] {
            let end = end.clone();
            let play = move |request: &Asked| {
                slowly(&honest_body(request)[..LONG + 4_000], framing, end.clone())
            };
            breaks(play, "", &["upstream_truncated", "upstream_error"]).end();
        }
    }
}

/// A reply whose body ends properly but whose JSON is incomplete never looks complete, with or
/// without a Content-Length.
#[test]
fn u09_a_long_reply_ends_before_its_json() {
    // In a picture, after one, and before the last byte.
    let places: [fn(&[u8]) -> usize; 3] = [
        |_| LONG + 4_000,
        |body| memmem::rfind(body, b"}]").unwrap() + 1,
        |body| body.len() - 1,
    ];
    for place in places {
        for with_length in [true, false] {
            let play = move |request: &Asked| {
                let body = honest_body(request);
                let cut = &body[..place(&body)];
                let framing = if with_length {
                    Framing::Length(cut.len())
                } else {
                    Framing::Chunked
                };
                slowly(cut, framing, Step::End)
            };
            breaks(play, "", &["upstream_truncated"]).end();
        }
    }
}

/// A reply that is known to be incomplete before any of it was forwarded is answered with 502.
#[test]
fn u09_truncated_reply_is_502_before_forwarding() {
    let test = FaultTest::playing(
        GATEWAY,
        |request| honest::answer(request).cut_at(LONG + 4_000, Cut::Clean),
        "",
        PATIENT,
    );
    let response = ask(&test);
    if response.status == 200 {
        // It arrived in several pieces after all.
        assert!(!response.is_complete());
    } else {
        assert_eq!(
            (response.status, &response.json()["error"]["code"]),
            (502, &json!("upstream_error"))
        );
    }
    test.end();
}

/// A reply that is incomplete at the request deadline is aborted.
#[test]
fn u21_a_long_reply_has_a_deadline() {
    let play = |request: &Asked| {
        slowly(
            &honest_body(request)[..LONG + 4_000],
            Framing::Length(30_000),
            Step::Hold,
        )
    };
    let test = breaks(play, "request_timeout = \"1s\"", &["timeout"]);
    test.all_closed();
    test.end();
}

/// A form is forwarded as JSON to an upstream that takes no forms, and nothing of it is lost.
#[test]
fn an_edit_in_a_form_goes_on_as_json() {
    let edit = Sample::new();
    let (simulator, gateway) = editing("edits = \"json\"");
    let response = edit.form().send(gateway.address());
    assert_eq!(response.status, 200, "{}", response.text());
    let request = simulator.requests().remove(0);
    assert_eq!(
        (request.path.as_str(), request.header("content-type")),
        ("/v1/images/edits", Some("application/json"))
    );
    assert_eq!(
        request.json(),
        json!({
            "model": "theirs", "prompt": edit.prompt, "n": 2, "size": "64x48",
            "images": edit.pictures.each_ref().map(|picture| json!({"image_url": url(picture)})),
            "mask": {"image_url": url(&edit.mask)},
        })
    );
    assert_eq!(response.json()["data"].as_array().map(Vec::len), Some(2));
}

/// JSON is forwarded as a form to an upstream that takes only forms, and nothing of it is lost.
#[test]
fn an_edit_in_json_goes_on_as_a_form() {
    let edit = Sample::new();
    let (simulator, gateway) = editing("edits = \"multipart\"");
    let response = edit.json().send(gateway.address());
    assert_eq!(response.status, 200, "{}", response.text());
    let request = simulator.requests().remove(0);
    assert_eq!(request.path, "/v1/images/edits");
    let mut parts = parts(&request);
    parts.sort();
    let text = |name: &str, value: &str| (name.to_owned(), false, value.as_bytes().to_vec());
    let file = |name: &str, bytes: &[u8]| (name.to_owned(), true, bytes.to_vec());
    let mut owed = vec![
        text("model", "theirs"),
        text("prompt", edit.prompt),
        text("n", "2"),
        text("size", "64x48"),
        file("image[]", &edit.pictures[0]),
        file("image[]", &edit.pictures[1]),
        file("mask", &edit.mask),
    ];
    owed.sort();
    assert_eq!(parts, owed);
    assert_eq!(response.json()["data"].as_array().map(Vec::len), Some(2));
}

/// Qualities and other settings that this version does not know, such as for DALL·E 3
/// (<https://platform.openai.com/docs/api-reference/images/create>), reach the server.
#[test]
fn settings_of_other_models_reach_the_server() {
    let (simulator, gateway) = editing("");
    for settings in [
        json!({"quality": "standard"}),
        json!({"quality": "hd", "style": "vivid", "moderation": "low"}),
        json!({"background": "blurred", "output_format": "avif", "output_compression": 101}),
    ] {
        let mut body = json!({"model": "mine", "prompt": "A boat."});
        body.as_object_mut()
            .unwrap()
            .extend(settings.as_object().unwrap().clone());
        let response = gateway.post(CLIENT_KEY, "/v1/images/generations", &body);
        assert_eq!(response.status, 200, "{settings}: {}", response.text());
        body["model"] = json!("theirs");
        assert_eq!(simulator.requests().pop().unwrap().json(), body);

        let form = Form::default()
            .text("prompt", "A boat.")
            .text("model", "mine");
        let texts = settings.as_object().unwrap().iter();
        let form = texts.fold(form, |form, (name, value)| {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            form.text(name, &text)
        });
        let form = form.file("image", &Sample::new().pictures[0]);
        let response = form.request().bearer(CLIENT_KEY).send(gateway.address());
        assert_eq!(response.status, 200, "{settings}: {}", response.text());
        let sent = parts(&simulator.requests().pop().unwrap());
        for (name, value) in settings.as_object().unwrap() {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            let owed = (name.clone(), false, text.into_bytes());
            assert!(sent.contains(&owed), "{name}: {sent:?}");
        }
    }
}

/// No part of a form disappears: unknown texts reach the server, as a form and as JSON, and other
/// files are refused.
#[test]
fn no_part_of_a_form_disappears() {
    let sample = Sample::new();
    let form = || {
        let texts = [
            ("prompt", "A boat."),
            ("model", "mine"),
            ("negative_prompt", "blue"),
            ("guidance_scale", "3.5"),
            ("lora", "one"),
            ("lora", "two"),
            ("tags[]", "a"),
        ];
        let form = texts
            .into_iter()
            .fold(Form::default(), |form, (name, value)| {
                form.text(name, value)
            });
        form.file("images[0]", &sample.pictures[0])
    };
    let masked = || {
        form()
            .file("mask[]", &sample.mask)
            .request()
            .bearer(CLIENT_KEY)
    };
    let (simulator, gateway) = editing("");
    let response = masked().send(gateway.address());
    assert_eq!(response.status, 200, "{}", response.text());
    let mut sent = parts(&simulator.requests().remove(0));
    sent.sort();
    let text = |name: &str, value: &str| (name.to_owned(), false, value.as_bytes().to_vec());
    let mut owed = vec![
        text("prompt", "A boat."),
        text("model", "theirs"),
        text("negative_prompt", "blue"),
        text("guidance_scale", "3.5"),
        text("lora", "one"),
        text("lora", "two"),
        text("tags[]", "a"),
        ("image".to_owned(), true, sample.pictures[0].clone()),
        ("mask".to_owned(), true, sample.mask.clone()),
    ];
    owed.sort();
    assert_eq!(sent, owed);
    let misspelt = form().text("Model", "dearest").request();
    let refused = misspelt.bearer(CLIENT_KEY).send(gateway.address());
    assert_eq!(
        (refused.status, &refused.json()["error"]["param"]),
        (400, &json!("Model"))
    );
    assert_eq!(simulator.requests().len(), 1);
    let marked = || {
        form()
            .file("markup", &sample.pictures[1])
            .request()
            .bearer(CLIENT_KEY)
    };
    assert_eq!(marked().send(gateway.address()).status, 200);
    let sent = parts(&simulator.requests().remove(1));
    let markup = ("markup".to_owned(), true, sample.pictures[1].clone());
    assert!(sent.contains(&markup), "{sent:?}");

    let (simulator, gateway) = editing("edits = \"json\"");
    assert_eq!(masked().send(gateway.address()).status, 200);
    assert_eq!(
        simulator.requests().remove(0).json(),
        json!({
            "model": "theirs", "prompt": "A boat.", "negative_prompt": "blue", "guidance_scale": "3.5",
            "lora": ["one", "two"], "tags": ["a"],
            "images": [{"image_url": url(&sample.pictures[0])}], "mask": {"image_url": url(&sample.mask)},
        })
    );
    // The form of such a file in JSON is not known.
    let refused = marked().send(gateway.address());
    assert_eq!(
        (refused.status, &refused.json()["error"]["param"]),
        (400, &json!("markup"))
    );
}

/// Requests a picture whose reply is long. The upstream continues once the head is there.
fn ask(test: &FaultTest) -> Response {
    test.sent.fetch_add(1, Ordering::Relaxed);
    let body = json!({"model": "images", "prompt": "A wall.", "size": "1536x1024", "output_format": "jpeg"});
    let mut connection = Connection::open(test.gateway.address());
    connection.send(request(Protocol::Images, &body).bytes());
    connection.response_after_head(|| test.simulator.release())
}

/// Asserts that the client does not get a complete reply from an upstream that plays this.
fn breaks(
    play: impl Fn(&Asked) -> Play + Send + Sync + 'static,
    limits: &str,
    outcomes: &[&str],
) -> FaultTest {
    let test = FaultTest::playing(GATEWAY, play, limits, PATIENT);
    let response = ask(&test);
    assert_eq!(response.status, 200, "it had begun");
    assert!(
        !response.is_complete(),
        "{} bytes came as a whole reply",
        response.body.len()
    );
    let outcome = outcome(&test, &response);
    assert!(outcomes.contains(&outcome.as_str()), "{outcome}");
    test
}

/// The outcome of the request in the log.
fn outcome(test: &FaultTest, response: &Response) -> String {
    log::line(&test.gateway, response)["outcome"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Enough of a body to make it a long one, the rest once the test releases it, and its end.
fn slowly(body: &[u8], framing: Framing, end: Step) -> Play {
    let (first, rest) = body.split_at(LONG + 100);
    let head = Play::new().head(200, &[("content-type", "application/json")], framing);
    head.body(first.to_vec())
        .gate()
        .body(rest.to_vec())
        .step(end)
}

fn honest_body(request: &Asked) -> Vec<u8> {
    honest::answer(request).body_bytes()
}

/// A gateway in front of an upstream of Images with these settings.
fn editing(settings: &str) -> (Simulator, Gateway) {
    let simulator = Simulator::honest().unwrap();
    let plan =
        Config::new("").upstream("images", Protocol::Images, &simulator.base_url(), settings);
    let gateway = plan
        .model(
            "mine",
            Protocol::Images,
            r#"[{ upstream = "images", model = "theirs" }]"#,
        )
        .start(GATEWAY);
    (simulator, gateway)
}

/// An edit of two pictures with a mask.
struct Sample {
    prompt: &'static str,
    pictures: [Vec<u8>; 2],
    mask: Vec<u8>,
}

impl Sample {
    fn new() -> Self {
        let picture = |blue| png(|x, y| Rgba([(x * 4) as u8, (y * 5) as u8, blue, 255]));
        let mask = png(|x, _| Rgba([0, 0, 0, if x < 32 { 0 } else { 255 }]));
        Self {
            prompt: "Add a sail; \"red\", at the \u{e9}nd.",
            pictures: [picture(10), picture(200)],
            mask,
        }
    }

    fn json(&self) -> Request {
        let images = self
            .pictures
            .each_ref()
            .map(|picture| json!({"image_url": url(picture)}));
        let body = json!({
            "model": "mine", "prompt": self.prompt, "n": 2, "size": "64x48",
            "images": images, "mask": {"image_url": url(&self.mask)},
        });
        Request::post(EDITS, &body).bearer(CLIENT_KEY)
    }

    fn form(&self) -> Request {
        let texts = [
            ("prompt", self.prompt),
            ("model", "mine"),
            ("n", "2"),
            ("size", "64x48"),
        ];
        let form = texts
            .into_iter()
            .fold(Form::default(), |form, (name, value)| {
                form.text(name, value)
            });
        let [first, second] = &self.pictures;
        form.file("image[]", first)
            .file("image[]", second)
            .file("mask", &self.mask)
            .request()
            .bearer(CLIENT_KEY)
    }
}

fn png(pixel: impl Fn(u32, u32) -> Rgba<u8>) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    DynamicImage::from(RgbaImage::from_fn(64, 48, pixel))
        .write_to(&mut file, ImageFormat::Png)
        .unwrap();
    file.into_inner()
}

fn url(file: &[u8]) -> String {
    format!("data:image/png;base64,{}", STANDARD.encode(file))
}

/// The parts of a form that the upstream received: name, whether it is a file, and its content.
fn parts(request: &Asked) -> Vec<(String, bool, Vec<u8>)> {
    let kind = request.header("content-type").unwrap();
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
    let delimiter = format!("--{boundary}");
    let starts: Vec<_> = memmem::find_iter(&request.body, &delimiter).collect();
    let between = starts
        .windows(2)
        .map(|pair| &request.body[pair[0] + delimiter.len()..pair[1]]);
    between
        .map(|part| {
            let head_end = memmem::find(part, b"\r\n\r\n").unwrap();
            let head = std::str::from_utf8(&part[..head_end]).unwrap();
            let name = head
                .split("; name=\"")
                .nth(1)
                .and_then(|rest| rest.split('"').next())
                .unwrap();
            let bytes = part[head_end + 4..].strip_suffix(b"\r\n").unwrap();
            (
                name.to_owned(),
                head.contains("filename=\""),
                bytes.to_vec(),
            )
        })
        .collect()
}

const EDITS: &str = "/v1/images/edits";
/// More than is buffered before a reply is streamed through.
const LONG: usize = 16 << 10;
