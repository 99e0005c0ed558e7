//! A connection to a store that can become a black hole: nothing gets through, and no connection is
//! closed.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use crate::store::Store;

/// A proxy in front of the socket of a store.
pub(crate) struct Path {
    address: SocketAddr,
    gate: Arc<Gate>,
}

/// Lets bytes through while it is open.
#[derive(Default)]
struct Gate {
    is_closed: Mutex<bool>,
    opened: Condvar,
}

impl Path {
    /// Starts the proxy, which ends with the test program.
    pub(crate) fn to(store: &Store) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let path = Self {
            address: listener.local_addr().unwrap(),
            gate: Arc::default(),
        };
        let (gate, socket) = (Arc::clone(&path.gate), store.socket());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let gate = Arc::clone(&gate);
                let socket = socket.clone();
                thread::spawn(move || forward(&client, &socket, &gate));
            }
        });
        path
    }

    /// The address for `state.limits`.
    pub(crate) fn address(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Lets nothing through any more, in both directions.
    pub(crate) fn close(&self) {
        *self.gate.is_closed.lock().unwrap() = true;
    }

    /// Lets everything through, also bytes that were sent meanwhile, as TCP does.
    pub(crate) fn open(&self) {
        *self.gate.is_closed.lock().unwrap() = false;
        self.gate.opened.notify_all();
    }
}

impl Gate {
    fn pass(&self) {
        let closed = self.is_closed.lock().unwrap();
        drop(self.opened.wait_while(closed, |closed| *closed).unwrap());
    }
}

fn forward(client: &TcpStream, socket: &std::path::Path, gate: &Gate) {
    gate.pass();
    let Ok(server) = UnixStream::connect(socket) else {
        return;
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            copy(client, &server, gate);
            let _ = server.shutdown(std::net::Shutdown::Both);
        });
        copy(&server, client, gate);
        let _ = client.shutdown(std::net::Shutdown::Both);
    });
}

fn copy(mut from: impl Read, mut to: impl Write, gate: &Gate) {
    let mut buffer = [0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        gate.pass();
        if to.write_all(&buffer[..length]).is_err() {
            return;
        }
    }
}
