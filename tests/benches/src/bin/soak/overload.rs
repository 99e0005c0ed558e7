//! More requests than can be served, at a rate that does not wait for responses.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::operator::Operator;
use crate::streams::seconds;
use crate::verdict::{Check, number};
use benches::load::{Asked, open_loop, percentile};
use benches::question::Question;
use benches::subject::Subject;
use benches::upstream::SERVICE_TIME;
use benches::{Outcome, question, subject};

use crate::Ground;

/// The result of one load.
struct Served {
    /// Successful responses per second.
    goodput: f64,
    refused: f64,
    /// Requests that were neither answered nor refused.
    lost: usize,
    /// The latency of successful responses, in milliseconds.
    p99: f64,
}

pub(crate) async fn run(ground: &Ground) -> Outcome<Vec<Check>> {
    let span = Duration::from_secs(if ground.quick { 3 } else { 20 });
    let limits = format!("concurrency = {CONCURRENCY}\nconcurrency_per_key = {CONCURRENCY}\n");
    let config = question::configuration(ground.upstream.address, &limits);
    let gateway = subject::gateway(&ground.gateway, &config)?;
    let operator = Operator::of(&gateway);
    let calm = under(&gateway, 0.25, span.min(Duration::from_secs(5))).await?;
    let memory = gateway.memory()?;
    let mut loads = Vec::new();
    let mut checks = Vec::new();
    for times in [1.0, 5.0, 20.0] {
        let (served, live, metrics) = tokio::join!(
            under(&gateway, times, span),
            operator.poll("/livez", span),
            operator.poll("/metrics", span)
        );
        let (served, live, metrics) = (served?, live?, metrics?);
        let name = format!("overload {times}x");
        checks.push(Check::info(
            format!("{name}: answered and refused per second; p99"),
            format!(
                "{}, {}; {} ms",
                number(served.goodput),
                number(served.refused),
                number(served.p99)
            ),
        ));
        checks.push(Check::is(
            format!("{name}: neither answered nor refused"),
            &served.lost,
            &0,
        ));
        checks.push(Check::at_most(
            format!("{name}: /livez p99"),
            percentile(&live, 0.99) / 1e3,
            50.0,
            "ms",
        ));
        checks.push(Check::info(
            format!("{name}: /metrics p99"),
            format!("{:.1} ms", percentile(&metrics, 0.99) / 1e3),
        ));
        loads.push((times, served.goodput));
    }
    let peak = loads
        .iter()
        .map(|(_, goodput)| *goodput)
        .fold(0.0, f64::max);
    for (times, goodput) in &loads[1..] {
        checks.push(Check::at_least(
            format!("overload {times}x: goodput relative to peak"),
            goodput / peak,
            0.9,
            "",
        ));
    }
    checks.push(Check::info(
        "overload: capacity",
        format!("{:.0} per second", capacity()),
    ));
    let recovered = recovery(&gateway, calm.p99).await?;
    checks.push(Check::at_most(
        "overload: time to recover",
        seconds(recovered),
        5.0,
        "s",
    ));
    checks.push(Check::info(
        "overload: memory added",
        format!("{:.1} MiB", (gateway.memory()? - memory) / MIB),
    ));
    Ok(checks)
}

/// Sends requests at this multiple of the capacity.
async fn under(gateway: &Subject, times: f64, span: Duration) -> Outcome<Served> {
    let every = Duration::from_secs_f64(1.0 / (capacity() * times));
    let started = Instant::now();
    let asked = open_loop(gateway, Question::Service, every, span).await?;
    let took = started.elapsed().as_secs_f64();
    let of = |status: u16| {
        asked
            .iter()
            .filter(move |asked| asked.status.as_ref().is_ok_and(|found| *found == status))
    };
    let mut times: Vec<_> = of(200).map(|asked: &Asked| asked.took).collect();
    times.sort_unstable();
    Ok(Served {
        goodput: times.len() as f64 / took,
        refused: of(429).count() as f64 / took,
        lost: asked.len() - times.len() - of(429).count(),
        p99: percentile(&times, 0.99) / 1e3,
    })
}

/// The time until no permit is in use and the latency is back to normal.
async fn recovery(gateway: &Subject, calm: f64) -> Outcome<Option<Duration>> {
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        let quiet = Operator::of(gateway).in_flight().await? == 0.0;
        let now = under(gateway, 0.25, Duration::from_millis(300)).await?;
        if quiet && now.lost == 0 && now.p99 <= calm * 1.1 {
            return Ok(Some(started.elapsed()));
        }
        sleep(Duration::from_millis(50)).await;
    }
    Ok(None)
}

/// The most responses per second.
fn capacity() -> f64 {
    CONCURRENCY as f64 / SERVICE_TIME.as_secs_f64()
}

const CONCURRENCY: usize = 16;
const PATIENCE: Duration = Duration::from_secs(15);
const MIB: f64 = 1024.0 * 1024.0;
