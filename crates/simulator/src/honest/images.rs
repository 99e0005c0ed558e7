//! [Images](https://platform.openai.com/docs/api-reference/images).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::parsed_request::{elements, integer};
use super::{Event, Failure, Reply, created, object, picture};
use crate::form::Part;
use crate::request::Request;

pub(super) fn reply(request: &Request) -> Result<Reply, Failure> {
    let job = Job::read(request)?;
    Ok(if job.streams {
        Reply::Events(job.stream())
    } else {
        Reply::Json(200, job.result())
    })
}

/// A parsed image request.
struct Job<'a> {
    request: &'a Request,
    operation: &'static str,
    prompt: String,
    /// Number of reference pictures.
    references: usize,
    count: usize,
    previews: usize,
    streams: bool,
    size: (u32, u32),
    quality: String,
    background: String,
    output_format: String,
}

impl<'a> Job<'a> {
    fn read(request: &'a Request) -> Result<Self, Failure> {
        let is_edit = request.route().ends_with("/edits");
        let (body, references) = match request.form() {
            Some(form) => {
                // The files of the fields `image` and `image[]`.
                let is_picture =
                    |part: &&Part| part.is_file && part.name.split('[').next() == Some("image");
                (scalars(&form), form.iter().filter(is_picture).count())
            }
            None => {
                let body = object(request)?;
                let references = elements(&body["images"]).count();
                (body, references)
            }
        };
        if is_edit && references == 0 {
            return Err(Failure::missing("image"));
        }
        let prompt = body["prompt"].as_str().filter(|prompt| !prompt.is_empty());
        let text = |name: &str, usual: &str| {
            body[name]
                .as_str()
                .filter(|text| *text != "auto")
                .unwrap_or(usual)
                .to_owned()
        };
        Ok(Self {
            request,
            operation: if is_edit {
                "image_edit"
            } else {
                "image_generation"
            },
            prompt: prompt.ok_or_else(|| Failure::missing("prompt"))?.to_owned(),
            references,
            count: integer(&body["n"]).unwrap_or(1).clamp(1, 10),
            previews: integer(&body["partial_images"]).unwrap_or(0).min(3),
            streams: body["stream"] == true,
            size: size(&text("size", "1254x1254"))?,
            quality: text("quality", "medium"),
            background: text("background", "opaque"),
            output_format: text("output_format", "png"),
        })
    }

    /// The plain reply.
    fn result(&self) -> Value {
        let image = |index| json!({"b64_json": self.picture(index, 0), "generation_id": self.generation_id(index)});
        let images: Vec<_> = (0..self.count).map(image).collect();
        let mut result = self.described(json!({"created": created(self.request), "data": images}));
        result["usage"] = self.usage(0, self.count);
        result
    }

    fn stream(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for index in 0..self.count {
            for preview in 0..self.previews {
                events.push(Event::new(&self.described(json!({
                    "type": format!("{}.partial_image", self.operation),
                    "b64_json": self.picture(index, self.previews - preview),
                    "partial_image_index": preview, "created_at": created(self.request),
                }))));
            }
            let mut completed = self.described(json!({
                "type": format!("{}.completed", self.operation), "b64_json": self.picture(index, 0),
                "generation_id": self.generation_id(index), "created_at": created(self.request),
            }));
            completed["usage"] = self.usage(index, 1);
            events.push(Event::new(&completed));
        }
        events
    }

    /// Encodes a picture of one colour, which depends on the prompt and the index. Earlier previews
    /// are paler.
    fn picture(&self, index: usize, to_go: usize) -> String {
        let add = |seed: u64, byte: u8| seed.wrapping_mul(31).wrapping_add(byte.into());
        let seed = self.prompt.bytes().fold(index as u64 * 97, add);
        let [red, green, blue, ..] = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        let pale = |channel: u8| channel.saturating_add(to_go as u8 * 40);
        let alpha = if self.background == "transparent" {
            0
        } else {
            u8::MAX
        };
        let colour = [pale(red), pale(green), pale(blue), alpha];
        STANDARD.encode(picture::plain(&self.output_format, self.size, colour))
    }

    /// Adds the fields that describe the pictures.
    fn described(&self, mut object: Value) -> Value {
        object["size"] = format!("{}x{}", self.size.0, self.size.1).into();
        object["quality"] = self.quality.as_str().into();
        object["background"] = self.background.as_str().into();
        object["output_format"] = self.output_format.as_str().into();
        object
    }

    /// The usage of this many pictures from `index` on. The input is counted for the first picture
    /// only.
    fn usage(&self, index: usize, pictures: usize) -> Value {
        let inputs = usize::from(index == 0);
        let text = inputs * (self.prompt.chars().count().div_ceil(4) + 1);
        let image = inputs * 323 * self.references;
        let previews = if self.streams { self.previews } else { 0 };
        let output = pictures * (272 + 100 * previews);
        json!({
            "input_tokens": text + image,
            "input_tokens_details": {"image_tokens": image, "text_tokens": text},
            "output_tokens": output,
            "output_tokens_details": {"image_tokens": output, "text_tokens": 0},
            "total_tokens": text + image + output,
        })
    }

    fn generation_id(&self, index: usize) -> String {
        format!(
            "3f1d0b52-6c1e-4f0a-9a77-{:08x}{index:04x}",
            self.request.number & 0xFFFF_FFFF
        )
    }
}

/// Converts the text fields of a form to JSON.
fn scalars(form: &[Part]) -> Value {
    let fields = form.iter().filter(|part| !part.is_file).map(|part| {
        let text = part.text();
        let value = if part.name == "prompt" {
            None
        } else {
            serde_json::from_str(&text).ok()
        };
        (part.name.clone(), value.unwrap_or(Value::String(text)))
    });
    Value::Object(fields.collect())
}

fn size(size: &str) -> Result<(u32, u32), Failure> {
    let sides = size
        .split_once('x')
        .and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    let is_supported = |side: u32| (1..=picture::MAX_SIDE).contains(&side);
    sides
        .filter(|(width, height)| is_supported(*width) && is_supported(*height))
        .ok_or_else(|| {
            let message = format!(
                "Invalid size '{size}'. Width and height are between 1 and {}.",
                picture::MAX_SIDE
            );
            Failure::invalid("size", message)
        })
}
