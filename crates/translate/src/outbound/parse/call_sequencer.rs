//! Serializes interleaved tool calls.
//!
//! In the neutral event model, arguments belong to the latest call, so while a call is open no
//! other event can be emitted. Events that arrive in the meantime are held back until the call has
//! ended.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use engine::{EngineError, TextEvent};
use serde::de::IgnoredAny;
use vendor::call_id;
use vendor::malformed;

/// The number of a call. Calls are emitted in the order of their numbers.
type Key = usize;

/// Emits events in order, with each call in one piece.
///
/// Events are held back only while a call is open.
#[derive(Debug, Default)]
pub(super) struct CallSequencer {
    /// The id of the answer; empty until it is known.
    answer: String,
    ids: Ids,
    open: Option<Call>,
    held: VecDeque<Held>,
    /// The calls that are held back.
    waiting: BTreeMap<Key, Call>,
    /// The calls that were emitted completely. Later data for them is ignored.
    ended: HashSet<Key>,
}

#[derive(Debug)]
enum Held {
    Event(TextEvent),
    Call(Key),
}

impl CallSequencer {
    /// Sets the id of the answer, unless it is already known.
    pub(super) fn set_answer_id(&mut self, answer: &str) {
        if self.answer.is_empty() {
            answer.clone_into(&mut self.answer);
        }
    }

    /// Returns the id by which the result will refer to a call. If the upstream sent none, it is a
    /// hash of the call's position and the answer's id, since a conversation has many answers. If an
    /// earlier call of the answer has it already, it is another one.
    pub(super) fn id(&mut self, key: Key, id: &str) -> String {
        id_of(&self.answer, key, &self.ids.own(key, id))
    }

    /// Emits an event that is not part of a call: a piece of text, reasoning or a refusal.
    pub(super) fn emit(&mut self, event: TextEvent, out: &mut Vec<TextEvent>) {
        if self.release(out) {
            out.push(event);
        } else {
            self.held.push_back(Held::Event(event));
        }
    }

    /// Starts a call, or completes the id and name of a started call.
    pub(super) fn call(&mut self, key: Key, id: &str, name: &str, out: &mut Vec<TextEvent>) {
        if self.ended.contains(&key) {
            return;
        }
        let id = self.ids.own(key, id);
        if let Some(call) = self.find(key) {
            call.set_missing(&id, name);
            return self.flush(out);
        }
        let call = Call {
            key,
            id,
            name: name.to_owned(),
            ..Call::default()
        };
        if self.release(out) {
            self.open = Some(call);
            return self.flush(out);
        }
        let is_last = self
            .waiting
            .last_key_value()
            .is_none_or(|(last, _)| *last < key);
        let later = |held: &Held| matches!(held, Held::Call(other) if *other > key);
        let position = (!is_last)
            .then(|| self.held.iter().position(later))
            .flatten();
        self.held
            .insert(position.unwrap_or(self.held.len()), Held::Call(key));
        self.waiting.insert(key, call);
    }

    /// Appends to the arguments of a call. Ignored if the call has ended.
    pub(super) fn arguments(&mut self, key: Key, piece: &str, out: &mut Vec<TextEvent>) {
        if let Some(call) = self.find(key).filter(|call| !call.closed) {
            call.arguments.push_str(piece);
            self.flush(out);
        }
    }

    /// Ends a call.
    pub(super) fn close(&mut self, key: Key, out: &mut Vec<TextEvent>) {
        if let Some(call) = self.find(key) {
            call.closed = true;
        }
        // The last call stays open, because only the end of the stream shows whether it was
        // truncated.
        while !self.held.is_empty() && self.open.as_ref().is_some_and(Call::has_ended) {
            self.advance(out);
        }
    }

    /// Ends all calls. `truncated` means that the last output of the model was cut off.
    ///
    /// # Errors
    /// When a call has no name, or arguments that are not JSON, and was not truncated.
    pub(super) fn end(
        &mut self,
        truncated: bool,
        out: &mut Vec<TextEvent>,
    ) -> Result<(), EngineError> {
        while let Some(call) = &mut self.open {
            call.truncated = truncated && self.held.is_empty();
            if call.name.is_empty() && !call.truncated {
                return Err(malformed("a tool call without a name"));
            }
            if !call.is_readable() && !call.truncated {
                return Err(malformed("a tool call whose arguments are not JSON"));
            }
            self.advance(out);
        }
        Ok(())
    }

    /// Ends the open call if it is complete. Returns true if no call is open, so that other events
    /// can be emitted.
    fn release(&mut self, out: &mut Vec<TextEvent>) -> bool {
        // Checked only while nothing is held back, because parsing the arguments for every event
        // would be costly.
        let has_ended = |call: &Call| call.has_ended() || call.is_complete();
        if self.held.is_empty() && self.open.as_ref().is_some_and(has_ended) {
            self.advance(out);
        }
        self.open.is_none()
    }

    /// Ends the open call and emits the events held back behind it, up to the next call.
    fn advance(&mut self, out: &mut Vec<TextEvent>) {
        if let Some(mut call) = self.open.take() {
            call.finish(&self.answer, out);
            self.ended.insert(call.key);
        }
        while let Some(held) = self.held.pop_front() {
            match held {
                Held::Event(event) => out.push(event),
                Held::Call(key) => {
                    self.open = self.waiting.remove(&key);
                    return self.flush(out);
                }
            }
        }
    }

    /// Emits the new data of the open call.
    fn flush(&mut self, out: &mut Vec<TextEvent>) {
        if let Some(call) = &mut self.open {
            call.flush(&self.answer, out);
        }
    }

    fn find(&mut self, key: Key) -> Option<&mut Call> {
        match &mut self.open {
            Some(open) if open.key == key => Some(open),
            _ => self.waiting.get_mut(&key),
        }
    }
}

/// The ids of the calls of an answer, which are unique for the client
/// (<https://github.com/NousResearch/hermes-agent/pull/67777>).
#[derive(Debug, Default)]
struct Ids {
    /// The id of each call.
    own: HashMap<Key, String>,
    /// The number of calls for which the server has sent an id.
    counts: HashMap<String, usize>,
}

impl Ids {
    /// Returns the id of a call for which the server sends this one; an empty one is unknown. A later
    /// call with a known id gets the one that it would have in a history.
    fn own(&mut self, key: Key, id: &str) -> String {
        if id.is_empty() {
            return self.own.get(&key).cloned().unwrap_or_default();
        }
        let Self { own, counts } = self;
        let number = || {
            let count = counts.entry(id.to_owned()).or_default();
            *count += 1;
            match *count {
                1 => id.to_owned(),
                count => call_id::digest(&format!("{id} {count}")),
            }
        };
        own.entry(key).or_insert_with(number).clone()
    }
}

/// A call that has not been emitted completely.
#[derive(Debug, Default)]
struct Call {
    key: Key,
    id: String,
    name: String,
    arguments: String,
    /// The number of bytes of the arguments that were emitted; `None` before the call itself.
    emitted: Option<usize>,
    closed: bool,
    truncated: bool,
}

impl Call {
    fn set_missing(&mut self, id: &str, name: &str) {
        for (known, new) in [(&mut self.id, id), (&mut self.name, name)] {
            if known.is_empty() {
                new.clone_into(known);
            }
        }
    }

    /// Emits the new data, once the name is known.
    fn flush(&mut self, answer: &str, out: &mut Vec<TextEvent>) {
        if self.name.is_empty() {
            return;
        }
        if self.emitted.is_none() {
            out.push(TextEvent::Call {
                id: self.id(answer),
                name: self.name.clone(),
            });
        }
        let emitted = self.emitted.get_or_insert_default();
        // Their end shows whether they are null.
        let may_be_null = NULL.starts_with(self.arguments.trim()) && !self.truncated;
        let new = &self.arguments[*emitted..];
        if !new.is_empty() && !may_be_null {
            out.push(TextEvent::Arguments(new.to_owned()));
            *emitted = self.arguments.len();
        }
    }

    /// Emits the rest. A call without arguments gets an empty object unless it was truncated. Some
    /// models write null for that (<https://github.com/kagent-dev/kagent/issues/2851>).
    fn finish(&mut self, answer: &str, out: &mut Vec<TextEvent>) {
        let is_null = self.is_blank() || self.arguments.trim() == NULL;
        if is_null && !self.truncated {
            "{}".clone_into(&mut self.arguments);
        }
        self.flush(answer, out);
    }

    /// Returns true if it was closed, and other output may follow it. Output after arguments that
    /// were cut is held back: the answer fails, unless they are its end and it was truncated.
    fn has_ended(&self) -> bool {
        self.closed && self.is_readable()
    }

    fn is_readable(&self) -> bool {
        self.is_blank() || serde_json::from_str::<IgnoredAny>(&self.arguments).is_ok()
    }

    fn is_blank(&self) -> bool {
        self.arguments.trim().is_empty()
    }

    /// Returns true if the arguments already form a complete object, so that nothing can follow.
    fn is_complete(&self) -> bool {
        let object = self.arguments.trim_start().starts_with('{')
            && self.arguments.trim_end().ends_with('}');
        object
            && self.emitted.is_some()
            && serde_json::from_str::<IgnoredAny>(&self.arguments).is_ok()
    }

    fn id(&self, answer: &str) -> String {
        id_of(answer, self.key, &self.id)
    }
}

const NULL: &str = "null";

fn id_of(answer: &str, key: Key, id: &str) -> String {
    match id {
        "" => call_id::digest(&format!("{answer}.0.{key}")),
        id => id.to_owned(),
    }
}
