//! Calls of `exchange.lua`: their keys, arguments and responses.

use std::time::Duration;

use quota::{LeaseGrant, LeaseRequest, LeasedLimitSpec};
use redis::{Cmd, Script, Value, cmd};

use crate::reference::{ExchangeRequest, ExchangeResponse};
use crate::store::ShareInfo;

/// The longest name of a replica.
const MAX_NAME: usize = 64;

/// The number of partitions of a store. Each partition notices a loss of data on its own. In a
/// cluster, each can be on another server; the keys of one partition are on the same server.
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
        call: &ExchangeRequest,
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

/// Reads a message of the channel for notices: the replica that has caused it, and the limit.
pub(crate) fn read_notice(message: &str) -> Option<(&str, &str)> {
    message.split_once(' ')
}

/// Returns the key of a limit in its partition. The part in braces determines the slot of a key.
pub(crate) fn limit_key(namespace: &str, partition: usize, limit: &str) -> String {
    format!("{{{namespace}:{partition}}}:limit:{limit}")
}

/// Returns the name of a replica in the store: letters, digits, dots, underscores and hyphens of
/// `name`, and the number.
pub(crate) fn replica_name(name: &str, number: u64) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
    let name: String = name.chars().filter(is_plain).take(MAX_NAME).collect();
    match name.is_empty() {
        true => number.to_string(),
        false => format!("{name}#{number}"),
    }
}

/// Reads the shares of replicas from the fields of a limit. Returns `None` if they do not have the
/// form that the script writes.
pub(crate) fn read_holders(value: Value) -> Option<Vec<ShareInfo>> {
    let fields: Vec<(String, String)> = redis::from_redis_value(value).ok()?;
    let shares = fields.iter().filter(|(name, _)| name != "limit");
    let holder = |(name, share): &(String, String)| {
        let numbers = share.split(' ').map(|number| number.parse().ok());
        let numbers: Option<Vec<u64>> = numbers.collect();
        let [held, .., short] = numbers?[..] else {
            return None;
        };
        let name = name.split_once('#').map_or(name.as_str(), |(name, _)| name);
        Some(ShareInfo {
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

fn arguments(
    command: &mut Cmd,
    namespace: &str,
    partition: usize,
    replica: &str,
    call: &ExchangeRequest,
) {
    command.arg(1 + call.requests.len());
    command.arg(format!("{{{namespace}:{partition}}}:mark"));
    for request in &call.requests {
        command.arg(limit_key(namespace, partition, &request.key()));
    }
    command.arg(replica);
    let proof = call.proof;
    for number in [
        proof.epoch,
        proof.elapsed_ms,
        proof.expired_event,
        call.lease,
    ] {
        command.arg(number);
    }
    command.arg(channel(namespace));
    for request in &call.requests {
        command.arg(&numbers(request)[..]);
    }
}

fn numbers(request: &LeaseRequest) -> [u64; 13] {
    let (kind, accounted) = match request.spec {
        LeasedLimitSpec::Permits { .. } => (0, 0),
        LeasedLimitSpec::Bucket { .. } => (1, 0),
        LeasedLimitSpec::Budget { accounted, .. } => (2, accounted),
    };
    [
        kind,
        request.spec.capacity(),
        request.spec.per_minute(),
        accounted,
        request.seq,
        request.acked,
        request.incarnation,
        request.retained,
        request.used,
        request.unacked,
        request.wanted,
        request.waiting,
        request.smallest_waiting,
    ]
}

/// Reads the response of the script, or returns `None` if it has another form.
pub(crate) fn read(value: &Value, call: &ExchangeRequest) -> Option<ExchangeResponse> {
    let Value::Array(values) = value else {
        return None;
    };
    let [epoch, at, event, replies @ ..] = values.as_slice() else {
        return None;
    };
    let lease = Duration::from_millis(call.lease);
    let replies = replies
        .iter()
        .map(|reply| read_reply(reply, lease))
        .collect::<Option<Vec<_>>>()?;
    let answer = ExchangeResponse {
        epoch: integer(epoch)?,
        at: integer(at)?,
        event: integer(event)?,
        replies,
    };
    (answer.replies.len() == call.requests.len()).then_some(answer)
}

fn read_reply(value: &Value, lease: Duration) -> Option<LeaseGrant> {
    let Value::Array(values) = value else {
        return None;
    };
    let numbers: Option<Vec<u64>> = values.iter().map(integer).collect();
    let [
        seq,
        held,
        available,
        level,
        replicas,
        waiting_replicas,
        quarantined,
    ] = numbers?.try_into().ok()?;
    Some(LeaseGrant {
        seq,
        held,
        available,
        level,
        replicas,
        waiting_replicas,
        quarantined: quarantined != 0,
        duration: lease,
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
    use crate::clock::ElapsedProof;

    fn call() -> ExchangeRequest {
        let request = LeaseRequest {
            limit: "q0/team-a".into(),
            spec: LeasedLimitSpec::Bucket {
                per_minute: 600,
                capacity: 50,
            },
            seq: 9,
            acked: 8,
            incarnation: 1,
            retained: 2,
            used: 3,
            unacked: 1,
            wanted: 4,
            waiting: 5,
            smallest_waiting: 6,
        };
        ExchangeRequest {
            replica: 77,
            proof: ElapsedProof {
                epoch: 1,
                elapsed_ms: 20,
                expired_event: 3,
            },
            lease: 10_000,
            requests: vec![request],
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
        let remainder = "2 {sg:1:5}:mark {sg:1:5}:limit:q0/team-a gate-1#77 1 20 3 10000 \
                    sg:1:notices 1 50 600 0 9 8 1 2 3 1 4 5 6";
        assert_eq!(
            words(&by_hash),
            format!("EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db {remainder}")
        );
        assert_eq!(words(&by_text), format!("EVAL return 1 {remainder}"));
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
        let holder = |replica: &str, held, short| ShareInfo {
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
        let expected = ExchangeResponse {
            epoch: 5,
            at: 6,
            event: 7,
            replies: vec![LeaseGrant {
                seq: 9,
                held: 6,
                available: 40,
                level: 4,
                replicas: 2,
                waiting_replicas: 1,
                quarantined: true,
                duration: Duration::from_secs(10),
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
