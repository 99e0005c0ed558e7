//! The WebSockets that the connection of a client has opened, and the responses over them.

mod event;
mod socket;
mod turn;

use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

pub(crate) use self::event::{Event, Refusal};
pub(crate) use self::socket::{Counted, Socket};
pub(crate) use self::turn::Turn;
use crate::credential::Credential;

/// The WebSockets to upstreams that belong to one connection of a client. No other client's requests
/// go over them, and they are closed when the last clone is dropped.
#[derive(Clone, Default)]
pub struct ClientSockets {
    shared: Arc<Mutex<Sockets>>,
    /// The response that the request continues, if these are for one that does.
    previous: Option<Arc<Previous>>,
}

/// A response that a request continues. The input of the request has the whole conversation; the
/// server that has made the response needs only the new items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Previous {
    /// The id of the response.
    pub id: String,
    /// The number of items up to its end.
    pub known: usize,
    /// The number of all items.
    pub all: usize,
}

#[derive(Default)]
struct Sockets {
    /// Those without a response in progress, the last used one last.
    idle: Vec<(HostId, Box<Socket>)>,
    /// The hosts that have refused to open one.
    refused_by: Vec<HostId>,
}

/// The identity of a host, which no other host of the process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostId(u64);

impl HostId {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl ClientSockets {
    /// Answers the pings of servers and drops what they close, between two responses: nothing else
    /// reads then. Never ready.
    pub async fn keep_alive(&self) -> Infallible {
        poll_fn(|cx| {
            let mut sockets = self.sockets();
            sockets.idle.retain_mut(|(_, socket)| socket.is_idle(cx));
            Poll::Pending
        })
        .await
    }

    /// Returns the same sockets for a request that continues a response.
    #[must_use]
    pub fn continuing(self, previous: Previous) -> Self {
        Self {
            previous: Some(Arc::new(previous)),
            ..self
        }
    }

    /// Returns the same sockets for a request that is sent with the whole conversation.
    #[must_use]
    pub fn without_previous(self) -> Self {
        Self {
            previous: None,
            ..self
        }
    }

    /// Returns the response that the request continues, if it is the latest one of this socket: a server
    /// keeps no other.
    pub(crate) fn previous_on(&self, socket: &Socket) -> Option<&Previous> {
        let previous = self.previous.as_deref()?;
        (socket.latest.as_ref() == Some(&previous.id)).then_some(previous)
    }

    /// Takes an open socket to this host, if possible the one that has the response which the request
    /// continues. `is_current` is true for a credential that requests to the host carry.
    pub(crate) fn take(
        &self,
        host: HostId,
        is_current: impl Fn(Option<&Credential>) -> bool,
    ) -> Option<Box<Socket>> {
        let mut sockets = self.sockets();
        loop {
            let place = |wanted: &dyn Fn(&Socket) -> bool| {
                let mut idle = sockets.idle.iter();
                idle.rposition(|(other, socket)| *other == host && wanted(socket))
            };
            let knowing = place(&|socket| self.previous_on(socket).is_some());
            let at = knowing.or_else(|| place(&|_| true))?;
            let (_, mut socket) = sockets.idle.remove(at);
            if is_current(socket.credential.as_ref())
                && socket.is_idle(&mut Context::from_waker(Waker::noop()))
            {
                return Some(socket);
            }
        }
    }

    /// Keeps a socket for the next response. There are at most as many as the client had responses
    /// at once.
    pub(crate) fn put(&self, host: HostId, socket: Box<Socket>) {
        self.sockets().idle.push((host, socket));
    }

    /// Notes that a host has refused to open a WebSocket.
    pub(crate) fn note_refusal(&self, host: HostId) {
        self.sockets().refused_by.push(host);
    }

    pub(crate) fn is_refused_by(&self, host: HostId) -> bool {
        self.sockets().refused_by.contains(&host)
    }

    /// Locks the sockets. A panic cannot leave them in an inconsistent state.
    fn sockets(&self) -> MutexGuard<'_, Sockets> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ClientSockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSockets").finish_non_exhaustive()
    }
}
