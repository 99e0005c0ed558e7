//! The timer by which hyper waits for the head of a request: an idle connection may be kept for
//! longer than a head may take.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time;
use std::time::Duration;

use gateway::connection::state::ConnectionState;
use hyper::rt::{Sleep, Timer};
use tokio::time::Instant;

/// A timer for `header_read_timeout`, which is set to the idle timeout of the connection. A wait
/// ends after the timeout of a head if the head has begun.
#[derive(Clone, Debug)]
pub(crate) struct HeadTimer {
    connection: Arc<ConnectionState>,
    head_timeout: Duration,
}

/// A wait of hyper for the next head.
struct Wait {
    timer: HeadTimer,
    idle_deadline: Instant,
    /// Set once the first byte of the head was received.
    head_deadline: Option<Instant>,
}

impl HeadTimer {
    pub(crate) fn new(connection: Arc<ConnectionState>, head_timeout: Duration) -> Self {
        Self {
            connection,
            head_timeout,
        }
    }
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until((Instant::now() + duration).into())
    }

    fn sleep_until(&self, deadline: time::Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Wait {
            timer: self.clone(),
            idle_deadline: deadline.into(),
            head_deadline: None,
        })
    }

    fn now(&self) -> time::Instant {
        Instant::now().into()
    }
}

impl Future for Wait {
    type Output = ();

    /// Hyper polls after each read, so that the first byte of a head is noticed when it comes.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let HeadTimer {
            connection,
            head_timeout,
        } = &this.timer;
        let deadline = match connection.is_mid_request() {
            true => *this
                .head_deadline
                .get_or_insert_with(|| Instant::now() + *head_timeout),
            false => this.idle_deadline,
        };
        connection.timer.poll(cx, deadline)
    }
}

impl Sleep for Wait {}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(75);
    const HEAD: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_head_and_an_idle_connection_have_their_own_times() {
        let connection = Arc::<ConnectionState>::default();
        let timer = HeadTimer::new(Arc::clone(&connection), HEAD);
        let started = Instant::now();
        timer.sleep(IDLE).await;
        assert_eq!(started.elapsed(), IDLE);

        let first_byte = Duration::from_secs(70);
        let started = Instant::now();
        let mut wait = timer.sleep(IDLE);
        tokio::select! {
            () = &mut wait => panic!("the connection is idle for less than its time"),
            () = tokio::time::sleep(first_byte) => connection.note_bytes(),
        }
        wait.await;
        assert_eq!(started.elapsed(), first_byte + HEAD);
    }
}
