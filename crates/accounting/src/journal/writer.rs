//! The thread that writes the ends of requests, and brings the files to the disk.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::log::Log;
use super::stats::add;
use crate::usage::Closed;

/// The number of ends that may wait for the thread.
const QUEUE: usize = 4096;

/// The longest time for which written entries wait for the disk.
const SYNC_INTERVAL: Duration = Duration::from_millis(50);

/// The time after which a failed write is tried again.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

pub(super) struct Writer {
    log: Arc<Log>,
    queue: Option<SyncSender<Message>>,
    /// True if the thread knows that it has something to sync.
    is_awake: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

enum Message {
    Closed(Box<Closed>),
    /// Something was written.
    Wake,
    /// Answers when everything before it is written.
    Flush(oneshot::Sender<()>),
}

impl Writer {
    pub(super) fn start(log: Arc<Log>) -> io::Result<Self> {
        let (queue, messages) = mpsc::sync_channel(QUEUE);
        let is_awake = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            log: Arc::clone(&log),
            messages,
            is_awake: Arc::clone(&is_awake),
            records: Vec::new(),
            flushes: Vec::new(),
            sync_at: None,
        };
        let thread = thread::Builder::new()
            .name("usage-journal".to_owned())
            .spawn(move || worker.run())?;
        Ok(Self {
            log,
            queue: Some(queue),
            is_awake,
            thread: Some(thread),
        })
    }

    pub(super) fn closed(&self, entry: Closed) {
        add(&self.log.stats.closed, 1);
        let message = Message::Closed(Box::new(entry));
        let Some(Err(error)) = self.queue.as_ref().map(|queue| queue.try_send(message)) else {
            return;
        };
        add(&self.log.stats.queue_full, 1);
        let (mpsc::TrySendError::Full(message) | mpsc::TrySendError::Disconnected(message)) = error;
        if let Message::Closed(entry) = message {
            self.log.write_closed(&entry);
        }
    }

    /// Tells the thread that something was written, unless it knows.
    pub(super) fn wake(&self) {
        if !self.is_awake.swap(true, Ordering::SeqCst)
            && let Some(queue) = &self.queue
        {
            // A thread whose queue is full is awake.
            let _ = queue.try_send(Message::Wake);
        }
    }

    /// Returns once the ends that were queued before are written.
    pub(super) async fn flush(&self) {
        loop {
            let (reply, answer) = oneshot::channel();
            let sent = self
                .queue
                .as_ref()
                .map(|queue| queue.try_send(Message::Flush(reply)));
            match sent {
                Some(Err(mpsc::TrySendError::Full(_))) => {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                Some(Ok(())) => {
                    let _ = answer.await;
                    return;
                }
                _ => return,
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The state of the thread.
struct Worker {
    log: Arc<Log>,
    messages: Receiver<Message>,
    is_awake: Arc<AtomicBool>,
    /// Records that are not written yet.
    records: Vec<u8>,
    /// Those who wait for them.
    flushes: Vec<oneshot::Sender<()>>,
    sync_at: Option<Instant>,
}

impl Worker {
    fn run(mut self) {
        let mut is_open = true;
        while is_open {
            is_open = self.receive();
            self.write();
            self.sync();
        }
        // The last attempt; what cannot be written now is lost with the process.
        self.write();
        self.log.sync();
    }

    /// Waits for messages and takes all that have come. Returns false if there will be no more.
    fn receive(&mut self) -> bool {
        let first = match self.timeout() {
            None => self
                .messages
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
            Some(timeout) => self.messages.recv_timeout(timeout),
        };
        match first {
            Ok(message) => self.take(message),
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        for _ in 0..QUEUE {
            let Ok(message) = self.messages.try_recv() else {
                break;
            };
            self.take(message);
        }
        true
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Closed(entry) => self.log.encode_closed(&entry, &mut self.records),
            Message::Flush(reply) => self.flushes.push(reply),
            Message::Wake => {}
        }
    }

    /// Returns the time until something is to be done, or `None` if nothing is.
    fn timeout(&self) -> Option<Duration> {
        let retry = (!self.records.is_empty()).then_some(RETRY_INTERVAL);
        let sync = self.sync_at.map(|at| at.saturating_duration_since(now()));
        retry.into_iter().chain(sync).min()
    }

    fn write(&mut self) {
        self.records.append(&mut self.log.take_backlog());
        if self.records.is_empty() || self.log.write(&self.records).is_ok() {
            self.records.clear();
            for reply in self.flushes.drain(..) {
                let _ = reply.send(());
            }
        }
    }

    fn sync(&mut self) {
        if self.sync_at.is_some_and(|at| now() >= at) {
            self.sync_at = None;
            self.log.sync();
        }
        // In this order: whoever writes from here on either is seen below or sends a message.
        self.is_awake.store(false, Ordering::SeqCst);
        if self.log.is_unsynced() {
            self.is_awake.store(true, Ordering::SeqCst);
            self.sync_at.get_or_insert_with(|| now() + SYNC_INTERVAL);
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "row 4 may read the clock")]
fn now() -> Instant {
    Instant::now()
}
