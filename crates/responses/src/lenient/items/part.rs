//! The parts of items.

use wire::lenient::{ReadError, bounded};

use super::{ItemKind, ItemState, Items, PartKind, Place};

#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) kind: PartKind,
    /// `None` until an event says it.
    pub(super) index: Option<u64>,
    pub(super) text: String,
    numbering: Numbering,
}

/// The indexes in the events of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbering {
    /// Each event has the index of the part.
    Own,
    /// The part is announced, and no other event has come.
    Announced,
    /// Each event has a larger index than the one before, as in vLLM:
    /// <https://github.com/vllm-project/vllm/pull/35184>.
    Growing,
}

impl Items {
    /// Notes a part that is announced before its text. For models with the Harmony format vLLM does
    /// not count from 0 in each item: <https://github.com/vllm-project/vllm/issues/45742>.
    pub(in super::super) fn announce(
        &mut self,
        Place(at): Place,
        kind: PartKind,
        index: u64,
    ) -> Result<(), ReadError> {
        let item = &mut self.all[at];
        let kind = item.kind_of_part(kind);
        let is_it = |part: &Part| part.kind == kind && part.index == Some(index);
        if !item.parts.iter().any(is_it) {
            self.revision += 1;
            let is_first = item.parts.iter().all(|part| part.kind == PartKind::Summary);
            if is_first && kind != PartKind::Summary {
                item.first_part = index;
            }
            item.begin_part(kind, Some(index), Numbering::Announced)?;
        }
        Ok(())
    }

    /// Returns the index by which clients find the part of an event.
    pub(in super::super) fn shown_part(
        &self,
        Place(at): Place,
        kind: PartKind,
        index: Option<u64>,
    ) -> u64 {
        let item = &self.all[at];
        item.shown_part(item.kind_of_part(kind), index)
    }

    /// Finds a part of an item, or begins it. Also returns the index of the item for clients.
    pub(super) fn part(
        &mut self,
        Place(at): Place,
        kind: PartKind,
        index: Option<u64>,
    ) -> Result<(u64, &mut Part), ReadError> {
        let item = &mut self.all[at];
        let at = match item.position(kind, index) {
            Some(at) => at,
            None => {
                self.revision += 1;
                item.begin_part(kind, index, Numbering::Own)?
            }
        };
        let part = &mut item.parts[at];
        part.note_index(index);
        Ok((item.shown as u64, part))
    }
}

impl ItemState {
    fn begin_part(
        &mut self,
        kind: PartKind,
        index: Option<u64>,
        numbering: Numbering,
    ) -> Result<usize, ReadError> {
        let at = bounded(self.parts.len() as u64)?;
        if index.is_some_and(|index| index < self.first_index(kind)) {
            return Err(ReadError::Contradiction("a part before the first one"));
        }
        self.parts.push(Part {
            kind,
            index,
            text: String::new(),
            numbering,
        });
        Ok(at)
    }

    /// The kind of a part by its type. vLLM and SGLang announce the text of reasoning as an
    /// `output_text`.
    fn kind_of_part(&self, kind: PartKind) -> PartKind {
        match kind {
            PartKind::Text if self.kind == Some(ItemKind::Reasoning) => PartKind::Reasoning,
            kind => kind,
        }
    }

    /// The position of a part: by its index, else the last one of its kind.
    pub(super) fn position(&self, kind: PartKind, index: Option<u64>) -> Option<usize> {
        let last = |is_it: &dyn Fn(&Part) -> bool| self.parts.iter().rposition(is_it);
        let is_growing = |part: &Part| part.numbering != Numbering::Own;
        match index {
            Some(_) => last(&|part| part.kind == kind && part.index == index)
                .or_else(|| last(&|part| part.kind == kind && part.index.is_none()))
                .or_else(|| last(&|part| part.kind == kind && is_growing(part))),
            None => last(&|part| part.kind == kind),
        }
    }

    /// Notes that no event continues a part under another index.
    pub(super) fn end_parts(&mut self) {
        for part in &mut self.parts {
            part.numbering = Numbering::Own;
        }
    }

    /// The index by which clients find a part.
    pub(super) fn shown_part(&self, kind: PartKind, index: Option<u64>) -> u64 {
        let known = self.position(kind, index);
        let known = known.and_then(|at| self.parts[at].index);
        self.shown_index(kind, known.or(index).unwrap_or_default())
    }

    /// The index by which clients find the part with this one: they count from 0.
    pub(super) fn shown_index(&self, kind: PartKind, index: u64) -> u64 {
        index.saturating_sub(self.first_index(kind))
    }

    /// The index of the first part in the list of this kind.
    pub(super) fn first_index(&self, kind: PartKind) -> u64 {
        match kind {
            PartKind::Summary => 0,
            _ => self.first_part,
        }
    }
}

impl Part {
    /// Notes the index of an event with text.
    fn note_index(&mut self, index: Option<u64>) {
        self.index = self.index.or(index);
        if self.numbering == Numbering::Announced {
            let is_own = index.is_none() || index == self.index;
            self.numbering = if is_own {
                Numbering::Own
            } else {
                Numbering::Growing
            };
        }
    }
}
