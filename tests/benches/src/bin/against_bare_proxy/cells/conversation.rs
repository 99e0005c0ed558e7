//! Requests with a conversation of 300 KiB, relayed and translated.

use super::{Bench, Place, cost, costs};
use crate::report::{Goal, Level, Line};
use benches::Outcome;
use benches::load::closed_loop;
use benches::question::Question;

impl Bench {
    pub(super) async fn conversation(&self) -> Outcome<Vec<Line>> {
        let subjects = self.pair(Place::Pinned)?;
        let mut lines = Vec::new();
        for (name, question, goal) in [
            ("300 KiB relayed", Question::Conversation, Goal::Most(2.0)),
            (
                "300 KiB translated",
                Question::TranslatedConversation,
                Goal::None,
            ),
        ] {
            let name = Place::Pinned.name(name);
            let metrics = costs(
                &name,
                "requests/s",
                "request",
                [Goal::None, goal],
                Level::Full,
            );
            let span = self.amount.span;
            let measure = async |subject: &_| {
                let done = closed_loop(subject, question, CONNECTIONS, span).await?;
                Ok(cost(done.per_second(done.answers), &done, done.answers))
            };
            lines.extend(self.compare(&subjects, metrics, measure).await?);
        }
        Ok(lines)
    }
}

const CONNECTIONS: usize = 16;
