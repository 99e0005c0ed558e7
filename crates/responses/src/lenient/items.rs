//! The items of a response, as far as they are known.

mod continued;
mod lookup;
mod misplaced;
mod part;

use std::borrow::Cow;

use wire::lenient::{Call, OtherContent, ReadError, TextOrder, Update, bounded, rest};

use self::lookup::{Key, Lookup};
use self::part::Part;
use super::defects::{ChangedId, IdOwner};
use super::event::Item;
use super::kind::{ItemKind, PartKind, Piece, content, is_empty};

/// The items, in the order in which they began.
#[derive(Clone, Debug, Default)]
pub(super) struct Items {
    all: Vec<ItemState>,
    lookup: Lookup,
    /// The number of items at the beginning that are done, which no event continues.
    done: usize,
    /// One more than the largest index by which clients find an item.
    next: usize,
    calls: usize,
    /// The kinds of content without updates.
    others: Vec<OtherContent>,
    order: TextOrder,
    /// The number of items and parts that were added and of ids that were found later, which may
    /// change the part of an event.
    revision: usize,
}

#[derive(Clone, Debug)]
struct ItemState {
    index: Option<u64>,
    /// The index by which clients find it, which no other item has.
    shown: usize,
    id: Option<String>,
    /// The first `call_id`, which the result of the call refers to.
    call_id: Option<String>,
    /// `None` until it is known.
    kind: Option<ItemKind>,
    /// The index of the first part of its content, if it was announced.
    first_part: u64,
    parts: Vec<Part>,
    /// The number of the call, once it has begun.
    number: Option<usize>,
    call: Call,
    /// True if the arguments of the call are complete.
    is_complete: bool,
    is_done: bool,
}

/// The position of an item.
#[derive(Clone, Copy)]
pub(super) struct Place(pub(super) usize);

impl Items {
    /// Finds the item of an event: by the index, else by the id, else the last. Begins it if it is
    /// unknown. `ended` is the kind of the item if the event ends a part of it.
    pub(super) fn find(
        &mut self,
        index: Option<u64>,
        id: Option<&str>,
        ended: Option<ItemKind>,
    ) -> Result<Place, ReadError> {
        let Some(place) = self.known(index, id, ended) else {
            return self.add(index, id);
        };
        self.note_index(place, index);
        Ok(place)
    }

    /// Finds the item of an event as [`Self::find`] does, if it has begun.
    pub(super) fn known(
        &self,
        index: Option<u64>,
        id: Option<&str>,
        ended: Option<ItemKind>,
    ) -> Option<Place> {
        let has_id = |at: &usize| self.all[*at].id.as_deref() == id;
        let has_index = |at: &usize| self.all[*at].index == index;
        let is_unplaced = |at: &usize| self.all[*at].index.is_none();
        let of = |key| self.lookup.of(key, 0).rev();
        let both = |index| id.map(|id| Key::IndexAndId(index, id));
        let position = match (index, id) {
            (Some(shown), _) => of(both(index))
                .find(|at| has_index(at) && has_id(at))
                .or_else(|| of(Some(Key::Index(index))).find(has_index))
                .or_else(|| of(both(None)).find(|at| is_unplaced(at) && has_id(at)))
                .or_else(|| self.shown_at(shown).filter(is_unplaced))
                .or_else(|| self.open_with_id(id, ended?))
                .or_else(|| self.added_under_another(shown, ended)),
            (None, Some(id)) => of(Some(Key::Id(id))).find(has_id),
            (None, None) => self.all.len().checked_sub(1),
        };
        position.map(Place)
    }

    /// The index by which clients find an item.
    pub(super) fn shown(&self, place: Place) -> usize {
        self.all[place.0].shown
    }

    fn note_index(&mut self, Place(at): Place, index: Option<u64>) {
        let item = &mut self.all[at];
        let is_open = item.index.is_none() || item.is_displaced();
        if is_open && index.is_some() && item.index != index {
            let before = std::mem::replace(&mut item.index, index);
            self.lookup.remove(Key::Index(before), at);
            self.lookup.add(Key::Index(index), at);
            if let Some(id) = &item.id {
                self.lookup.remove(Key::IndexAndId(before, id), at);
                self.lookup.add(Key::IndexAndId(index, id), at);
            }
            self.revision += 1;
        }
    }

    /// The position of the item that clients find by this index.
    fn shown_at(&self, shown: u64) -> Option<usize> {
        let mut found = self.lookup.of(Some(Key::Shown(shown)), 0);
        found.find(|at| self.all[*at].shown as u64 == shown)
    }

    /// Finds the open item of an event, or begins it.
    ///
    /// Some servers give an item another id in each event, and some give all items one index. So an
    /// item that is added is another one if it has another id, and an item that is done is the last
    /// open one of its kind, also if it has the index of a later one.
    pub(super) fn begin(
        &mut self,
        index: Option<u64>,
        item: &Item<'_>,
        is_done: bool,
    ) -> Result<Place, ReadError> {
        let (id, kind) = (item.id.get(), ItemKind::of(item.kind.or_empty()));
        let has_id = |at: &usize| self.all[*at].id.as_deref() == id;
        let may_be = |at: &usize| {
            let known = &self.all[*at];
            let has_place = index.is_none() || known.index.is_none() || known.index == index;
            !known.is_done && has_place && known.kind.is_none_or(|known| known == kind)
        };
        // Some servers repeat an item that is done.
        let is_again = |at: &usize| {
            let known = &self.all[*at];
            is_done && known.is_done && known.index == index && known.kind == Some(kind)
        };
        let is_unnamed = |at: &usize| is_done || self.all[*at].id.is_none() || id.is_none();
        let is_named = |at: &usize| may_be(at) && has_id(at);
        let is_near = |at: &usize| may_be(at) && is_unnamed(at);
        let both = |index| id.map(|id| Key::IndexAndId(index, id));
        // All items before `done` are done.
        let open = |key| self.lookup.of(key, self.done).rev();
        let named = match index {
            Some(_) => open(both(index))
                .find(is_named)
                .max(open(both(None)).find(is_named)),
            None => open(id.map(Key::Id)).find(is_named),
        };
        let again = || {
            let mut again = self.lookup.of(both(index), 0).rev();
            again.find(|at| is_again(at) && has_id(at))
        };
        let of_index = |index| open(Some(Key::Index(index))).find(is_near);
        let near = || match index {
            Some(_) => of_index(index).max(of_index(None)),
            None => (self.done..self.all.len()).rev().find(is_near),
        };
        let misplaced = || self.misplaced(item).filter(|_| is_done);
        let position = named.or_else(again).or_else(near).or_else(misplaced);
        let Some(position) = position else {
            return self.add(index, id);
        };
        self.note_index(Place(position), index);
        Ok(Place(position))
    }

    fn add(&mut self, index: Option<u64>, id: Option<&str>) -> Result<Place, ReadError> {
        let own = index.map(bounded).transpose()?;
        let place = Place(bounded(self.all.len() as u64)?);
        let id = id.map(str::to_owned);
        self.revision += 1;
        let (parts, call) = (Vec::new(), Call::default());
        let is_free = |index: &usize| self.shown_at(*index as u64).is_none();
        let shown = own.or(Some(place.0)).filter(is_free);
        let shown = shown.unwrap_or(self.next);
        self.next = self.next.max(shown + 1);
        self.lookup.add(Key::Index(index), place.0);
        self.lookup.add(Key::Shown(shown as u64), place.0);
        if let Some(id) = &id {
            self.lookup.add(Key::Id(id), place.0);
            self.lookup.add(Key::IndexAndId(index, id), place.0);
        }
        self.all.push(ItemState {
            index,
            shown,
            id,
            call_id: None,
            kind: None,
            first_part: 0,
            parts,
            number: None,
            call,
            is_complete: false,
            is_done: false,
        });
        Ok(place)
    }

    /// Returns the first id of an item, if `id` is another one.
    pub(super) fn changed_id(&mut self, place: Place, id: &str) -> Option<&str> {
        let item = &mut self.all[place.0];
        if item.id.is_none() {
            self.lookup.add(Key::Id(id), place.0);
            self.lookup.add(Key::IndexAndId(item.index, id), place.0);
            self.revision += 1;
        }
        let first = item.id.get_or_insert_with(|| id.to_owned());
        (first != id).then_some(first)
    }

    /// Notes the ids of an item, and appends the first ones that it lacks or changes.
    pub(super) fn note_ids(
        &mut self,
        place: Place,
        owner: IdOwner,
        item: &Item<'_>,
        changed: &mut Vec<ChangedId>,
    ) {
        let first = match item.id.get() {
            Some(id) => self.changed_id(place, id),
            None => self.all[place.0].id.as_deref(),
        };
        changed.extend(first.map(|first| ChangedId::new(owner, "id", first)));
        let own = item.call_id.get().filter(|id| !id.is_empty());
        let known = &mut self.all[place.0].call_id;
        match (known.as_deref(), own) {
            (Some(first), _) if Some(first) != own => {
                changed.push(ChangedId::new(owner, "call_id", first));
            }
            (None, Some(id)) => {
                *known = Some(id.to_owned());
                self.lookup.add(Key::CallId(id), place.0);
            }
            _ => {}
        }
    }

    /// Appends a delta to a part. Returns the index of the part.
    pub(super) fn delta<'a>(
        &mut self,
        place: Place,
        (kind, part): (PartKind, Option<u64>),
        piece: Piece<'a>,
        out: &mut Vec<Update<'a>>,
    ) -> Result<u64, ReadError> {
        let item = &mut self.all[place.0];
        item.set_kind(kind.item());
        out.extend(piece.logprobs());
        let text = piece.text;
        if item.is_done && !text.is_empty() {
            return Err(ReadError::Contradiction("a delta of an item that is done"));
        }
        if text.is_empty() {
            return Ok(item.shown_part(kind, part));
        }
        let (shown, known) = self.part(place, kind, part)?;
        let index = known.index.unwrap_or_default();
        known.text.push_str(&text);
        self.order.note(kind.number(), (shown, index));
        out.push(kind.update((shown, index), text));
        Ok(self.all[place.0].shown_index(kind, index))
    }

    /// Handles the complete text of a part: all of it counts if there were no deltas. Returns the
    /// index of the part.
    pub(super) fn complete<'a>(
        &mut self,
        place: Place,
        (kind, part): (PartKind, Option<u64>),
        piece: Piece<'a>,
        out: &mut Vec<Update<'a>>,
    ) -> Result<u64, ReadError> {
        let item = &mut self.all[place.0];
        item.set_kind(kind.item());
        let is_done = item.is_done;
        let (shown, known) = self.part(place, kind, part)?;
        let index = known.index.unwrap_or_default();
        out.extend(piece.logprobs().filter(|_| known.text.is_empty()));
        let rest = rest(&known.text, piece.text)?;
        if is_done && !known.text.is_empty() && !rest.is_empty() {
            return Err(ReadError::Contradiction(
                "a final text that differs from the one before",
            ));
        }
        if !rest.is_empty() {
            known.text.push_str(&rest);
            self.order.note(kind.number(), (shown, index));
            out.push(kind.update((shown, index), rest));
        }
        Ok(self.all[place.0].shown_index(kind, index))
    }

    /// Handles the complete texts of one kind that a final item has, with their positions. The
    /// texts of earlier events come first, in their order, and further texts may follow. They are
    /// matched by their order, because some servers leave out the indexes of their parts, or use
    /// other indexes than the list.
    fn complete_all<'a>(
        &mut self,
        place: Place,
        kind: PartKind,
        texts: Vec<(u64, Piece<'a>)>,
        out: &mut Vec<Update<'a>>,
    ) -> Result<(), ReadError> {
        let item = &mut self.all[place.0];
        item.end_parts();
        let parts = item.parts.iter();
        let mut known: Vec<_> = parts
            .filter(|part| part.kind == kind && !part.text.is_empty())
            .map(|part| part.index)
            .collect();
        known.sort_unstable();
        if !texts.is_empty() && texts.len() < known.len() {
            return Err(ReadError::Contradiction(
                "a final item without a text that came before",
            ));
        }
        let behind = known.last().map(|last| last.unwrap_or_default() + 1);
        let first = item.first_index(kind);
        let mut known = known.into_iter();
        for (position, piece) in texts {
            let own = first.saturating_add(position);
            let new = || behind.map_or(own, |behind| own.max(behind));
            let part = known.next().unwrap_or_else(|| Some(new()));
            self.complete(place, (kind, part), piece, out)?;
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
        let mut texts: [Vec<_>; PartKind::ALL.len()] = Default::default();
        for parts in [item.summary.0, item.content.0] {
            for (part, position) in parts.into_iter().zip(0..) {
                let has_annotations = part.annotations.is_some_and(|list| !is_empty(list));
                OtherContent::Annotations.note(has_annotations, &mut self.others);
                OtherContent::Audio.note(part.is_audio(), &mut self.others);
                if let Some((kind, piece)) = content(part).filter(|(_, piece)| !piece.is_empty()) {
                    texts[kind.number()].push((position, piece));
                }
            }
        }
        for (kind, texts) in PartKind::ALL.into_iter().zip(texts) {
            self.complete_all(place, kind, texts, out)?;
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
        let open = &self.all[self.done..];
        self.done += open.iter().take_while(|item| item.is_done).count();
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
        // All items before this one are matched, as most come in their order.
        let mut first = 0;
        let is_empty = output.is_empty();
        for (index, mut item) in output.into_iter().enumerate() {
            let kind = ItemKind::of(item.kind.or_empty());
            let among = matched[first..].iter().take_while(|matched| **matched);
            first += among.count();
            let is_left = |at: &usize| matched.get(*at) == Some(&false);
            let has_id = |at: &usize| self.all[*at].id.as_deref() == item.id.get();
            let has_kind = |at: &usize| self.all[*at].kind == Some(kind) && is_left(at);
            let by_id = {
                let found = self.lookup.of(item.id.get().map(Key::Id), first);
                let mut before = found.take_while(|at| *at < matched.len());
                before.find(|at| is_left(at) && has_id(at))
            };
            let by_call_id = || {
                let call_id = item.call_id.get();
                let has_call_id = |at: &usize| self.all[*at].call_id.as_deref() == call_id;
                let mut found = self.lookup.of(call_id.map(Key::CallId), first);
                found.find(|at| has_kind(at) && has_call_id(at))
            };
            let by_index = || self.shown_at(index as u64).filter(has_kind);
            let by_kind = || (first..matched.len()).find(has_kind);
            let position = by_id.or_else(by_call_id).or_else(by_index).or_else(by_kind);
            let place = position.map_or_else(
                || self.add(Some(index as u64), item.id.get()),
                |at| Ok(Place(at)),
            )?;
            if let Some(matched) = matched.get_mut(place.0) {
                *matched = true;
                // Its reasoning is followed by other content already.
                item.encrypted_content.0 = None;
            }
            self.note_ids(place, IdOwner::Output(index), &item, changed);
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

    pub(super) fn note_other(&mut self, kind: OtherContent) {
        kind.note(true, &mut self.others);
    }

    /// Returns true if a piece of a text belongs before one that came earlier.
    pub(super) fn breaks_order(&self) -> bool {
        self.order.is_broken()
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
}
