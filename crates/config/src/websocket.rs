//! `[websocket]`: the Responses API over WebSocket.

use std::time::Duration;

use bytesize::ByteSize;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::units::{Size, Time};

wire::read_objects!(WebSocket);

/// The Responses API over WebSocket.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct WebSocket {
    /// Whether clients may open WebSockets; otherwise they get status 426. Default true.
    pub enabled: bool,
    /// The silence after which a client is pinged. Default 30 s.
    #[serde(with = "Time")]
    pub ping_interval: Duration,
    /// The time for the answer to a ping; without one, the client is disconnected. Default 30 s.
    #[serde(with = "Time")]
    pub pong_timeout: Duration,
    /// The time for which a connection may be idle between two responses. Default 15 min.
    #[serde(with = "Time")]
    pub idle_timeout: Duration,
    /// The age from which on a connection begins no further response. Default 60 min, as OpenAI has
    /// it.
    #[serde(with = "Time")]
    pub max_age: Duration,
    /// The memory for the conversations that connections can continue; one key can take half of it.
    /// Default 64 MiB.
    #[serde(with = "Size")]
    pub keep_bytes: ByteSize,
}

impl Default for WebSocket {
    fn default() -> Self {
        Self {
            enabled: true,
            ping_interval: Duration::from_secs(30),
            pong_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(15 * 60),
            max_age: Duration::from_secs(60 * 60),
            keep_bytes: ByteSize::mib(64),
        }
    }
}

impl WebSocket {
    pub(crate) fn problems(&self) -> Vec<String> {
        let times = [
            ("ping_interval", self.ping_interval),
            ("pong_timeout", self.pong_timeout),
            ("idle_timeout", self.idle_timeout),
            ("max_age", self.max_age),
        ];
        let zero = times.iter().filter(|(_, time)| time.is_zero());
        let mut problems: Vec<_> = zero
            .map(|(name, _)| format!("websocket.{name}: must be more than 0s"))
            .collect();
        if self.keep_bytes.as_u64() == 0 {
            problems.push(
                "websocket.keep_bytes: must be more than 0; to offer no WebSockets, set \
                 websocket.enabled to false"
                    .to_owned(),
            );
        }
        problems
    }
}
