//! Small requests that try to use a lot of memory.

use serde_json::json;

use super::{Scene, alone};
use crate::state::Engines;

/// A request under 64 KiB takes at most 16 MiB, whatever it contains: a JSON value of two bytes
/// becomes a much larger node.
#[test]
fn l10_small_requests_take_little_memory() {
    alone(
        "memory::small::l10_small_requests_take_little_memory",
        measure_all(),
    );
}

async fn measure_all() {
    let scene = Scene::new(Engines::default());
    for path in PATHS {
        // The first request builds tables, which stay in memory.
        scene.send(path, JSON, b"{}").await;
    }
    for (path, content_type, body) in requests() {
        let taken = scene.send(path, content_type, body.as_bytes()).await;
        let summary = format!("{path} {body:.80}: {}, {} bytes", taken.status, taken.peak);
        assert!(
            body.len() < SMALL && taken.peak <= BOUND,
            "{summary}, where {BOUND} are allowed"
        );
        assert!(
            !taken.status.is_success() && taken.reply < 4096,
            "{summary}"
        );
    }
}

/// Returns the paths, media types and bodies of the requests.
fn requests() -> Vec<(&'static str, &'static str, String)> {
    let mut all = Vec::new();
    for (path, list) in PATHS
        .into_iter()
        .zip(["input", "messages", "messages", "images"])
    {
        let open = r#"{"model":"alt-flash","max_tokens":9,"prompt":"x","#;
        let field = |name: &str, begin: &str| format!("{open}\"{name}\":{begin}");
        all.extend(UNITS.map(|unit| (path, JSON, filled(&field(list, "["), unit, "0]}"))));
        all.push((path, JSON, filled(&field("nobody_knows", "["), "0,", "0]}")));
        all.push((
            path,
            JSON,
            filled(
                &field(list, r#"[{"role":"user","content":["#),
                "{},",
                "0]}]}",
            ),
        ));
        all.push((
            path,
            JSON,
            filled(
                &field(list, r#"[{"role":"user","content":""#),
                r"\u0000",
                r#""}]}"#,
            ),
        ));
        all.push((path, JSON, filled(open, r#""a":0,"#, r#""a":0}"#)));
        all.push((path, JSON, filled("", r#"{"a":"#, "")));
    }
    let part = "--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n\r\n";
    all.push(("/v1/images/edits", FORM, filled("", part, "--b--\r\n")));
    all.push((
        "/v1/images/edits",
        FORM,
        filled("--b\r\n", "a: b\r\n", "\r\n\r\n--b--\r\n"),
    ));
    let edit = json!({"prompt": "x", "images": [{"image_url": format!("data:image/png;base64,{}", "A".repeat(FULL - 512))}]});
    all.push(("/v1/images/edits", JSON, edit.to_string()));
    all
}

/// Returns a body of size `FULL` with as many copies of `unit` as fit.
fn filled(begin: &str, unit: &str, end: &str) -> String {
    format!(
        "{begin}{}{end}",
        unit.repeat((FULL - begin.len() - end.len()) / unit.len())
    )
}

const PATHS: [&str; 4] = [
    "/v1/responses",
    "/v1/chat/completions",
    "/v1/messages",
    "/v1/images/edits",
];
/// The elements that fill the lists: the shorter they are, the more of them fit.
const UNITS: [&str; 5] = [
    "0,",
    "{},",
    r#"{"type":"function"},"#,
    r#"{"type":"text","text":""},"#,
    r#"{"role":"user","content":""},"#,
];
const JSON: &str = "application/json";
const FORM: &str = "multipart/form-data; boundary=b";
/// The upper limit of a small request, in bytes.
const SMALL: usize = 64 * 1024;
/// The size of each request, in bytes.
const FULL: usize = SMALL - 1024;
/// The maximum memory of each request, in bytes.
const BOUND: usize = 16 << 20;
