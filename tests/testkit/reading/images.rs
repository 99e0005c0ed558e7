//! Images: <https://platform.openai.com/docs/api-reference/images>.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use serde_json::Value;

use super::json::{list, text};
use super::{End, Reading, Usage};

/// Parses a reply; returns true if it has pictures, all of them whole.
pub(super) fn reply(reply: &Value, reading: &mut Reading) -> bool {
    reading.text = list(reply, "data")
        .map(|picture| text(picture, "b64_json"))
        .collect();
    reading.words.clone_from(&reading.text);
    let mut pictures = list(reply, "data").peekable();
    pictures.peek().is_some() && pictures.all(|picture| is_picture(&picture["b64_json"]))
}

/// The JSON of a reply without the white space in its base64, which may not stand there unescaped:
/// the gateway removes it.
pub(super) fn without_line_breaks(reply: &[u8]) -> Vec<u8> {
    const NAME: &[u8] = b"\"b64_json\":\"";
    let (mut out, mut rest) = (Vec::with_capacity(reply.len()), reply);
    while let Some(at) = rest.windows(NAME.len()).position(|window| window == NAME) {
        let (before, base64) = rest.split_at(at + NAME.len());
        let end = base64.iter().position(|byte| *byte == b'"');
        let (base64, after) = base64.split_at(end.unwrap_or(base64.len()));
        out.extend_from_slice(before);
        out.extend(base64.iter().filter(|byte| !byte.is_ascii_whitespace()));
        rest = after;
    }
    out.extend_from_slice(rest);
    out
}

/// A stream of events.
pub(super) struct Stream {
    /// The number of pictures that are still missing.
    pictures: u32,
}

impl Stream {
    pub(super) fn new(pictures: u32) -> Self {
        Self { pictures }
    }
}

impl super::Stream for Stream {
    fn event(&mut self, event: &Value, reading: &mut Reading) {
        reading.words += text(event, "b64_json");
        let kind = text(event, "type");
        let is_preview = kind.ends_with(".partial_image");
        let is_last = matches!(kind, "image_generation.completed" | "image_edit.completed");
        if (is_preview || is_last) && !is_picture(&event["b64_json"]) {
            reading.problem("a picture that is not whole");
            reading.end = End::Failure(None);
        }
        if !is_last || reading.end != End::Missing {
            return;
        }
        text(event, "b64_json").clone_into(&mut reading.text);
        if let Some(usage) = Usage::of(&event["usage"]) {
            let sum = reading.usage.get_or_insert_default();
            sum.input += usage.input;
            sum.output += usage.output;
        }
        self.pictures = self.pictures.saturating_sub(1);
        if self.pictures == 0 {
            reading.end = End::Success;
        }
    }
}

/// Returns true if this is the base64 of a picture: of a known format with its end, or binary. Either
/// alphabet of RFC 4648 will do, with whitespace and without padding: the gateway mends that.
fn is_picture(base64: &Value) -> bool {
    let letters = base64.as_str().unwrap_or_default().chars();
    let letters = letters.filter(|letter| !letter.is_ascii_whitespace());
    let standard: String = letters
        .map(|letter| match letter {
            '-' => '+',
            '_' => '/',
            letter => letter,
        })
        .collect();
    let Ok(file) = BASE64.decode(standard.trim_end_matches('=')) else {
        return false;
    };
    let end = &file[file.len().saturating_sub(48)..];
    let ends_with = |mark: &[u8]| end.windows(mark.len()).any(|window| window == mark);
    let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    match file.first_chunk::<12>() {
        None => false,
        Some([0x89, b'P', b'N', b'G', ..]) => ends_with(b"IEND\xaeB`\x82"),
        Some([0xff, 0xd8, 0xff, ..]) => ends_with(b"\xff\xd9"),
        Some([b'R', b'I', b'F', b'F', size @ .., b'W', b'E', b'B', b'P']) => {
            file.len() >= 8 + u32::from_le_bytes(*size) as usize
        }
        Some(head) => !head.iter().all(is_text),
    }
}

/// The alphabet without padding, whatever bits of the last letter are not used.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, NO_PAD.with_decode_allow_trailing_bits(true));
