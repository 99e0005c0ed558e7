//! Content that no update has.

/// A kind of content that the readers have no updates for. Clients of other protocols do not get
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OtherContent {
    /// Sources of a text, such as citations.
    Annotations,
    /// Sound.
    Audio,
    /// Pictures.
    Images,
    /// Calls and results of hosted tools, and content that is newer than the readers.
    HostedTools,
}

impl OtherContent {
    /// Returns the name for logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Annotations => "annotations",
            Self::Audio => "audio",
            Self::Images => "images",
            Self::HostedTools => "hosted_tools",
        }
    }

    /// Adds the kind to a list, once, if the answer has such content.
    ///
    /// ```
    /// use sluicegate_wire::lenient::OtherContent;
    ///
    /// let mut kinds = Vec::new();
    /// OtherContent::Audio.note(true, &mut kinds);
    /// OtherContent::Audio.note(true, &mut kinds);
    /// OtherContent::Images.note(false, &mut kinds);
    /// assert_eq!(kinds, [OtherContent::Audio]);
    /// ```
    pub fn note(self, is_there: bool, kinds: &mut Vec<Self>) {
        if is_there && !kinds.contains(&self) {
            kinds.push(self);
        }
    }
}
