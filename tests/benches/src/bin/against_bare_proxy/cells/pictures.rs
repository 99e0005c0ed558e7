//! Large replies.

use super::{Bench, Place, cost, costs};
use crate::report::{Goal, Level, Line};
use benches::Outcome;
use benches::load::closed_loop;
use benches::question::Question;

impl Bench {
    pub(super) async fn pictures(&self) -> Outcome<Vec<Line>> {
        let mut lines = Vec::new();
        for (place, level) in [(Place::Pinned, Level::Full), (Place::Shared, Level::Full)] {
            let subjects = self.pair(place)?;
            let goals = match place {
                Place::Pinned => [Goal::None; 2],
                Place::Shared => [Goal::Least(0.97), Goal::None],
            };
            let name = place.name("pictures of 2.5 MB, 4 connections");
            let metrics = costs(&name, "MB/s", "picture", goals, level);
            let span = self.amount.span;
            let measure = async |subject: &_| {
                let done = closed_loop(subject, Question::Picture, 4, span).await?;
                Ok(cost(done.per_second(done.units) / 1e6, &done, done.answers))
            };
            lines.extend(self.compare(&subjects, metrics, measure).await?);
        }
        Ok(lines)
    }
}
