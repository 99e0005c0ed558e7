//! The items of a response, as far as they are known.

mod continued;

use std::borrow::Cow;

use wire::lenient::{Call, OtherContent, ReadError, Update, bounded, rest};

use super::defects::{ChangedId, IdOwner};
use super::event::Item;
use super::kind::{ItemKind, PartKind, Piece, content, is_empty};

/// The items, in the order in which they began.
#[derive(Clone, Debug, Default)]
pub(super) struct Items {
    all: Vec<ItemState>,
    calls: usize,
    /// The kinds of content without updates.
    others: Vec<OtherContent>,
    /// The number of items that were added and of ids that were found later, which may change the
    /// item of an event.
    revision: usize,
}

#[derive(Clone, Debug)]
struct ItemState {
    index: Option<u64>,
    id: Option<String>,
    /// `None` until it is known.
    kind: Option<ItemKind>,
    parts: Vec<Part>,
    /// The number of the call, once it has begun.
    number: Option<usize>,
    call: Call,
    /// True if the arguments of the call are complete.
    is_complete: bool,
    is_done: bool,
}

#[derive(Clone, Debug)]
struct Part {
    kind: PartKind,
    index: u64,
    text: String,
}

/// The position of an item.
#[derive(Clone, Copy)]
pub(super) struct Place(pub(super) usize);

impl Items {
    /// Finds the item of an event: by the index, else by the id, else the last. Begins it if it is
    /// unknown.
    pub(super) fn find(
        &mut self,
        index: Option<u64>,
        id: Option<&str>,
    ) -> Result<Place, ReadError> {
        self.known(index, id)
            .map_or_else(|| self.add(index, id), Ok)
    }

    /// Finds the item of an event as [`Self::find`] does, if it has begun.
    pub(super) fn known(&self, index: Option<u64>, id: Option<&str>) -> Option<Place> {
        let last = |is_it: &dyn Fn(&ItemState) -> bool| self.all.iter().rposition(is_it);
        let has_id = |item: &ItemState| id.is_some() && item.id.as_deref() == id;
        let position = match (index, id) {
            (Some(_), _) => last(&|item| item.index == index && has_id(item))
                .or_else(|| last(&|item| item.index == index)),
            (None, Some(_)) => last(&has_id),
            (None, None) => self.all.len().checked_sub(1),
        };
        position.map(Place)
    }

    /// Finds the open item of an event, or begins it.
    ///
    /// Some servers give an item another id in each event, and some give all items one index. So an
    /// item that is added is another one if it has another id, and an item that is done is the last
    /// open one of its kind.
    pub(super) fn begin(
        &mut self,
        index: Option<u64>,
        item: &Item<'_>,
        is_done: bool,
    ) -> Result<Place, ReadError> {
        let (id, kind) = (item.id.get(), ItemKind::of(item.kind.or_empty()));
        let may_be = |known: &ItemState| {
            let has_place = index.is_none() || known.index.is_none() || known.index == index;
            !known.is_done && has_place && known.kind.is_none_or(|known| known == kind)
        };
        let is_it = |known: &ItemState| may_be(known) && id.is_some() && known.id.as_deref() == id;
        let is_unnamed = |known: &ItemState| is_done || known.id.is_none() || id.is_none();
        let exactly = self.all.iter().rposition(is_it);
        let position = exactly.or_else(|| {
            let is_near = |known: &ItemState| may_be(known) && is_unnamed(known);
            self.all.iter().rposition(is_near)
        });
        position.map_or_else(|| self.add(index, id), |position| Ok(Place(position)))
    }

    fn add(&mut self, index: Option<u64>, id: Option<&str>) -> Result<Place, ReadError> {
        index.map(bounded).transpose()?;
        let place = Place(bounded(self.all.len() as u64)?);
        let id = id.map(str::to_owned);
        self.revision += 1;
        let (parts, call) = (Vec::new(), Call::default());
        self.all.push(ItemState {
            index,
            id,
            kind: None,
            parts,
            number: None,
            call,
            is_complete: false,
            is_done: false,
        });
        Ok(place)
    }

    /// Returns the first id of an item, if `id` is another one.
    pub(super) fn changed_id(&mut self, place: Place, id: Option<&str>) -> Option<&str> {
        let id = id?;
        let item = &mut self.all[place.0];
        self.revision += usize::from(item.id.is_none());
        let first = item.id.get_or_insert_with(|| id.to_owned());
        (first != id).then_some(first)
    }

    /// Appends a delta to a part.
    pub(super) fn delta<'a>(
        &mut self,
        place: Place,
        (kind, part): (PartKind, u64),
        piece: Piece<'a>,
        out: &mut Vec<Update<'a>>,
    ) -> Result<(), ReadError> {
        let item = &mut self.all[place.0];
        item.set_kind(kind.item());
        out.extend(piece.logprobs());
        let text = piece.text;
        if text.is_empty() {
            return Ok(());
        }
        if item.is_done {
            return Err(ReadError::Contradiction("a delta of an item that is done"));
        }
        item.part(kind, part)?.text.push_str(&text);
        out.push(kind.update(part, text));
        Ok(())
    }

    /// Handles the complete text of a part: all of it counts if there were no deltas.
    pub(super) fn complete<'a>(
        &mut self,
        place: Place,
        (kind, part): (PartKind, u64),
        piece: Piece<'a>,
        out: &mut Vec<Update<'a>>,
    ) -> Result<(), ReadError> {
        let item = &mut self.all[place.0];
        item.set_kind(kind.item());
        let is_done = item.is_done;
        let known = item.part(kind, part)?;
        out.extend(piece.logprobs().filter(|_| known.text.is_empty()));
        let rest = rest(&known.text, piece.text)?;
        if is_done && !known.text.is_empty() && !rest.is_empty() {
            return Err(ReadError::Contradiction(
                "a final text that differs from the one before",
            ));
        }
        if !rest.is_empty() {
            known.text.push_str(&rest);
            out.push(kind.update(part, rest));
        }
        Ok(())
    }

    /// Appends a piece of the arguments of a call.
    pub(super) fn arguments<'a>(
        &mut self,
        place: Place,
        text: Cow<'a, str>,
        out: &mut Vec<Update<'a>>,
    ) -> Result<(), ReadError> {
        let call = self.call(place, (Cow::default(), Cow::default()), out);
        let item = &mut self.all[place.0];
        if text.is_empty() {
            return Ok(());
        }
        if item.is_done {
            return Err(ReadError::Contradiction("a delta of an item that is done"));
        }
        item.call.arguments.push_str(&text);
        out.push(Update::Arguments { call, text });
        Ok(())
    }

    /// Handles the complete arguments of a call.
    pub(super) fn complete_arguments<'a>(
        &mut self,
        place: Place,
        text: Cow<'a, str>,
        out: &mut Vec<Update<'a>>,
    ) -> Result<(), ReadError> {
        let call = self.call(place, (Cow::default(), Cow::default()), out);
        let item = &mut self.all[place.0];
        let rest = rest(&item.call.arguments, text)?;
        if !rest.is_empty() {
            item.call.arguments.push_str(&rest);
            out.push(Update::Arguments { call, text: rest });
        }
        item.is_complete = true;
        Ok(())
    }

    /// Begins a call, or completes its id and name. Returns its number.
    fn call<'a>(
        &mut self,
        place: Place,
        (id, name): (Cow<'a, str>, Cow<'a, str>),
        out: &mut Vec<Update<'a>>,
    ) -> usize {
        let item = &mut self.all[place.0];
        item.set_kind(ItemKind::Call);
        let is_new = item.number.is_none();
        let call = *item.number.get_or_insert_with(|| {
            self.calls += 1;
            self.calls - 1
        });
        if is_new || item.call.name.is_empty() && !name.is_empty() {
            (*id).clone_into(&mut item.call.id);
            (*name).clone_into(&mut item.call.name);
            out.push(Update::Call { call, id, name });
        }
        call
    }

    /// Handles an item as an event has it.
    pub(super) fn item<'a>(
        &mut self,
        place: Place,
        item: Item<'a>,
        is_done: bool,
        out: &mut Vec<Update<'a>>,
    ) -> Result<(), ReadError> {
        let name = item.kind.or_empty();
        let kind = ItemKind::of(name);
        self.all[place.0].set_kind(kind);
        let other = match name {
            "image_generation_call" => OtherContent::Images,
            _ => OtherContent::HostedTools,
        };
        other.note(kind == ItemKind::Other, &mut self.others);
        let (call_id, id) = (item.call_id.0, item.id.0.unwrap_or_default());
        if kind == ItemKind::Call {
            let id = call_id.unwrap_or_else(|| id.clone());
            self.call(place, (id, item.name.0.unwrap_or_default()), out);
        }
        if !is_done {
            return Ok(());
        }
        if kind == ItemKind::Call {
            self.complete_arguments(place, item.arguments.text(), out)?;
            // A call is executed once it is done, so that the end of the answer is too late.
            if item.status.get() == Some("completed") {
                self.all[place.0].call.check()?;
            }
        }
        let was_done = self.all[place.0].is_done;
        let summary = item.summary.0.into_iter().zip(0..);
        for (part, index) in summary.chain(item.content.0.into_iter().zip(0..)) {
            let has_annotations = part.annotations.is_some_and(|list| !is_empty(list));
            OtherContent::Annotations.note(has_annotations, &mut self.others);
            if let Some((kind, piece)) = content(part) {
                self.complete(place, (kind, index), piece, out)?;
            }
        }
        let content = item.encrypted_content.0.unwrap_or_default();
        if kind == ItemKind::Reasoning && !was_done && !content.is_empty() {
            out.push(Update::Encrypted { id, content });
        }
        self.end(place, out)
    }

    /// Ends an item.
    fn end(&mut self, place: Place, out: &mut Vec<Update<'_>>) -> Result<(), ReadError> {
        let item = &mut self.all[place.0];
        if let Some(number) = item.number.filter(|_| !item.is_done) {
            out.push(Update::CallEnd(number));
        }
        item.is_done = true;
        Ok(())
    }

    /// Handles the final output, in which items may have other ids than before.
    pub(super) fn output<'a>(
        &mut self,
        output: Vec<Item<'a>>,
        changed: &mut Vec<ChangedId>,
        out: &mut Vec<Update<'a>>,
    ) -> Result<(), ReadError> {
        let mut matched = vec![false; self.all.len()];
        let is_empty = output.is_empty();
        for (index, mut item) in output.into_iter().enumerate() {
            let kind = ItemKind::of(item.kind.or_empty());
            let known = self
                .all
                .iter()
                .enumerate()
                .filter(|(at, _)| matched.get(*at) == Some(&false));
            let by_id = known
                .clone()
                .find(|(_, known)| item.id.0.is_some() && known.id.as_deref() == item.id.get());
            let by_kind = || known.clone().find(|(_, known)| known.kind == Some(kind));
            let position = by_id.or_else(by_kind).map(|(at, _)| at);
            let place = position.map_or_else(
                || self.add(Some(index as u64), item.id.get()),
                |at| Ok(Place(at)),
            )?;
            if let Some(matched) = matched.get_mut(place.0) {
                *matched = true;
                // Its reasoning is followed by other content already.
                item.encrypted_content.0 = None;
            }
            let first = self.changed_id(place, item.id.get());
            changed.extend(first.map(|first| ChangedId::new(IdOwner::Output(index), first)));
            self.item(place, item, true, out)?;
        }
        let is_lost = |(item, matched): (&ItemState, &bool)| {
            !matched
                && (item.number.is_some()
                    || item.kind == Some(ItemKind::Message) && item.has_text())
        };
        if !is_empty && self.all.iter().zip(&matched).any(is_lost) {
            return Err(ReadError::Contradiction(
                "a final output without an item that came before",
            ));
        }
        Ok(())
    }

    /// Checks that the calls can be executed.
    pub(super) fn check(&self) -> Result<(), ReadError> {
        let calls = || self.all.iter().filter(|item| item.number.is_some());
        if calls().any(|item| !item.is_complete) {
            return Err(ReadError::Contradiction("a call that is never done"));
        }
        if calls().any(|item| item.call.id.is_empty()) {
            return Err(ReadError::Call("it has no call_id"));
        }
        calls().try_for_each(|item| item.call.check())
    }

    pub(super) fn others(&self) -> &[OtherContent] {
        &self.others
    }

    pub(super) fn has_calls(&self) -> bool {
        self.calls > 0
    }
}

impl ItemState {
    fn set_kind(&mut self, kind: ItemKind) {
        self.kind.get_or_insert(kind);
    }

    fn has_text(&self) -> bool {
        self.parts.iter().any(|part| !part.text.is_empty())
    }

    fn part(&mut self, kind: PartKind, index: u64) -> Result<&mut Part, ReadError> {
        let known = self
            .parts
            .iter()
            .position(|part| part.kind == kind && part.index == index);
        let at = match known {
            Some(at) => at,
            None => {
                let at = bounded(self.parts.len() as u64)?;
                self.parts.push(Part {
                    kind,
                    index,
                    text: String::new(),
                });
                at
            }
        };
        Ok(&mut self.parts[at])
    }
}
