//! One thing at a time: what comes interleaved is told in order.
//!
//! In neutral words the arguments belong to the call that began last, so while a call is open nothing else can be
//! told. What comes in the meantime is held back until the call has ended.

use std::collections::VecDeque;

use engine::{EngineError, TextEvent};
use serde::de::IgnoredAny;

use super::json::malformed;
use crate::outbound::encode::call_id;

/// Where a call stands: its index, and among calls of one index the order of their appearance.
pub(super) type Key = (u32, u32);

/// Tells what a model does, and every call in one piece.
///
/// While anything is held back a call is open, and has not ended.
#[derive(Debug, Default)]
pub(super) struct CallSequencer {
    /// The id of the answer, as far as it is known.
    answer: String,
    open: Option<Call>,
    held: VecDeque<Held>,
    /// The calls among what is held back. There are few of them, and they are looked for with every piece.
    waiting: Vec<Call>,
    /// The calls that were told to their end: what comes of them later means nothing.
    ended: Vec<Key>,
    called: bool,
}

#[derive(Debug)]
enum Held {
    Said(TextEvent),
    Called(Key),
}

impl CallSequencer {
    /// The answer has this id.
    pub(super) fn is_of(&mut self, answer: &str) {
        if self.answer.is_empty() {
            answer.clone_into(&mut self.answer);
        }
    }

    /// Whether any call began.
    pub(super) fn has_called(&self) -> bool {
        self.called
    }

    /// Tells a piece of text, thoughts or a refusal.
    pub(super) fn say(&mut self, event: TextEvent, out: &mut Vec<TextEvent>) {
        if self.gives_way(out) {
            out.push(event);
        } else {
            self.held.push_back(Held::Said(event));
        }
    }

    /// A call begins, or more is known of one that began.
    pub(super) fn call(&mut self, key: Key, id: &str, name: &str, out: &mut Vec<TextEvent>) {
        if self.ended.contains(&key) {
            return;
        }
        self.called = true;
        if let Some(call) = self.find(key) {
            call.learn(id, name);
            return self.tell(out);
        }
        let call = Call { key, id: id.to_owned(), name: name.to_owned(), ..Call::default() };
        if self.gives_way(out) {
            self.open = Some(call);
            return self.tell(out);
        }
        let later = |held: &Held| matches!(held, Held::Called(other) if *other > key);
        let place = self.held.iter().position(later).unwrap_or(self.held.len());
        self.held.insert(place, Held::Called(key));
        self.waiting.push(call);
    }

    /// More of the arguments of a call; of one that has ended it means nothing.
    pub(super) fn arguments(&mut self, key: Key, piece: &str, out: &mut Vec<TextEvent>) {
        if let Some(call) = self.find(key).filter(|call| !call.closed) {
            call.arguments.push_str(piece);
            self.tell(out);
        }
    }

    /// The whole of the arguments of a call, of which pieces may have come.
    pub(super) fn whole_arguments(&mut self, key: Key, whole: &str, out: &mut Vec<TextEvent>) {
        let rest = self.find(key).and_then(|call| whole.strip_prefix(call.arguments.as_str()));
        if let Some(rest) = rest.map(str::to_owned) {
            self.arguments(key, &rest, out);
        }
    }

    /// Whether a call has no arguments so far.
    pub(super) fn is_blank(&mut self, key: Key) -> bool {
        self.find(key).is_some_and(|call| call.is_blank())
    }

    /// A call ends.
    pub(super) fn close(&mut self, key: Key, out: &mut Vec<TextEvent>) {
        if let Some(call) = self.find(key) {
            call.closed = true;
        }
        // The last one stays open: whether the model was cut off in it is known at the end.
        while !self.held.is_empty() && self.open.as_ref().is_some_and(|call| call.closed) {
            self.advance(out);
        }
    }

    /// The end of everything; `cut` when the model was cut off in what it did last.
    ///
    /// # Errors
    /// When a call has no name, unless the model was cut off before it.
    pub(super) fn end(&mut self, cut: bool, out: &mut Vec<TextEvent>) -> Result<(), EngineError> {
        while let Some(call) = &mut self.open {
            call.cut = cut && self.held.is_empty();
            if call.name.is_empty() && !call.cut {
                return Err(malformed("a call without a name"));
            }
            self.advance(out);
        }
        Ok(())
    }

    /// Whether something else than the open call can be told now.
    fn gives_way(&mut self, out: &mut Vec<TextEvent>) -> bool {
        // Once something is held back the call had its chance: to look at its arguments again and again is costly.
        if self.held.is_empty() && self.open.as_ref().is_some_and(|call| call.closed || call.is_whole()) {
            self.advance(out);
        }
        self.open.is_none()
    }

    /// Ends the open call and tells what was held back behind it, up to the next call.
    fn advance(&mut self, out: &mut Vec<TextEvent>) {
        if let Some(mut call) = self.open.take() {
            call.finish(&self.answer, out);
            self.ended.push(call.key);
        }
        while let Some(held) = self.held.pop_front() {
            match held {
                Held::Said(event) => out.push(event),
                Held::Called(key) => {
                    let place = self.waiting.iter().position(|call| call.key == key);
                    self.open = place.map(|place| self.waiting.swap_remove(place));
                    return self.tell(out);
                }
            }
        }
    }

    fn tell(&mut self, out: &mut Vec<TextEvent>) {
        if let Some(call) = &mut self.open {
            call.tell(&self.answer, out);
        }
    }

    fn find(&mut self, key: Key) -> Option<&mut Call> {
        self.open.iter_mut().chain(&mut self.waiting).find(|call| call.key == key)
    }
}

/// A call that has not been told to its end.
#[derive(Debug, Default)]
struct Call {
    key: Key,
    id: String,
    name: String,
    arguments: String,
    /// So many bytes of the arguments are told; nothing before the call itself is.
    told: Option<usize>,
    closed: bool,
    cut: bool,
}

impl Call {
    fn learn(&mut self, id: &str, name: &str) {
        for (known, new) in [(&mut self.id, id), (&mut self.name, name)] {
            if known.is_empty() {
                new.clone_into(known);
            }
        }
    }

    /// Tells what is new, once the name is known.
    fn tell(&mut self, answer: &str, out: &mut Vec<TextEvent>) {
        if self.name.is_empty() {
            return;
        }
        if self.told.is_none() {
            out.push(TextEvent::Call { id: self.id(answer), name: self.name.clone() });
        }
        let new = &self.arguments[self.told.unwrap_or_default()..];
        if !new.is_empty() {
            out.push(TextEvent::Arguments(new.to_owned()));
        }
        self.told = Some(self.arguments.len());
    }

    /// Tells the rest. A function without parameters is called with an empty object.
    fn finish(&mut self, answer: &str, out: &mut Vec<TextEvent>) {
        if self.is_blank() && !self.cut {
            self.arguments.push_str("{}");
        }
        self.tell(answer, out);
    }

    fn is_blank(&self) -> bool {
        self.arguments.trim().is_empty()
    }

    /// Whether the arguments are a whole object already, so that nothing can follow.
    fn is_whole(&self) -> bool {
        let object = self.arguments.trim_start().starts_with('{') && self.arguments.trim_end().ends_with('}');
        object && self.told.is_some() && serde_json::from_str::<IgnoredAny>(&self.arguments).is_ok()
    }

    /// The id by which the result will refer to the call. When the upstream gave none it is a hash of its place, and of
    /// the answer's id: a conversation has many answers.
    fn id(&self, answer: &str) -> String {
        if self.id.is_empty() { call_id(&format!("{answer}.{}.{}", self.key.0, self.key.1)) } else { self.id.clone() }
    }
}
