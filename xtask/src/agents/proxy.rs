//! A proxy that refuses every request, so that agents reach nothing but the gateway.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::outcome::Outcome;

/// A running proxy, which serves until the task ends.
pub(super) struct Proxy {
    address: SocketAddr,
    hosts: Arc<Mutex<BTreeSet<String>>>,
}

impl Proxy {
    /// Starts a proxy on a port that the system chooses.
    pub(super) fn start() -> Outcome<Self> {
        let failed = |error| format!("the proxy cannot listen: {error}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let hosts = Arc::<Mutex<BTreeSet<String>>>::default();
        let seen = Arc::clone(&hosts);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // An agent that disconnects has asked for nothing.
                if let Some(host) = refuse(BufReader::new(&client), &client) {
                    seen.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .insert(host);
                }
            }
        });
        Ok(Self { address, hosts })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The hosts that were asked for so far.
    pub(super) fn hosts(&self) -> Vec<String> {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.iter().cloned().collect()
    }
}

/// Answers the first request of a connection with 403, and returns the host that it names.
fn refuse(from: impl BufRead, mut to: impl Write) -> Option<String> {
    let mut lines = from.lines().map_while(Result::ok);
    let first = lines.next()?;
    lines.find(String::is_empty)?;
    let refusal = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    to.write_all(refusal).ok()?;
    host(&first).map(str::to_owned)
}

/// The host in the first line of a request to a proxy.
fn host(line: &str) -> Option<&str> {
    let target = line.split(' ').nth(1)?;
    let authority = target.split_once("://").map_or(target, |(_, rest)| rest);
    authority.split(['/', ':']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_refused_and_their_hosts_are_returned() {
        for (line, host) in [
            ("CONNECT b.example:443 HTTP/1.1", "b.example"),
            ("GET http://a.example/x?y=1 HTTP/1.1", "a.example"),
        ] {
            let mut answer = Vec::new();
            let request = format!("{line}\r\nhost: x\r\n\r\n");
            assert_eq!(
                refuse(request.as_bytes(), &mut answer).as_deref(),
                Some(host)
            );
            assert!(answer.starts_with(b"HTTP/1.1 403 "));
        }
        assert_eq!(refuse(&b"GET http://a.exa"[..], Vec::new()), None);
    }
}
