//! Converts a plain reply to the equivalent stream.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use sse::EventName;
use wire::lenient::ReadError;

use crate::event::write_in_place;
use crate::stream::Operation;

/// The members of an object, as views into its JSON.
type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// Appends the stream that is equivalent to a plain reply: one event for each image. Members that
/// the reply has for all images are repeated in each event, except for the usage: only the first
/// event has it. Members that the reply lacks are absent from the events as well.
///
/// # Errors
/// If it is not a reply. The images are not checked; see [`Reader::reply`](super::Reader::reply).
pub fn write_as_stream(
    body: &str,
    operation: Operation,
    out: &mut Vec<u8>,
) -> Result<(), ReadError> {
    let kind = match operation {
        Operation::Generation => "image_generation.completed",
        Operation::Edit => "image_edit.completed",
    };
    let reply: Members<'_> = parse(body)?;
    let mut usage = reply.get("usage");
    let images = reply.get("data").map_or("[]", |data| data.get());
    for mut image in parse::<Vec<Members<'_>>>(images)? {
        for (name, new_name) in SHARED {
            if let Some(value) = reply.get(name) {
                image.entry(new_name.into()).or_insert(value);
            }
        }
        if let Some(usage) = usage.take() {
            image.insert("usage".into(), usage);
        }
        // It would be taken for the type of the event.
        image.remove("type");
        write(kind, &image, out);
    }
    Ok(())
}

/// Appends an event of this type with the members of an image.
fn write(kind: &str, image: &Members<'_>, out: &mut Vec<u8>) {
    let size = image.values().map(|value| value.get().len()).sum();
    write_in_place(EventName::new(kind).ok(), size, out, |out| {
        let start = out.len();
        out.extend_from_slice(format!(r#"{{"type":"{kind}""#).as_bytes());
        for (name, value) in image {
            let name = serde_json::Value::from(name.as_ref());
            out.extend_from_slice(format!(",{name}:").as_bytes());
            out.extend_from_slice(value.get().as_bytes());
        }
        out.push(b'}');
        // Line breaks are escaped within strings, so these stand between tokens.
        for byte in &mut out[start..] {
            if matches!(byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
    });
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ReadError> {
    serde_json::from_str(text).map_err(|error| ReadError::json(&error))
}

/// The members of a reply that its images share, and their names in an event.
const SHARED: [(&str, &str); 5] = [
    ("created", "created_at"),
    ("size", "size"),
    ("quality", "quality"),
    ("background", "background"),
    ("output_format", "output_format"),
];
