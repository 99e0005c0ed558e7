//! The hedging of requests: while the first target is slow, another one is asked as well.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::units::Time;

wire::read_objects!(Hedge);

/// The hedging of the requests for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Hedge {
    /// The time after which a request whose target has sent no content is sent to another one as well.
    #[serde(with = "Time")]
    #[schemars(example = &"2s")]
    pub after: Duration,
    /// The most requests of a hundred that are sent to a second target in this way.
    #[schemars(range(min = 1, max = 100), example = 5)]
    pub percent: u32,
}

impl Hedge {
    /// Returns its problems at a model with this number of targets.
    pub fn problems(&self, targets: usize) -> Vec<String> {
        let mut problems = Vec::new();
        if self.after.is_zero() {
            problems.push("hedge.after: must be more than 0".to_owned());
        }
        if !(1..=100).contains(&self.percent) {
            let percent = self.percent;
            problems.push(format!("hedge.percent: {percent} is not between 1 and 100"));
        }
        if targets < 2 {
            problems.push("hedge: needs a second target, which is asked as well".to_owned());
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_name_the_setting_and_its_value() {
        let good = Hedge {
            after: Duration::from_secs(2),
            percent: 100,
        };
        assert_eq!(good.problems(2), [""; 0]);
        let bad = Hedge {
            after: Duration::ZERO,
            percent: 101,
        };
        assert_eq!(
            bad.problems(1),
            [
                "hedge.after: must be more than 0",
                "hedge.percent: 101 is not between 1 and 100",
                "hedge: needs a second target, which is asked as well",
            ]
        );
    }
}
