//! The texts that stand for what a model cannot be sent.

/// The text for an image.
pub(crate) const IMAGE: &str = "[An image, which this model cannot see.]";

/// The text for a document with this name or address.
pub(crate) fn document(name: Option<&str>) -> String {
    match name.filter(|name| !name.is_empty()) {
        Some(name) => format!("[A document, which this model cannot read: {name}]"),
        None => "[A document, which this model cannot read.]".to_owned(),
    }
}

/// The text for content of another type.
pub(crate) fn other(kind: &str) -> String {
    format!("[Content of the type '{kind}', which this model cannot read.]")
}
