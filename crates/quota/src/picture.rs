//! A generated picture, which a price turns into money.

/// A picture that a request has generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picture<'a> {
    /// Width and height, such as `1024x1024`; blank if unknown.
    pub size: &'a str,
    /// The quality, such as `high`; blank if unknown.
    pub quality: &'a str,
}
