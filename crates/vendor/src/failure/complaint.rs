//! Parses error bodies of upstreams in all known formats, down to the error that others wrap.

use std::ops::Range;

use serde_json::{Map, Value};
use wire::ContextOverflow;

use super::{delay, phrase};

/// The error that an upstream reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Complaint {
    pub(super) code: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) param: Option<String>,
    pub(super) message: Option<String>,
    /// All codes, types and statuses, in lower case, from the innermost error outwards.
    pub(super) words: Vec<String>,
    /// All messages, in lower case, from the innermost error outwards.
    pub(super) texts: Vec<String>,
    /// The sizes that are members of the error, and not in a message.
    pub(super) sizes: ContextOverflow,
    /// The seconds to wait before a retry that are a member of the error, and not in a message.
    pub(super) delay: Option<u32>,
}

impl Complaint {
    /// Parses the body of an error response, or an error event. Returns an empty error if it is
    /// neither JSON nor plain text.
    pub(crate) fn read(body: &[u8]) -> Self {
        let text = std::str::from_utf8(body).unwrap_or_default().trim();
        match text.as_bytes().first() {
            // Pages of proxies in front of a server.
            None | Some(b'<') => Self::default(),
            Some(b'{' | b'[' | b'"') => serde_json::from_str(text)
                .map(|value| Self::opened(&value, 0))
                .unwrap_or_default(),
            // Some servers write an error response as an event.
            Some(_) => match event_data(text) {
                Some(data) => Self::read(data.as_bytes()),
                None => Self::of_text(text, 0),
            },
        }
    }

    /// Reads a value of an error: an object, a list of errors, or a message. `depth` is the number of
    /// errors around it.
    fn opened(value: &Value, depth: usize) -> Self {
        match value {
            Value::String(text) => Self::of_text(text, depth),
            Value::Array(errors) => {
                let mut errors = errors.iter().take(MAX_ERRORS);
                let with_message = |error: &Self| error.message.is_some();
                let first = errors.next().map(|error| Self::opened(error, depth));
                let first = first.unwrap_or_default();
                if first.message.is_some() {
                    return first;
                }
                let mut others = errors.map(|error| Self::opened(error, depth));
                others.find(with_message).unwrap_or(first)
            }
            Value::Object(members) => Self::of_object(members, depth),
            _ => Self::default(),
        }
    }

    fn of_object(members: &Map<String, Value>, depth: usize) -> Self {
        let mut error = Self {
            code: first(members, &CODES),
            kind: first(members, &KINDS).filter(|kind| !is_event(kind)),
            param: first(members, &["param"]).or_else(|| location(members)),
            sizes: sizes(members),
            delay: first(members, &[DELAY]).and_then(|delay| delay::seconds(&delay)),
            ..Self::default()
        };
        if let Some(message) = first(members, &MESSAGES) {
            error.wraps(Self::of_text(&message, depth));
        }
        error.add_words(members, &CODES);
        error.add_words(members, &KINDS);
        error.add_words(members, &OTHER_WORDS);
        if depth < MAX_DEPTH {
            for inner in wrapped(members) {
                error.wraps(Self::opened(inner, depth + 1));
            }
            for details in DETAILS.iter().filter_map(|name| members.get(*name)) {
                error.add_details(details, depth + 1);
            }
        }
        error
    }

    /// Reads a message. It may have another error in it, as JSON.
    fn of_text(text: &str, depth: usize) -> Self {
        let text = text.trim();
        if text.is_empty() {
            return Self::default();
        }
        let mut error = Self {
            message: Some(text.to_owned()),
            texts: vec![lowercase(text)],
            ..Self::default()
        };
        let inner = embedded(text).filter(|_| depth < MAX_DEPTH);
        if let Some(inner) = inner.map(|inner| Self::opened(&inner, depth + 1))
            && inner.message.is_some()
        {
            if text.starts_with(['{', '[']) {
                error.texts.clear();
            }
            error.wraps(inner);
        }
        error
    }

    /// Takes over the members of the error that this one wraps. A wrapper that has the reason
    /// itself, in other members, keeps it.
    fn wraps(&mut self, inner: Self) {
        if inner.message.is_some() {
            self.message = inner.message;
        }
        for (own, inner) in [
            (&mut self.code, inner.code),
            (&mut self.kind, inner.kind),
            (&mut self.param, inner.param),
        ] {
            if inner.is_some() {
                *own = inner;
            }
        }
        self.sizes = inner.sizes.or(self.sizes);
        self.delay = inner.delay.or(self.delay);
        self.words.splice(0..0, inner.words);
        self.texts.splice(0..0, inner.texts);
    }

    /// Adds the words and texts of the details of this error, which stays as it is for clients.
    fn add_details(&mut self, details: &Value, depth: usize) {
        let lists = details
            .as_array()
            .map_or(std::slice::from_ref(details), Vec::as_slice);
        for detail in lists.iter().take(MAX_ERRORS) {
            let inner = Self::opened(detail, depth);
            if self.message.is_none() {
                self.message = inner.message;
            }
            self.delay = self.delay.or(inner.delay);
            self.words.extend(inner.words);
            self.texts.extend(inner.texts);
        }
    }

    fn add_words(&mut self, members: &Map<String, Value>, names: &[&str]) {
        let values = names.iter().filter_map(|name| scalar(members.get(*name)?));
        self.words.extend(values.map(|word| lowercase(&word)));
    }

    /// Returns true if one of the codes, types and statuses is this word, in lower case.
    pub(super) fn has_word(&self, word: &str) -> bool {
        self.words.iter().any(|found| found == word)
    }

    /// Returns the numbers at the places of these phrases, in lower case, if a message has all of
    /// them. A phrase within a quoted name or value does not count, because that may be the client's.
    pub(super) fn says(&self, phrases: &[&str]) -> Option<ContextOverflow> {
        self.texts.iter().find_map(|text| {
            let mut quoted = None;
            phrases
                .iter()
                .try_fold(ContextOverflow::default(), |numbers, phrase| {
                    let found = phrase::places(phrase, text).find(|(place, _)| {
                        !is_within(place, quoted.get_or_insert_with(|| quotations(text)))
                    });
                    Some(numbers.or(found?.1))
                })
        })
    }
}

/// The errors that the members of an error wrap. `metadata` is read only beside a `message`,
/// because in a response it belongs to the client.
fn wrapped(members: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let failed = members
        .get("response")
        .and_then(|response| response.get("error"));
    let metadata = members.get("message").and_then(|_| members.get("metadata"));
    let raw = metadata.and_then(|metadata| metadata.get("raw"));
    let others = WRAPPED.iter().filter_map(|name| members.get(*name));
    failed.into_iter().chain(others).chain(raw)
}

/// Returns true if the type names an event or a body, and not an error.
fn is_event(kind: &str) -> bool {
    kind == "error" || kind.starts_with("response.")
}

/// The data of the first event with data, if the text is an event stream.
fn event_data(text: &str) -> Option<&str> {
    let is_stream = text.starts_with("data:") || text.starts_with("event:");
    let mut lines = text.lines().filter(|_| is_stream);
    lines.find_map(|line| line.strip_prefix("data:"))
}

/// Returns the JSON object or list in a message. Proxies write a text of their own before the error
/// that they received, and some write another text behind it.
fn embedded(text: &str) -> Option<Value> {
    let starts = text.match_indices(['{', '[']).take(MAX_ERRORS);
    let value_at = |(at, _): (usize, &str)| {
        let values = serde_json::Deserializer::from_str(&text[at..]);
        let value: Value = values.into_iter().next()?.ok()?;
        let error = value
            .as_array()
            .and_then(|list| list.first())
            .unwrap_or(&value);
        is_error(error).then_some(value)
    };
    starts.filter_map(value_at).next()
}

/// Returns true if a value in a message is an error, and not a part of the request.
fn is_error(value: &Value) -> bool {
    let has = |name: &str| value.get(name).is_some_and(|member| !member.is_null());
    let is_named = has("code") || has("type") || has("status");
    ["error", "errors", "detail"].into_iter().any(has) || has("message") && is_named
}

/// Returns the first of these members that is a string or a number, as text.
fn first(members: &Map<String, Value>, names: &[&str]) -> Option<String> {
    let mut values = names.iter().filter_map(|name| scalar(members.get(*name)?));
    values.find(|value| !value.is_empty())
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The path of a field in an error of a FastAPI server, without the part of the request that it is
/// in.
fn location(members: &Map<String, Value>) -> Option<String> {
    let steps = members.get("loc")?.as_array()?.iter();
    let steps: Vec<_> = steps
        .filter_map(scalar)
        .filter(|step| step != "body")
        .collect();
    (!steps.is_empty()).then(|| steps.join("."))
}

/// The sizes in the members of an error of llama.cpp
/// (<https://github.com/ggml-org/llama.cpp/pull/15780>).
fn sizes(members: &Map<String, Value>) -> ContextOverflow {
    let number = |name: &str| members.get(name)?.as_u64();
    ContextOverflow {
        prompt: number("n_prompt_tokens"),
        output: None,
        limit: number("n_ctx"),
    }
}

fn lowercase(text: &str) -> String {
    text.chars()
        .take(MAX_READ)
        .collect::<String>()
        .to_lowercase()
}

/// Returns the places of names and values in quotation marks. The list is empty for an error that
/// is written out as a whole, as Python does it, because its sentences are in quotation marks.
fn quotations(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    if text.contains("{'") || text.contains("{\"") {
        return found;
    }
    let mut open: Option<(usize, char)> = None;
    let mut before = ' ';
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let after = chars.peek().map_or(' ', |(_, next)| *next);
        match open {
            Some((start, mark)) if c == mark && !after.is_alphanumeric() => {
                found.push((start, at));
                open = None;
            }
            None if matches!(c, '\'' | '"' | '`') && !before.is_alphanumeric() => {
                open = Some((at, c));
            }
            _ => {}
        }
        before = c;
    }
    found
}

fn is_within(place: &Range<usize>, quoted: &[(usize, usize)]) -> bool {
    quoted
        .iter()
        .any(|(start, end)| *start < place.start && place.end <= *end)
}

/// Members with the code of an error.
const CODES: [&str; 4] = ["code", "error_code", "errorCode", "status_code"];
/// Members with the type of an error.
const KINDS: [&str; 2] = ["type", "error_type"];
/// Members with other words for an error: AWS, Google, Stability AI, OpenRouter.
const OTHER_WORDS: [&str; 4] = ["__type", "status", "reason", "name"];
/// Members with the message of an error, as the vendors, AWS, MiniMax, Baidu, FastAPI, RFC 6749 and
/// Apigee name them.
const MESSAGES: [&str; 9] = [
    "message",
    "Message",
    "msg",
    "status_msg",
    "error_msg",
    "error_message",
    "errorMessage",
    "error_description",
    "faultstring",
];
/// Members with the error that another one wraps, as Apigee, MiniMax, FastAPI, Workers AI and
/// OpenAI name them.
const WRAPPED: [&str; 5] = ["fault", "base_resp", "detail", "errors", "error"];
/// The member with the delay of a retry, a duration of Google's
/// (<https://github.com/googleapis/googleapis/blob/master/google/rpc/error_details.proto>).
const DELAY: &str = "retryDelay";
/// Members with details of an error: Google, Azure.
const DETAILS: [&str; 3] = ["details", "innererror", "inner_error"];
/// The most errors around an error.
const MAX_DEPTH: usize = 6;
/// The most entries of a list that are read, and the most places in a message at which JSON is looked
/// for.
const MAX_ERRORS: usize = 8;
/// The most characters of a message that are compared with phrases.
const MAX_READ: usize = 8192;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(body: &Value) -> Option<String> {
        Complaint::read(body.to_string().as_bytes()).message
    }

    /// <https://openrouter.ai/docs/api-reference/errors>, <https://fastapi.tiangolo.com>,
    /// <https://developers.cloudflare.com/workers-ai/platform/errors/>, <https://docs.litellm.ai>,
    /// <https://platform.minimax.io/docs/api-reference/errorcode>, and servers behind others.
    #[test]
    fn the_reason_is_found_at_every_depth() {
        let inner = json!({"error": {"message": "it is cold", "code": "weather"}});
        for body in [
            json!({"error": {"message": "it is cold"}}),
            json!({"errors": [{"message": "it is cold", "code": 5006}], "success": false}),
            json!({"errors": ["it is cold"], "name": "bad_request"}),
            json!({"error": [{"message": "it is cold"}]}),
            json!([{"error": {"code": 400, "message": "it is cold"}}]),
            json!({"error": {"error": {"message": "it is cold"}}}),
            json!({"detail": {"error": "it is cold"}}),
            json!({"detail": {"error": {"message": "it is cold"}}}),
            json!({"detail": [{"loc": ["body", "x"], "msg": "it is cold"}]}),
            json!({"base_resp": {"status_code": 2013, "status_msg": "it is cold"}}),
            json!({"error_code": 336_001, "error_msg": "it is cold"}),
            json!({"Message": "it is cold"}),
            json!({"fault": {"faultstring": "it is cold"}}),
            json!({"error": {"message": "Provider returned error", "code": 400,
                   "metadata": {"raw": inner.to_string(), "provider_name": "x"}}}),
            json!({"error": {"message": "Provider returned error", "code": 429,
                   "metadata": {"raw": "it is cold"}}}),
            json!({"error": {"message": "Provider returned error", "metadata": {"raw": inner}}}),
            json!({"error": {"message": inner.to_string(), "type": null}}),
            json!({"error": {"message": format!("x.APIError: XException - {inner}. Received Model \
                   Group=a")}}),
            json!({"error": {"message": "", "details": [{"reason": "A"}, {"message": "it is cold"}]}}),
            json!({"type": "error", "error": {"message": json!({"errors": [inner]}).to_string()}}),
        ] {
            assert_eq!(message(&body).as_deref(), Some("it is cold"), "{body}");
        }
        for text in [
            "it is cold",
            "data: {\"error\":{\"message\":\"it is cold\"}}\n\n",
            "event: error\ndata: {\"error\":\"it is cold\"}\n\n",
        ] {
            let found = Complaint::read(text.as_bytes()).message;
            assert_eq!(found.as_deref(), Some("it is cold"), "{text}");
        }
    }

    #[test]
    fn the_innermost_words_are_for_clients() {
        let raw = json!({"error": {"message": "m", "code": "inner", "type": "t", "param": "p"}});
        let error = json!({"code": 400, "message": "Provider returned error",
                           "metadata": {"raw": raw.to_string()}});
        let found = Complaint::read(json!({"error": error}).to_string().as_bytes());
        assert_eq!(found.code.as_deref(), Some("inner"));
        assert_eq!(found.kind.as_deref(), Some("t"));
        assert_eq!(found.param.as_deref(), Some("p"));
        assert_eq!(found.words, ["inner", "t", "400"]);
        assert_eq!(found.texts, ["m", "provider returned error"]);
    }

    /// <https://learn.microsoft.com/azure/ai-services/openai/concepts/content-filter>
    #[test]
    fn details_do_not_replace_the_error() {
        let inner = json!({"code": "ResponsibleAIPolicyViolation", "message": "other"});
        let error = json!({"code": "content_filter", "message": "filtered", "innererror": inner});
        let found = Complaint::read(json!({"error": error}).to_string().as_bytes());
        assert_eq!(found.code.as_deref(), Some("content_filter"));
        assert_eq!(found.message.as_deref(), Some("filtered"));
        assert!(found.has_word("responsibleaipolicyviolation"));
        assert!(found.says(&["other"]).is_some());
    }

    #[test]
    fn quoted_names_and_values_are_not_phrases() {
        let says = |text: &str| Complaint::of_text(text, 0).says(&["too long"]).is_some();
        assert!(says("The prompt is too long."));
        assert!(says("This model's prompt is too long, isn't it"));
        assert!(says("The 'prompt' is too long: 'x'"));
        assert!(says(
            "Error code: 400 - {'error': {'message': 'prompt is too long'}}"
        ));
        for text in [
            "Unknown parameter: 'too long'.",
            "Invalid value \"is too long\" for x",
            "`too long` is no field",
        ] {
            assert!(!says(text), "{text}");
        }
    }

    #[test]
    fn deep_and_broken_bodies_are_read_without_end() {
        let deep = (0..99).fold(json!("x"), |inner, _| json!({ "error": inner }));
        assert_eq!(message(&deep), None);
        let strings = (0..9).fold("x".to_owned(), |inner, _| {
            json!({ "error": inner }).to_string()
        });
        assert!(Complaint::read(strings.as_bytes()).message.is_some());
        for broken in ["{\"error\":", "<html>", "", "{}", "[]", "{\"error\":true}"] {
            assert_eq!(Complaint::read(broken.as_bytes()).message, None, "{broken}");
        }
    }
}
