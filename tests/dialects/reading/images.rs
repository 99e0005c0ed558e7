//! Images: <https://platform.openai.com/docs/api-reference/images>.

use serde_json::Value;

use super::{End, Reading, list, text};

/// Parses a reply.
pub(super) fn reply(reply: &Value, reading: &mut Reading) {
    if !reply["error"].is_null() {
        return reading.fail(&reply["error"]);
    }
    reading
        .text
        .extend(list(reply, "data").map(|picture| text(picture, "b64_json")));
    reading.end = if reading.text.is_empty() {
        End::Missing
    } else {
        End::Complete
    };
}

/// Parses an event of a stream.
pub(super) fn event(event: &Value, reading: &mut Reading) {
    match text(event, "type") {
        "error" => reading.fail(&event["error"]),
        "image_generation.completed" => {
            text(event, "b64_json").clone_into(&mut reading.text);
            reading.end = End::Complete;
        }
        _ => {}
    }
}
