//! The places of things: in the picture, and beside one another.

use super::{Last, Reader};
use crate::prompt::lexicon::{DETERMINERS, POSITIONS, Relation, contains, meaning};
use crate::prompt::token::Token;

impl Reader<'_> {
    pub(super) fn relate(&mut self, relation: Relation) {
        if let Last::Subject(from) = self.last {
            self.pending.relation = Some((relation, from));
        }
    }

    /// Places the last thing: "on the left" follows its noun, unless a sentence or a part of one
    /// begins with it.
    pub(super) fn place_last(&mut self, across: Option<i8>, down: Option<i8>) {
        let position = match self.last {
            Last::Subject(of) if !self.begins() => &mut self.result.subjects[of].position,
            Last::Lettering(of) if !self.begins() => &mut self.result.letterings[of].position,
            _ => &mut self.pending.position,
        };
        let position = position.get_or_insert_default();
        position.across = across.or(position.across);
        position.down = down.or(position.down);
        self.pending.relation = None;
    }

    /// Tests whether only small words are between here and the last stop.
    fn begins(&self) -> bool {
        let small = |word: &str| {
            contains(DETERMINERS, word)
                || meaning(POSITIONS, word).is_some()
                || matches!(word, "in" | "on" | "at" | "to" | "and" | "corner")
        };
        let before = self.tokens[..self.at].iter().rev().take(6);
        before
            .take_while(|token| token.word().is_none_or(small))
            .any(|token| token.word().is_none())
            && self.follows()
    }

    /// Tests whether a noun phrase begins after the words for the place.
    fn follows(&self) -> bool {
        let mut after = self.tokens[self.at + 1..].iter().take(4);
        let place = |word: &str| {
            meaning(POSITIONS, word).is_some() || matches!(word, "corner" | "side" | "of" | "the")
        };
        let next = after.find(|token| token.word().is_none_or(|word| !place(word)));
        matches!(next, Some(Token::Word(_) | Token::Pause)) && self.at + 2 < self.tokens.len()
    }

    pub(super) fn deepen(&mut self, depth: i8) {
        self.pending.relation = None;
        if let Some(subject) = self.last_subject() {
            subject.position.get_or_insert_default().depth = Some(depth);
        }
    }
}
