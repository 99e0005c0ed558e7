//! The server: a thread with a listener, and the handle on it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, oneshot};

use crate::connection::{self, Socket};
use crate::honest;
use crate::log::Log;
use crate::play::Play;
use crate::request::Request;

/// A model server on 127.0.0.1, at a port that the system chose. Dropping it stops it and closes its connections.
///
/// The handle is synchronous: the server has a thread of its own.
pub struct Simulator {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Dropping it stops the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A model server to which connections are brought: it has neither sockets nor a thread, and its pauses go by the clock
/// of the runtime that it is awaited on, which tests may pause.
pub struct Detached {
    shared: Shared,
}

/// What the connections have in common.
pub(crate) struct Shared {
    pub(crate) behave: Box<dyn Fn(&Request) -> Play + Send + Sync>,
    pub(crate) log: Log,
    /// A permit for each gate that may be passed.
    pub(crate) gates: Semaphore,
}

impl Simulator {
    /// Answers every request by `behave`, which is called once the request has come as a whole. It is called on the
    /// server's one thread: nothing else happens until it returns.
    ///
    /// # Errors
    /// When the system gives no port or no thread.
    pub fn start(behave: impl Fn(&Request) -> Play + Send + Sync + 'static) -> io::Result<Self> {
        Self::listen((Ipv4Addr::LOCALHOST, 0).into(), behave)
    }

    /// Answers as a real server does: [`honest::answer`].
    ///
    /// # Errors
    /// As for [`Self::start`].
    pub fn honest() -> io::Result<Self> {
        Self::start(honest::answer)
    }

    /// As [`Self::start`], at this address.
    ///
    /// # Errors
    /// When the address cannot be had, or there is no thread.
    pub fn listen(address: SocketAddr, behave: impl Fn(&Request) -> Play + Send + Sync + 'static) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listener = listener(address, &runtime)?;
        let address = listener.local_addr()?;
        let gates = Semaphore::new(0);
        let shared = Arc::new(Shared { behave: Box::new(behave), log: Log::default(), gates });
        let (stop, stopped) = oneshot::channel();
        let accepting = accept(listener, Arc::clone(&shared));
        let thread = thread::Builder::new().name("simulator".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accepting => {}
                    _ = stopped => {}
                }
            });
            // Dropping the runtime drops the connections.
        })?;
        Ok(Self { address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:PORT/v1`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The requests so far, in order. Of very many only the newest 16,384 are kept, and of very large ones fewer.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.log.requests()
    }

    /// Waits until so many requests have come in all; false when they have not `within` the time.
    #[must_use]
    pub fn wait_for_requests(&self, count: usize, within: Duration) -> bool {
        self.shared.log.wait_for_requests(count, within)
    }

    /// Waits until the connection of a request, counted from 0, is over, because the peer has closed its side or reset
    /// it, or the play has. When that was seen; `None` when it was not `within` the time.
    #[must_use]
    pub fn wait_for_close(&self, request: usize, within: Duration) -> Option<Instant> {
        self.shared.log.wait_for_close(request, within)
    }

    /// Connections that were accepted so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.log.connections()
    }

    /// Connections that are not over yet.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.shared.log.open_connections()
    }

    /// Lets one play pass one [`Gate`](crate::Step::Gate): one that waits there, or the next that will come to one.
    pub fn release(&self) {
        self.shared.gates.add_permits(1);
    }

    /// Opens all gates for good.
    pub fn release_all(&self) {
        self.shared.gates.close();
    }

    /// Waits for the server's end, which only a failure of its thread brings about.
    pub fn join(mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic was told by the thread itself.
            let _ = thread.join();
        }
    }
}

impl Detached {
    /// Answers every request by `behave`.
    pub fn new(behave: impl Fn(&Request) -> Play + Send + Sync + 'static) -> Self {
        Self { shared: Shared { behave: Box::new(behave), log: Log::default(), gates: Semaphore::new(0) } }
    }

    /// Serves a connection to its end.
    pub async fn serve<S: Socket>(&self, socket: S) {
        connection::serve(socket, self.shared.log.connected(), &self.shared).await;
    }

    /// The requests so far, as of [`Simulator::requests`].
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.log.requests()
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn listener(address: SocketAddr, runtime: &Runtime) -> io::Result<TcpListener> {
    let _entered = runtime.enter();
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            // Out of file descriptors: some will come free.
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        let connection = shared.log.connected();
        let shared = Arc::clone(&shared);
        tokio::spawn(async move { connection::serve(socket, connection, &shared).await });
    }
}

/// As many may wait to be accepted, so that thousands can dial at once.
const BACKLOG: u32 = 4_096;

const ACCEPT_AGAIN: Duration = Duration::from_millis(10);
