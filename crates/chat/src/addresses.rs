//! The addresses that a request names.

use wire::{DataUrl, Path};

use crate::request::{Message, Part, Request};

impl Request {
    /// Tells every address of a picture in the messages, and where it stands. Data URLs are none.
    ///
    /// Whose addresses may be asked is for who asks them: this crate holds them only against the form of an address
    /// (wire-reference §1.2).
    ///
    /// ```
    /// let body = br#"{"model":"m","messages":[{"role":"user","content":[
    ///     {"type":"image_url","image_url":{"url":"https://example.com/cat.png"}}]}]}"#;
    /// let request = sluicegate_chat::Request::read(body).unwrap();
    /// let mut found = Vec::new();
    /// request.addresses(&mut |path, url| found.push(format!("{path}: {url}")));
    /// assert_eq!(found, ["messages[0].content[0].image_url.url: https://example.com/cat.png"]);
    /// ```
    pub fn addresses(&self, tell: &mut dyn FnMut(&Path<'_>, &str)) {
        let messages = Path::ROOT.key("messages");
        for (i, message) in self.messages.iter().enumerate() {
            let Message::User(message) = message else { continue };
            for (j, part) in message.content.parts().iter().enumerate() {
                let Part::Image(part) = part else { continue };
                let url = &part.image_url.url;
                if !DataUrl::is_meant(url) {
                    tell(&messages.index(i).key("content").index(j).key("image_url").key("url"), url);
                }
            }
        }
    }
}
