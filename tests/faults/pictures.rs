//! F and I: pictures in requests, by address and by their bytes.

use serde_json::{Value, json};
use simulator::{Protocol, Simulator};

use crate::client::Response;
use crate::house::{CLIENT_KEY, House, Plan};
use crate::question::RED;

/// An address that an edit names is judged before it goes anywhere, also where only a form for an upstream needs it.
#[test]
fn f01_f02_f15_addresses_of_edits_lead_nowhere_inside() {
    let scene = Scene::new();
    for url in [
        "http://pictures.example/a.png",
        "ftp://pictures.example/a.png",
        "file:///etc/passwd",
        "gopher://pictures.example/a.png",
        "//pictures.example/a.png",
        "pictures.example/a.png",
        "https://user:word@pictures.example/a.png",
        "https://pictures.example:8443/a.png",
        "https:///a.png",
        "https://pictures.example/a.png#b",
        "https://localhost./a.png",
        "https://127.1/a.png",
        "https://2130706433/a.png",
        "https://0x7f.1/a.png",
        "https://0177.0.0.1/a.png",
        "https://\u{2460}\u{2461}\u{2466}.0.0.1/a.png",
        "https://[::ffff:127.0.0.1]/a.png",
        "https://[fe80::1%25lo]/a.png",
        "https://169.254.169.254/latest/meta-data",
        "https://[fd00:ec2::254]/latest/meta-data",
        "https://ok.example\\@127.0.0.1/a.png",
    ] {
        let told = scene.edit(&json!([{"image_url": url}]));
        assert_eq!((told.status, &told.json()["error"]["param"]), (400, &json!("images[0].image_url")), "{url}");
        assert_eq!(told.json()["error"]["code"], "invalid_value", "{url}");
    }
    scene.nobody_was_asked();
}

/// More pictures than one edit may have are 400 before any is fetched.
#[test]
fn f11_an_edit_has_sixteen_pictures_at_most() {
    let scene = Scene::new();
    let many: Vec<_> = (0..17).map(|i| json!({"image_url": format!("https://pictures.example/{i}.png")})).collect();
    let told = scene.edit(&many.into());
    assert_eq!((told.status, &told.json()["error"]["param"]), (400, &json!("images")), "{}", told.text());
    assert_eq!(scene.house.sum("sluicegate_fetches_total"), 0.0);
    scene.nobody_was_asked();
}

/// Base64 is of the standard alphabet with its padding and nothing between, and the rest of a Data URL is as it should
/// be.
#[test]
fn i04_i05_data_urls_are_read_strictly() {
    let scene = Scene::new();
    let data = |data: &str| format!("data:image/png;base64,{data}");
    let (unpadded, spaced) = (RED.trim_end_matches('='), format!("{} {}", &RED[..8], &RED[8..]));
    for url in [
        data(""),
        data(unpadded),
        data(&format!("{RED}=")),
        data(&format!("{RED}AAAA")),
        data(&spaced),
        data(&RED.replacen('A', "\n", 1)),
        data(&RED.replace('+', "-").replace('/', "_")),
        data(&RED.replacen('A', "%41", 1)),
        data(&RED.replacen('A', "\u{e4}", 1)),
        data(&RED[..21]),
        format!("data:image/png,{RED}"),
        format!("data:image/png;base64{RED}"),
        format!("data:text/html;base64,{RED}"),
        format!("data:image/svg+xml;base64,{RED}"),
        format!("data:{};base64,{RED}", "x".repeat(100_000)),
        format!("data;image/png;base64,{RED}"),
        RED.to_owned(),
    ] {
        let told = scene.edit(&json!([{"image_url": url}]));
        let shown: String = url.chars().take(60).collect();
        assert_eq!((told.status, &told.json()["error"]["param"]), (400, &json!("images[0].image_url")), "{shown}");
        assert!(told.body.len() < 1 << 10, "{} bytes tell it", told.body.len());
    }
    scene.nobody_was_asked();
    assert_eq!(scene.edit(&json!([{"image_url": data(RED)}])).status, 200);
}

/// A gateway before an honest server, which gets edits as forms.
struct Scene {
    house: House,
    simulator: Simulator,
}

impl Scene {
    fn new() -> Self {
        let simulator = Simulator::honest().unwrap();
        let plan = Plan::new("").upstream("images", Protocol::Images, &simulator.base_url(), "edits = \"multipart\"");
        let house = plan.model("images", Protocol::Images, r#"[{ upstream = "images" }]"#).start();
        Self { house, simulator }
    }

    fn edit(&self, images: &Value) -> Response {
        let body = json!({"model": "images", "prompt": "x", "images": images});
        self.house.gateway.post(CLIENT_KEY, "/v1/images/edits", &body)
    }

    #[track_caller]
    fn nobody_was_asked(&self) {
        assert!(self.simulator.requests().is_empty());
        self.house.gateway.await_quiet();
    }
}
