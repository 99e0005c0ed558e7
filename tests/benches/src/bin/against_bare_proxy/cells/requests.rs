//! Small requests, one after another on each connection.

use super::{Bench, Place, cost, costs};
use crate::report::{Goal, Level, Line};
use benches::Outcome;
use benches::load::closed_loop;
use benches::question::Question;

impl Bench {
    pub(super) async fn requests(&self) -> Outcome<Vec<Line>> {
        let mut lines = Vec::new();
        for (place, connections, goal, level) in [
            (Place::Pinned, 64, Goal::Most(1.25), Level::Full),
            (Place::Shared, 64, Goal::Most(1.25), Level::Full),
            (Place::Shared, 1, Goal::None, Level::Full),
        ] {
            let subjects = self.three(place)?;
            let plural = if connections == 1 { "" } else { "s" };
            let name = place.name(&format!("small requests, {connections} connection{plural}"));
            let metrics = costs(&name, "requests/s", "request", [Goal::None, goal], level);
            let span = self.amount.span;
            let measure = async |subject: &_| {
                let done = closed_loop(subject, Question::Small, connections, span).await?;
                Ok(cost(done.per_second(done.answers), &done, done.answers))
            };
            lines.extend(self.compare(&subjects, metrics, measure).await?);
        }
        Ok(lines)
    }
}
