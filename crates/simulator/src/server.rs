//! The server: a thread with a listener, and its handle.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::connection::Detached;
use crate::honest;
use crate::play::Play;
use crate::request::Request;

/// A model server on 127.0.0.1, on a port chosen by the system. Dropping it stops it and closes its
/// connections.
///
/// The handle is synchronous: the server runs on a separate thread.
pub struct Simulator {
    address: SocketAddr,
    server: Arc<Detached>,
    /// Stops the thread when it is dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Simulator {
    /// Starts a server that replies to every request with the result of `behave`, which is called
    /// once the request was read completely. It runs on the only thread of the server and blocks
    /// it.
    ///
    /// # Errors
    /// If no port is available or the thread cannot be started.
    pub fn start(behave: impl Fn(&Request) -> Play + Send + Sync + 'static) -> io::Result<Self> {
        Self::listen((Ipv4Addr::LOCALHOST, 0).into(), behave)
    }

    /// Starts a server whose replies conform: [`honest::answer`].
    ///
    /// # Errors
    /// The same as for [`Self::start`].
    pub fn honest() -> io::Result<Self> {
        Self::start(honest::answer)
    }

    /// Like [`Self::start`], but listens on this address.
    ///
    /// # Errors
    /// If the address cannot be bound or the thread cannot be started.
    pub fn listen(
        address: SocketAddr,
        behave: impl Fn(&Request) -> Play + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listener = listener(address, &runtime)?;
        let address = listener.local_addr()?;
        let server = Arc::new(Detached::new(behave));
        let (stop, stopped) = oneshot::channel();
        runtime.spawn(accept(listener, Arc::clone(&server)));
        let thread = thread::Builder::new()
            .name("simulator".into())
            .spawn(move || {
                let _ = runtime.block_on(stopped);
                // Dropping the runtime drops the connections.
            })?;
        Ok(Self {
            address,
            server,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL of its API: `http://127.0.0.1:PORT/v1`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The requests so far, in order. Only the newest 16,384 are kept, and fewer if their bodies
    /// exceed 256 MiB in total.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.server.log.requests()
    }

    /// Waits until this many requests have arrived in total. Returns false on timeout.
    #[must_use]
    pub fn wait_for_requests(&self, count: usize, within: Duration) -> bool {
        self.server
            .log
            .wait(within, |state| (state.count >= count).then_some(()))
            .is_some()
    }

    /// Waits until the connection of a request, counted from 0, has ended: the peer or the play has
    /// closed or reset it. Returns the time at which that was noticed, or `None` on timeout.
    #[must_use]
    pub fn wait_for_close(&self, request: usize, within: Duration) -> Option<Instant> {
        self.server.log.wait(within, |state| {
            state.connections[state.request(request)?.connection]
        })
    }

    /// The number of accepted connections so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.server.log.lock().connections.len()
    }

    /// The number of open connections.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.server
            .log
            .lock()
            .connections
            .iter()
            .filter(|ended| ended.is_none())
            .count()
    }

    /// Lets one play pass one [`Gate`](crate::Step::Gate): a waiting one, or else the next that
    /// reaches a gate.
    pub fn release(&self) {
        self.server.gates.add_permits(1);
    }

    /// Opens all gates permanently.
    pub fn release_all(&self) {
        self.server.gates.close();
    }

    /// Waits for the thread of the server, which only ends if it panics.
    pub fn join(mut self) {
        // The panic was already printed by the thread.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.stop.take();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn listener(address: SocketAddr, runtime: &Runtime) -> io::Result<TcpListener> {
    let _entered = runtime.enter();
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    // The accept queue is long, so that thousands of clients can connect at once.
    socket.listen(4_096)
}

async fn accept(listener: TcpListener, server: Arc<Detached>) {
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            // Out of file descriptors: retry until some are free.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        // Each write is sent immediately. An error means that the peer has disconnected, which
        // reading notices as well.
        let _ = socket.set_nodelay(true);
        let server = Arc::clone(&server);
        tokio::spawn(async move { server.serve(socket).await });
    }
}
