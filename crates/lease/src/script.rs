//! Calls of `exchange.lua`: their keys, arguments and replies.

use std::time::Duration;

use quota::{Ask, Loan, Reply};
use redis::{Cmd, Script, Value, cmd};

use crate::model::{Answer, Call};
use crate::store::Holder;

/// The longest name of a replica.
const MAX_NAME: usize = 64;

/// The parts of a store that notice a loss of data on their own. In a cluster each can be on another
/// server; the keys of one part are on the same.
pub(crate) const PARTITIONS: usize = 16;

/// The script of an exchange.
pub(crate) struct ExchangeScript {
    text: String,
    hash: String,
}

impl ExchangeScript {
    pub(crate) fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            hash: Script::new(text).get_hash().to_owned(),
        }
    }

    /// Returns the command that runs the script by its hash, and the one that also sends its text.
    /// The replica of `call` is named `replica` in the store.
    pub(crate) fn commands(
        &self,
        namespace: &str,
        partition: usize,
        replica: &str,
        call: &Call,
    ) -> [Cmd; 2] {
        [("EVALSHA", &self.hash), ("EVAL", &self.text)].map(|(name, script)| {
            let mut command = cmd(name);
            command.arg(script);
            arguments(&mut command, namespace, partition, replica, call);
            command
        })
    }
}

/// The script as it is shipped.
pub(crate) const TEXT: &str = include_str!("exchange.lua");

/// Returns the channel on which the script publishes notices.
pub(crate) fn channel(namespace: &str) -> String {
    format!("{namespace}:notices")
}

/// Reads a message of that channel: the replica that has caused it, and the limit.
pub(crate) fn read_notice(message: &str) -> Option<(&str, &str)> {
    message.split_once(' ')
}

/// Returns the key of a limit in its partition. The part in braces decides on the slot of a key.
pub(crate) fn limit_key(namespace: &str, partition: usize, limit: &str) -> String {
    format!("{{{namespace}:{partition}}}:limit:{limit}")
}

/// Returns the name of a replica in the store: letters, digits, dots, underscores and hyphens of `name`,
/// and its number.
pub(crate) fn replica_name(name: &str, number: u64) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
    let name: String = name.chars().filter(is_plain).take(MAX_NAME).collect();
    match name.is_empty() {
        true => number.to_string(),
        false => format!("{name}#{number}"),
    }
}

/// Reads the replicas from the fields of a limit; `None` if they are not of the form of the script.
pub(crate) fn read_holders(value: Value) -> Option<Vec<Holder>> {
    let fields: Vec<(String, String)> = redis::from_redis_value(value).ok()?;
    let shares = fields.iter().filter(|(name, _)| name != "limit");
    let holder = |(name, share): &(String, String)| {
        let numbers = share.split(' ').map(|number| number.parse().ok());
        let numbers: Option<Vec<u64>> = numbers.collect();
        let [held, .., short] = numbers?[..] else {
            return None;
        };
        let name = name.split_once('#').map_or(name.as_str(), |(name, _)| name);
        Some(Holder {
            replica: name.to_owned(),
            held,
            short,
        })
    };
    shares.map(holder).collect()
}

/// Returns the partition in which the store keeps `key`.
pub(crate) fn partition(key: &str) -> usize {
    // FNV-1a. All replicas have to agree on it.
    let hash = key.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    hash as usize % PARTITIONS
}

fn arguments(command: &mut Cmd, namespace: &str, partition: usize, replica: &str, call: &Call) {
    command.arg(1 + call.asks.len());
    command.arg(format!("{{{namespace}:{partition}}}:mark"));
    for ask in &call.asks {
        command.arg(limit_key(namespace, partition, &ask.key()));
    }
    command.arg(replica);
    let proof = call.proof;
    for number in [proof.life, proof.at, proof.over, call.lease] {
        command.arg(number);
    }
    command.arg(channel(namespace));
    for ask in &call.asks {
        command.arg(&numbers(ask)[..]);
    }
}

fn numbers(ask: &Ask) -> [u64; 13] {
    let (kind, accounted) = match ask.loan {
        Loan::Permits { .. } => (0, 0),
        Loan::Bucket { .. } => (1, 0),
        Loan::Budget { accounted, .. } => (2, accounted),
    };
    [
        kind,
        ask.loan.capacity(),
        ask.loan.per_minute(),
        accounted,
        ask.seq,
        ask.acked,
        ask.incarnation,
        ask.claim,
        ask.used,
        ask.unacked,
        ask.more,
        ask.need,
        ask.least,
    ]
}

/// Reads the reply of the script, or returns `None` if it is not of its form.
pub(crate) fn read(value: &Value, call: &Call) -> Option<Answer> {
    let Value::Array(values) = value else {
        return None;
    };
    let [life, at, event, replies @ ..] = values.as_slice() else {
        return None;
    };
    let lease = Duration::from_millis(call.lease);
    let replies = replies
        .iter()
        .map(|reply| read_reply(reply, lease))
        .collect::<Option<Vec<_>>>()?;
    let answer = Answer {
        life: integer(life)?,
        at: integer(at)?,
        event: integer(event)?,
        replies,
    };
    (answer.replies.len() == call.asks.len()).then_some(answer)
}

fn read_reply(value: &Value, lease: Duration) -> Option<Reply> {
    let Value::Array(values) = value else {
        return None;
    };
    let numbers: Option<Vec<u64>> = values.iter().map(integer).collect();
    let [seq, held, free, level, replicas, hungry, quarantined] = numbers?.try_into().ok()?;
    Some(Reply {
        seq,
        held,
        free,
        level,
        replicas,
        hungry,
        quarantined: quarantined != 0,
        lease,
    })
}

fn integer(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Proof;

    fn call() -> Call {
        let ask = Ask {
            limit: "q0/team-a".into(),
            loan: Loan::Bucket {
                per_minute: 600,
                capacity: 50,
            },
            seq: 9,
            acked: 8,
            incarnation: 1,
            claim: 2,
            used: 3,
            unacked: 1,
            more: 4,
            need: 5,
            least: 6,
        };
        Call {
            replica: 77,
            proof: Proof {
                life: 1,
                at: 20,
                over: 3,
            },
            lease: 10_000,
            asks: vec![ask],
        }
    }

    #[test]
    fn a_call_names_all_of_its_keys_and_they_have_one_tag() {
        let script = ExchangeScript::new("return 1");
        let [by_hash, by_text] = script
            .commands("sg:1", 5, "gate-1#77", &call())
            .map(|command| String::from_utf8(command.get_packed_command()).unwrap());
        let words = |packed: &str| {
            let words = packed.lines().skip(2).step_by(2).map(str::to_owned);
            words.collect::<Vec<_>>().join(" ")
        };
        let rest = "2 {sg:1:5}:mark {sg:1:5}:limit:q0/team-a gate-1#77 1 20 3 10000 \
                    sg:1:notices 1 50 600 0 9 8 1 2 3 1 4 5 6";
        assert_eq!(
            words(&by_hash),
            format!("EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db {rest}")
        );
        assert_eq!(words(&by_text), format!("EVAL return 1 {rest}"));
    }

    #[test]
    fn limits_are_spread_over_the_partitions_as_they_always_were() {
        assert_eq!(partition(""), 5);
        assert_eq!(partition("a"), 12);
        assert_eq!(partition("foobar"), 8);
    }

    #[test]
    fn a_notice_names_a_replica_and_a_limit() {
        assert_eq!(
            read_notice("gate-1#77 q0/team a/tokens"),
            Some(("gate-1#77", "q0/team a/tokens"))
        );
        for other in ["", "77"] {
            assert_eq!(read_notice(other), None, "{other:?}");
        }
    }

    #[test]
    fn the_name_of_a_replica_is_one_word() {
        assert_eq!(replica_name("gate-1.eu", 77), "gate-1.eu#77");
        assert_eq!(replica_name("a #b\n", 77), "ab#77");
        assert_eq!(replica_name("é", 77), "77");
        assert_eq!(replica_name(&"x".repeat(99), 7), "x".repeat(64) + "#7");
    }

    #[test]
    fn holders_are_read_from_the_fields_of_a_limit() {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let fields = |pairs: &[[&str; 2]]| {
            Value::Array(pairs.as_flattened().iter().map(|it| text(it)).collect())
        };
        let holder = |replica: &str, held, short| Holder {
            replica: replica.to_owned(),
            held,
            short,
        };
        let read = read_holders(fields(&[
            ["limit", "1 2 3 4 5"],
            ["gate-1#77", "12 0 5 0 9 0"],
            ["78", "0 0 5 0 9 3"],
        ]));
        assert_eq!(
            read,
            Some(vec![holder("gate-1", 12, 0), holder("78", 0, 3)])
        );
        assert_eq!(read_holders(fields(&[])), Some(Vec::new()));
        for bad in [
            fields(&[["77", "12"]]),
            fields(&[["77", "a 0 0 0 0 0"]]),
            Value::Int(1),
        ] {
            assert_eq!(read_holders(bad.clone()), None, "{bad:?}");
        }
    }

    #[test]
    fn a_reply_of_another_form_is_refused() {
        let int = Value::Int;
        let reply = |numbers: &[i64]| Value::Array(numbers.iter().copied().map(int).collect());
        let good = reply(&[9, 6, 40, 4, 2, 1, 1]);
        let whole = |reply: Value| Value::Array(vec![int(5), int(6), int(7), reply]);
        let expected = Answer {
            life: 5,
            at: 6,
            event: 7,
            replies: vec![Reply {
                seq: 9,
                held: 6,
                free: 40,
                level: 4,
                replicas: 2,
                hungry: 1,
                quarantined: true,
                lease: Duration::from_secs(10),
            }],
        };
        assert_eq!(read(&whole(good), &call()), Some(expected));
        for bad in [
            Value::Nil,
            Value::Array(vec![int(5), int(6), int(7)]),
            whole(reply(&[9, 6, 40, 4, 2, 1])),
            whole(reply(&[9, -6, 40, 4, 2, 1, 1])),
            whole(Value::Okay),
        ] {
            assert_eq!(read(&bad, &call()), None, "{bad:?}");
        }
    }
}
