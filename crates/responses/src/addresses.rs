//! The URLs that a request refers to.

use wire::{DataUrl, Path, TextOr};

use crate::request::{Item, Part, Request};

impl Request {
    /// Calls `visit` with the path and the URL of every image or file in the input that is referred
    /// to by URL. Data URLs are skipped.
    ///
    /// This crate only checks the syntax of such URLs. Whether one may be fetched is for the caller
    /// to decide.
    ///
    /// ```
    /// let body = br#"{"model":"m","input":[{"role":"user","content":[
    ///     {"type":"input_image","image_url":"https://example.com/cat.png"}]}]}"#;
    /// let request = sluicegate_responses::Request::read(body).unwrap();
    /// let mut found = Vec::new();
    /// request.addresses(&mut |path, url| found.push(format!("{path}: {url}")));
    /// assert_eq!(found, ["input[0].content[0].image_url: https://example.com/cat.png"]);
    /// ```
    pub fn addresses(&self, visit: &mut dyn FnMut(&Path<'_>, &str)) {
        let TextOr::List(items) = &self.input else {
            return;
        };
        let input = Path::ROOT.key("input");
        for (i, item) in items.iter().enumerate() {
            let path = input.index(i);
            match item {
                Item::Message(message) => {
                    visit_parts(&message.content, &path.key("content"), visit);
                }
                Item::FunctionCallOutput(output) => {
                    visit_parts(&output.output, &path.key("output"), visit);
                }
                Item::CustomToolCallOutput(output) => {
                    visit_parts(&output.output, &path.key("output"), visit);
                }
                Item::Other(members) => {
                    let url = members
                        .get("output")
                        .and_then(|output| output.get("image_url"));
                    visit_url(
                        url.and_then(|url| url.as_str()),
                        &path.key("output").key("image_url"),
                        visit,
                    );
                }
                _ => {}
            }
        }
    }
}

fn visit_parts(content: &TextOr<Part>, path: &Path<'_>, visit: &mut dyn FnMut(&Path<'_>, &str)) {
    for (i, part) in content.parts().iter().enumerate() {
        let path = path.index(i);
        match part {
            Part::Image(part) => {
                visit_url(part.image_url.as_deref(), &path.key("image_url"), visit);
            }
            Part::File(part) => visit_url(part.file_url.as_deref(), &path.key("file_url"), visit),
            _ => {}
        }
    }
}

fn visit_url(url: Option<&str>, path: &Path<'_>, visit: &mut dyn FnMut(&Path<'_>, &str)) {
    if let Some(url) = url.filter(|url| !DataUrl::is_meant(url)) {
        visit(path, url);
    }
}
