//! As many idle streams as there are file descriptors for: the memory of each, and that it does not
//! grow.

use std::fs;
use std::time::Duration;

use tokio::time::sleep;

use crate::operator::Operator;
use crate::verdict::Check;
use benches::load::{open_streams, to_message};
use benches::{Outcome, question, subject};

use crate::Ground;

pub(crate) async fn run(ground: &Ground) -> Outcome<Vec<Check>> {
    let most = if ground.quick { 500 } else { 10_000 };
    let count = most.min(descriptors()?.saturating_sub(SPARE) / 2);
    let config = question::configuration(ground.upstream.address, subject::ROOM);
    let gateway = subject::gateway(&ground.gateway, &config)?;
    let operator = Operator::of(&gateway);
    // The memory that the first streams allocate belongs to the process, not to them.
    drop(open_streams(&gateway, 64).await?);
    operator
        .await_sum("sluicegate_in_flight ", "", 0.0, BACK)
        .await?;
    let before = gateway.memory()?;
    let open = open_streams(&gateway, count).await?;
    let first = gateway.memory()?;
    sleep(if ground.quick { SHORT } else { LONG }).await;
    let second = gateway.memory()?;
    let alive = operator.in_flight().await?;
    drop(open);
    let back = operator
        .await_sum("sluicegate_in_flight ", "", 0.0, BACK)
        .await?;
    let each = |memory: f64| (memory - before) / 1024.0 / count as f64;
    Ok(vec![
        Check::is("streams: still open at the end", &alive, &(count as f64)),
        Check::at_most(
            "streams: memory per stream at first",
            each(first),
            32.0,
            "KiB",
        ),
        Check::at_most(
            "streams: memory per stream at the end",
            each(second),
            32.0,
            "KiB",
        ),
        Check::at_most(
            "streams: growth of the process's memory",
            (second - first) / first * 100.0,
            3.0,
            "%",
        ),
        Check::at_most(
            "streams: from disconnects to free permits",
            seconds(back),
            10.0,
            "s",
        ),
    ])
}

/// A time in seconds; infinity for `None`.
pub(crate) fn seconds(time: Option<Duration>) -> f64 {
    time.map_or(f64::INFINITY, |time| time.as_secs_f64())
}

/// The number of files that this process, and those that it starts, may open.
fn descriptors() -> Outcome<usize> {
    let limits = fs::read_to_string("/proc/self/limits").map_err(to_message)?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let soft = line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok());
    // Anything but a number means unlimited.
    Ok(soft.unwrap_or(usize::MAX))
}

/// The descriptors for everything but the streams. A stream takes two descriptors: the client's and
/// the upstream's.
const SPARE: usize = 200;
const SHORT: Duration = Duration::from_secs(3);
/// Longer than two keep-alive intervals.
const LONG: Duration = Duration::from_secs(35);
const BACK: Duration = Duration::from_secs(30);
