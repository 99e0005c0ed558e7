//! What is between those who log and the thread that writes.
//!
//! The thread takes all lines that there are at once, and lets more of them come before it looks again: waking it for
//! each line would cost a busy gateway more than the lines do. Lines are lost rather than waited for, and counted.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use memchr::memchr_iter;

use crate::clock;

/// Lines that wait to be written, in bounds.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
    /// How many lines are in no log.
    lost: AtomicU64,
}

#[derive(Default)]
struct State {
    lines: Vec<u8>,
    /// How many lines found no room.
    left_out: u64,
    /// Whether the thread waits to be woken.
    waits: bool,
    ended: bool,
}

/// The thread that writes. Dropping this waits until it has written what was there, but not for long.
pub(crate) struct Writer {
    queue: Arc<Queue>,
    done: Receiver<()>,
}

impl Queue {
    /// Adds a line, if there is room.
    pub(super) fn push(&self, line: &[u8]) {
        let mut state = self.state();
        if state.lines.len() + line.len() > CAPACITY {
            state.left_out += 1;
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        state.lines.extend_from_slice(line);
        if std::mem::take(&mut state.waits) {
            self.wake.notify_one();
        }
    }

    /// How many lines found no room or could not be written.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits for lines and puts them into `lines`, which is empty; how many were left out after them. `None` at the
    /// end.
    fn take(&self, lines: &mut Vec<u8>) -> Option<u64> {
        let mut state = self.state();
        while state.lines.is_empty() {
            if state.ended {
                return None;
            }
            state.waits = true;
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut state.lines, lines);
        Some(std::mem::take(&mut state.left_out))
    }

    /// The lines that wait, for tests.
    #[cfg(test)]
    pub(super) fn taken(&self) -> Vec<u8> {
        std::mem::take(&mut self.state().lines)
    }

    fn end(&self) {
        self.state().ended = true;
        self.wake.notify_one();
    }

    /// Waits while more lines come, unless there will be none.
    fn gather(&self) {
        let state = self.state();
        let waited = self.wake.wait_timeout_while(state, GATHER, |state| !state.ended);
        drop(waited);
    }

    /// No panic leaves it half changed.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    /// Starts to write to `out`.
    pub(super) fn start(queue: Arc<Queue>, mut out: impl Write + Send + 'static) -> io::Result<Self> {
        let (tell, done) = channel();
        let lines = Arc::clone(&queue);
        thread::Builder::new().name("log".to_owned()).spawn(move || {
            write(&lines, &mut out);
            // Nobody listens any more when this took too long.
            let _ = tell.send(());
        })?;
        Ok(Self { queue, done })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.end();
        let _ = self.done.recv_timeout(LAST_WORDS);
    }
}

fn write(queue: &Queue, out: &mut impl Write) {
    let mut lines = Vec::new();
    while let Some(left_out) = queue.take(&mut lines) {
        if left_out > 0 {
            let (at, words) = (clock::timestamp(), r#""level":"WARN","log":"log","message":"lines were left out""#);
            // Writing to memory cannot fail.
            let _ = writeln!(lines, r#"{{"timestamp":"{at:.6}",{words},"count":{left_out}}}"#);
        }
        // A log that cannot be written is nothing that requests should suffer from.
        if out.write_all(&lines).and_then(|()| out.flush()).is_err() {
            let count = memchr_iter(b'\n', &lines).count();
            queue.lost.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        lines.clear();
        lines.shrink_to(KEPT);
        queue.gather();
    }
}

/// So many bytes may wait.
const CAPACITY: usize = 8 << 20;
/// So much of a buffer is kept for the next lines.
const KEPT: usize = 256 << 10;
/// For so long lines may come together.
const GATHER: Duration = Duration::from_millis(5);
/// For so long the end waits for what is not yet written.
const LAST_WORDS: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
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
        let (queue, kept) = (Arc::new(Queue::default()), Kept::default());
        let writer = Writer::start(Arc::clone(&queue), kept.clone()).unwrap();
        let lines: Vec<_> = (0..1000).map(|n| format!("{n}\n")).collect();
        lines.iter().for_each(|line| queue.push(line.as_bytes()));
        drop(writer);
        assert_eq!(String::from_utf8(kept.0.lock().unwrap().clone()).unwrap(), lines.concat());
    }

    /// Lines past the bound of the queue are left out and counted.
    #[test]
    fn d13_lines_past_the_bound_are_left_out_and_counted() {
        let queue = Queue::default();
        let line = vec![b'x'; CAPACITY / 2];
        (0..5).for_each(|_| queue.push(&line));
        let mut lines = Vec::new();
        assert_eq!((queue.take(&mut lines), queue.lost()), (Some(3), 3));
        assert_eq!(lines.len(), CAPACITY);
        queue.end();
        assert_eq!(queue.take(&mut lines), None);
    }

    /// Lines that cannot be written are counted and hold up nobody.
    #[test]
    fn d13_a_log_that_cannot_be_written_holds_up_nobody() {
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
