//! The time that the ledger of limits takes for a request: `cargo xtask bench limits`.
//!
//! Each admission and each end is timed by itself, since the slowest of them matter to requests that
//! arrive at the same time: all requests of a process share the ledger. Reading the clock takes a few
//! tens of nanoseconds, which are part of the figures.

use std::fmt::Write as _;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use benches::{Outcome, page};
use clap::Parser;
use quota::{
    Budget, Caps, Claim, Demand, FailMode, LeaseGrant, LeaseRequest, LeaseSettings, LimitId,
    LostLease, Money, Now, SharedLedger, Terms, Used,
};
#[cfg(feature = "jemalloc")]
use tikv_jemallocator::Jemalloc;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Measures the ledger of limits.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    page: page::Options,
    /// An argument that cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A row of the table.
struct Row {
    name: &'static str,
    /// The number of limits that apply to each request.
    limits: usize,
    /// The number of keys. They take turns, and each one is counted by itself.
    keys: usize,
    /// The longest time that half of the admissions may take, in nanoseconds.
    goal: Option<u64>,
}

/// The times of a row in nanoseconds, in rising order.
#[derive(Default)]
struct Times {
    admit: Vec<u64>,
    end: Vec<u64>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let requests = if arguments.page.quick {
        20_000
    } else {
        REQUESTS
    };
    let tables = tables(requests);
    benches::exit(tables.and_then(|tables| arguments.page.publish("limits", &tables)))
}

/// The times of so many requests, and the memory of keys.
fn tables(requests: usize) -> Outcome<String> {
    let mut tables = HEAD.to_owned();
    for row in ROWS {
        tables += &row.line(&row.measured(requests));
    }
    tables += MEMORY_HEAD;
    for (name, lending) in [("in the process", None), ("lent", Some(LENDING))] {
        let _ = writeln!(tables, "| {name} | {} |", memory_of_scopes(lending)?);
    }
    Ok(tables)
}

impl Row {
    /// Measures so many requests, after as many that are not timed. [`IN_PROGRESS`] requests are
    /// in progress at any time.
    #[allow(clippy::disallowed_methods)] // A bench reads the clock: time is what it measures.
    fn measured(&self, requests: usize) -> Times {
        let ledger = SharedLedger::new();
        let limits = ledger.lock().set_limits((0..self.limits).map(limit));
        let keys: Vec<_> = (0..self.keys).map(|key| format!("team-{key}")).collect();
        let mut permits = Vec::with_capacity(IN_PROGRESS);
        let mut times = Times::default();
        let started = Instant::now();
        for turn in 0..2 * requests {
            let claims = claims(&limits, &keys[turn % keys.len()]);
            let now = now(started);
            let before = Instant::now();
            let permit = ledger.admit(black_box(&claims), |_| DEMAND, now);
            let admitted = before.elapsed();
            permits.push(permit.expect("there is room"));
            if permits.len() < IN_PROGRESS {
                continue;
            }
            let oldest = permits.swap_remove(turn % IN_PROGRESS);
            let before = Instant::now();
            oldest.end(USED, now);
            let ended = before.elapsed();
            if turn >= requests {
                times.admit.push(nanoseconds(admitted));
                times.end.push(nanoseconds(ended));
            }
        }
        times.admit.sort_unstable();
        times.end.sort_unstable();
        times
    }

    fn line(&self, times: &Times) -> String {
        let mut line = format!("| {} ", self.name);
        for (times, percent) in [
            (&times.admit, 50),
            (&times.admit, 99),
            (&times.end, 50),
            (&times.end, 99),
        ] {
            let _ = write!(line, "| {:.2} ", percentile(times, percent) as f64 / 1e3);
        }
        let median = percentile(&times.admit, 50);
        let verdict = match self.goal {
            None => String::new(),
            Some(goal) => {
                let verdict = if median <= goal { "met" } else { "missed" };
                format!("{:.1}: {verdict}", goal as f64 / 1e3)
            }
        };
        line + &format!("| {verdict} |\n")
    }
}

/// The bytes that each key takes in a limit of concurrent requests, requests and tokens per minute, as
/// the memory of this process grows.
fn memory_of_scopes(lending: Option<LeaseSettings>) -> Outcome<u64> {
    let ledger = SharedLedger::new();
    let caps = Caps {
        budget: None,
        ..caps(0)
    };
    let limits = ledger
        .lock()
        .set_limits([("limit".into(), Terms { caps, lending })]);
    let before = resident()?;
    let now = Now::default();
    for key in 0..KEYS {
        let key = format!("team-{key}");
        // One that is lent has to ask the store first.
        let permit = ledger.admit(&claims(&limits, &key), |_| DEMAND, now);
        if let Ok(permit) = permit {
            permit.end(USED, now);
        }
    }
    let asks = ledger.lock().poll(now, true);
    for pending in &asks {
        let grant = lend(&pending.request);
        ledger.lock().on_grant(pending, Some(&grant), now);
    }
    drop(asks);
    Ok((resident()? - before) / KEYS)
}

/// The reply of a store that lends all that a gateway asks for.
fn lend(ask: &LeaseRequest) -> LeaseGrant {
    LeaseGrant {
        seq: ask.seq,
        held: ask.retained + ask.wanted,
        available: ask.spec.capacity(),
        level: 0,
        replicas: 1,
        waiting_replicas: 0,
        quarantined: false,
        duration: LENDING.lease,
    }
}

/// The resident memory of this process in bytes.
fn resident() -> Outcome<u64> {
    let path = "/proc/self/statm";
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    let pages: u64 = pages.ok_or_else(|| format!("{path}: {text:?}"))?;
    Ok(pages * 4096)
}

/// A limit of everything, which no request reaches.
fn limit(number: usize) -> (Arc<str>, Terms) {
    (format!("limit {number}").into(), caps(number).into())
}

fn caps(number: usize) -> Caps {
    let budget = Budget::new(
        Money::MAX_BUDGET,
        "USD".parse().expect("a currency"),
        quota::Window::Month,
        quota::Zone::UTC,
    );
    Caps {
        concurrency: Some(1 << 20),
        requests_per_minute: Some(1 << 35),
        tokens_per_minute: Some(1 << 35),
        // One of five, as a budget is a limit of its own.
        budget: (number % 5 == 4).then(|| budget.expect("a budget")),
    }
}

/// The claims of a request of this key.
fn claims<'a>(limits: &[LimitId], key: &'a str) -> Vec<Claim<'a>> {
    let claim = |limit: &LimitId| Claim {
        limit: *limit,
        scope: key,
    };
    limits.iter().map(claim).collect()
}

#[allow(clippy::disallowed_methods)] // As above.
fn now(started: Instant) -> Now {
    Now {
        monotonic: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
        unix_ms: 1_800_000_000_000,
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The time that so many per cent of `sorted` do not exceed.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    sorted
        .get(sorted.len() * percent / 100)
        .copied()
        .unwrap_or(0)
}

const ROWS: [Row; 4] = [
    row("1 limit", 1, 1, None),
    row("5 limits", 5, 1, Some(1_500)),
    row("20 limits", 20, 1, None),
    row("5 limits, 1,000 keys in turn", 5, 1_000, None),
];

const fn row(name: &'static str, limits: usize, keys: usize, goal: Option<u64>) -> Row {
    Row {
        name,
        limits,
        keys,
        goal,
    }
}

const HEAD: &str = "| request | admission, p50 | p99 | end, p50 | p99 | goal of the admission, p50 |\n|---|---:|---:|---:|---:|---|\n";
const DEMAND: Demand = Demand {
    tokens: 1_200,
    money: Money::from_nanos(10_000),
};
const USED: Used = Used {
    tokens: 700,
    answer_tokens: 200,
    money: Money::from_nanos(4_000),
};
const LENDING: LeaseSettings = LeaseSettings {
    mode: FailMode::Closed,
    lease: Duration::from_secs(10),
    lost_lease: LostLease::Finish,
};
const MEMORY_HEAD: &str = "\n| 100,000 keys of a limit | bytes of a key |\n|---|---:|\n";
const KEYS: u64 = 100_000;
const IN_PROGRESS: usize = 64;
const REQUESTS: usize = 400_000;
