//! Conversions that the client protocols share.

use std::collections::HashSet;

use engine::{ImageSource, Tool, ToolChoice, UserPart};
use wire::{ApiError, Code, DataUrl, ErrorKind, TextOr};

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

/// Converts content, each part of it with its path.
pub(super) fn parts<P>(
    content: &TextOr<P>,
    path: &str,
    part: impl Fn(&P, &str) -> Result<UserPart, ApiError>,
) -> Result<Vec<UserPart>, ApiError> {
    match content {
        TextOr::Text(text) => Ok(vec![UserPart::Text(text.clone())]),
        TextOr::List(parts) => parts
            .iter()
            .enumerate()
            .map(|(i, one)| part(one, &format!("{path}[{i}]")))
            .collect(),
    }
}

/// Converts an image URL, which has been validated.
pub(super) fn image(url: &str, detail: Option<String>) -> UserPart {
    let source = match DataUrl::parse(url) {
        Ok(url) => ImageSource::Inline {
            media_type: url.image_type().unwrap_or(url.media_type).to_owned(),
            data: url.data.to_owned(),
        },
        Err(_) => ImageSource::Url(url.to_owned()),
    };
    UserPart::Image { source, detail }
}

/// Converts a document given as a data URL.
pub(super) fn file(url: &str, name: Option<String>, param: &str) -> Result<UserPart, ApiError> {
    match DataUrl::parse(url) {
        Ok(url) => Ok(UserPart::File {
            name,
            media_type: url.media_type.to_owned(),
            data: url.data.to_owned(),
        }),
        Err(why) => Err(unsupported(
            param,
            &format!("Invalid Data URL in '{param}': {why}."),
        )),
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
