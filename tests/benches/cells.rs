//! The measurements, cell by cell. In each, bare proxy and gateway take turns, so that other load
//! of the machine affects both.

use std::time::Duration;

use tokio::time::Instant;

use crate::Outcome;
use crate::load::{
    bounded, closed_loop, first_events, fixed_rate, open_streams, percentile, to_message,
};
use crate::question::Question;
use crate::report::Line;
use crate::subject::{Programs, Subject};
use crate::upstream::Upstream;

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

/// The bare proxy and the gateway, and their environment.
pub(crate) struct Bench {
    programs: Programs,
    direct: Subject,
    bare: Subject,
    gateway: Subject,
    amount: Amount,
}

/// All measurements, by the name that selects them.
pub(crate) const CELLS: [&str; 6] = [
    "requests", "latency", "streams", "memory", "pictures", "cancel",
];

impl Bench {
    /// Starts both.
    pub(crate) fn start(programs: Programs, amount: Amount) -> Outcome<Self> {
        let (direct, bare, gateway) = (programs.direct(), programs.bare()?, programs.gateway()?);
        Ok(Self {
            programs,
            direct,
            bare,
            gateway,
            amount,
        })
    }

    /// Measures one of [`CELLS`].
    pub(crate) async fn cell(&self, name: &str, upstream: &mut Upstream) -> Outcome<Vec<Line>> {
        match name {
            "requests" => self.requests().await,
            "latency" => self.latency().await,
            "streams" => self.streams().await,
            "memory" => self.memory().await,
            "pictures" => self.pictures().await,
            "cancel" => self.cancel(upstream).await,
            _ => Err(format!(
                "there is nothing called '{name}': choose of {}",
                CELLS.join(", ")
            )),
        }
    }

    /// Small requests, one after another on each connection.
    async fn requests(&self) -> Outcome<Vec<Line>> {
        let mut lines = Vec::new();
        for connections in [1, 16, 64] {
            let metrics = [
                (format!("requests/s, {connections} conn"), ""),
                (
                    format!("CPU µs/request, {connections} conn"),
                    "≤ 19 µs at 64",
                ),
            ];
            let measure = async |subject: &Subject| {
                let done =
                    closed_loop(subject, Question::Small, connections, self.amount.span).await?;
                Ok([
                    done.per_second(done.answers),
                    done.micros_each(done.answers),
                ])
            };
            lines.extend(self.compare(metrics, measure).await?);
        }
        Ok(lines)
    }

    /// The time that each adds to a request that is sent to the upstream directly.
    async fn latency(&self) -> Outcome<Vec<Line>> {
        let mut rounds = [Vec::new(), Vec::new()];
        for _ in 0..self.amount.rounds {
            let mut found = Vec::new();
            for subject in [&self.direct, &self.bare, &self.gateway] {
                let times = fixed_rate(subject, EVERY, self.amount.span).await?;
                found.push([percentile(&times, 0.5), percentile(&times, 0.99)]);
            }
            for (at, rounds) in rounds.iter_mut().enumerate() {
                rounds.push((found[1][at] - found[0][at], found[2][at] - found[0][at]));
            }
        }
        let [half, most] = rounds;
        let rate = 1000 / EVERY.as_millis();
        Ok(vec![
            Line::new(format!("added µs at {rate}/s, p50"), "", &half),
            Line::new(format!("added µs at {rate}/s, p99"), "", &most),
        ])
    }

    /// Streams of events at the rate at which they are read.
    async fn streams(&self) -> Outcome<Vec<Line>> {
        let mut lines = Vec::new();
        for (name, question) in [
            ("chat", Question::Chat),
            ("responses", Question::Responses),
            ("responses from chat", Question::Translated),
        ] {
            let metrics = [
                (format!("{name}: events/s, 16 streams"), ""),
                (format!("{name}: CPU µs/event"), ""),
                (format!("{name}: first event µs, p50"), ""),
            ];
            let measure = async |subject: &Subject| {
                let done = closed_loop(subject, question, 16, self.amount.span).await?;
                let first = first_events(subject, question, self.amount.streams).await?;
                Ok([
                    done.per_second(done.units),
                    done.micros_each(done.units),
                    percentile(&first, 0.5),
                ])
            };
            lines.extend(self.compare(metrics, measure).await?);
        }
        Ok(lines)
    }

    /// The memory of an open idle stream, in freshly started processes.
    async fn memory(&self) -> Outcome<Vec<Line>> {
        let mut lines = Vec::new();
        for &count in self.amount.open {
            let bare = weigh(&self.programs.bare()?, count).await?;
            let gateway = weigh(&self.programs.gateway()?, count).await?;
            lines.push(Line::new(
                format!("KiB/stream, {count} open"),
                "",
                &[(bare, gateway)],
            ));
        }
        Ok(lines)
    }

    /// Large replies.
    async fn pictures(&self) -> Outcome<Vec<Line>> {
        let metrics = [
            ("pictures of 2.5 MB: MB/s, 4 conn".to_owned(), "≥ 0.95"),
            ("CPU µs/picture".to_owned(), ""),
        ];
        let measure = async |subject: &Subject| {
            let done = closed_loop(subject, Question::Picture, 4, self.amount.span).await?;
            Ok([
                done.per_second(done.units) / 1e6,
                done.micros_each(done.answers),
            ])
        };
        self.compare(metrics, measure).await
    }

    /// The time from a client's disconnect until the upstream notices it.
    async fn cancel(&self, upstream: &mut Upstream) -> Outcome<Vec<Line>> {
        let mut rounds = [Vec::new(), Vec::new()];
        for _ in 0..self.amount.rounds {
            let mut found = Vec::new();
            for subject in [&self.bare, &self.gateway] {
                found.push(left(subject, upstream, self.amount.streams).await?);
            }
            for (rounds, share) in rounds.iter_mut().zip([0.5, 0.99]) {
                rounds.push((percentile(&found[0], share), percentile(&found[1], share)));
            }
        }
        let [half, most] = rounds;
        Ok(vec![
            Line::new(
                "disconnect to upstream close, µs p50".to_owned(),
                "≤ 100 ms",
                &half,
            ),
            Line::new(
                "disconnect to upstream close, µs p99".to_owned(),
                "≤ 100 ms",
                &most,
            ),
        ])
    }

    /// Measures both in turns.
    async fn compare<const N: usize>(
        &self,
        metrics: [(String, &'static str); N],
        measure: impl AsyncFn(&Subject) -> Outcome<[f64; N]>,
    ) -> Outcome<Vec<Line>> {
        let mut rounds: [Vec<(f64, f64)>; N] = std::array::from_fn(|_| Vec::new());
        for _ in 0..self.amount.rounds {
            let bare = measure(&self.bare).await?;
            let gateway = measure(&self.gateway).await?;
            for (rounds, pair) in rounds.iter_mut().zip(bare.into_iter().zip(gateway)) {
                rounds.push(pair);
            }
        }
        let lines = metrics.into_iter().zip(&rounds);
        Ok(lines
            .map(|((what, goal), rounds)| Line::new(what, goal, rounds))
            .collect())
    }
}

/// Memory in KiB for each of so many open streams.
async fn weigh(subject: &Subject, count: usize) -> Outcome<f64> {
    // The memory that the first streams allocate belongs to the process, not to them.
    drop(open_streams(subject, 64).await?);
    let before = subject.memory()?;
    let open = open_streams(subject, count).await?;
    let grown = subject.memory()? - before;
    Ok(grown / 1024.0 / open.len() as f64)
}

/// Opens a stream and disconnects, repeatedly; returns the times until the upstream noticed,
/// sorted.
async fn left(subject: &Subject, upstream: &mut Upstream, count: usize) -> Outcome<Vec<Duration>> {
    let mut times = Vec::new();
    // Drains the streams that other cells have abandoned.
    tokio::time::sleep(Duration::from_millis(100)).await;
    while upstream.left.try_recv().is_ok() {}
    for _ in 0..count {
        let open = open_streams(subject, 1).await?;
        let gone = Instant::now();
        drop(open);
        let known = bounded(PATIENCE, upstream.left.recv())
            .await?
            .ok_or_else(|| to_message("the upstream has ended"))?;
        times.push(known.duration_since(gone));
    }
    times.sort_unstable();
    Ok(times)
}

/// The interval of requests whose latency is measured.
const EVERY: Duration = Duration::from_millis(2);
const PATIENCE: Duration = Duration::from_secs(10);
