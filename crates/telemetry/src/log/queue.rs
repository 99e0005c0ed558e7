//! The bounded queue between the code that logs and the thread that writes.
//!
//! The thread writes all queued lines at once and then lets more of them accumulate: waking it for
//! each line would cost a busy gateway more than the lines do. Lines that exceed the queue are
//! dropped and counted rather than waited for.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use memchr::memchr_iter;
use policy::clock;

/// The lines that wait to be written, with bounded memory.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
    /// The number of lines that were not written.
    lost: AtomicU64,
}

#[derive(Default)]
struct State {
    lines: Vec<u8>,
    dropped: u64,
    /// True if the writer waits to be woken.
    is_waiting: bool,
    closed: bool,
}

/// The writer thread. Dropping this flushes the queue, with a timeout.
pub struct Writer {
    queue: Arc<Queue>,
    done: Receiver<()>,
}

impl Queue {
    /// Adds a line, or drops it if the queue is full.
    pub(super) fn push(&self, line: &[u8]) {
        let mut state = self.state();
        if state.lines.len() + line.len() > CAPACITY {
            state.dropped += 1;
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        state.lines.extend_from_slice(line);
        if std::mem::take(&mut state.is_waiting) {
            self.wake.notify_one();
        }
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits for lines and moves them into `lines`, which must be empty. Returns the number of
    /// lines that were dropped after them, or `None` at the end.
    fn take(&self, lines: &mut Vec<u8>) -> Option<u64> {
        let mut state = self.state();
        while state.lines.is_empty() {
            if state.closed {
                return None;
            }
            state.is_waiting = true;
            state = self
                .wake
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut state.lines, lines);
        Some(std::mem::take(&mut state.dropped))
    }

    /// Takes the queued lines, for tests.
    #[cfg(test)]
    pub(super) fn take_all(&self) -> Vec<u8> {
        std::mem::take(&mut self.state().lines)
    }

    fn close(&self) {
        self.state().closed = true;
        self.wake.notify_one();
    }

    /// Waits for more lines to accumulate, unless the queue is closed.
    fn accumulate(&self) {
        let state = self.state();
        let waited = self
            .wake
            .wait_timeout_while(state, ACCUMULATE, |state| !state.closed);
        drop(waited);
    }

    /// Ignores poisoning: no code panics while the state is inconsistent.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    /// Starts a thread that writes to `out`.
    pub(super) fn start(
        queue: Arc<Queue>,
        mut out: impl Write + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, done) = channel();
        let lines = Arc::clone(&queue);
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || {
                write(&lines, &mut out);
                // The receiver is gone if the flush timed out.
                let _ = sender.send(());
            })?;
        Ok(Self { queue, done })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.close();
        let _ = self.done.recv_timeout(SHUTDOWN_FLUSH_TIMEOUT);
    }
}

fn write(queue: &Queue, out: &mut impl Write) {
    let mut lines = Vec::new();
    while let Some(dropped) = queue.take(&mut lines) {
        if dropped > 0 {
            let at = clock::timestamp();
            let fields = r#""level":"WARN","log":"log","message":"log lines were dropped""#;
            // Writing to memory cannot fail.
            let _ = writeln!(
                lines,
                r#"{{"timestamp":"{at:.6}",{fields},"count":{dropped}}}"#
            );
        }
        // Requests must not fail because the log cannot be written.
        if out.write_all(&lines).and_then(|()| out.flush()).is_err() {
            let count = memchr_iter(b'\n', &lines).count();
            queue
                .lost
                .fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        lines.clear();
        lines.shrink_to(KEPT_CAPACITY);
        queue.accumulate();
    }
}

/// The maximum number of queued bytes.
const CAPACITY: usize = 8 << 20;
/// The capacity of the buffer that is kept for further lines.
const KEPT_CAPACITY: usize = 256 << 10;
/// The time for which lines accumulate.
const ACCUMULATE: Duration = Duration::from_millis(5);
/// The timeout for flushing the queue at the end.
const SHUTDOWN_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_line_is_written_in_order_before_the_end() {
        let (queue, written) = (Arc::new(Queue::default()), Written::default());
        let writer = Writer::start(Arc::clone(&queue), written.clone()).unwrap();
        let lines: Vec<_> = (0..1000).map(|n| format!("{n}\n")).collect();
        lines.iter().for_each(|line| queue.push(line.as_bytes()));
        drop(writer);
        assert_eq!(
            String::from_utf8(written.0.lock().unwrap().clone()).unwrap(),
            lines.concat()
        );
    }

    /// Lines that exceed the queue are dropped and counted.
    #[test]
    fn d13_lines_past_the_bound_are_left_out_and_counted() {
        let queue = Queue::default();
        let line = vec![b'x'; CAPACITY / 2];
        (0..5).for_each(|_| queue.push(&line));
        let mut lines = Vec::new();
        assert_eq!((queue.take(&mut lines), queue.lost()), (Some(3), 3));
        assert_eq!(lines.len(), CAPACITY);
        queue.close();
        assert_eq!(queue.take(&mut lines), None);
    }

    /// Lines that cannot be written are counted and block no request.
    #[test]
    fn d13_unwritable_log_drops_and_counts_lines() {
        struct Broken;
        impl Write for Broken {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let queue = Arc::new(Queue::default());
        let writer = Writer::start(Arc::clone(&queue), Broken).unwrap();
        queue.push(b"a\nb\n");
        drop(writer);
        assert!(queue.state().lines.is_empty());
        assert_eq!(queue.lost(), 2);
    }
}
