//! A stream of changes for the console: the requests in flight, and those that have ended.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use gateway::state::GatewayState;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use serde::Serialize;
use sse::EventName;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::live::LiveRequestList;
use super::requests::Report;
use super::{AdminRequest, Answer, response};

/// The state of a stream of changes.
struct Changes {
    state: Arc<GatewayState>,
    count: watch::Receiver<u64>,
    /// The number of the next report.
    next: u64,
    /// The time from which on the next events are sent.
    due: Instant,
    /// True if the last event has listed requests in flight, so that their end has to be sent, too.
    had_live: bool,
}

/// The requests that have ended.
#[derive(Serialize)]
struct Ended {
    requests: Vec<Report>,
}

/// Streams the changes from now on, until the caller leaves or the gateway stops.
pub(super) async fn stream(admin: &AdminRequest<'_>) -> Answer {
    let state = Arc::clone(admin.state);
    let changes = Changes {
        count: state.history.subscribe(),
        next: state.history.since(u64::MAX).1,
        state,
        due: Instant::now(),
        had_live: true,
    };
    let frames = stream::unfold(changes, |mut changes| async move {
        let events = changes.next().await?;
        Some((Ok(Frame::data(events)), changes))
    });
    let body = StreamBody::new(frames).boxed_unsync();
    Ok(response(EVENT_STREAM, body))
}

impl Changes {
    /// Waits for changes, and returns them as events: at most once a second, and a comment if there are
    /// none for long. `None` once the gateway stops.
    async fn next(&mut self) -> Option<Bytes> {
        sleep_until(self.due).await;
        let mut out = Vec::new();
        loop {
            if self.state.lifecycle.is_stopping() {
                return None;
            }
            self.write(&mut out);
            if !out.is_empty() {
                break;
            }
            // A request that begins is seen by the next look, not at once.
            let changed = timeout(INTERVAL, self.count.changed()).await;
            if changed.is_err() && self.due.elapsed() >= KEEP_ALIVE {
                sse::comment("keep-alive", &mut out);
                break;
            }
        }
        self.due = Instant::now() + INTERVAL;
        Some(out.into())
    }

    fn write(&mut self, out: &mut Vec<u8>) {
        let (reports, next) = self.state.history.since(self.next);
        self.next = next;
        if !reports.is_empty() {
            let requests = reports.into_iter().map(Report).collect();
            event("requests", &Ended { requests }, out);
        }
        let requests = self.state.live.list();
        let has_live = !requests.is_empty();
        if has_live || self.had_live {
            event("live", &LiveRequestList { requests }, out);
        }
        self.had_live = has_live;
    }
}

fn event(name: &str, value: &impl Serialize, out: &mut Vec<u8>) {
    // It consists of numbers and texts, which can always be serialized.
    let data = serde_json::to_string(value).unwrap_or_default();
    sse::encode(EventName::new(name).ok(), &data, out);
}

/// The media type of a stream of events.
pub(crate) const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";
/// The time between two events about requests in flight.
const INTERVAL: Duration = Duration::from_secs(1);
/// The silence after which a comment is sent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
