//! Load generators, each bounded in time.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::Outcome;
use crate::client::Connection;
use crate::question::Question;
use crate::subject::Subject;
use crate::usage::Usage;

/// The result of a period of load.
#[derive(Default)]
pub struct Done {
    /// The number of responses.
    pub answers: usize,
    /// The bytes of complete replies, or the events of streams.
    pub units: usize,
    /// The duration.
    pub took: Duration,
    /// The usage of the measured process.
    pub usage: Usage,
}

impl Done {
    /// Converts a count to a rate per second.
    pub fn per_second(&self, count: usize) -> f64 {
        count as f64 / self.took.as_secs_f64()
    }

    /// The cost of each of so many: CPU time in all, in user space and in system calls, in
    /// microseconds; voluntary and forced switches; faults.
    pub fn each(&self, count: usize) -> [f64; 6] {
        let Usage {
            user,
            system,
            voluntary,
            forced,
            faults,
        } = self.usage;
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        [
            micros(user + system),
            micros(user),
            micros(system),
            voluntary as f64,
            forced as f64,
            faults as f64,
        ]
        .map(|all| all / count.max(1) as f64)
    }
}

/// Sends requests repeatedly on so many connections at once, each as soon as it has its response.
pub async fn closed_loop(
    subject: &Subject,
    question: Question,
    connections: usize,
    span: Duration,
) -> Outcome<Done> {
    // Threads, pools and caches reach a steady state before anything is counted.
    run(subject, question, connections, WARM_UP).await?;
    let before = subject.usage()?;
    let mut done = run(subject, question, connections, span).await?;
    done.usage = subject.usage()?.since(before);
    Ok(done)
}

async fn run(
    subject: &Subject,
    question: Question,
    connections: usize,
    span: Duration,
) -> Outcome<Done> {
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        let (address, request) = (subject.address, subject.request(question));
        tasks.spawn(async move {
            let mut connection = Connection::open(address).await?;
            let (mut answers, mut units) = (0, 0);
            while started.elapsed() < span {
                units += match question.is_stream() {
                    true => connection.stream(&request).await?.events,
                    false => connection.ask(&request).await?,
                };
                answers += 1;
            }
            std::io::Result::Ok((answers, units))
        });
    }
    let mut done = Done::default();
    while let Some(joined) = bounded(span + GRACE, tasks.join_next()).await? {
        let (answers, units) = joined.map_err(to_message)?.map_err(to_message)?;
        done.answers += answers;
        done.units += units;
    }
    done.took = started.elapsed();
    Ok(done)
}

/// Sends requests at a fixed rate, however long responses take; returns the latencies, sorted.
pub async fn fixed_rate(
    subject: &Subject,
    every: Duration,
    span: Duration,
) -> Outcome<Vec<Duration>> {
    let asked = open_loop(subject, Question::Small, every, span).await?;
    let mut times = asked
        .into_iter()
        .map(|asked| asked.answered().map(|()| asked.took))
        .collect::<Outcome<Vec<_>>>()?;
    times.sort_unstable();
    Ok(times)
}

/// The result of one request.
pub struct Asked {
    /// The status, or the error.
    pub status: std::io::Result<u16>,
    /// The latency.
    pub took: Duration,
}

impl Asked {
    /// Returns an error unless the response is the expected one.
    pub fn answered(&self) -> Outcome {
        match &self.status {
            Ok(200) => Ok(()),
            Ok(status) => Err(format!("status {status}")),
            Err(error) => Err(to_message(error)),
        }
    }
}

/// Sends requests at a fixed rate, whatever the responses are and however long they take.
pub async fn open_loop(
    subject: &Subject,
    question: Question,
    every: Duration,
    span: Duration,
) -> Outcome<Vec<Asked>> {
    let request = subject.request(question);
    let mut idle: Vec<Connection> = Vec::new();
    let mut tasks = JoinSet::new();
    let mut all = Vec::new();
    let mut ticks = ticks(every, span);
    while ticks.recv().await.is_some() {
        while let Some(joined) = tasks.try_join_next() {
            let (connection, asked): (Connection, Asked) = joined.map_err(to_message)?;
            if asked.status.is_ok() {
                idle.push(connection);
            }
            all.push(asked);
        }
        let connection = match idle.pop() {
            Some(connection) => connection,
            None => Connection::open(subject.address)
                .await
                .map_err(to_message)?,
        };
        tasks.spawn(timed(connection, request.clone()));
    }
    while let Some(joined) = bounded(GRACE, tasks.join_next()).await? {
        all.push(joined.map_err(to_message)?.1);
    }
    Ok(all)
}

/// Ticks at a fixed rate over a period. A thread does it, because the timers of the runtime are a
/// millisecond apart; ticks that are missed come late.
fn ticks(every: Duration, span: Duration) -> UnboundedReceiver<()> {
    let (send, receive) = unbounded_channel();
    let started = Instant::now();
    std::thread::spawn(move || {
        let mut due = Duration::ZERO;
        while due < span && send.send(()).is_ok() {
            due += every;
            std::thread::sleep(due.saturating_sub(started.elapsed()));
        }
    });
    receive
}

async fn timed(mut connection: Connection, request: Bytes) -> (Connection, Asked) {
    let asked = Instant::now();
    let status = connection
        .answer(&request)
        .await
        .map(|answer| answer.status);
    (
        connection,
        Asked {
            status,
            took: asked.elapsed(),
        },
    )
}

/// Opens streams one after another; returns the times to their first events, sorted.
pub async fn first_events(
    subject: &Subject,
    question: Question,
    count: usize,
) -> Outcome<Vec<Duration>> {
    let request = subject.request(question);
    let mut connection = Connection::open(subject.address)
        .await
        .map_err(to_message)?;
    let mut times = Vec::new();
    for _ in 0..count {
        times.push(
            bounded(GRACE, connection.stream(&request))
                .await?
                .map_err(to_message)?
                .first,
        );
    }
    times.sort_unstable();
    Ok(times)
}

/// Opens so many streams that send only their first event.
pub async fn open_streams(subject: &Subject, count: usize) -> Outcome<Vec<Connection>> {
    let request = subject.request(Question::Idle);
    let mut open = Vec::new();
    while open.len() < count {
        let mut tasks = JoinSet::new();
        for _ in 0..AT_ONCE.min(count - open.len()) {
            let (address, request) = (subject.address, request.clone());
            tasks.spawn(async move {
                let mut connection = Connection::open(address).await?;
                connection.open_stream(&request).await?;
                std::io::Result::Ok(connection)
            });
        }
        while let Some(joined) = bounded(GRACE, tasks.join_next()).await? {
            open.push(result(joined)?);
        }
    }
    Ok(open)
}

/// Waits for `work`, for a limited time.
pub async fn bounded<T>(span: Duration, work: impl Future<Output = T>) -> Outcome<T> {
    timeout(span, work)
        .await
        .map_err(|_| format!("nothing came for {} s", span.as_secs()))
}

/// The time within which `share` of the sorted times are.
pub fn percentile(sorted: &[Duration], share: f64) -> f64 {
    let at = (sorted.len() as f64 * share) as usize;
    sorted
        .get(at.min(sorted.len().saturating_sub(1)))
        .map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

fn result<T>(joined: Result<std::io::Result<T>, tokio::task::JoinError>) -> Outcome<T> {
    joined.map_err(to_message)?.map_err(to_message)
}

/// The message of an error.
pub fn to_message(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The time until threads, pools and caches reach a steady state.
pub const WARM_UP: Duration = Duration::from_millis(300);
const GRACE: Duration = Duration::from_secs(10);
const AT_ONCE: usize = 64;
