//! The multipart form of an image edit: the fields of a generation as text, and the images as
//! files.

use serde_json::{Map, Value, json};

use crate::schemas::Schemas;

/// Returns the body of `POST /v1/images/edits` as `multipart/form-data`.
pub(super) fn image_edits(schemas: &mut Schemas) -> Value {
    let generation = schemas.read::<images::Generation>("Images");
    let mut parts = Map::new();
    for (name, schema) in schemas.target(&generation)["properties"]
        .as_object()
        .into_iter()
        .flatten()
    {
        parts.insert(name.clone(), without_null(schema));
    }
    let several = json!({ "type": "array", "items": file("An image to edit."), "minItems": 1, "maxItems": 16 });
    parts.insert("image".to_owned(), file("The image to edit."));
    parts.insert("image[]".to_owned(), several);
    parts.insert(
        "mask".to_owned(),
        file("A PNG whose transparent areas mark where the image may be changed."),
    );
    let schema = json!({
        "description": "One image as `image`, or several as `image[]`. An empty text part is treated as absent.",
        "type": "object",
        "properties": parts,
        "required": ["prompt"],
        "anyOf": [{ "required": ["image"] }, { "required": ["image[]"] }],
    });
    let pictures =
        json!({ "contentType": "image/png, image/jpeg, image/webp, application/octet-stream" });
    let mask = json!({ "contentType": "image/png, application/octet-stream" });
    json!({
        "schema": schemas.named("ImagesEditForm", schema),
        "encoding": { "image": pictures, "image[]": pictures, "mask": mask },
    })
}

fn file(description: &str) -> Value {
    json!({ "description": description, "type": "string", "contentMediaType": "application/octet-stream" })
}

/// Removes `null` from the alternatives of a schema, because a form cannot express it.
fn without_null(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(types) = schema["type"].as_array_mut() {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            schema["type"] = only.clone();
        }
    }
    if let Some(branches) = schema["anyOf"].as_array_mut() {
        branches.retain(|branch| branch["type"] != "null");
    }
    if let Some(members) = schema.as_object_mut() {
        members.retain(|_, member| !member.is_null());
    }
    schema
}

#[cfg(test)]
mod tests {
    use images::PartKind;

    use super::*;

    #[test]
    fn every_part_is_one_that_the_reader_takes() {
        let mut schemas = Schemas::default();
        let form = image_edits(&mut schemas);
        let properties = schemas.target(&form["schema"])["properties"].clone();
        for (name, schema) in properties.as_object().expect("parts") {
            let is_file = schema.to_string().contains("contentMediaType");
            let expected = if is_file {
                PartKind::Picture
            } else {
                PartKind::Text
            };
            assert_eq!(images::part(name, is_file), expected, "{name}");
        }
    }
}
