//! Repairs the base64 of pictures that hosted image generation returns in relayed Responses, as for
//! the Images protocol (<https://platform.openai.com/docs/guides/tools-image-generation>).

use std::borrow::Cow;

use images::lenient::repaired;
use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;
use wire::Splice;

/// The members of an event or a reply that have pictures.
#[derive(Deserialize)]
struct Pictures<'a> {
    #[serde(borrow)]
    partial_image_b64: Option<Cow<'a, str>>,
    #[serde(borrow)]
    item: Option<Item<'a>>,
    #[serde(borrow)]
    response: Option<Output<'a>>,
    #[serde(borrow)]
    output: Option<Vec<Item<'a>>>,
}

#[derive(Deserialize)]
struct Output<'a> {
    #[serde(borrow)]
    output: Option<Vec<Item<'a>>>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    result: Option<Value>,
}

/// Records the repairs of the pictures in the data of an event, or in a reply. A value that is not
/// a picture is left as it is.
pub(super) fn repair(document: &str, edits: &mut Splice<'_>) {
    if memmem::find(document.as_bytes(), CALL.as_bytes()).is_none() {
        return;
    }
    let Ok(found) = serde_json::from_str::<Pictures<'_>>(document) else {
        return;
    };
    if let Some(preview) = found.partial_image_b64 {
        replace(&["partial_image_b64"], &preview, edits);
    }
    let item = found.item.as_ref().and_then(Item::picture);
    if let Some(picture) = item {
        replace(&["item", "result"], picture, edits);
    }
    let in_event = found.response.and_then(|response| response.output);
    for (outer, items) in [(&["response"][..], in_event), (&[], found.output)] {
        for (place, item) in items.iter().flatten().enumerate() {
            let place = place.to_string();
            if let Some(picture) = item.picture() {
                replace(
                    &[outer, &["output", &place, "result"]].concat(),
                    picture,
                    edits,
                );
            }
        }
    }
}

/// Repairs the picture of an item.
pub(super) fn repair_item(item: &mut Value) {
    let is_call = item["type"] == CALL;
    if let Some(Value::String(result)) = item.get_mut("result").filter(|_| is_call)
        && let Ok(Some(repaired)) = repaired(result)
    {
        *result = repaired;
    }
}

impl Item<'_> {
    fn picture(&self) -> Option<&str> {
        self.result.as_ref()?.as_str().filter(|_| self.kind == CALL)
    }
}

fn replace(path: &[&str], base64: &str, edits: &mut Splice<'_>) {
    if let Ok(Some(repaired)) = repaired(base64) {
        edits.replace(path, format!("\"{repaired}\"").as_bytes());
    }
}

/// The type of the items that have pictures, and a part of the types of their events.
const CALL: &str = "image_generation_call";
