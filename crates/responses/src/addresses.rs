//! The addresses that a request names.

use wire::{DataUrl, Path, TextOr};

use crate::request::{Item, Part, Request};

impl Request {
    /// Tells every address of a picture or a document in the input, and where it stands. Data URLs are none.
    ///
    /// Whose addresses may be asked is for who asks them: this crate holds them only against the form of an address
    /// (wire-reference §1.2).
    ///
    /// ```
    /// let body = br#"{"model":"m","input":[{"role":"user","content":[
    ///     {"type":"input_image","image_url":"https://example.com/cat.png"}]}]}"#;
    /// let request = sluicegate_responses::Request::read(body).unwrap();
    /// let mut found = Vec::new();
    /// request.addresses(&mut |path, url| found.push(format!("{path}: {url}")));
    /// assert_eq!(found, ["input[0].content[0].image_url: https://example.com/cat.png"]);
    /// ```
    pub fn addresses(&self, tell: &mut dyn FnMut(&Path<'_>, &str)) {
        let TextOr::List(items) = &self.input else { return };
        let input = Path::ROOT.key("input");
        for (i, item) in items.iter().enumerate() {
            let path = input.index(i);
            match item {
                Item::Message(message) => of_parts(&message.content, &path.key("content"), tell),
                Item::FunctionCallOutput(output) => of_parts(&output.output, &path.key("output"), tell),
                Item::CustomToolCallOutput(output) => of_parts(&output.output, &path.key("output"), tell),
                Item::Other(members) => {
                    let picture = members.get("output").and_then(|output| output.get("image_url"));
                    of_url(picture.and_then(|url| url.as_str()), &path.key("output").key("image_url"), tell);
                }
                _ => {}
            }
        }
    }
}

fn of_parts(content: &TextOr<Part>, path: &Path<'_>, tell: &mut dyn FnMut(&Path<'_>, &str)) {
    for (i, part) in content.parts().iter().enumerate() {
        let path = path.index(i);
        match part {
            Part::Image(part) => of_url(part.image_url.as_deref(), &path.key("image_url"), tell),
            Part::File(part) => of_url(part.file_url.as_deref(), &path.key("file_url"), tell),
            _ => {}
        }
    }
}

fn of_url(url: Option<&str>, path: &Path<'_>, tell: &mut dyn FnMut(&Path<'_>, &str)) {
    if let Some(url) = url.filter(|url| !DataUrl::is_meant(url)) {
        tell(path, url);
    }
}
