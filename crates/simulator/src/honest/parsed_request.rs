//! The common form to which requests of all text protocols are parsed.

use std::mem;

use serde_json::Value;

use super::coding;

/// A parsed request, independent of its protocol.
#[derive(Debug, Default)]
pub(super) struct ParsedRequest {
    /// The text of the last user turn.
    pub(super) text: String,
    /// The media type of each picture, or `url`.
    pub(super) images: Vec<String>,
    /// The tool results since the last user turn.
    pub(super) results: Vec<String>,
    /// The user turns before the last one.
    pub(super) earlier: Vec<Turn>,
    /// The thoughts of the model that the client has sent back.
    pub(super) thoughts: Vec<Thought>,
    /// True if a call since the last user turn has come back without the thoughts before it.
    pub(super) lacks_thoughts: bool,
    pub(super) tools: Vec<Tool>,
    pub(super) choice: Choice,
    /// The explicit permission or prohibition of parallel calls, if any.
    pub(super) parallel: Option<bool>,
    /// True if reasoning is enabled.
    pub(super) reasons: bool,
    pub(super) format: Format,
    /// The maximum number of output tokens.
    pub(super) cap: Option<usize>,
    pub(super) stops: Vec<String>,
    /// The number of characters of all turns.
    pub(super) characters: usize,
}

/// A tool that the model may call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tool {
    pub(super) name: String,
    /// The namespace of Responses that has the tool.
    pub(super) namespace: Option<String>,
    /// True if it takes a text, as custom tools of Responses do, instead of arguments.
    pub(super) is_freeform: bool,
    /// The JSON Schema of its arguments; null if it is missing.
    pub(super) schema: Value,
}

/// A user turn, with the number of tool results after it.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) text: String,
    pub(super) results: usize,
}

/// A thought in the history, with its seal: the signature of Messages or the encrypted content of
/// Responses. In Chat Completions it has none.
#[derive(Debug, Default)]
pub(super) struct Thought {
    /// `None` if the protocol does not compare it with the seal.
    pub(super) text: Option<String>,
    pub(super) seal: String,
    /// The place in the request, as the errors of the protocol name it.
    pub(super) place: String,
}

#[derive(Debug, Default)]
pub(super) enum Choice {
    /// The model decides.
    #[default]
    Auto,
    /// No tool is called.
    None,
    /// Some tool is called.
    Required,
    /// This tool is called.
    Named(String),
}

impl Choice {
    /// Reads a tool choice: a word, or the name of a tool. The word `required` forces a call.
    pub(super) fn read(word: Option<&str>, required: &str, name: Option<&str>) -> Self {
        match (word, name) {
            (Some("none"), _) => Self::None,
            (Some(word), _) if word == required => Self::Required,
            (_, Some(name)) => Self::Named(name.to_owned()),
            _ => Self::Auto,
        }
    }
}

impl Tool {
    /// Reads a function whose schema is the member `schema`. Returns `None` if it has no name.
    pub(super) fn read(function: &Value, schema: &str) -> Option<Self> {
        Some(Self {
            name: function["name"].as_str()?.to_owned(),
            schema: function[schema].clone(),
            ..Self::default()
        })
    }
}

#[derive(Debug, Default)]
pub(super) enum Format {
    #[default]
    Text,
    /// Any JSON object.
    Json,
    Schema(Value),
}

impl Format {
    /// Reads an output format of one of the OpenAI protocols, whose schema is the member `schema`
    /// of `holder`.
    pub(super) fn read(format: &Value, holder: &Value) -> Self {
        match format["type"].as_str() {
            Some("json_object") => Self::Json,
            Some("json_schema") => Self::Schema(holder["schema"].clone()),
            _ => Self::Text,
        }
    }
}

impl ParsedRequest {
    /// Starts a user turn with this text. It replaces the text and the tool results before it.
    pub(super) fn start_user_turn(&mut self, text: String) {
        self.count_text(&text);
        let text = mem::replace(&mut self.text, text);
        let results = mem::take(&mut self.results).len();
        self.earlier.push(Turn { text, results });
        self.lacks_thoughts = false;
    }

    /// Counts text of the model. A summary of its work starts a turn.
    pub(super) fn add_model_text(&mut self, text: String) {
        if coding::is_summary(&text) {
            self.start_user_turn(text);
        } else {
            self.count_text(&text);
        }
    }

    /// Counts text of another role.
    pub(super) fn count_text(&mut self, text: &str) {
        self.characters += text.chars().count();
    }

    pub(super) fn add_tool_result(&mut self, result: String) {
        self.count_text(&result);
        self.results.push(result);
    }

    /// Adds a picture by its URL.
    pub(super) fn add_image(&mut self, url: &str) {
        let media_type = url
            .strip_prefix("data:")
            .and_then(|rest| rest.split([';', ',']).next());
        self.images.push(media_type.unwrap_or("url").to_owned());
    }

    /// The number of input tokens.
    pub(super) fn tokens(&self) -> usize {
        1 + self.characters.div_ceil(4) + self.tools.len() * 20 + self.images.len() * 85
    }
}

/// Reads an integer, which may be written with a zero fraction, as in `3.0`, or with an exponent.
pub(super) fn integer(number: &Value) -> Option<usize> {
    let is_integer = |number: &f64| number.fract() == 0.0 && (0.0..MAX_EXACT).contains(number);
    let integer = number.as_u64().or_else(|| {
        number
            .as_f64()
            .filter(is_integer)
            .map(|number| number as u64)
    })?;
    usize::try_from(integer).ok()
}

/// The elements of a list; none if the value is not a list.
pub(super) fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The text of a content field: a string, or a list of parts with text.
pub(super) fn text_of(content: &Value) -> String {
    let parts = elements(content).filter_map(|part| part["text"].as_str());
    content
        .as_str()
        .into_iter()
        .chain(parts)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The strings of a field that is a string or a list of strings.
pub(super) fn texts(value: &Value) -> Vec<String> {
    value
        .as_str()
        .into_iter()
        .chain(elements(value).filter_map(Value::as_str))
        .map(str::to_owned)
        .collect()
}

/// The bound below which every integer is exact in a double: 2^53.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
