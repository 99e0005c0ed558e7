//! Clients that request endless streams and read nothing of them.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::operator::Operator;
use crate::streams::seconds;
use crate::verdict::Check;
use benches::client::Connection;
use benches::load::{Asked, fixed_rate, open_loop, percentile, to_message};
use benches::question::Question;
use benches::subject::Subject;
use benches::{Outcome, question, subject};

use crate::Ground;

pub(crate) async fn run(ground: &mut Ground) -> Outcome<Vec<Check>> {
    let count = if ground.quick { 50 } else { 1000 };
    // First, so that the bare proxy and not the gateway waits for the work that the system does
    // once for so many buffers.
    let bare = behind_bare_proxy(ground, count).await?;
    let limits = format!(
        "{}write_stall = \"{} s\"\nsend_buffer = \"64KiB\"\n",
        subject::ROOM,
        STALL.as_secs()
    );
    let config = question::configuration(ground.upstream.address, &limits);
    let gateway = subject::gateway(&ground.gateway, &config)?;
    let operator = Operator::of(&gateway);
    fixed_rate(&gateway, EVERY, Duration::from_secs(1)).await?;
    while ground.upstream.left.try_recv().is_ok() {}

    let before = gateway.memory()?;
    let (opened, peak, others) = tokio::join!(
        open(&gateway, count),
        peak(&gateway, STALL * 2),
        Others::ask(&gateway)
    );
    let (opened, peak, others) = (opened?, peak?, others?);
    let ended = operator
        .await_sum(ENDED, "slow_reader", count as f64, STALL * 4)
        .await?;
    let told_so = operator.sum(ENDED, "slow_reader").await?;
    let freed = operator
        .await_sum("sluicegate_in_flight ", "", 0.0, STALL)
        .await?;
    let ends = operator.lines("sluicegate_streams_ended_total").await?;
    let mut left = 0;
    while ground.upstream.left.try_recv().is_ok() {
        left += 1;
    }
    drop((opened, gateway));
    Ok(vec![
        Check::info(
            "readers: load",
            "250 events per second each, with a `send_buffer` of 64 KiB",
        ),
        Check::at_most(
            format!("readers: memory added by {count}"),
            (peak - before) / MIB,
            200.0,
            "MiB",
        ),
        Check::info(
            "readers: memory added by each",
            format!("{:.0} KiB", (peak - before) / 1024.0 / count as f64),
        ),
        Check::info("readers: requests of other clients", others.all().count()),
        Check::is(
            "readers: requests of others not answered",
            &others
                .all()
                .filter(|asked| asked.answered().is_err())
                .count(),
            &0,
        ),
        Check::at_most(
            "readers: latency of others, p99",
            p99(others.all()),
            250.0,
            "ms",
        ),
        Check::info(
            "readers: the same while they connect, p50, p99",
            percentiles_line(&others.coming),
        ),
        Check::info(
            "readers: that with a bare proxy instead",
            percentiles_line(&bare.coming),
        ),
        Check::at_most(
            "readers: p99 of others once buffers are full",
            p99(others.still.iter()),
            50.0,
            "ms",
        ),
        Check::is(
            "readers: streams with outcome `slow_reader`",
            &told_so,
            &(count as f64),
        ),
        Check::info("readers: outcomes of all streams", ends),
        Check::at_most(
            "readers: last stream ended, after the load",
            seconds(ended),
            4.0 * STALL.as_secs_f64(),
            "s",
        ),
        Check::at_most(
            "readers: from then to free permits",
            seconds(freed),
            STALL.as_secs_f64(),
            "s",
        ),
        Check::is("readers: upstream connections closed", &left, &count),
    ])
}

/// Requests so many streams, and reads nothing.
async fn open(gateway: &Subject, count: usize) -> Outcome<Vec<Connection>> {
    let request = gateway.request(Question::Endless);
    let mut open = Vec::new();
    for _ in 0..count {
        let mut connection = Connection::narrow(gateway.address)
            .await
            .map_err(to_message)?;
        connection.ask_only(&request).await.map_err(to_message)?;
        open.push(connection);
    }
    Ok(open)
}

/// The results of other clients' requests.
struct Others {
    /// While the readers connect, and the data for them fills every buffer on its way.
    coming: Vec<Asked>,
    /// Once no more data is sent to any of them.
    still: Vec<Asked>,
}

impl Others {
    async fn ask(subject: &Subject) -> Outcome<Self> {
        let ask = |span| open_loop(subject, Question::Small, EVERY, span);
        Ok(Self {
            coming: ask(COMING).await?,
            still: ask(STALL * 2 - COMING).await?,
        })
    }

    fn all(&self) -> impl Iterator<Item = &Asked> {
        self.coming.iter().chain(&self.still)
    }
}

/// The same readers in front of a proxy that only moves bytes, to measure the effect of the
/// machine.
async fn behind_bare_proxy(ground: &Ground, count: usize) -> Outcome<Others> {
    let bare = subject::bare(
        &subject::beside(&ground.gateway, "bare_proxy")?,
        ground.upstream.address,
    )?;
    let (opened, others) = tokio::join!(open(&bare, count), Others::ask(&bare));
    drop(opened?);
    others
}

fn percentiles_line(asked: &[Asked]) -> String {
    let times = sorted(asked.iter());
    format!(
        "{:.1}, {:.0} ms",
        percentile(&times, 0.5) / 1e3,
        percentile(&times, 0.99) / 1e3
    )
}

/// In milliseconds.
fn p99<'a>(asked: impl Iterator<Item = &'a Asked>) -> f64 {
    percentile(&sorted(asked), 0.99) / 1e3
}

fn sorted<'a>(asked: impl Iterator<Item = &'a Asked>) -> Vec<Duration> {
    let mut times: Vec<_> = asked.map(|asked| asked.took).collect();
    times.sort_unstable();
    times
}

/// The peak of the memory in use over a period.
async fn peak(gateway: &Subject, span: Duration) -> Outcome<f64> {
    let started = Instant::now();
    let mut most = 0.0_f64;
    while started.elapsed() < span {
        most = most.max(gateway.memory()?);
        sleep(EVERY).await;
    }
    Ok(most)
}

/// The time over which the readers connect.
const COMING: Duration = Duration::from_secs(1);
const STALL: Duration = Duration::from_secs(3);
const EVERY: Duration = Duration::from_millis(20);
const ENDED: &str = "sluicegate_streams_ended_total{";
const MIB: f64 = 1024.0 * 1024.0;
