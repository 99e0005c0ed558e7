//! The subscription to the notices of other replicas, on a connection of its own.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use redis::aio::{PubSub, PubSubSink, PubSubStream};
use redis::{RedisResult, Value};
use tokio::time::timeout;

use super::connection::ValkeyConnection;
use crate::script::read_notice;

/// A subscription, opened when it is needed and again when its connection fails.
pub(super) struct Subscription {
    channel: String,
    /// The name of this replica, whose own notices are ignored.
    replica: Arc<str>,
    /// The time without a message after which the server has to answer a ping, and the time after
    /// which an attempt to connect is repeated.
    interval: Duration,
    /// The time that the server has to answer the ping.
    patience: Duration,
    open: Option<(PubSubSink, PubSubStream)>,
}

impl Subscription {
    pub(super) fn new(
        channel: String,
        replica: Arc<str>,
        lease: Duration,
        patience: Duration,
    ) -> Self {
        Self {
            channel,
            replica,
            interval: lease / 10,
            patience,
            open: None,
        }
    }

    /// Waits for the next notice, and returns the name of its limit. Connects again as often as
    /// needed.
    pub(super) async fn next(&mut self, link: &ValkeyConnection) -> String {
        loop {
            if self.open.is_none() {
                match self.connect(link).await {
                    Ok(open) => self.open = Some(open.split()),
                    Err(_) => tokio::time::sleep(self.interval).await,
                }
            }
            match self.receive().await {
                Some(message) => match read_notice(&message) {
                    Some((replica, limit)) if *replica != *self.replica => return limit.to_owned(),
                    _ => {}
                },
                None => self.open = None,
            }
        }
    }

    async fn connect(&self, link: &ValkeyConnection) -> RedisResult<PubSub> {
        let mut open = link.subscriber().await?;
        open.subscribe(&self.channel).await?;
        Ok(open)
    }

    /// Returns the next message, or `None` if the connection is lost. A connection whose peer has
    /// vanished reports no error, so the server is sent a ping after each interval without a
    /// message.
    async fn receive(&mut self) -> Option<String> {
        let (sink, stream) = self.open.as_mut()?;
        loop {
            match timeout(self.interval, stream.next()).await {
                Ok(message) => return message.map(|it| it.get_payload().unwrap_or_default()),
                Err(_) => {
                    let pong = timeout(self.patience, sink.ping::<Value>()).await;
                    pong.ok()?.ok()?;
                }
            }
        }
    }
}
