//! The calls of a choice, whose pieces servers mark in different ways.

use wire::lenient::{Call, ReadError, Update, bounded};

use super::chunk::Piece;

/// The calls of a choice as far as they are known.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    all: Vec<KnownCall>,
    /// True if a piece repeats the id or the name of its call.
    pub(super) has_repetition: bool,
}

#[derive(Clone, Debug, Default)]
struct KnownCall {
    index: Option<u64>,
    call: Call,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Checks that the calls can be executed.
    pub(super) fn check(&self) -> Result<(), ReadError> {
        self.all.iter().try_for_each(|known| known.call.check())
    }

    /// Reads a piece of a call. `position` is its position in the chunk, and `is_only` is true if
    /// it is the only one there.
    pub(super) fn piece<'a>(
        &mut self,
        piece: Piece<'a>,
        position: usize,
        is_only: bool,
        out: &mut Vec<Update<'a>>,
    ) -> Result<(), ReadError> {
        let (index, id) = (piece.index.0, piece.id.0.unwrap_or_default());
        let function = piece.function.0.unwrap_or_default();
        let arguments = function.arguments.text();
        let name = function.name.0.unwrap_or_default();
        index.map(bounded).transpose()?;
        let known = self.find(index, &id, !name.is_empty(), position, is_only);
        let call = known.map_or_else(|| self.add(index, &id), Ok)?;
        self.has_repetition |= known.is_some() && !(id.is_empty() && name.is_empty());
        let state = &mut self.all[call].call;
        if state.id.is_empty() {
            (*id).clone_into(&mut state.id);
        }
        // Some servers repeat the name in every piece.
        if known.is_none() || state.name.is_empty() && !name.is_empty() {
            (*name).clone_into(&mut state.name);
            out.push(Update::Call { call, id, name });
        }
        if !arguments.is_empty() {
            state.arguments.push_str(&arguments);
            out.push(Update::Arguments {
                call,
                text: arguments,
            });
        }
        Ok(())
    }

    /// Finds the call of a piece: by the index, else by the id, else by the position.
    fn find(
        &self,
        index: Option<u64>,
        id: &str,
        is_named: bool,
        position: usize,
        is_only: bool,
    ) -> Option<usize> {
        let is_same = |known: &KnownCall| known.call.id == id;
        if index.is_some() {
            let has_index = |known: &KnownCall| known.index == index;
            let is_it = |known: &KnownCall| has_index(known) && is_same(known);
            let exactly = self.all.iter().rposition(is_it);
            // Some servers number every call 0, so a new id together with a name starts another
            // call.
            let is_other = is_named && !id.is_empty();
            return exactly.or_else(|| self.all.iter().rposition(has_index).filter(|_| !is_other));
        }
        if !id.is_empty() {
            return self.all.iter().rposition(is_same);
        }
        let at = if is_only {
            self.all.len().checked_sub(1)?
        } else {
            position
        };
        (!is_named && at < self.all.len()).then_some(at)
    }

    fn add(&mut self, index: Option<u64>, id: &str) -> Result<usize, ReadError> {
        let call = bounded(self.all.len() as u64)?;
        self.all.push(KnownCall {
            index,
            call: Call {
                id: id.to_owned(),
                ..Call::default()
            },
        });
        Ok(call)
    }
}
