//! Conversions that the client protocols share.

#![expect(
    clippy::disallowed_methods,
    reason = "each error here has a row in tests/testkit/errors.toml"
)]

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::{CacheLifetime, Effort, ImageSource, Tool, ToolChoice, UserPart};
use serde_json::Value;
use wire::{ApiError, Code, DataUrl, ErrorKind, Object, TextOr};

/// The refusal of a parameter that has no neutral form.
pub(super) fn unsupported(param: impl Into<String>, sentence: &str) -> ApiError {
    ApiError::new(
        ErrorKind::InvalidRequest,
        Code::UnsupportedValue.as_str(),
        sentence,
    )
    .with_param(param)
}

/// Joins the texts of content as they are; `text` returns the text of a part, if it has one.
pub(super) fn joined<P>(content: &TextOr<P>, text: impl Fn(&P) -> Option<&str>) -> String {
    match content {
        TextOr::Text(text) => text.clone(),
        TextOr::List(parts) => parts.iter().filter_map(text).collect(),
    }
}

/// A part of the content of a message, in a client's protocol.
pub(super) trait ClientPart {
    /// The path of parts in the field map.
    const FIELD: &str;

    /// Converts the part.
    fn neutral(&self, path: &str) -> Result<UserPart, ApiError>;

    /// The members that its type does not declare.
    fn extra(&self) -> Option<&Object>;

    /// The text that stands for a part without a neutral form.
    fn in_words(&self) -> String;
}

/// Converts content, each part of it with its path. A part without a neutral form is refused in a new
/// message of the user alone, because what is older comes with each later request.
pub(super) fn parts<P: ClientPart>(
    content: &TextOr<P>,
    path: &str,
    is_new: bool,
    dropped: &mut Vec<String>,
) -> Result<Vec<UserPart>, ApiError> {
    let parts = match content {
        TextOr::Text(text) => return Ok(vec![UserPart::Text(text.clone())]),
        TextOr::List(parts) => parts,
    };
    let mut converted = Vec::with_capacity(parts.len());
    for (i, one) in parts.iter().enumerate() {
        converted.push(match one.neutral(&format!("{path}[{i}]")) {
            Err(refusal) if is_new => return Err(refusal),
            Err(_) => {
                add_once(dropped, P::FIELD);
                UserPart::Text(one.in_words())
            }
            Ok(part) => part,
        });
        let breakpoint = one.extra().and_then(cache_breakpoint);
        converted.extend(breakpoint.map(UserPart::CacheBreakpoint));
    }
    Ok(converted)
}

/// The refusal of a part whose type has no neutral form.
pub(super) fn unknown_part(kind: &str, path: &str) -> ApiError {
    ApiError::unsupported_value(&format!("{path}.type"), &format!("'{kind}'"))
}

/// Adds the name of what was left out, unless it is there.
pub(super) fn add_once(dropped: &mut Vec<String>, name: &str) {
    if !dropped.iter().any(|known| known == name) {
        dropped.push(name.to_owned());
    }
}

/// Returns the breakpoint of a prompt cache among the members of a part or a tool: `cache_control` of
/// Anthropic, which Chat clients send as well, or `prompt_cache_breakpoint` of OpenAI
/// (<https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching>,
/// <https://openrouter.ai/docs/features/prompt-caching>,
/// <https://platform.openai.com/docs/guides/prompt-caching>).
pub(super) fn cache_breakpoint(members: &Object) -> Option<CacheLifetime> {
    let mark = ["cache_control", "prompt_cache_breakpoint"]
        .into_iter()
        .find_map(|name| members.get(name)?.as_object())?;
    Some(match mark.get("ttl").and_then(Value::as_str) {
        Some("1h" | "12h") => CacheLifetime::Long,
        _ => CacheLifetime::Short,
    })
}

/// Converts a budget of tokens for reasoning.
pub(super) fn effort_of_budget(budget: i64) -> Effort {
    match budget {
        ..4096 => Effort::Low,
        4096..16384 => Effort::Medium,
        _ => Effort::High,
    }
}

/// Returns the last breakpoint among the members of several parts or tools.
pub(super) fn last_breakpoint<'a>(
    members: impl IntoIterator<Item = &'a Object>,
) -> Option<CacheLifetime> {
    members.into_iter().filter_map(cache_breakpoint).last()
}

/// Converts an image URL, which has been validated.
pub(super) fn image(url: &str, detail: Option<String>) -> UserPart {
    let source = match DataUrl::parse(url) {
        Ok(url) => ImageSource::Inline {
            media_type: image_type(url.media_type, url.data),
            data: url.data.to_owned(),
        },
        Err(_) => ImageSource::Url(url.to_owned()),
    };
    UserPart::Image { source, detail }
}

/// Returns the registered media type of an image. One that contradicts the first bytes gives way to
/// them: "the image was specified using the image/png media type, but the image appears to be a
/// image/jpeg image" (<https://github.com/home-assistant/core/issues/167208>).
pub(super) fn image_type(stated: &str, data: &str) -> String {
    let registered = wire::image_type(stated).unwrap_or(stated);
    let is_registered = registered.eq_ignore_ascii_case(stated);
    let found = data.get(..SIGNATURE).filter(|_| is_registered);
    let found = found.and_then(|head| type_of(&STANDARD.decode(head).ok()?));
    found.unwrap_or(registered).to_owned()
}

/// Returns the type of an image by its first bytes.
fn type_of(head: &[u8]) -> Option<&'static str> {
    let signatures: [(&[u8], &str); 4] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF8", "image/gif"),
        (b"RIFF", "image/webp"),
    ];
    let is_of = |(signature, kind): &&(&[u8], &str)| {
        let is_webp = head.get(8..12) == Some(b"WEBP");
        head.starts_with(signature) && (*kind != "image/webp" || is_webp)
    };
    signatures.iter().find(is_of).map(|(_, kind)| *kind)
}

/// The letters of base64 that have the first bytes.
const SIGNATURE: usize = 16;

/// Converts a document given as a data URL in the field `param`.
pub(super) fn file(
    url: Option<&str>,
    name: Option<String>,
    param: &str,
) -> Result<UserPart, ApiError> {
    let refused = |code: Code, sentence: String| {
        Err(ApiError::new(ErrorKind::InvalidRequest, code.as_str(), sentence).with_param(param))
    };
    let Some(url) = url else {
        let sentence = format!("Missing required parameter: '{param}'.");
        return refused(Code::MissingRequiredParameter, sentence);
    };
    match DataUrl::parse(url) {
        Ok(url) => Ok(UserPart::File {
            name,
            media_type: url.media_type.to_owned(),
            data: url.data.to_owned(),
        }),
        Err(why) => refused(
            Code::InvalidValue,
            format!("Invalid Data URL in '{param}': {why}."),
        ),
    }
}

/// Returns the function tools, which `function` converts, and the paths of the other tools.
pub(super) fn tools<T>(
    tools: &[T],
    function: impl Fn(&T) -> Option<Tool>,
) -> (Vec<Tool>, Vec<String>) {
    let mut functions = Vec::new();
    let mut dropped = Vec::new();
    for (i, tool) in tools.iter().enumerate() {
        match function(tool) {
            Some(function) => functions.push(function),
            None => dropped.push(format!("tools[{i}]")),
        }
    }
    (functions, dropped)
}

/// Restricts the tools to `names`, and returns the choice among them.
pub(super) fn allow(tools: &mut Vec<Tool>, names: &HashSet<&str>, required: bool) -> ToolChoice {
    tools.retain(|tool| names.contains(tool.name.as_str()));
    if required {
        ToolChoice::Required
    } else {
        ToolChoice::Auto
    }
}

/// Converts a token limit, which has been validated as positive.
pub(super) fn cap(tokens: Option<i64>) -> Option<u64> {
    tokens.and_then(|tokens| u64::try_from(tokens).ok())
}

/// The name of a cache breakpoint that is lost.
pub(super) const BREAKPOINT: &str = "cache_breakpoint";
