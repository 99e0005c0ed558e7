//! Where things are: on the picture, and beside one another.

use super::{Last, Reader};
use crate::brief::lexicon::{Depth, Relation};
use crate::brief::token::Token;
use crate::brief::words;

impl Reader<'_> {
    pub(super) fn relate(&mut self, relation: Relation) {
        if let Last::Subject(from) = self.last {
            self.said.relation = Some((relation, from));
        }
    }

    /// "A over B": it is A of which something is told.
    pub(super) fn bind_relation(&mut self, relation: Option<(Relation, usize)>) {
        if let (Some((relation, from)), Last::Subject(to)) = (relation, self.last) {
            self.brief.subjects[from].relation.get_or_insert((relation, to));
        }
    }

    /// "On the left" is said of what was named before it, unless a sentence or a part of one begins with it.
    pub(super) fn place_last(&mut self, across: Option<i8>, down: Option<i8>) {
        let position = match self.last {
            Last::Subject(of) if !self.begins() => &mut self.brief.subjects[of].position,
            Last::Lettering(of) if !self.begins() => &mut self.brief.letterings[of].position,
            _ => &mut self.said.position,
        };
        let position = position.get_or_insert_default();
        position.across = across.or(position.across);
        position.down = down.or(position.down);
        self.said.relation = None;
    }

    /// Whether only small words stand between here and the last stop.
    fn begins(&self) -> bool {
        let small = |word: &str| {
            words::is_determiner(word)
                || words::position(word).is_some()
                || matches!(word, "in" | "on" | "at" | "to" | "and" | "corner")
        };
        let before = self.tokens[..self.at].iter().rev().take(6);
        before.take_while(|token| token.word().is_none_or(small)).any(|token| token.word().is_none()) && self.follows()
    }

    /// Whether a noun phrase begins after the words for the place.
    fn follows(&self) -> bool {
        let mut after = self.tokens[self.at + 1..].iter().take(4);
        let place = |word: &str| words::position(word).is_some() || matches!(word, "corner" | "side" | "of" | "the");
        let next = after.find(|token| token.word().is_none_or(|word| !place(word)));
        matches!(next, Some(Token::Word(_) | Token::Pause)) && self.at + 2 < self.tokens.len()
    }

    pub(super) fn deepen(&mut self, depth: Depth) {
        self.said.relation = None;
        if let Last::Subject(of) = self.last {
            self.brief.subjects[of].position.get_or_insert_default().depth = Some(depth);
        }
    }
}
