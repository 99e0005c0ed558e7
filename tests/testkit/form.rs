//! A builder of multipart forms.

use crate::client::Request;

/// The parts so far.
#[derive(Clone, Default)]
pub struct Form(Vec<u8>);

impl Form {
    /// Adds a text.
    pub fn text(self, name: &str, value: &str) -> Self {
        self.part(&format!("name=\"{name}\""), value.as_bytes())
    }

    /// Adds a file.
    pub fn file(self, name: &str, bytes: &[u8]) -> Self {
        self.part(
            &format!("name=\"{name}\"; filename=\"a.png\"\r\nContent-Type: image/png"),
            bytes,
        )
    }

    /// Returns the body, with its closing boundary.
    pub fn bytes(&self) -> Vec<u8> {
        [&self.0[..], b"--sgb--\r\n"].concat()
    }

    /// A request for an edit with this body.
    pub fn request(&self) -> Request {
        Request::post_bytes("/v1/images/edits", &self.bytes()).header("content-type", Self::KIND)
    }

    fn part(mut self, head: &str, bytes: &[u8]) -> Self {
        self.0
            .extend(format!("--sgb\r\nContent-Disposition: form-data; {head}\r\n\r\n").bytes());
        self.0.extend(bytes);
        self.0.extend(b"\r\n");
        self
    }

    /// The media type, with the boundary.
    pub const KIND: &'static str = "multipart/form-data; boundary=sgb";
}
