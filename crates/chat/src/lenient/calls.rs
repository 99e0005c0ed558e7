//! The calls of a choice, whose pieces servers mark in different ways.

use std::borrow::Cow;

use wire::lenient::{Call, ReadError, Update, bounded};

use super::chunk::Piece;
use super::defects::CallDefects;

/// The calls of a choice as far as they are known.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    all: Vec<KnownCall>,
    /// One more than the largest index of a call so far, given or shown: most calls are numbered in
    /// their order, and a new one need not be compared with all others.
    next: u64,
    /// The latest call, as long as it has no arguments: its name may come in several pieces.
    unannounced: Option<usize>,
}

#[derive(Clone, Debug, Default)]
struct KnownCall {
    index: Option<u64>,
    /// The index under which clients know it, which no other call has.
    shown: u64,
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

    /// Reads a piece of a call, and returns its defects if clients cannot read it. `position` is
    /// its position in the chunk, and `is_only` is true if it is the only one there.
    pub(super) fn piece<'a>(
        &mut self,
        piece: Piece<'a>,
        position: usize,
        is_only: bool,
        out: &mut Vec<Update<'a>>,
    ) -> Result<Option<CallDefects>, ReadError> {
        let opaque = piece.opaque();
        let (index, mut id) = (piece.index.0, piece.id.0.unwrap_or_default());
        let function = piece.function.0.unwrap_or_default();
        let arguments = function.arguments.text();
        let name = function.name.0.unwrap_or_default();
        index.map(bounded).transpose()?;
        let has_null_id = self.is_null_id(&id, &name);
        let known_id = if has_null_id { "" } else { &id };
        let is_unnamed = name.is_empty() || (name == NULL && known_id.is_empty());
        let known = self.find(index, known_id, !is_unnamed, position, is_only);
        let call = known.map_or_else(|| self.add(index, &id), Ok)?;
        if self.unannounced != Some(call) {
            self.announce(out);
        }
        let is_unannounced = known.is_none() || self.unannounced == Some(call);
        let KnownCall {
            shown, call: state, ..
        } = &mut self.all[call];
        let (is_first, has_id) = (known.is_none(), !state.id.is_empty());
        // A name that begins with the known one may be its repetition so far, or its next piece.
        let continues_name = is_unannounced && !name.starts_with(state.name.as_str());
        let defects = CallDefects {
            place: Some(position),
            index: *shown,
            has_other_index: index != Some(*shown),
            is_first,
            repeats_id: !is_first && !id.is_empty() && (has_id || has_null_id),
            name: None,
            repeats_name: !state.name.is_empty()
                && !name.is_empty()
                && (name == NULL || !continues_name),
            arguments: None,
        };
        let repeats_name = defects.repeats_name;
        if repeats_name && name != NULL && state.name != name {
            return Err(ReadError::Contradiction("a call with two names"));
        }
        if has_null_id && !is_first {
            id = Cow::default();
        }
        if !has_id {
            (*id).clone_into(&mut state.id);
        }
        let is_odd = defects.has_other_index || defects.repeats_id || defects.repeats_name;
        let is_json = function.arguments.is_json();
        let defects = (is_odd || is_json).then(|| CallDefects {
            name: (!name.is_empty() && !defects.repeats_name).then(|| (*name).to_owned()),
            arguments: is_json.then(|| (*arguments).to_owned()),
            ..defects
        });
        if let Some((member, content)) = opaque {
            out.push(Update::CallExtra {
                call,
                id: state.id.clone(),
                member,
                content,
            });
        }
        // Some servers repeat the name in every piece, and others send it in pieces.
        if is_unannounced && !repeats_name {
            state.name.push_str(&name);
            self.unannounced = Some(call);
        } else if state.name.is_empty() && !name.is_empty() {
            (*name).clone_into(&mut state.name);
            out.push(Update::Call { call, id, name });
        }
        if !arguments.is_empty() {
            self.announce(out);
            self.all[call].call.arguments.push_str(&arguments);
            out.push(Update::Arguments {
                call,
                text: arguments,
            });
        }
        Ok(defects)
    }

    /// Adds the latest call to the updates, unless it was: its name is complete.
    pub(super) fn announce(&mut self, out: &mut Vec<Update<'_>>) {
        if let Some(call) = self.unannounced.take() {
            let Call { id, name, .. } = &self.all[call].call;
            let [id, name] = [id, name].map(|text| Cow::Owned(text.clone()));
            out.push(Update::Call { call, id, name });
        }
    }

    /// Returns true if the id of a piece is [`NULL`], unless a call has that id, or the piece has the
    /// name of a call that is not known yet.
    fn is_null_id(&self, id: &str, name: &str) -> bool {
        let calls = || self.all.iter().map(|known| &known.call);
        let is_known_name = || calls().any(|call| call.name == name);
        id == NULL
            && calls().all(|call| call.id != id)
            && (name.is_empty() || name == NULL || is_known_name())
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
        if let Some(number) = index {
            if number >= self.next {
                return None;
            }
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
        let is_free = |number: &u64| {
            *number >= self.next || self.all.iter().all(|known| known.shown != *number)
        };
        let shown = index.or(Some(call as u64)).filter(is_free);
        let shown = shown.unwrap_or(self.next);
        self.next = self.next.max(shown + 1);
        self.all.push(KnownCall {
            index,
            shown,
            call: Call {
                id: id.to_owned(),
                ..Call::default()
            },
        });
        Ok(call)
    }
}

/// The text that some servers write for the id and the name of a call in its later pieces:
/// <https://github.com/BerriAI/litellm/issues/12513>.
const NULL: &str = "null";
