//! The blocks of an answer, and the indexes by which clients find them.

use wire::lenient::{ReadError, TextPlace, bounded};

use super::event::Delta;

/// The blocks of an answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    open: Vec<OpenBlock>,
    /// The indexes by which clients know the blocks so far, each of another block.
    shown: Vec<usize>,
}

/// An open block.
#[derive(Clone, Debug)]
pub(super) struct OpenBlock {
    /// The index in its events. Servers that send one block at a time may leave it out.
    index: Option<u64>,
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

    /// Opens a block. Returns the index by which clients find it: its own, unless it has none or an
    /// earlier block has the same.
    pub(super) fn open(&mut self, index: Option<u64>, kind: BlockKind) -> Result<usize, ReadError> {
        if self.find(index).is_ok() {
            return Err(ReadError::Contradiction("a block that is opened twice"));
        }
        let own = index.map(bounded).transpose()?;
        let own = own.filter(|own| !self.shown.contains(own));
        let behind = || self.shown.iter().max().map_or(0, |last| last + 1);
        let shown = bounded(own.unwrap_or_else(behind) as u64)?;
        self.shown.push(shown);
        self.open.push(OpenBlock { index, shown, kind });
        Ok(shown)
    }

    /// Finds an open block.
    pub(super) fn find(&self, index: Option<u64>) -> Result<&OpenBlock, ReadError> {
        let found = self.position(index).and_then(|at| self.open.get(at));
        found.ok_or(ReadError::Contradiction(
            "a delta of a block that is not open",
        ))
    }

    /// Closes a block.
    pub(super) fn close(&mut self, index: Option<u64>) -> Result<OpenBlock, ReadError> {
        let found = self.position(index).map(|at| self.open.remove(at));
        found.ok_or(ReadError::Contradiction(
            "the end of a block that is not open",
        ))
    }

    /// The place of an open block that is no call.
    pub(super) fn has(&self, place: TextPlace) -> bool {
        let mut open = self.open.iter();
        open.any(|open| open.place() == place && !matches!(open.kind, BlockKind::Call(..)))
    }

    /// Without an index, an event is about the first block.
    fn position(&self, index: Option<u64>) -> Option<usize> {
        let number = |index: Option<u64>| index.unwrap_or_default();
        let is_it = |open: &OpenBlock| number(open.index) == number(index);
        self.open.iter().position(is_it)
    }
}

impl OpenBlock {
    /// The place of its text.
    pub(super) fn place(&self) -> TextPlace {
        TextPlace {
            item: self.shown,
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
