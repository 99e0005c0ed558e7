//! The measurements, cell by cell. In each, the subjects take turns, so that other load of the
//! machine affects all of them.

mod cancel;
mod conversation;
mod latency;
mod memory;
mod pictures;
mod requests;
mod sizes;
mod streams;

use std::path::PathBuf;
use std::time::Duration;

use crate::report::{Goal, Level, Line, Metric, Round};
use benches::Outcome;
use benches::cores::{Confined, Cores};
use benches::load::Done;
use benches::subject::{Programs, Subject};
use benches::upstream::Upstream;

/// The extent of a measurement.
#[derive(Clone, Copy)]
pub(crate) struct Amount {
    /// The number of turns of each.
    pub(crate) rounds: usize,
    /// The duration of each turn.
    pub(crate) span: Duration,
    /// The numbers of open streams whose memory is measured.
    pub(crate) open: &'static [usize],
    /// The number of streams that are cancelled, and that are opened for their first event, in each
    /// turn.
    pub(crate) streams: usize,
}

/// The programs that are measured, and how much.
pub(crate) struct Bench {
    pub(crate) programs: Programs,
    /// The gateway with its engines, if there is one: its size is reported.
    pub(crate) with_engines: Option<PathBuf>,
    pub(crate) amount: Amount,
}

/// All measurements, by the name that selects them.
pub(crate) const CELLS: [&str; 8] = [
    "requests",
    "latency",
    "streams",
    "conversation",
    "pictures",
    "memory",
    "cancel",
    "sizes",
];

/// The cores that a measured process may use.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// All, which it shares with the load and the upstream.
    Shared,
    /// One of its own.
    Pinned,
}

/// The subjects that take turns.
struct Subjects {
    bare: Subject,
    per_core: Option<Subject>,
    gateway: Subject,
    /// Held while the subjects have a core of their own.
    _confined: Option<Confined>,
}

impl Bench {
    /// Measures one of [`CELLS`].
    pub(crate) async fn cell(&self, name: &str, upstream: &mut Upstream) -> Outcome<Vec<Line>> {
        match name {
            "requests" => self.requests().await,
            "latency" => self.latency().await,
            "streams" => self.streams().await,
            "conversation" => self.conversation().await,
            "pictures" => self.pictures().await,
            "memory" => self.memory().await,
            "cancel" => self.cancel(upstream).await,
            "sizes" => self.sizes(),
            _ => Err(format!(
                "there is nothing called '{name}': choose of {}",
                CELLS.join(", ")
            )),
        }
    }

    /// Starts bare proxy and gateway.
    fn pair(&self, place: Place) -> Outcome<Subjects> {
        self.start(place, false)
    }

    /// Starts bare proxy, bare proxy per core, and gateway.
    fn three(&self, place: Place) -> Outcome<Subjects> {
        self.start(place, true)
    }

    fn start(&self, place: Place, has_per_core: bool) -> Outcome<Subjects> {
        let cores = match place {
            Place::Shared => None,
            Place::Pinned => Some(Cores::split()?),
        };
        let cores = cores.as_ref();
        let per_core = has_per_core.then(|| self.programs.bare_per_core(cores));
        Ok(Subjects {
            bare: self.programs.bare(cores)?,
            per_core: per_core.transpose()?,
            gateway: self.programs.gateway(cores)?,
            // The last, because processes inherit the cores of the one that starts them.
            _confined: cores.map(Cores::confine).transpose()?,
        })
    }

    /// Measures the subjects in turns.
    async fn compare(
        &self,
        subjects: &Subjects,
        metrics: Vec<Metric>,
        measure: impl AsyncFn(&Subject) -> Outcome<Vec<f64>>,
    ) -> Outcome<Vec<Line>> {
        let mut rounds: Vec<Vec<Round>> = metrics.iter().map(|_| Vec::new()).collect();
        for _ in 0..self.amount.rounds {
            let bare = measure(&subjects.bare).await?;
            let per_core = match &subjects.per_core {
                Some(subject) => Some(measure(subject).await?),
                None => None,
            };
            let gateway = measure(&subjects.gateway).await?;
            for (at, rounds) in rounds.iter_mut().enumerate() {
                rounds.push(Round {
                    bare: Some(bare[at]),
                    per_core: per_core.as_ref().map(|values| values[at]),
                    gateway: gateway[at],
                });
            }
        }
        let lines = metrics.into_iter().zip(&rounds);
        Ok(lines
            .map(|(metric, rounds)| Line::new(metric, rounds))
            .collect())
    }
}

impl Place {
    /// The name of a measurement at this place.
    fn name(self, what: &str) -> String {
        match self {
            Self::Shared => what.to_owned(),
            Self::Pinned => format!("{what}, on one core"),
        }
    }
}

/// The metrics of the rate, with its name, and of the cost of each unit: the figures of [`cost`].
fn costs(name: &str, rate: &str, unit: &str, goals: [Goal; 2], level: Level) -> Vec<Metric> {
    let [goal_of_rate, goal_of_cost] = goals;
    let detail =
        |what: &str| Metric::new(format!("{name}: {what}/{unit}"), Goal::None, Level::Detail);
    vec![
        Metric::new(format!("{name}: {rate}"), goal_of_rate, level),
        Metric::new(format!("{name}: CPU µs/{unit}"), goal_of_cost, level),
        detail("user µs"),
        detail("system µs"),
        detail("voluntary switches"),
        detail("forced switches"),
        detail("minor faults"),
    ]
}

/// The figures of [`costs`].
fn cost(rate: f64, done: &Done, units: usize) -> Vec<f64> {
    [rate].into_iter().chain(done.each(units)).collect()
}
