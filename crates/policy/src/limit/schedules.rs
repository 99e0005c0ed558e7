//! Random schedules of requests under a budget: concurrent requests whose answers are up to a
//! hundred times as long as is typical. They end in order, are cut, are left, fail over, or go on
//! in the background. `SLUICEGATE_SIM_SCHEDULES` sets the number of schedules.

use std::collections::HashMap;

use config::Config;
use engine::Usage;

use super::tests::{TEN_A_MILLION, applicant};
use super::*;
use crate::prices::Prices;
use crate::targets::Target;

/// A request that was admitted.
struct Running {
    permit: Permit,
    /// The most tokens of its answers.
    most: u64,
}

/// Draws of a schedule: the generator of Steele, Lea and Flood (SplitMix64).
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % bound
    }
}

/// The sums of a schedule, in tokens of answers.
#[derive(Default)]
struct Sums {
    /// The tokens that the upstreams have reported.
    reported: u64,
    /// The tokens in the rows.
    charged: u64,
    /// The longest answer of any request.
    longest: u64,
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is {text:?}, expected a number"))
    })
}

/// In any schedule, a budget is overdrawn by one answer at most, and the rows have the tokens that
/// the upstreams have reported.
#[test]
fn budget_is_overdrawn_by_one_answer_at_most() {
    let seed = number("SLUICEGATE_TEST_SEED", 0);
    let config = Config::parse(TEN_A_MILLION).unwrap();
    let prices = Prices::new(&config).unwrap();
    let prices = prices.of("m", &[Target::EMBEDDED]).unwrap();
    for schedule in 0..number("SLUICEGATE_SIM_SCHEDULES", 20_000) {
        let mut draws = Draws(seed.wrapping_add(schedule.wrapping_mul(0x5851_f42d_4c95_7f2d)));
        let limiter = Limiter::new(100, 100);
        let mut quotas = Quotas::new(config.quota_rules().unwrap(), HashMap::new());
        quotas.register(&limiter);
        let applicant = AdmissionRequest {
            prices: &prices,
            ..applicant("a", "m", &quotas)
        };
        let sums = run(&mut draws, &limiter, applicant);
        assert_eq!(
            sums.charged, sums.reported,
            "schedule {schedule} of seed {seed}"
        );
        // 100,000 tokens are the budget.
        assert!(
            sums.charged <= 100_000 + sums.longest,
            "schedule {schedule} of seed {seed}: {} spent",
            sums.charged
        );
        let spent = limiter.status().into_iter().find_map(|status| status.spent);
        let nanos = spent.unwrap_or_default().nanos();
        assert_eq!(nanos, i64::try_from(sums.charged).unwrap() * 10_000);
    }
}

fn run(draws: &mut Draws, limiter: &Limiter, applicant: AdmissionRequest<'_>) -> Sums {
    let (mut running, mut sums) = (Vec::new(), Sums::default());
    for _ in 0..draws.below(40) {
        if running.is_empty() || draws.below(2) == 0 {
            running.extend(begin(draws, limiter, applicant));
        } else {
            let at = usize::try_from(draws.below(running.len() as u64)).unwrap();
            end(draws, running.swap_remove(at), &mut sums);
        }
    }
    running
        .into_iter()
        .for_each(|request| end(draws, request, &mut sums));
    sums
}

fn begin(draws: &mut Draws, limiter: &Limiter, applicant: AdmissionRequest<'_>) -> Option<Running> {
    let answers = Answers {
        count: 1 + draws.below(3),
        // Typical answers have a thousand tokens at first.
        ..Answers::one(Some(1 + draws.below(100_000)))
    };
    let reserve = || Reserved {
        answers,
        ..Reserved::default()
    };
    let permit = limiter.try_admit(applicant, &mut applicant.estimate(reserve));
    let mut permit = permit.ok()?;
    // In the background it releases its place, and is charged later.
    if draws.below(4) == 0 {
        permit.release_place();
    }
    Some(Running {
        permit,
        most: answers.count * answers.limit.unwrap_or_default(),
    })
}

/// Ends a request after an answer of any length up to its limit.
fn end(draws: &mut Draws, request: Running, sums: &mut Sums) {
    let Running { permit, most } = request;
    let output = draws.below(most + 1);
    let usage = Usage {
        // Prompts are free here, and none is empty.
        input: 1,
        output,
        ..Usage::default()
    };
    let counts = Counts {
        usage: Some(usage),
        ..Counts::default()
    };
    let attempt = |known| Attempt { target: 0, known };
    let attempts = match draws.below(5) {
        0 => vec![attempt(FinalUsage::Partial(counts))],
        // A model that may go on working costs its whole reservation.
        1 => {
            let usage = Some(Usage {
                output: most,
                ..usage
            });
            vec![attempt(FinalUsage::Unfinished(Counts { usage, ..counts }))]
        }
        // A target that is rejected, and another one that answers.
        2 => {
            let first = draws.below(output + 1);
            let share = |output| Counts {
                usage: Some(Usage { output, ..usage }),
                ..Counts::default()
            };
            vec![
                attempt(FinalUsage::Partial(share(first))),
                attempt(FinalUsage::Complete(share(output - first))),
            ]
        }
        3 => vec![attempt(FinalUsage::Unused)],
        _ => vec![attempt(FinalUsage::Complete(counts))],
    };
    let reported = attempts.iter().map(|attempt| match &attempt.known {
        FinalUsage::Complete(counts)
        | FinalUsage::Partial(counts)
        | FinalUsage::Unfinished(counts) => counts.usage.unwrap_or_default().output,
        FinalUsage::Unused => 0,
    });
    let reported: u64 = reported.sum();
    sums.reported += reported;
    sums.longest = sums.longest.max(reported);
    sums.charged += permit.end(&attempts).usage.output;
}
