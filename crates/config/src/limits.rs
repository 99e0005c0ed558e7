//! The limits: sizes, durations and counts.

use std::time::Duration;

use bytesize::ByteSize;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::units::{Size, Time, bytes};

wire::read_objects!(Limits);

/// The limits of a gateway. Sizes read `"32MiB"`, durations `"600s"`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct Limits {
    /// Concurrent requests over all keys; more fail with `gateway_concurrency_limit`. Default 256.
    pub concurrency: usize,
    /// Concurrent requests per key. Default 64.
    pub concurrency_per_key: usize,
    /// The tokens that budgets reserve for each answer to a request that does not limit it. Default
    /// 32,000.
    pub answer_tokens: u64,
    /// Open client connections; further ones wait in the accept queue. Default 10,000.
    pub connections: usize,
    /// The requests at the same time on one HTTP/2 connection. Default 100; 0 turns HTTP/2 off.
    pub http2_streams: u32,
    /// The size of a request's head. Default 64 KiB, at least 8 KiB.
    #[serde(with = "Size")]
    pub head: ByteSize,
    /// The length of a request's path and query. Default 8 KiB.
    #[serde(with = "Size")]
    pub target: ByteSize,
    /// The size of a JSON body. Default 32 MiB.
    #[serde(with = "Size")]
    pub json_body: ByteSize,
    /// The size of an image edit's body, JSON or multipart. Default 64 MiB.
    #[serde(with = "Size")]
    pub edit_body: ByteSize,
    /// The size of one image within a request. Default 20 MiB.
    #[serde(with = "Size")]
    pub picture: ByteSize,
    /// The memory for all bodies that are being uploaded. Default 512 MiB.
    #[serde(with = "Size")]
    pub body_memory: ByteSize,
    /// The part of it that the bodies of one key can take. Absent: half of it, or the size of one
    /// body if that is more.
    #[serde(deserialize_with = "Size::deserialize_some")]
    #[schemars(with = "Option<Size>", example = &"256MiB")]
    pub body_memory_per_key: Option<ByteSize>,
    /// The timeout for the first byte on a new connection, and for its TLS handshake. Default 10 s.
    #[serde(with = "Time")]
    pub first_byte: Duration,
    /// The timeout for the head of a request, from its first byte. Default 30 s.
    #[serde(with = "Time")]
    pub head_timeout: Duration,
    /// The time for which a connection may be idle between requests. Default 75 s, because usual
    /// load balancers keep theirs for 60 s: a connection that they use again has to be open.
    #[serde(with = "Time")]
    pub idle_timeout: Duration,
    /// The idle timeout between two chunks of a body. Default 15 s.
    #[serde(with = "Time")]
    pub body_idle: Duration,
    /// The time over which the rate of a body is measured. Default 10 s.
    #[serde(with = "Time")]
    pub body_grace: Duration,
    /// The minimum rate, in bytes per second. Default 1 KiB.
    #[serde(with = "Size")]
    pub body_rate: ByteSize,
    /// The timeout for a complete body. Default 120 s.
    #[serde(with = "Time")]
    pub body_timeout: Duration,
    /// The timeout for a plain reply, and for the first event of a stream, as long as the official
    /// clients wait. Default 600 s.
    #[serde(with = "Time")]
    pub request_timeout: Duration,
    /// The timeout for a complete stream. Default 3,600 s.
    #[serde(with = "Time")]
    pub stream_timeout: Duration,
    /// The time after which an idle stream sends a keep-alive. Default 15 s.
    #[serde(with = "Time")]
    pub keep_alive: Duration,
    /// The write timeout: a client that reads nothing for this long is disconnected. Default 30 s.
    #[serde(with = "Time")]
    pub write_stall: Duration,
    /// The send buffer of client sockets; Linux doubles it for its own bookkeeping. Absent: the
    /// system sizes it automatically, which is faster over long distances.
    #[serde(deserialize_with = "Size::deserialize_some")]
    #[schemars(with = "Option<Size>", example = &"256KiB")]
    pub send_buffer: Option<ByteSize>,
    /// The time for which the gateway keeps accepting after SIGTERM. Default 5 s.
    #[serde(with = "Time")]
    pub lame_duck: Duration,
    /// The time for which open responses may finish after that. Default 120 s.
    #[serde(with = "Time")]
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrency: 256,
            concurrency_per_key: 64,
            answer_tokens: 32_000,
            connections: 10_000,
            http2_streams: 100,
            head: ByteSize::kib(64),
            target: ByteSize::kib(8),
            json_body: ByteSize::mib(32),
            edit_body: ByteSize::mib(64),
            picture: ByteSize::mib(20),
            body_memory: ByteSize::mib(512),
            body_memory_per_key: None,
            first_byte: Duration::from_secs(10),
            head_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(75),
            body_idle: Duration::from_secs(15),
            body_grace: Duration::from_secs(10),
            body_rate: ByteSize::kib(1),
            body_timeout: Duration::from_secs(120),
            request_timeout: Duration::from_secs(600),
            stream_timeout: Duration::from_secs(3600),
            keep_alive: Duration::from_secs(15),
            write_stall: Duration::from_secs(30),
            send_buffer: None,
            lame_duck: Duration::from_secs(5),
            drain: Duration::from_secs(120),
        }
    }
}

impl Limits {
    /// The size of a head in bytes.
    pub fn head_bytes(&self) -> usize {
        bytes(self.head)
    }

    /// The memory that the bodies of one key can take, in bytes.
    pub fn body_memory_per_key(&self) -> u64 {
        let largest = self.json_body.max(self.edit_body).as_u64();
        let default = (self.body_memory.as_u64() / 2).max(largest);
        self.body_memory_per_key
            .map_or(default, |size| size.as_u64())
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        let zero = [
            ("limits.concurrency", self.concurrency == 0),
            ("limits.concurrency_per_key", self.concurrency_per_key == 0),
            ("limits.answer_tokens", self.answer_tokens == 0),
            ("limits.connections", self.connections == 0),
            ("limits.target", self.target.as_u64() == 0),
            ("limits.json_body", self.json_body.as_u64() == 0),
            ("limits.edit_body", self.edit_body.as_u64() == 0),
            ("limits.picture", self.picture.as_u64() == 0),
            ("limits.first_byte", self.first_byte.is_zero()),
            ("limits.head_timeout", self.head_timeout.is_zero()),
            ("limits.idle_timeout", self.idle_timeout.is_zero()),
            ("limits.body_idle", self.body_idle.is_zero()),
            ("limits.body_grace", self.body_grace.is_zero()),
            ("limits.body_timeout", self.body_timeout.is_zero()),
            ("limits.write_stall", self.write_stall.is_zero()),
            ("limits.body_rate", self.body_rate.as_u64() == 0),
            ("limits.request_timeout", self.request_timeout.is_zero()),
            ("limits.stream_timeout", self.stream_timeout.is_zero()),
            ("limits.keep_alive", self.keep_alive.is_zero()),
            (
                "limits.send_buffer",
                self.send_buffer.is_some_and(|size| size.as_u64() == 0),
            ),
        ];
        let mut problems: Vec<_> = zero
            .iter()
            .filter(|(_, is_zero)| *is_zero)
            .map(|(name, _)| format!("{name}: must be more than 0"))
            .collect();
        if self.head < MIN_HEAD {
            problems.push("limits.head: must be at least 8KiB".to_owned());
        }
        let memories = [
            ("limits.body_memory", Some(self.body_memory)),
            ("limits.body_memory_per_key", self.body_memory_per_key),
        ];
        let largest = self.json_body.max(self.edit_body);
        for (name, size) in memories {
            if size.is_some_and(|size| size < largest) {
                problems.push(format!(
                    "{name}: must be at least limits.json_body and limits.edit_body"
                ));
            }
        }
        problems
    }
}

/// hyper's minimum size of a read buffer.
const MIN_HEAD: ByteSize = ByteSize::kib(8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_refuse_every_request_are_problems() {
        for (text, problem) in [
            ("head = \"4KiB\"", "limits.head: must be at least 8KiB"),
            (
                "head_timeout = \"0s\"",
                "limits.head_timeout: must be more than 0",
            ),
            (
                "body_idle = \"0s\"",
                "limits.body_idle: must be more than 0",
            ),
            (
                "body_grace = \"0s\"",
                "limits.body_grace: must be more than 0",
            ),
            (
                "body_timeout = \"0s\"",
                "limits.body_timeout: must be more than 0",
            ),
            (
                "write_stall = \"0s\"",
                "limits.write_stall: must be more than 0",
            ),
            (
                "body_memory = \"1KiB\"",
                "limits.body_memory: must be at least limits.json_body and limits.edit_body",
            ),
            ("head = \"8KiB\"\ndrain = \"0s\"", ""),
        ] {
            let limits: Limits = toml::from_str(text).unwrap();
            assert_eq!(limits.problems().join("; "), problem);
        }
    }
}
