//! Blocks of messages of the user.

use engine::{ImageSource, ToolResult, Turn, UserPart};
use messages::{InputBlock, Source};
use serde_json::Value;
use wire::{ApiError, Object, TextOr};

use super::shared;
use crate::in_words;

/// Converts the blocks of a message of the user.
pub(super) struct UserBlocks<'a> {
    /// True if messages follow. Blocks without a neutral form are then left out, because it would be sent
    /// with each later request.
    pub(super) is_history: bool,
    pub(super) dropped: &'a mut Vec<String>,
}

impl UserBlocks<'_> {
    /// Adds the turns of a message. Tool results become separate turns.
    pub(super) fn add_turns(
        &mut self,
        content: &TextOr<InputBlock>,
        path: &str,
        turns: &mut Vec<Turn>,
    ) -> Result<(), ApiError> {
        let blocks = match content {
            TextOr::Text(text) => {
                turns.push(Turn::User(vec![UserPart::Text(text.clone())]));
                return Ok(());
            }
            TextOr::List(blocks) => blocks,
        };
        let mut parts = Vec::new();
        for (i, block) in blocks.iter().enumerate() {
            let path = format!("{path}.content[{i}]");
            let InputBlock::ToolResult(result) = block else {
                self.add_marked_part(block, &path, &mut parts)?;
                continue;
            };
            if !parts.is_empty() {
                turns.push(Turn::User(std::mem::take(&mut parts)));
            }
            let mut content = self.result_parts(result.content.as_ref(), &path);
            let breakpoint = shared::cache_breakpoint(&result.extra);
            content.extend(breakpoint.map(UserPart::CacheBreakpoint));
            let is_error = result.is_error == Some(true);
            turns.push(Turn::Tool(ToolResult {
                call_id: result.tool_use_id.clone(),
                content,
                is_error,
            }));
        }
        if !parts.is_empty() {
            turns.push(Turn::User(parts));
        }
        Ok(())
    }

    /// Converts the content of a result, which comes with each later request. A block without a
    /// neutral form becomes a text.
    fn result_parts(&mut self, content: Option<&TextOr<InputBlock>>, path: &str) -> Vec<UserPart> {
        let blocks = match content {
            None => return Vec::new(),
            Some(TextOr::Text(text)) => return vec![UserPart::Text(text.clone())],
            Some(TextOr::List(blocks)) => blocks,
        };
        let mut parts = Vec::new();
        for block in blocks {
            let before = parts.len();
            let mut new = UserBlocks {
                is_history: false,
                dropped: self.dropped,
            };
            if new.add_marked_part(block, path, &mut parts).is_err() {
                parts.truncate(before);
                parts.push(UserPart::Text(in_words(block)));
                shared::add_once(self.dropped, BLOCK);
            }
        }
        parts
    }

    fn add_parts(
        &mut self,
        content: Option<&TextOr<InputBlock>>,
        path: &str,
        parts: &mut Vec<UserPart>,
    ) -> Result<(), ApiError> {
        match content {
            None => Ok(()),
            Some(TextOr::Text(text)) => {
                parts.push(UserPart::Text(text.clone()));
                Ok(())
            }
            Some(TextOr::List(blocks)) => {
                let mut blocks = blocks.iter().enumerate();
                blocks.try_for_each(|(i, block)| {
                    self.add_marked_part(block, &format!("{path}.content[{i}]"), parts)
                })
            }
        }
    }

    /// Adds a part, and the cache breakpoint that it has.
    fn add_marked_part(
        &mut self,
        block: &InputBlock,
        path: &str,
        parts: &mut Vec<UserPart>,
    ) -> Result<(), ApiError> {
        self.add_part(block, path, parts)?;
        let breakpoint = extra(block).and_then(shared::cache_breakpoint);
        parts.extend(breakpoint.map(UserPart::CacheBreakpoint));
        Ok(())
    }

    fn add_part(
        &mut self,
        block: &InputBlock,
        path: &str,
        parts: &mut Vec<UserPart>,
    ) -> Result<(), ApiError> {
        match block {
            InputBlock::Text(text) => parts.push(UserPart::Text(text.text.clone())),
            InputBlock::Image(image) => match image_source(&image.source) {
                Some(source) => parts.push(UserPart::Image {
                    source,
                    detail: None,
                }),
                None => self.leave_out(image.source.kind(), &format!("{path}.source.type"))?,
            },
            InputBlock::Document(document) => match &document.source {
                Source::Text(source) => parts.push(UserPart::Text(source.data.clone())),
                Source::Content(source) => self.add_parts(Some(&source.content), path, parts)?,
                Source::Base64(source) => parts.push(UserPart::File {
                    name: document.title.clone(),
                    media_type: source.media_type.clone(),
                    data: source.data.clone(),
                }),
                Source::Url(source) => parts.push(UserPart::FileUrl {
                    name: document.title.clone(),
                    url: source.url.clone(),
                }),
                other => self.leave_out(other.kind(), &format!("{path}.source.type"))?,
            },
            other => match text_of(other) {
                Some(text) => parts.push(UserPart::Text(text)),
                None => self.leave_out(other.kind(), &format!("{path}.type"))?,
            },
        }
        Ok(())
    }

    /// Leaves a block of the history out, and refuses a new one.
    fn leave_out(&mut self, kind: &str, path: &str) -> Result<(), ApiError> {
        if !self.is_history {
            return Err(unknown(kind, path));
        }
        shared::add_once(self.dropped, BLOCK);
        Ok(())
    }
}

/// Returns the text that stands for a block without a neutral form.
fn in_words(block: &InputBlock) -> String {
    match block {
        InputBlock::Image(_) => in_words::IMAGE.to_owned(),
        InputBlock::Document(document) => in_words::document(document.title.as_deref()),
        other => in_words::other(other.kind()),
    }
}

/// Returns the text that says the same as a block of another kind: a tool that a search has found
/// (<https://docs.claude.com/en/docs/agents-and-tools/tool-use/tool-search-tool>), or a result of a
/// search (<https://docs.claude.com/en/docs/build-with-claude/search-results>).
fn text_of(block: &InputBlock) -> Option<String> {
    let InputBlock::Other(members) = block else {
        return None;
    };
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    match text("type")? {
        "tool_reference" => Some(format!("Found tool: {}", text("tool_name")?)),
        "search_result" => {
            let content = members.get("content").and_then(Value::as_array);
            let texts = content.into_iter().flatten();
            let texts = texts.filter_map(|block| block.get("text")?.as_str());
            let head = [text("title"), text("source")];
            Some(
                head.into_iter()
                    .flatten()
                    .chain(texts)
                    .collect::<Vec<_>>()
                    .join("\n"),
            )
        }
        _ => None,
    }
}

fn image_source(source: &Source) -> Option<ImageSource> {
    match source {
        Source::Base64(source) => Some(ImageSource::Inline {
            media_type: shared::image_type(&source.media_type, &source.data),
            data: source.data.clone(),
        }),
        Source::Url(source) => Some(ImageSource::Url(source.url.clone())),
        _ => None,
    }
}

fn unknown(kind: &str, path: &str) -> ApiError {
    shared::unsupported(
        path,
        &format!("{path}: '{kind}' is not supported by this model"),
    )
}

/// The members of a block that its type does not declare.
pub(super) fn extra(block: &InputBlock) -> Option<&Object> {
    match block {
        InputBlock::Text(block) => Some(&block.extra),
        InputBlock::Image(block) => Some(&block.extra),
        InputBlock::Document(block) => Some(&block.extra),
        _ => None,
    }
}

/// A block of a message, as in the field map.
const BLOCK: &str = "messages[].content[]";
