//! Work that is sent to the thread of a connection, and its answer.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::error::StoreError;
use crate::sql::Failure;
use crate::store::StoreFuture;

/// A thread with a queue of messages. Dropping it waits for those that were sent.
pub(super) struct Thread<M> {
    messages: Option<Sender<M>>,
    handle: Option<JoinHandle<()>>,
    store: String,
}

impl<M: Send + 'static> Thread<M> {
    pub(super) fn start(
        name: &str,
        store: &str,
        body: impl FnOnce(Receiver<M>) + Send + 'static,
    ) -> io::Result<Self> {
        let (messages, inbox) = mpsc::channel();
        let handle = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || body(inbox))?;
        Ok(Self {
            messages: Some(messages),
            handle: Some(handle),
            store: store.to_owned(),
        })
    }

    /// Sends the message that `wrap` makes of `work`, and returns the answer.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
        wrap: impl FnOnce(Box<dyn Job>) -> M,
    ) -> StoreFuture<'static, T> {
        let (reply, answer) = oneshot::channel();
        let job = Task {
            work: Some(work),
            result: None,
            reply,
        };
        if let Some(messages) = &self.messages {
            // If the thread has ended, the reply is dropped with the message.
            let _ = messages.send(wrap(Box::new(job)));
        }
        let store = self.store.clone();
        Box::pin(async move {
            answer.await.unwrap_or_else(|_| {
                Err(StoreError::Unreachable {
                    store,
                    reason: "its thread has ended".to_owned(),
                })
            })
        })
    }
}

impl<M> Drop for Thread<M> {
    fn drop(&mut self) {
        drop(self.messages.take());
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

/// Work for a connection whose result is returned to the caller after the commit.
pub(super) trait Job: Send {
    fn run(&mut self, connection: &Connection) -> Result<(), Failure>;
    fn answer(self: Box<Self>, done: Result<(), StoreError>);
}

struct Task<F, T> {
    work: Option<F>,
    result: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<F, T> Job for Task<F, T>
where
    F: FnOnce(&Connection) -> Result<T, Failure> + Send,
    T: Send,
{
    fn run(&mut self, connection: &Connection) -> Result<(), Failure> {
        if let Some(work) = self.work.take() {
            self.result = Some(work(connection)?);
        }
        Ok(())
    }

    fn answer(self: Box<Self>, done: Result<(), StoreError>) {
        let answer = match (done, self.result) {
            (Ok(()), Some(result)) => Ok(result),
            (Err(error), _) => Err(error),
            // Not run: dropping `reply` reports that.
            (Ok(()), None) => return,
        };
        let _ = self.reply.send(answer);
    }
}
