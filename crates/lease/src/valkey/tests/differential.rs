//! Compares the script with the reference store in random exchanges.

use std::time::Duration;

use futures_util::StreamExt as _;
use quota::{LeaseRequest, LeasedLimitSpec, MAX_AMOUNT, USED_MODULUS};

use super::server::Server;
use crate::clock::ElapsedProof;
use crate::reference::{ExchangeRequest, ExchangeResponse, ReferenceStore};
use crate::script::{ExchangeScript, TEXT, read};
use crate::valkey::connection::ValkeyConnection;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }

    /// An amount of any size.
    fn amount(&mut self) -> u64 {
        let bits = self.below(53);
        match self.below(3) {
            0 => self.below(12),
            1 => self.below(1_000_000_000),
            _ => self.below((1 << bits) + 1).min(MAX_AMOUNT),
        }
    }

    /// A number near to `middle`.
    fn near(&mut self, middle: u64) -> u64 {
        (middle + self.below(8)).saturating_sub(4)
    }
}

struct Pair {
    random: Random,
    server: Server,
    link: ValkeyConnection,
    script: ExchangeScript,
    model: ReferenceStore,
    run: u64,
    now: u64,
    last: ExchangeResponse,
    /// The notices of the reference store, in the form of the script's messages.
    notices: Vec<String>,
    /// By replica and limit: the number in the last grant, the used amount in its request, and the
    /// held amount.
    sent: [[(u64, u64, u64); LIMITS]; 3],
    loans: [LeasedLimitSpec; LIMITS],
}

const LIMITS: usize = 5;

impl Pair {
    fn new(variable: &str, seed: u64) -> Self {
        // The clock is an argument here; everything else is the shipped text.
        let clock = "local clock = redis.call('TIME')";
        assert_eq!(TEXT.matches("TIME").count(), 1);
        assert!(TEXT.contains(clock));
        let text = TEXT.replace(clock, "local clock = {0, ARGV[#ARGV]}");
        let server = Server::start(variable, &[]);
        let mut random = Random(seed);
        let loans = std::array::from_fn(|i| match i % 3 {
            0 => LeasedLimitSpec::Permits {
                cap: random.below(20),
            },
            1 => LeasedLimitSpec::Bucket {
                per_minute: random.amount(),
                capacity: random.amount(),
            },
            _ => LeasedLimitSpec::Budget {
                amount: random.amount(),
                window: random.below(100),
                accounted: 0,
            },
        });
        Self {
            random,
            link: ValkeyConnection::new(&server.settings()),
            server,
            script: ExchangeScript::new(&text),
            model: ReferenceStore::default(),
            run: 1,
            now: 1_790_000_000_000_000,
            last: ExchangeResponse {
                epoch: 0,
                at: 0,
                event: 0,
                replies: Vec::new(),
            },
            notices: Vec::new(),
            sent: [[(0, 0, 0); LIMITS]; 3],
            loans,
        }
    }

    fn call(&mut self) -> ExchangeRequest {
        let replica = self.random.below(3);
        let epoch = match self.random.below(20) {
            0 => self.last.epoch + 1,
            _ => self.last.epoch,
        };
        let over = match self.random.below(4) {
            0 => self.last.event.saturating_sub(self.random.below(6)),
            _ => 0,
        };
        let at = match self.random.below(10) {
            // So late that the lease may be over.
            0 => self.last.at.saturating_sub(self.random.below(30_000)),
            _ => self.last.at + self.random.below(3_000),
        };
        let proof = ElapsedProof {
            epoch,
            elapsed_ms: at,
            expired_event: over,
        };
        let count = self.random.below(3) as usize;
        let first = self.random.below(LIMITS as u64) as usize;
        let limits = (0..count).map(|i| (first + i) % LIMITS);
        ExchangeRequest {
            replica,
            proof,
            lease: 10_000,
            requests: limits.map(|limit| self.request(replica, limit)).collect(),
        }
    }

    fn request(&mut self, replica: u64, limit: usize) -> LeaseRequest {
        let (seq, used, held) = self.sent[replica as usize][limit];
        let random = &mut self.random;
        let mut spec = self.loans[limit];
        if let LeasedLimitSpec::Budget { accounted, .. } = &mut spec {
            *accounted = random.amount();
        }
        let seq = match random.below(8) {
            0 => random.near(seq),
            _ => seq + 1,
        };
        let spent = match random.below(4) {
            0 => 0,
            1 => random.below(held + 1),
            // Almost the modulus, so that the sum passes it.
            2 => USED_MODULUS - random.below(1_000),
            _ => random.amount(),
        };
        let used = match random.below(5) {
            0 => used.saturating_sub(spent),
            _ => (used + spent) % USED_MODULUS,
        };
        let retained = match random.below(10) {
            0 => random.amount(),
            _ => random.below(held + 1),
        };
        let waiting = random.amount().min(random.amount());
        LeaseRequest {
            limit: format!("limit-{limit}").into(),
            spec,
            seq,
            acked: random.below(2) * seq,
            incarnation: random.below(8) / 7,
            retained,
            used: if spec.is_consumed() { used } else { 0 },
            unacked: match spec.is_consumed() {
                true => random.amount(),
                false => 0,
            },
            wanted: waiting.max(random.amount()),
            waiting,
            smallest_waiting: random.below(waiting + 1),
        }
    }

    async fn script(&self, call: &ExchangeRequest) -> ExchangeResponse {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        let [by_hash, by_text] = self
            .script
            .commands("sg:1", 3, &call.replica.to_string(), call)
            .map(|mut command| {
                command.arg(self.now);
                command
            });
        let value = match self.link.query(deadline, &by_hash).await {
            Err(_) => self.link.query(deadline, &by_text).await.unwrap(),
            Ok(value) => value,
        };
        read(&value, call).unwrap_or_else(|| panic!("unexpected reply: {value:?}"))
    }

    async fn step(&mut self) {
        match self.random.below(150) {
            0 => {
                self.server.run(&["FLUSHALL"]).await.unwrap();
                self.model = ReferenceStore::default();
            }
            // As if a replica had become the primary.
            1 => {
                let words = ["DEBUG", "CHANGE-REPL-ID"];
                self.server.run(&words).await.unwrap();
                self.run += 1;
            }
            2 => self.now -= 3_600_000_000,
            3 => self.now += 3_600_000_000,
            _ => self.now += self.random.below(2_000_000),
        }
        let call = self.call();
        let expected = self.model.exchange(&call, self.run, self.now);
        let found = self.script(&call).await;
        assert_eq!(found, expected, "{call:#?}");
        let notices = self.model.notices().iter();
        let messages = notices.map(|limit| format!("{} {limit}", call.replica));
        self.notices.extend(messages);
        for (request, reply) in call.requests.iter().zip(&found.replies) {
            let limit = request.limit.trim_start_matches("limit-");
            let limit: usize = limit.parse().unwrap();
            self.sent[call.replica as usize][limit] = (reply.seq, request.used, reply.held);
        }
        self.last = found;
    }
}

async fn compare(variable: &str, first: u64) {
    let (mut leased, mut quarantined, mut late, mut noticed) = (0, 0, 0, 0);
    for seed in first..first + 10 {
        let mut pair = Pair::new(variable, seed);
        let mut subscription = pair.link.subscriber().await.unwrap();
        subscription.subscribe("sg:1:notices").await.unwrap();
        for _ in 0..1_000 {
            pair.step().await;
            for reply in &pair.last.replies {
                leased += u64::from(reply.held > 0);
                quarantined += u64::from(reply.quarantined);
                late += u64::from(reply.available > 0);
            }
        }
        pair.server
            .run(&["PUBLISH", "sg:1:notices", "end"])
            .await
            .unwrap();
        let messages = subscription.on_message();
        let messages = messages.map(|message| message.get_payload::<String>().unwrap());
        let messages: Vec<_> = messages
            .take_while(|message| std::future::ready(message != "end"))
            .collect()
            .await;
        assert_eq!(messages, pair.notices);
        noticed += messages.len();
    }
    // All of these cases were compared.
    assert!(
        leased > 500 && quarantined > 100 && late > 100,
        "{leased} {quarantined} {late}"
    );
    assert!(noticed > 100, "{noticed}");
}

#[tokio::test]
#[ignore = "needs a Valkey server: set SLUICEGATE_VALKEY"]
async fn the_script_answers_like_the_model_in_valkey() {
    compare("SLUICEGATE_VALKEY", 1).await;
}

#[tokio::test]
#[ignore = "needs a Redis server: set SLUICEGATE_REDIS"]
async fn the_script_answers_like_the_model_in_redis() {
    compare("SLUICEGATE_REDIS", 101).await;
}
