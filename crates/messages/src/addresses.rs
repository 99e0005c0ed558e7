//! The addresses that a request names.

use wire::{Path, TextOr};

use crate::request::{InputBlock, Request, Source};

impl Request {
    /// Tells every address of a picture or a document in the messages, and where it stands.
    ///
    /// Whose addresses may be asked is for who asks them: this crate holds them only against the form of an address
    /// (wire-reference §1.2).
    ///
    /// ```
    /// let body = br#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[
    ///     {"type":"image","source":{"type":"url","url":"https://example.com/cat.png"}}]}]}"#;
    /// let request = sluicegate_messages::Request::read(body).unwrap();
    /// let mut found = Vec::new();
    /// request.addresses(&mut |path, url| found.push(format!("{path}: {url}")));
    /// assert_eq!(found, ["messages[0].content[0].source.url: https://example.com/cat.png"]);
    /// ```
    pub fn addresses(&self, tell: &mut dyn FnMut(&Path<'_>, &str)) {
        let messages = Path::ROOT.key("messages");
        for (i, message) in self.messages.iter().enumerate() {
            of_blocks(&message.content, &messages.index(i).key("content"), tell);
        }
    }
}

fn of_blocks(content: &TextOr<InputBlock>, path: &Path<'_>, tell: &mut dyn FnMut(&Path<'_>, &str)) {
    for (i, block) in content.parts().iter().enumerate() {
        let path = path.index(i);
        match block {
            InputBlock::Image(block) => of_source(&block.source, &path.key("source"), tell),
            InputBlock::Document(block) => of_source(&block.source, &path.key("source"), tell),
            InputBlock::ToolResult(result) => {
                if let Some(content) = &result.content {
                    of_blocks(content, &path.key("content"), tell);
                }
            }
            _ => {}
        }
    }
}

fn of_source(source: &Source, path: &Path<'_>, tell: &mut dyn FnMut(&Path<'_>, &str)) {
    match source {
        Source::Url(source) => tell(&path.key("url"), &source.url),
        Source::Content(source) => of_blocks(&source.content, &path.key("content"), tell),
        _ => {}
    }
}
