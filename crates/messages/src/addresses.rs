//! The URLs that a request refers to.

use wire::Path;

use crate::request::{InputBlock, Request, Source};

impl Request {
    /// Calls `visit` with the path and the URL of every image or document in the messages that is
    /// referred to by URL.
    ///
    /// This crate only checks the syntax of such URLs. Whether one may be fetched is for the caller
    /// to decide.
    ///
    /// ```
    /// let body = br#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[
    ///     {"type":"image","source":{"type":"url","url":"https://example.com/cat.png"}}]}]}"#;
    /// let request = sluicegate_messages::Request::read(body).unwrap();
    /// let mut found = Vec::new();
    /// request.addresses(&mut |path, url| found.push(format!("{path}: {url}")));
    /// assert_eq!(found, ["messages[0].content[0].source.url: https://example.com/cat.png"]);
    /// ```
    pub fn addresses(&self, visit: &mut dyn FnMut(&Path<'_>, &str)) {
        let messages = Path::ROOT.key("messages");
        for (i, message) in self.messages.iter().enumerate() {
            visit_blocks(message.blocks(), &messages.index(i).key("content"), visit);
        }
    }
}

fn visit_blocks(blocks: &[InputBlock], path: &Path<'_>, visit: &mut dyn FnMut(&Path<'_>, &str)) {
    for (i, block) in blocks.iter().enumerate() {
        let path = path.index(i);
        match block {
            InputBlock::Image(block) => visit_source(&block.source, &path.key("source"), visit),
            InputBlock::Document(block) => visit_source(&block.source, &path.key("source"), visit),
            InputBlock::ToolResult(result) => {
                if let Some(content) = &result.content {
                    visit_blocks(content.parts(), &path.key("content"), visit);
                }
            }
            _ => {}
        }
    }
}

fn visit_source(source: &Source, path: &Path<'_>, visit: &mut dyn FnMut(&Path<'_>, &str)) {
    match source {
        Source::Url(source) => visit(&path.key("url"), &source.url),
        Source::Content(source) => {
            visit_blocks(source.content.parts(), &path.key("content"), visit);
        }
        _ => {}
    }
}
