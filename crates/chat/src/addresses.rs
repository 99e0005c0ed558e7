//! The URLs that a request refers to.

use wire::{DataUrl, Path};

use crate::request::{Message, Part, Request};

impl Request {
    /// Calls `visit` with the path and the URL of every image in the messages that is referred to
    /// by URL. Data URLs are skipped.
    ///
    /// This crate only checks the syntax of such URLs. Whether one may be fetched is for the caller
    /// to decide.
    ///
    /// ```
    /// let body = br#"{"model":"m","messages":[{"role":"user","content":[
    ///     {"type":"image_url","image_url":{"url":"https://example.com/cat.png"}}]}]}"#;
    /// let request = sluicegate_chat::Request::read(body).unwrap();
    /// let mut found = Vec::new();
    /// request.addresses(&mut |path, url| found.push(format!("{path}: {url}")));
    /// assert_eq!(found, ["messages[0].content[0].image_url.url: https://example.com/cat.png"]);
    /// ```
    pub fn addresses(&self, visit: &mut dyn FnMut(&Path<'_>, &str)) {
        let messages = Path::ROOT.key("messages");
        for (i, message) in self.messages.iter().enumerate() {
            let Message::User(message) = message else {
                continue;
            };
            for (j, part) in message.content.parts().iter().enumerate() {
                let Part::Image(part) = part else { continue };
                let url = &part.image_url.url;
                if !DataUrl::is_meant(url) {
                    visit(
                        &messages
                            .index(i)
                            .key("content")
                            .index(j)
                            .key("image_url")
                            .key("url"),
                        url,
                    );
                }
            }
        }
    }
}
