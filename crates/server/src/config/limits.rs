//! How much, how long, how many.

use std::time::Duration;

use bytesize::ByteSize;
use serde::Deserialize;

use super::duration;

wire::read_objects!(Limits);

/// How much and how long. Sizes read `"32MiB"`, durations `"600s"`.
#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub(crate) struct Limits {
    /// Requests answered at once, over all keys; past it `gateway_concurrency_limit`. Default 256.
    pub(crate) concurrency: usize,
    /// Requests answered at once for one key. Default 64.
    pub(crate) concurrency_per_key: usize,
    /// Open client connections; newcomers wait past it. Default 10,000.
    pub(crate) connections: usize,
    /// The head of a request. Default 64 KiB, at least 8 KiB.
    pub(crate) head: ByteSize,
    /// The target of a request: its path and query. Default 8 KiB.
    pub(crate) target: ByteSize,
    /// A JSON body. Default 32 MiB.
    pub(crate) json_body: ByteSize,
    /// The body of an edit, as JSON or as a form. Default 64 MiB.
    pub(crate) edit_body: ByteSize,
    /// One picture within a request. Default 20 MiB.
    pub(crate) picture: ByteSize,
    /// All bodies that are being uploaded, together. Default 512 MiB.
    pub(crate) body_memory: ByteSize,
    /// For the first byte on a new connection. Default 10 s.
    #[serde(deserialize_with = "duration")]
    pub(crate) first_byte: Duration,
    /// For the head of a request, and between requests. Default 30 s.
    #[serde(deserialize_with = "duration")]
    pub(crate) head_timeout: Duration,
    /// Between two pieces of a body. Default 15 s.
    #[serde(deserialize_with = "duration")]
    pub(crate) body_idle: Duration,
    /// A body may come at any pace for this long. Default 10 s.
    #[serde(deserialize_with = "duration")]
    pub(crate) body_grace: Duration,
    /// Then so much of it has to have come for each second. Default 1 KiB.
    pub(crate) body_rate: ByteSize,
    /// For a whole body. Default 120 s.
    #[serde(deserialize_with = "duration")]
    pub(crate) body_timeout: Duration,
    /// For a whole request, as long as the official clients wait. Default 600 s.
    #[serde(deserialize_with = "duration")]
    pub(crate) request_timeout: Duration,
    /// A silent stream says that it is alive after this. Default 15 s.
    #[serde(deserialize_with = "duration")]
    pub(crate) keep_alive: Duration,
    /// A client that takes nothing for this long is given up. Default 30 s.
    #[serde(deserialize_with = "duration")]
    pub(crate) write_stall: Duration,
    /// What the system keeps for a client that reads slowly; Linux takes twice as much, for its own books. Without it the
    /// system takes its own measure, which is faster over long ways.
    pub(crate) send_buffer: Option<ByteSize>,
    /// After SIGTERM it goes on accepting for this long. Default 5 s.
    #[serde(deserialize_with = "duration")]
    pub(crate) lame_duck: Duration,
    /// Then open answers may finish for this long. Default 120 s.
    #[serde(deserialize_with = "duration")]
    pub(crate) drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrency: 256,
            concurrency_per_key: 64,
            connections: 10_000,
            head: ByteSize::kib(64),
            target: ByteSize::kib(8),
            json_body: ByteSize::mib(32),
            edit_body: ByteSize::mib(64),
            picture: ByteSize::mib(20),
            body_memory: ByteSize::mib(512),
            first_byte: Duration::from_secs(10),
            head_timeout: Duration::from_secs(30),
            body_idle: Duration::from_secs(15),
            body_grace: Duration::from_secs(10),
            body_rate: ByteSize::kib(1),
            body_timeout: Duration::from_secs(120),
            request_timeout: Duration::from_secs(600),
            keep_alive: Duration::from_secs(15),
            write_stall: Duration::from_secs(30),
            send_buffer: None,
            lame_duck: Duration::from_secs(5),
            drain: Duration::from_secs(120),
        }
    }
}

impl Limits {
    /// The size of a head in bytes; hyper takes no less than its own least.
    pub(crate) fn head_bytes(&self) -> usize {
        usize::try_from(self.head.as_u64()).unwrap_or(usize::MAX).max(LEAST_HEAD)
    }

    /// What is wrong with them, a line each.
    pub(super) fn problems(&self) -> Vec<String> {
        let zero = [
            ("limits.concurrency", self.concurrency == 0),
            ("limits.concurrency_per_key", self.concurrency_per_key == 0),
            ("limits.connections", self.connections == 0),
            ("limits.target", self.target.as_u64() == 0),
            ("limits.json_body", self.json_body.as_u64() == 0),
            ("limits.edit_body", self.edit_body.as_u64() == 0),
            ("limits.picture", self.picture.as_u64() == 0),
            ("limits.first_byte", self.first_byte.is_zero()),
            ("limits.body_rate", self.body_rate.as_u64() == 0),
            ("limits.request_timeout", self.request_timeout.is_zero()),
            ("limits.keep_alive", self.keep_alive.is_zero()),
            ("limits.send_buffer", self.send_buffer.is_some_and(|size| size.as_u64() == 0)),
        ];
        let mut problems: Vec<_> = zero
            .iter()
            .filter(|(_, is_zero)| *is_zero)
            .map(|(name, _)| format!("{name}: must be more than 0"))
            .collect();
        if self.body_memory < self.json_body.max(self.edit_body) {
            problems.push("limits.body_memory: must be at least limits.json_body and limits.edit_body".to_owned());
        }
        problems
    }
}

/// hyper's own least size of a read buffer.
const LEAST_HEAD: usize = 8192;
