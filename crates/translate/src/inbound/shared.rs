//! What the protocols say alike.

use std::collections::HashSet;

use engine::{Effort, ImageSource, Tool, ToolChoice, UserPart, Verbosity};
use wire::{ApiError, Code, DataUrl, ErrorKind};

/// A refusal of something that has no neutral word.
pub(super) fn unsupported(param: impl Into<String>, sentence: &str) -> ApiError {
    ApiError::new(ErrorKind::InvalidRequest, Code::UnsupportedValue.as_str(), sentence).with_param(param)
}

/// A picture by its address, which the validator has seen.
pub(super) fn image(url: &str, detail: Option<String>) -> UserPart {
    let source = match DataUrl::parse(url) {
        Ok(url) => ImageSource::Inline { media_type: url.media_type.to_owned(), data: url.data.to_owned() },
        Err(_) => ImageSource::Url(url.to_owned()),
    };
    UserPart::Image { source, detail }
}

/// A document by its Data URL.
pub(super) fn file(url: &str, name: Option<String>, param: &str) -> Result<UserPart, ApiError> {
    match DataUrl::parse(url) {
        Ok(url) => Ok(UserPart::File { name, media_type: url.media_type.to_owned(), data: url.data.to_owned() }),
        Err(why) => Err(unsupported(param, &format!("Invalid Data URL in '{param}': {why}."))),
    }
}

/// The neutral word for how hard to think, when there is one.
pub(super) fn effort(word: &str) -> Option<Effort> {
    Some(match word {
        "none" => Effort::None,
        "minimal" => Effort::Minimal,
        "low" => Effort::Low,
        "medium" => Effort::Medium,
        "high" => Effort::High,
        "xhigh" => Effort::XHigh,
        "max" => Effort::Max,
        _ => return None,
    })
}

/// The neutral word for how much to say, when there is one.
pub(super) fn verbosity(word: &str) -> Option<Verbosity> {
    Some(match word {
        "low" => Verbosity::Low,
        "medium" => Verbosity::Medium,
        "high" => Verbosity::High,
        _ => return None,
    })
}

/// Only the tools of these names, and whether one of them must be called.
pub(super) fn allow(tools: &mut Vec<Tool>, names: &HashSet<&str>, required: bool) -> ToolChoice {
    tools.retain(|tool| names.contains(tool.name.as_str()));
    if required { ToolChoice::Required } else { ToolChoice::Auto }
}

/// A cap as an engine counts it: the validator has seen that it is positive.
pub(super) fn cap(tokens: Option<i64>) -> Option<u64> {
    tokens.and_then(|tokens| u64::try_from(tokens).ok())
}
