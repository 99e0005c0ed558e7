//! Large requests that try to use a multiple of their size.

use super::{Scene, alone};
use crate::state::Engines;

/// A large body takes at most four times its size, at any depth of nesting and if the `type` of
/// each part comes last.
#[test]
fn j08_large_requests_take_little_more_memory_than_they_are() {
    alone(
        "memory::large::j08_large_requests_take_little_more_memory_than_they_are",
        measure(),
    );
}

async fn measure() {
    let scene = Scene::new(Engines::default());
    let text = "x".repeat(FULL);
    let (open, close) = (
        r#"{"content":["#,
        r#"],"tool_use_id":"t","type":"tool_result"}"#,
    );
    for depth in [1, 28] {
        let nested = format!(
            r#"{}{{"text":"{text}","type":"text"}}{}"#,
            open.repeat(depth),
            close.repeat(depth)
        );
        let body = format!(
            r#"{{"model":"msg-sonnet-5","max_tokens":9,"messages":[{{"content":[{nested}],"role":"user"}}]}}"#
        );
        let taken = scene
            .send("/v1/messages", "application/json", body.as_bytes())
            .await;
        let summary = format!(
            "{depth} levels: {}, {} of {} bytes",
            taken.status,
            taken.peak,
            body.len()
        );
        assert!(
            !taken.status.is_success() && taken.peak <= 4 * body.len(),
            "{summary}"
        );
    }
}

/// The size of a text, in bytes.
const FULL: usize = 16 << 20;
