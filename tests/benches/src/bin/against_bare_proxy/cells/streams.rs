//! Streams of events at the rate at which they are read, and the time to their first event.

use super::{Bench, Place, cost, costs};
use crate::report::{Goal, Level, Line, Metric};
use benches::Outcome;
use benches::load::{closed_loop, first_events, percentile};
use benches::question::Question;

impl Bench {
    pub(super) async fn streams(&self) -> Outcome<Vec<Line>> {
        let mut lines = Vec::new();
        for (place, goals, first, level) in [
            (
                Place::Pinned,
                [Goal::Least(1.1), Goal::Most(0.8)],
                Goal::Most(1.2),
                Level::Full,
            ),
            (Place::Shared, [Goal::None; 2], Goal::None, Level::Full),
        ] {
            let subjects = self.pair(place)?;
            for (name, question) in STREAMS {
                let name = place.name(&format!("{name}, 16 streams"));
                let mut metrics = vec![Metric::new(
                    format!("{name}: first event µs, p50"),
                    first,
                    level,
                )];
                metrics.extend(costs(&name, "events/s", "event", goals, level));
                let amount = self.amount;
                let measure = async |subject: &_| {
                    let done = closed_loop(subject, question, 16, amount.span).await?;
                    let first = first_events(subject, question, amount.streams).await?;
                    let mut figures = vec![percentile(&first, 0.5)];
                    figures.extend(cost(done.per_second(done.units), &done, done.units));
                    Ok(figures)
                };
                lines.extend(self.compare(&subjects, metrics, measure).await?);
            }
        }
        Ok(lines)
    }
}

const STREAMS: [(&str, Question); 4] = [
    ("Chat relayed", Question::Chat),
    ("Responses relayed", Question::Responses),
    ("Messages relayed", Question::Messages),
    ("Responses from Chat", Question::Translated),
];
