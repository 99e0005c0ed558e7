//! What a request asks, whatever its protocol.

use serde_json::Value;

/// What a request asks, whatever its protocol.
#[derive(Debug, Default)]
pub(super) struct Ask {
    /// Of the user's last turn.
    pub(super) text: String,
    /// The media type of each picture, or `url`.
    pub(super) images: Vec<String>,
    /// What tools said since the user's last turn.
    pub(super) results: Vec<String>,
    pub(super) tools: Vec<Tool>,
    pub(super) choice: Choice,
    /// Whether it allows or forbids several calls at once, when it says so.
    pub(super) parallel: Option<bool>,
    pub(super) thinks: bool,
    pub(super) format: Format,
    /// Of the output, in tokens.
    pub(super) cap: Option<u64>,
    pub(super) stops: Vec<String>,
    /// Characters of all turns.
    pub(super) heard: usize,
}

/// A function that the model may call.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: String,
    /// The JSON Schema of its arguments; null when there is none.
    pub(super) schema: Value,
}

/// Whether the model calls.
#[derive(Debug, Default)]
pub(super) enum Choice {
    /// As it likes.
    #[default]
    Auto,
    /// Not.
    None,
    /// Anything.
    Required,
    /// This.
    Named(String),
}

/// What the text is to be.
#[derive(Debug, Default)]
pub(super) enum Format {
    #[default]
    Text,
    /// Any JSON object.
    Json,
    /// JSON that fits a schema.
    Schema(Value),
}

impl Ask {
    /// The user's turn begins: what was said and found before is answered.
    pub(super) fn turn(&mut self) {
        self.text.clear();
        self.results.clear();
    }

    /// The user says something.
    pub(super) fn hear(&mut self, text: &str) {
        self.note(text);
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(text);
    }

    /// Anyone else says something.
    pub(super) fn note(&mut self, text: &str) {
        self.heard += text.chars().count();
    }

    /// A tool says something.
    pub(super) fn learn(&mut self, result: String) {
        self.note(&result);
        self.results.push(result);
    }

    /// There is a picture.
    pub(super) fn see(&mut self, url: &str) {
        let media_type = url.strip_prefix("data:").and_then(|rest| rest.split([';', ',']).next());
        self.images.push(media_type.unwrap_or("url").to_owned());
    }

    /// What reading all this took.
    pub(super) fn tokens(&self) -> u64 {
        let words = self.heard.div_ceil(4) + self.tools.len() * 20 + self.images.len() * 85;
        1 + words as u64
    }
}

/// A whole number, also where it is written with a fraction, as in `3.0`, or with an exponent.
pub(super) fn whole(number: &Value) -> Option<u64> {
    let written = || number.as_f64().filter(|number| number.fract() == 0.0 && (0.0..MAX_WHOLE).contains(number));
    number.as_u64().or_else(|| written().map(|number| number as u64))
}

/// The text of what is a string, or a list of parts with text.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join(" "),
        _ => String::new(),
    }
}

/// The texts of a list, or the one text.
pub(super) fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(texts) => texts.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// Up to here a double is the whole number that was written: 2^53.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;
