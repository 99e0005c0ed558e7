//! The blocks of an answer, and the indexes by which clients find them.

use std::collections::BTreeMap;

use wire::lenient::{ReadError, TextPlace, bounded};

use super::event::Delta;

/// The blocks of an answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    /// The open blocks by the index in their events. There may be many.
    open: BTreeMap<usize, OpenBlock>,
    /// The number of blocks so far, which is the index by which clients find the next one.
    count: usize,
}

/// An open block.
#[derive(Clone, Debug)]
pub(super) struct OpenBlock {
    /// The index in its events.
    index: usize,
    /// The index by which clients find it.
    pub(super) shown: usize,
    pub(super) kind: BlockKind,
}

/// The kind of a block.
#[derive(Clone, Debug)]
pub(super) enum BlockKind {
    Text,
    Thinking,
    Redacted,
    /// A call with its number, and the input that its start has.
    Call(usize, String),
    /// A block of a hosted tool, or one that is newer than this reader.
    Other,
}

impl Blocks {
    pub(super) fn any_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Opens a block. Returns the index by which clients find it: its place among the blocks, which
    /// the index in its events should be
    /// (<https://platform.claude.com/docs/en/build-with-claude/streaming>). Some servers leave gaps,
    /// repeat an index, or have none.
    pub(super) fn open(&mut self, index: Option<u64>, kind: BlockKind) -> Result<usize, ReadError> {
        if self.find(index).is_ok() {
            return Err(ReadError::Contradiction("a block that is opened twice"));
        }
        let index = bounded(index.unwrap_or_default())?;
        let shown = bounded(self.count as u64)?;
        self.count += 1;
        self.open.insert(index, OpenBlock { index, shown, kind });
        Ok(shown)
    }

    /// Finds an open block.
    pub(super) fn find(&self, index: Option<u64>) -> Result<&OpenBlock, ReadError> {
        let found = key(index).and_then(|index| self.open.get(&index));
        found.ok_or(ReadError::Contradiction(
            "a delta of a block that is not open",
        ))
    }

    /// Closes a block.
    pub(super) fn close(&mut self, index: Option<u64>) -> Result<OpenBlock, ReadError> {
        let found = key(index).and_then(|index| self.open.remove(&index));
        found.ok_or(ReadError::Contradiction(
            "the end of a block that is not open",
        ))
    }

    /// The place of an open block that is no call.
    pub(super) fn has(&self, place: TextPlace) -> bool {
        let open = self.open.get(&place.part);
        open.is_some_and(|open| open.place() == place && !matches!(open.kind, BlockKind::Call(..)))
    }
}

/// Servers that send one block at a time may leave out its index: their events are about the first.
fn key(index: Option<u64>) -> Option<usize> {
    usize::try_from(index.unwrap_or_default()).ok()
}

impl OpenBlock {
    /// The place of its text.
    pub(super) fn place(&self) -> TextPlace {
        TextPlace {
            item: self.shown,
            part: self.index,
            ..TextPlace::default()
        }
    }
}

impl BlockKind {
    /// The types of the deltas of its content, if they are known.
    fn deltas(&self) -> Option<&'static [&'static str]> {
        Some(match self {
            Self::Text => &["text_delta"],
            Self::Thinking => &["thinking_delta", "signature_delta"],
            Self::Call(..) => &["input_json_delta"],
            Self::Redacted => &[],
            Self::Other => return None,
        })
    }

    /// Returns true if a delta of this type has a text that continues the block, and no other text.
    pub(super) fn is_continued(&self, kind: Option<&str>, delta: &Delta<'_>) -> bool {
        let Some(types) = self.deltas() else {
            return true;
        };
        kind.is_some_and(|kind| types.contains(&kind)) && delta.is_only(kind)
    }

    /// Checks that a delta is of the kind of its block, because clients ignore others. Returns the
    /// type of the delta, if it has none.
    pub(super) fn check(&self, delta: &Delta<'_>) -> Result<Option<&'static str>, ReadError> {
        let Some(types) = self.deltas() else {
            return Ok(None);
        };
        let kind = delta.kind.get();
        let mut contents = delta.contents();
        let Some(content) = contents.next() else {
            return Ok(None);
        };
        let fits = types.contains(&content) && kind.is_none_or(|kind| kind == content);
        if !fits || contents.next().is_some() {
            return Err(ReadError::Contradiction(
                "a delta of another kind than its block",
            ));
        }
        Ok(Some(content).filter(|_| kind.is_none()))
    }
}
