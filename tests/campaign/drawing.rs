//! Requests of Images clients, in every format.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use images::Operation;
use serde_json::{Value, json};
use simulator::{Play, Protocol};
use testkit::dice::Dice;
use testkit::requests::{RED, ask};

/// A request for pictures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawing {
    form: Form,
    /// The number of pictures.
    pub(crate) count: u32,
    /// True if a plain reply is so long that it is streamed through.
    is_long: bool,
}

/// The format of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Generation,
    /// An edit as JSON.
    Json,
    /// An edit as a multipart form.
    Multipart,
}

impl Drawing {
    /// One picture.
    pub(crate) const SINGLE: Self = Self {
        form: Form::Generation,
        count: 1,
        is_long: false,
    };

    pub(crate) fn draw(dice: &mut Dice) -> Self {
        Self {
            form: *dice.one(&FORMS),
            count: dice.among(1..4) as u32,
            is_long: dice.once_in(3),
        }
    }

    pub(crate) fn operation(self) -> Operation {
        if self.form == Form::Generation {
            Operation::Generation
        } else {
            Operation::Edit
        }
    }

    pub(crate) fn path(self) -> &'static str {
        if self.form == Form::Generation {
            "/v1/images/generations"
        } else {
            "/v1/images/edits"
        }
    }

    /// The content type of the request, and its body.
    pub(crate) fn request(
        self,
        model: &str,
        prompt: &str,
        stream: bool,
    ) -> (&'static str, Vec<u8>) {
        let mut body = ask(Protocol::Images, model, prompt, stream);
        body["n"] = self.count.into();
        match self.form {
            Form::Generation => {}
            Form::Json => {
                body["images"] = json!([{"image_url": format!("data:image/png;base64,{RED}")}]);
            }
            Form::Multipart => return ("multipart/form-data; boundary=sgb", multipart(&body)),
        }
        ("application/json", body.to_string().into_bytes())
    }

    /// A conforming reply, of the length that is wanted.
    pub(crate) fn lengthened(self, play: Play) -> Play {
        let body = play.body_bytes();
        match body.strip_suffix(b"}") {
            Some(begun) if self.is_long => {
                let padding = format!(",\"padding\":\"{}\"}}", "p".repeat(PADDING));
                play.with_pieces([[begun, padding.as_bytes()].concat()])
            }
            _ => play,
        }
    }
}

/// The members of an object as the fields of a form, with a picture to start from.
fn multipart(body: &Value) -> Vec<u8> {
    let mut form = Vec::new();
    for (name, value) in body.as_object().into_iter().flatten() {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        form.extend(
            format!("--sgb\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
                .bytes(),
        );
    }
    let head =
        "--sgb\r\ncontent-disposition: form-data; name=\"image\"; filename=\"a.png\"\r\n\r\n";
    let picture = STANDARD.decode(RED).unwrap();
    form.extend([head.as_bytes(), &picture, b"\r\n--sgb--\r\n"].concat());
    form
}

const FORMS: [Form; 3] = [Form::Generation, Form::Json, Form::Multipart];
/// The padding of a reply of more than [`LONG`] bytes.
const PADDING: usize = 40 << 10;
/// A plain reply of pictures that is longer may be streamed through.
pub(crate) const LONG: usize = 16 << 10;
