//! Tests of the limiter.

use std::collections::HashMap;
use std::time::Duration;

use config::Config;
use engine::Usage;
use quota::Dimension;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use super::*;
use crate::prices::Prices;
use crate::targets::Target;

/// One key cannot take the permits of all, neither for requests nor for fetches.
#[test]
fn f11_o07_key_cannot_take_all_permits() {
    let limiter = Limiter::new(3, 2);
    let (first, second) = (limiter.take("a"), limiter.take("a"));
    assert!(first.is_some() && second.is_some() && limiter.take("a").is_none());
    let third = limiter.take("b");
    assert!(
        third.is_some() && limiter.take("b").is_none(),
        "three over all"
    );
    drop(first);
    assert_eq!(limiter.taken(), 2);
    assert!(limiter.take("b").is_some());
}

/// A refused request takes no permit.
#[test]
fn o04_a_refusal_takes_nothing() {
    let limiter = Limiter::new(1, 2);
    let held = limiter.take("a");
    for _ in 0..10 {
        assert!(limiter.take("b").is_none());
    }
    drop(held);
    assert!(limiter.take("b").is_some());
    assert_eq!(limiter.taken(), 0);
}

/// Registers the quotas of a configuration.
fn with_quotas(quotas: &str) -> (Limiter, Quotas) {
    let limiter = Limiter::new(100, 100);
    let config = Config::parse(quotas).unwrap();
    let mut quotas = Quotas::new(config.quota_rules().unwrap(), HashMap::new());
    quotas.register(&limiter);
    (limiter, quotas)
}

pub(super) fn applicant<'a>(
    key: &'a str,
    model: &'a str,
    quotas: &'a Quotas,
) -> AdmissionRequest<'a> {
    AdmissionRequest {
        key,
        model,
        quotas,
        prices: &NO_PRICES,
        answer_tokens: 32_000,
        is_journaled: false,
    }
}

static NO_PRICES: TargetPrices = TargetPrices::none();

/// A request with a prompt of 50 tokens, whose answer has 50 at most.
fn tokens() -> Reserved {
    Reserved {
        prompt: 50,
        answers: Answers::one(Some(50)),
        ..Reserved::default()
    }
}

/// Admits a request that is not to wait.
fn try_admit(
    limiter: &Limiter,
    applicant: AdmissionRequest<'_>,
    reserve: impl FnOnce() -> Reserved,
) -> Result<Permit, Refused> {
    limiter.try_admit(applicant, &mut applicant.estimate(reserve))
}

/// Ends a request with one attempt.
fn end(permit: Permit, known: FinalUsage) -> Charge {
    permit.end(&[Attempt { target: 0, known }])
}

fn reported(usage: Usage) -> Counts {
    Counts {
        usage: Some(usage),
        ..Counts::default()
    }
}

fn events(events: u64) -> Counts {
    Counts {
        events,
        ..Counts::default()
    }
}

/// Each key has its own quota, for the models that it is for.
#[test]
fn a_quota_is_counted_for_each_key() {
    let (limiter, quotas) =
        with_quotas("[[quotas]]\nkey = \"team-*\"\nmodels = [\"big\"]\nconcurrency = 1");
    let admit = |key, model| try_admit(&limiter, applicant(key, model, &quotas), tokens);
    let one = admit("team-a", "big").unwrap();
    let refused = admit("team-a", "big").unwrap_err();
    assert_eq!(&*refused.limit, "key team-* with big");
    assert_eq!(
        (refused.dimension, refused.cap),
        (Dimension::Concurrency, 1)
    );
    let others = [
        admit("team-a", "small"),
        admit("team-b", "big"),
        admit("other", "big"),
    ];
    assert!(others.iter().all(Result::is_ok));
    end(one, FinalUsage::Unused);
    assert!(admit("team-a", "big").is_ok());
}

/// Keys whose names differ in case only are two keys, with a budget each.
#[test]
fn budgets_follow_names_as_they_are_written() {
    let quota = |key: &str, amount: &str| {
        format!(
            "[[quotas]]\nkey = \"{key}\"\n\
             budget = {{ amount = \"{amount}\", currency = \"USD\", window = \"month\" }}\n"
        )
    };
    let quotas = quota("TeamA", "1.00") + &quota("teama", "1000.00");
    let config = format!("[state]\naccounting = \"sqlite:usage.db\"\n{quotas}");
    let rules = Config::parse(&config).unwrap().quota_rules().unwrap();
    let of_keys = rules.iter().zip(["TeamB", "teamb"]);
    let of_keys = of_keys.map(|(rule, key)| (key.to_owned(), rule.caps.clone()));
    let mut quotas = Quotas::new(rules.clone(), of_keys.collect());
    quotas.register(&Limiter::new(10, 10));
    let budgets: HashMap<_, _> = quotas.all_budgets().collect();
    let amount = |key| {
        let mut claims = quotas.budgets(key, "m");
        let claim = claims.next().unwrap();
        assert!(claims.next().is_none(), "{key}");
        budgets[&claim.limit].amount.to_string()
    };
    let amounts = ["TeamA", "teama", "TeamB", "teamb"].map(amount);
    assert_eq!(amounts, ["1.00", "1000.00", "1.00", "1000.00"]);
}

/// The usage counts as far as it is known.
#[tokio::test(start_paused = true)]
async fn tokens_are_settled_with_the_known_usage() {
    let usage = Usage {
        input: 30,
        output: 20,
        ..Usage::default()
    };
    let sent = Counts {
        events: 3,
        // 35 bytes are 10 tokens.
        content: 35,
        ..Counts::default()
    };
    let begun = Counts {
        // The prompt is known, and the first token of the answer.
        usage: Some(Usage { output: 1, ..usage }),
        ..sent.clone()
    };
    for (known, left) in [
        (FinalUsage::Complete(reported(usage)), 950),
        (FinalUsage::Complete(sent.clone()), 940),
        (FinalUsage::Partial(events(3)), 947),
        (FinalUsage::Partial(sent), 940),
        (FinalUsage::Partial(begun.clone()), 960),
        (FinalUsage::Partial(Counts::default()), 950),
        (FinalUsage::Unfinished(Counts::default()), 900),
        (FinalUsage::Unfinished(begun), 920),
        (FinalUsage::Unused, 1_000),
    ] {
        let (limiter, quotas) = with_quotas("[[quotas]]\ntokens_per_minute = 1000");
        let admit = || try_admit(&limiter, applicant("a", "m", &quotas), tokens);
        let remaining = |permit: &Permit| permit.quotas().remaining.tokens.unwrap().remaining;
        let first = admit().unwrap();
        assert_eq!(remaining(&first), 900);
        let what = format!("{known:?}");
        end(first, known);
        let second = admit().unwrap();
        let before = remaining(&second) + second.reserved_tokens();
        assert_eq!(before, left, "{what}");
    }
}

/// A target that has failed may have reported more than a request probably uses.
#[tokio::test(start_paused = true)]
async fn reported_tokens_count_beside_an_attempt_that_may_go_on() {
    let (limiter, quotas) = with_quotas("[[quotas]]\ntokens_per_minute = 1000");
    let admit = || try_admit(&limiter, applicant("a", "m", &quotas), tokens);
    let usage = Usage {
        input: 300,
        output: 200,
        ..Usage::default()
    };
    let attempt = |target, known| Attempt { target, known };
    admit().unwrap().end(&[
        attempt(0, FinalUsage::Partial(reported(usage))),
        attempt(1, FinalUsage::Unfinished(Counts::default())),
    ]);
    let next = admit().unwrap();
    let left = next.quotas().remaining.tokens.unwrap().remaining;
    // 1,000 − 500 that were reported − 100 that were reserved.
    assert_eq!(left + next.reserved_tokens(), 400);
}

/// Rates reserve the tokens that answers rarely exceed, for each answer that a request asks for.
/// The length of an answer that ended early, or was never reported, is a guess.
#[tokio::test(start_paused = true)]
async fn typical_answer_follows_reported_usage_only() {
    let (limiter, quotas) = with_quotas("[[quotas]]\ntokens_per_minute = 100000");
    let admit = |count, limit, known| {
        let reserve = || Reserved {
            answers: Answers {
                count,
                ..Answers::one(limit)
            },
            ..Reserved::default()
        };
        let permit = try_admit(&limiter, applicant("a", "m", &quotas), reserve).unwrap();
        let reserved = permit.reserved_tokens();
        end(permit, known);
        reserved
    };
    let complete = |output| {
        FinalUsage::Complete(reported(Usage {
            output,
            ..Usage::default()
        }))
    };
    assert_eq!(admit(1, None, FinalUsage::Partial(events(3))), 1_000);
    assert_eq!(admit(4, None, FinalUsage::Unused), 4_000);
    assert_eq!(admit(4, Some(50), FinalUsage::Unused), 200);
    // Two answers of 20 tokens each.
    assert_eq!(admit(2, None, complete(40)), 2_000);
    assert_eq!(
        admit(1, None, FinalUsage::Unfinished(Counts::default())),
        20
    );
    assert_eq!(admit(3, Some(64_000), FinalUsage::Unused), 60);
    assert_eq!(admit(1, Some(5), FinalUsage::Unused), 5);
}

/// Agents ask for much longer answers than they get: fifty of them share a rate that a single
/// answer could exceed.
#[tokio::test(start_paused = true)]
async fn fifty_agents_share_a_rate_by_typical_answers() {
    let (limiter, quotas) = with_quotas("[[quotas]]\ntokens_per_minute = 60000");
    let reserve = || Reserved {
        prompt: 100,
        answers: Answers::one(Some(64_000)),
        ..Reserved::default()
    };
    let agents: Vec<_> = (0..50)
        .map(|_| try_admit(&limiter, applicant("a", "m", &quotas), reserve).unwrap())
        .collect();
    // Usage above a reservation is a debt.
    let usage = Usage {
        input: 100,
        output: 64_000,
        ..Usage::default()
    };
    for agent in agents {
        end(agent, FinalUsage::Complete(reported(usage)));
    }
    let refused = try_admit(&limiter, applicant("a", "m", &quotas), reserve).unwrap_err();
    assert_eq!(refused.dimension, Dimension::Tokens);
}

pub(super) const TEN_A_MILLION: &str = r#"
[state]
accounting = "sqlite:a.db"
[[prices]]
model = "m"
input = "0"
output = "10"
[[quotas]]
budget = { amount = "1.00", currency = "USD", window = "month" }
"#;

/// The limiter, the quotas and the prices of a configuration for the model `m`.
fn with_prices(config: &str) -> (Limiter, Quotas, TargetPrices) {
    let (limiter, quotas) = with_quotas(config);
    let prices = Prices::new(&Config::parse(config).unwrap()).unwrap();
    let prices = prices.of("m", &[Target::EMBEDDED]).unwrap();
    (limiter, quotas, prices)
}

/// A budget reserves the most that a request can cost: 1.00 for each of these.
#[tokio::test(start_paused = true)]
async fn concurrent_requests_do_not_overspend_a_budget() {
    for answers in [
        Answers::one(Some(100_000)),
        Answers {
            count: 64,
            ..Answers::one(Some(1_600))
        },
        // Without a limit, as many as the configuration says.
        Answers {
            count: 4,
            ..Answers::one(None)
        },
    ] {
        let (limiter, quotas, prices) = with_prices(TEN_A_MILLION);
        let applicant = AdmissionRequest {
            prices: &prices,
            ..applicant("a", "m", &quotas)
        };
        let reserve = || Reserved {
            answers,
            ..Reserved::default()
        };
        let admitted: Vec<_> = (0..50)
            .filter_map(|_| try_admit(&limiter, applicant, reserve).ok())
            .collect();
        assert_eq!(admitted.len(), 1, "{answers:?}");
        let usage = Usage {
            output: answers.count * answers.limit.unwrap_or(32_000),
            ..Usage::default()
        };
        let costs = admitted.into_iter().map(|permit| {
            let charge = end(permit, FinalUsage::Complete(reported(usage)));
            charge.cost.unwrap().nanos()
        });
        let spent: i64 = costs.sum();
        assert!((1_000_000_000..=1_280_000_000).contains(&spent), "{spent}");
        let refused = try_admit(&limiter, applicant, reserve).unwrap_err();
        assert_eq!(refused.dimension, Dimension::Budget);
    }
}

/// Another permit of a request reserves as much again, and takes nothing if it does not fit.
#[tokio::test(start_paused = true)]
async fn another_permit_reserves_as_much_again() {
    let (limiter, quotas, prices) = with_prices(TEN_A_MILLION);
    let applicant = AdmissionRequest {
        prices: &prices,
        ..applicant("a", "m", &quotas)
    };
    // A request costs at most 0.40, and the budget is 1.00.
    let reserve = || Reserved {
        answers: Answers::one(Some(40_000)),
        ..Reserved::default()
    };
    let first = try_admit(&limiter, applicant, reserve).unwrap();
    let another = || limiter.take_another("a", "m", &quotas, first.reservation());
    let second = another().expect("0.80 of 1.00 are reserved");
    assert!(another().is_none(), "1.20 do not fit");
    assert_eq!(limiter.taken(), 2);
    assert_eq!(second.end(&[]).cost, Some(Money::ZERO));
    assert!(another().is_some(), "its reservation is released");
}

/// Requests with modest limits use a budget at the same time, up to its amount.
#[tokio::test(start_paused = true)]
async fn budget_admits_what_it_can_pay_for() {
    let (limiter, quotas, prices) = with_prices(TEN_A_MILLION);
    let applicant = AdmissionRequest {
        prices: &prices,
        ..applicant("a", "m", &quotas)
    };
    let reserve = || Reserved {
        answers: Answers::one(Some(5_000)),
        ..Reserved::default()
    };
    let admitted: Vec<_> = (0..50)
        .filter_map(|_| try_admit(&limiter, applicant, reserve).ok())
        .collect();
    // Each may cost 0.05.
    assert_eq!(admitted.len(), 20);
}

/// Returns the reservation and the charge of a request, in nano-units.
fn costs(prices: &str, reserved: &Reserved, known: FinalUsage) -> (i64, i64) {
    let (limiter, quotas, prices) = with_prices(&format!("{prices}{BUDGET}"));
    let applicant = AdmissionRequest {
        prices: &prices,
        ..applicant("a", "m", &quotas)
    };
    let permit = try_admit(&limiter, applicant, || reserved.clone()).unwrap();
    let reservation = permit.most().money.nanos();
    (reservation, end(permit, known).cost.unwrap().nanos())
}

const BUDGET: &str = r#"
[state]
accounting = "sqlite:a.db"
[[quotas]]
budget = { amount = "100.00", currency = "USD", window = "month" }
"#;

/// Otherwise a client could have the dearer one, and pay for the usual one.
#[tokio::test(start_paused = true)]
async fn requested_service_tier_is_charged_until_an_answer_has_one() {
    let prices = r#"
        [[prices]]
        model = "m"
        input = "0"
        output = "10"
        tiers = [{ service_tier = "priority", output = "20" }]
    "#;
    let reserved = Reserved {
        answers: Answers::one(Some(1_000)).at_service_tier(Some("priority")),
        ..Reserved::default()
    };
    let charged = |known| costs(prices, &reserved, known);
    // 1,000 × 20 millionths are reserved, and charged if nothing else is known.
    let left = FinalUsage::Unfinished(Counts::default());
    assert_eq!(charged(left), (20_000_000, 20_000_000));
    // 300 × 20 millionths.
    let cut = FinalUsage::Partial(events(300));
    assert_eq!(charged(cut), (20_000_000, 6_000_000));
    // 300 × 10 millionths: the vendor has processed it at the usual one.
    let usage = Usage {
        output: 300,
        ..Usage::default()
    };
    let complete = FinalUsage::Complete(reported(usage));
    assert_eq!(charged(complete), (20_000_000, 3_000_000));
}

/// A quality that the model chooses and the list lacks costs as much as the dearest of the list.
#[tokio::test(start_paused = true)]
async fn reservation_covers_pictures_that_the_list_lacks() {
    let prices = |any: &str| {
        format!(
            r#"
            [[prices]]
            model = "m"
            input = "0"
            output = "0"
            pictures = [
                {{ size = "1024x1024", quality = "low", price = "0.011" }},
                {{ size = "1536x1024", quality = "high", price = "0.25" }},
                {any}
            ]
            "#
        )
    };
    let picture = |quality: &str| Pictures {
        count: 1,
        size: "1024x1024".to_owned(),
        quality: quality.to_owned(),
    };
    let costs_of = |any, quality| {
        let reserved = Reserved {
            pictures: picture(quality),
            ..Reserved::default()
        };
        let complete = FinalUsage::Complete(Counts {
            pictures: picture("high"),
            ..Counts::default()
        });
        costs(&prices(any), &reserved, complete)
    };
    assert_eq!(costs_of("", "auto"), (250_000_000, 250_000_000));
    let any_quality = "{ size = \"1024x1024\", price = \"0.042\" }";
    assert_eq!(costs_of(any_quality, "auto"), (42_000_000, 42_000_000));
    assert_eq!(costs_of(any_quality, "high"), (42_000_000, 42_000_000));
}

/// A stream that ends between two pictures has delivered the first one. Its tokens are estimated by
/// <https://platform.openai.com/docs/guides/image-generation#cost-and-latency>.
#[tokio::test(start_paused = true)]
async fn delivered_pictures_are_charged_without_reported_usage() {
    let prices = r#"
        [[prices]]
        model = "m"
        input = "0"
        output = "40"
    "#;
    let pictures = |count| Pictures {
        count,
        size: "1024x1024".to_owned(),
        quality: "medium".to_owned(),
    };
    let reserved = Reserved {
        pictures: pictures(2),
        ..Reserved::default()
    };
    let after = |count| {
        let counts = Counts {
            events: 1,
            pictures: pictures(count),
            ..Counts::default()
        };
        costs(prices, &reserved, FinalUsage::Partial(counts))
    };
    // 1,056 tokens each, at 40 millionths.
    assert_eq!(after(1), (84_480_000, 42_240_000));
    assert_eq!(after(0), (84_480_000, 0));
}

/// Registers a quota of all keys together that has a queue.
fn with_queue(quota: &str) -> (Arc<Limiter>, Arc<Quotas>) {
    let (limiter, quotas) = with_quotas(&format!("[[quotas]]\n{quota}"));
    (Arc::new(limiter), Arc::new(quotas))
}

/// Lets a request of a key wait, and sends its number when it is admitted. Returns once it waits.
async fn queued(
    (limiter, quotas): &(Arc<Limiter>, Arc<Quotas>),
    key: &'static str,
    number: usize,
    admitted: &UnboundedSender<(usize, Result<Permit, Refused>)>,
) -> JoinHandle<()> {
    let waiting = limiter.waiting();
    let (quotas, admitted) = (Arc::clone(quotas), admitted.clone());
    let of_task = Arc::clone(limiter);
    let task = tokio::spawn(async move {
        let decision = of_task.admit(applicant(key, "m", &quotas), tokens).await;
        assert!(decision.waited.is_some());
        admitted.send((number, decision.result)).unwrap();
    });
    while limiter.waiting() == waiting {
        tokio::task::yield_now().await;
    }
    task
}

/// Requests wait for those in progress, and the keys take turns.
#[tokio::test(start_paused = true)]
async fn requests_wait_in_turns() {
    let all = with_queue("concurrency = 1\nqueue = { wait = \"60s\", depth = 5 }");
    let (limiter, quotas) = &all;
    let first = limiter.admit(applicant("a", "m", quotas), tokens).await;
    assert_eq!(first.waited, None);
    let (sender, mut admitted) = unbounded_channel();
    for (number, key) in [(1, "a"), (2, "a"), (3, "a"), (4, "b"), (5, "c")] {
        queued(&all, key, number, &sender).await;
    }
    let over = limiter.admit(applicant("b", "m", quotas), tokens).await;
    assert_eq!(over.result.unwrap_err().cap, 1, "the queue is full");
    end(first.result.unwrap(), FinalUsage::Unused);
    let mut order = Vec::new();
    for _ in 0..5 {
        let (number, result) = admitted.recv().await.unwrap();
        order.push(number);
        end(result.unwrap(), FinalUsage::Unused);
    }
    assert_eq!(order, [1, 2, 4, 5, 3]);
    assert_eq!(limiter.waiting(), 0);
}

/// A request that comes when there is room again does not overtake one that waits for it.
#[tokio::test(start_paused = true)]
async fn waiting_requests_are_admitted_before_newcomers() {
    let all = with_queue("concurrency = 1\nqueue = { wait = \"60s\" }");
    let (limiter, quotas) = &all;
    let first = limiter.admit(applicant("a", "m", quotas), tokens).await;
    let (sender, mut admitted) = unbounded_channel();
    queued(&all, "a", 1, &sender).await;
    end(first.result.unwrap(), FinalUsage::Unused);
    let newcomer = limiter.admit(applicant("b", "m", quotas), tokens);
    let waiting = async {
        let (number, result) = admitted.recv().await.unwrap();
        assert_eq!(number, 1);
        end(result.unwrap(), FinalUsage::Unused);
    };
    let (newcomer, ()) = tokio::join!(newcomer, waiting);
    assert!(newcomer.waited.is_some() && newcomer.result.is_ok());
}

/// A request that waits is admitted as soon as its rate permits, without another one ending.
#[tokio::test(start_paused = true)]
async fn a_request_waits_for_a_rate() {
    let all = with_queue("requests_per_minute = 60\nqueue = { wait = \"60s\" }");
    let (limiter, quotas) = &all;
    for _ in 0..60 {
        let admitted = limiter.admit(applicant("a", "m", quotas), tokens).await;
        end(admitted.result.unwrap(), FinalUsage::Unused);
    }
    let next = limiter.admit(applicant("a", "m", quotas), tokens).await;
    let waited = next.waited.unwrap();
    assert!(next.result.is_ok());
    assert!(
        (Duration::from_millis(999)..=Duration::from_millis(1_010)).contains(&waited),
        "{waited:?}"
    );
}

/// A request that finds no room within the time is refused, and a request whose client leaves
/// passes its turn on.
#[tokio::test(start_paused = true)]
async fn requests_leave_the_queue() {
    let all = with_queue("concurrency = 1\nqueue = { wait = \"2s\" }");
    let (limiter, quotas) = &all;
    let first = limiter.admit(applicant("a", "m", quotas), tokens).await;
    let in_vain = limiter.admit(applicant("b", "m", quotas), tokens).await;
    assert_eq!(in_vain.waited, Some(Duration::from_secs(2)));
    let refused = in_vain.result.unwrap_err();
    assert_eq!(
        (refused.dimension, refused.cap),
        (Dimension::Concurrency, 1)
    );
    let (sender, mut admitted) = unbounded_channel();
    let leaves = queued(&all, "a", 1, &sender).await;
    queued(&all, "a", 2, &sender).await;
    leaves.abort();
    assert!(leaves.await.unwrap_err().is_cancelled());
    end(first.result.unwrap(), FinalUsage::Unused);
    assert_eq!(admitted.recv().await.unwrap().0, 2);
    assert_eq!(limiter.waiting(), 0);
}
