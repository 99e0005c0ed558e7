//! Measures gateways whose limits a Valkey lends, and gateways with a store of usage. Run by `cargo
//! xtask bench limits`.

mod fleet;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use benches::question::Question;
use benches::upstream::Upstream;
use benches::{Outcome, load, page};
use clap::Parser;
use tokio::runtime::Builder;

use crate::fleet::{Kind, Place};
use crate::table::{Figure, Goal, table};

/// Measures gateways with lent limits.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    page: page::Options,
    /// The gateway, built with its stores.
    #[arg(long, value_name = "FILE")]
    gateway: PathBuf,
    /// A valkey-server.
    #[arg(long, value_name = "FILE")]
    valkey: PathBuf,
}

fn main() -> ExitCode {
    benches::run(&mut Builder::new_multi_thread(), run(Arguments::parse()))
}

async fn run(arguments: Arguments) -> Outcome {
    let upstream = Upstream::start().await.map_err(load::to_message)?;
    let place = Place::new(arguments.gateway, &arguments.valkey, upstream.address)?;
    let span = Duration::from_secs(if arguments.page.quick { 1 } else { 8 });
    let mut figures = processor_time(&place, span).await?;
    figures.extend(far_from_the_cap(&place, span).await?);
    figures.extend(tight(&place, span).await?);
    figures.extend(nearly_used(&place, span).await?);
    arguments.page.publish("lending", &table(&figures))
}

/// The CPU time of a small request in gateways of each kind, which take turns.
async fn processor_time(place: &Place, span: Duration) -> Outcome<Vec<Figure>> {
    let kinds = [Kind::Plain, Kind::Own, Kind::Lent, Kind::Journaled];
    let mut times = [(); 4].map(|()| Vec::new());
    for round in 0..ROUNDS {
        eprintln!("measuring the CPU time of requests, round {}", round + 1);
        for (kind, times) in kinds.iter().zip(&mut times) {
            let gateway = place.start(*kind)?;
            place.ready(&gateway).await?;
            let done = load::closed_loop(&gateway, Question::Small, 64, span / ROUNDS).await?;
            times.push(done.each(done.answers)[0]);
        }
    }
    let [plain, own, lent, journaled] = times.map(median);
    Ok(vec![
        Figure::of("CPU of a request without quotas", plain, "µs"),
        Figure::of("added by a quota in the process", own - plain, "µs"),
        Figure::of(
            "added by a quota that is lent, far from its end",
            lent - plain,
            "µs",
        ),
        Figure::of("added by keys and usage in SQLite", journaled - plain, "µs"),
    ])
}

/// A thousand requests a second of a quota that nobody reaches, and the same without quotas. Both
/// gateways run at the same time and take turns.
async fn far_from_the_cap(place: &Place, span: Duration) -> Outcome<Vec<Figure>> {
    let gateways = [place.start(Kind::Plain)?, place.start(Kind::Lent)?];
    for gateway in &gateways {
        place.ready(gateway).await?;
    }
    let before = place.exchanges(&gateways[1]).await?;
    let mut requests = 0;
    let mut latencies = [(); 2].map(|()| [Vec::new(), Vec::new()]);
    for round in 0..ROUNDS {
        eprintln!("measuring far from the end of a quota, round {}", round + 1);
        for (gateway, [medians, tails]) in gateways.iter().zip(&mut latencies) {
            let times = load::fixed_rate(gateway, Duration::from_millis(1), span / ROUNDS).await?;
            requests = times.len();
            medians.push(load::percentile(&times, 0.5));
            tails.push(load::percentile(&times, 0.99));
        }
    }
    let exchanges = place.exchanges(&gateways[1]).await? - before;
    let [plain, lent] = latencies.map(|both| both.map(median));
    Ok(vec![
        Figure::of(
            "exchanges a request at 1,000 requests/s",
            exchanges / (requests as f64 * f64::from(ROUNDS)),
            "",
        )
        .goal(Goal::AtMost(0.02)),
        Figure::of("latency without quotas, p50", plain[0], "µs"),
        Figure::of("added by a lent quota, p50", lent[0] - plain[0], "µs"),
        Figure::of("latency without quotas, p99", plain[1], "µs"),
        Figure::of("added by a lent quota, p99", lent[1] - plain[1], "µs").goal(Goal::AtMost(50.0)),
    ])
}

/// Two gateways whose clients want several times as much concurrency as there is.
async fn tight(place: &Place, span: Duration) -> Outcome<Vec<Figure>> {
    eprintln!("measuring a quota that is used up");
    let fleet = place.fleet(2, Kind::Scarce(4)).await?;
    let round_trip = place.round_trip().await?;
    let [first, second] = &fleet[..] else {
        return Err("two gateways".to_owned());
    };
    let before = [
        place.exchanges(first).await?,
        place.exchanges(second).await?,
    ];
    let used = [first.usage()?, second.usage()?];
    let every = Duration::from_millis(10);
    let (one, other) = tokio::try_join!(
        load::open_loop(first, Question::Service, every, span),
        load::open_loop(second, Question::Service, every, span),
    )?;
    let after = [
        place.exchanges(first).await?,
        place.exchanges(second).await?,
    ];
    let seconds = span.as_secs_f64();
    let rate = (after[0] - before[0]).max(after[1] - before[1]) / seconds;
    let cpu: Duration = [first, second]
        .iter()
        .zip(used)
        .map(|(gateway, before)| gateway.usage().map(|now| now.since(before)))
        .map(|usage| usage.map(|usage| usage.user + usage.system))
        .sum::<Outcome<Duration>>()?;
    let asked = one.len() + other.len();
    let admitted = one
        .iter()
        .chain(&other)
        .filter(|asked| asked.answered().is_ok());
    Ok(vec![
        Figure::of(
            "tight: requests/s of two gateways",
            asked as f64 / seconds,
            "",
        ),
        Figure::of(
            "tight: admitted/s, of 40 at most",
            // Those that came last end after the time in which requests are sent.
            admitted.count() as f64 / (seconds + 0.1),
            "",
        ),
        Figure::of("tight: exchanges/s of a gateway", rate, "")
            .goal(Goal::AtMost(1e6 / round_trip)),
        Figure::of(
            "tight: CPU of a request, refused ones too",
            cpu.as_secs_f64() * 1e6 / asked as f64,
            "µs",
        ),
    ])
}

/// Two gateways that use nine tenths of a quota.
async fn nearly_used(place: &Place, span: Duration) -> Outcome<Vec<Figure>> {
    eprintln!("measuring a quota that is used to 90 %");
    let fleet = place.fleet(2, Kind::Scarce(40)).await?;
    // Each has 18 requests of 100 ms in progress.
    let every = Duration::from_micros(5_555);
    let load = |gateway| load::open_loop(gateway, Question::Service, every, 2 * span);
    let (one, other) = tokio::try_join!(load(&fleet[0]), load(&fleet[1]))?;
    let all: Vec<_> = one.iter().chain(&other).collect();
    let refused = all.iter().filter(|asked| asked.answered().is_err()).count();
    let share = refused as f64 * 10_000.0 / all.len() as f64;
    Ok(vec![
        Figure::of("at 90 %: requests", all.len() as f64, ""),
        Figure::of("at 90 %: refused of 10,000", share, "").goal(Goal::AtMost(1.0)),
    ])
}

/// The number of times that each of several gateways has its turn.
const ROUNDS: u32 = 5;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
