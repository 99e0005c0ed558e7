//! The gateways of the bench, and the Valkey that lends their limits.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, sleep};

use benches::Outcome;
use benches::load::{bounded, to_message};
use benches::question::{self, Question};
use benches::subject::{self, ROOM, Subject};

/// A kind of gateway.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Without quotas and stores.
    Plain,
    /// With a quota in its process that nobody reaches.
    Own,
    /// With the same quota, lent.
    Lent,
    /// With a quota of so many concurrent requests, lent.
    Scarce(u32),
    /// With keys and usage in SQLite.
    Journaled,
}

/// The programs, the upstream and the Valkey.
pub(crate) struct Place {
    gateway: PathBuf,
    upstream: SocketAddr,
    folder: PathBuf,
    valkey: Child,
    started: std::cell::Cell<u32>,
}

impl Place {
    pub(crate) fn new(gateway: PathBuf, valkey: &Path, upstream: SocketAddr) -> Outcome<Self> {
        let folder =
            std::env::temp_dir().join(format!("sluicegate-lending-{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(to_message)?;
        let valkey = Command::new(valkey)
            .current_dir(&folder)
            .args(["--port", "0", "--unixsocket", "socket", "--save", ""])
            .stdout(Stdio::null())
            .spawn();
        Ok(Self {
            gateway,
            upstream,
            folder,
            valkey: valkey
                .map_err(|error| format!("the valkey-server cannot be started: {error}"))?,
            started: std::cell::Cell::new(0),
        })
    }

    pub(crate) fn start(&self, kind: Kind) -> Outcome<Subject> {
        let number = self.started.replace(self.started.get() + 1);
        let config = question::configuration(self.upstream, ROOM) + &self.settings(kind, number);
        subject::gateway(&self.gateway, &config)
    }

    /// The settings of a kind. Gateways of one kind share their quota.
    fn settings(&self, kind: Kind, number: u32) -> String {
        let folder = self.folder.display();
        let lent = |namespace: &str| {
            format!(
                "[state]\nlimits = \"redis+unix://{folder}/socket\"\nnamespace = \"{namespace}\"\n"
            )
        };
        match kind {
            Kind::Plain => String::new(),
            Kind::Own => question::AMPLE.to_owned(),
            Kind::Lent => question::AMPLE.to_owned() + &lent("ample"),
            Kind::Scarce(cap) => {
                format!(
                    "[[quotas]]\nkey = \"*\"\nconcurrency = {cap}\n{}",
                    lent(&format!("scarce-{cap}"))
                )
            }
            Kind::Journaled => format!("[state]\naccounting = \"sqlite:{folder}/{number}.db\"\n"),
        }
    }

    /// Starts several gateways that share a quota, and waits until they can use it.
    pub(crate) async fn fleet(&self, count: usize, kind: Kind) -> Outcome<Vec<Subject>> {
        let fleet: Vec<_> = (0..count)
            .map(|_| self.start(kind))
            .collect::<Outcome<_>>()?;
        for gateway in &fleet {
            self.ready(gateway).await?;
        }
        Ok(fleet)
    }

    /// Waits until a gateway answers, and until at least half of its rates are left: a new store
    /// lends nothing at first, and its rates begin empty.
    pub(crate) async fn ready(&self, gateway: &Subject) -> Outcome {
        let request = gateway.request(Question::Small);
        let request = String::from_utf8_lossy(&request);
        let ready = async {
            loop {
                let head = exchange(gateway.address, &request).await?;
                if head.starts_with("HTTP/1.1 200 ") && is_half_left(&head) {
                    return Outcome::Ok(());
                }
                sleep(Duration::from_millis(200)).await;
            }
        };
        bounded(PATIENCE, ready).await?
    }

    /// The exchanges of a gateway with the store so far.
    pub(crate) async fn exchanges(&self, gateway: &Subject) -> Outcome<f64> {
        let admin = gateway.admin.ok_or("a gateway has an admin listener")?;
        let request = format!("GET /metrics HTTP/1.1\r\nhost: {admin}\r\n\r\n");
        let text = exchange(admin, &request).await?;
        let lines = text.lines().filter(|line| line.starts_with(EXCHANGES));
        let values = lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
        Ok(values.sum())
    }

    /// The median time of a round trip to the store, in microseconds.
    pub(crate) async fn round_trip(&self) -> Outcome<f64> {
        let socket = UnixStream::connect(self.folder.join("socket")).await;
        let mut socket = socket.map_err(to_message)?;
        let mut times = Vec::new();
        for _ in 0..1_000 {
            let asked = Instant::now();
            socket.write_all(b"PING\r\n").await.map_err(to_message)?;
            socket.read_exact(&mut [0; 7]).await.map_err(to_message)?;
            times.push(asked.elapsed());
        }
        times.sort_unstable();
        Ok(benches::load::percentile(&times, 0.5))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.valkey.kill();
        let _ = self.valkey.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Sends a request on a connection of its own, and returns the head and body of the response.
async fn exchange(address: SocketAddr, request: &str) -> Outcome<String> {
    #[allow(
        clippy::disallowed_methods,
        reason = "the server under test is dialled, on loopback"
    )]
    let mut connection = TcpStream::connect(address).await.map_err(to_message)?;
    let request = request.replacen("\r\n", "\r\nconnection: close\r\n", 1);
    let written = connection.write_all(request.as_bytes()).await;
    written.map_err(to_message)?;
    let mut text = String::new();
    let read = connection.read_to_string(&mut text).await;
    read.map_err(to_message)?;
    Ok(text)
}

/// Returns true unless less than half of a rate is left, as the headers of a response report it.
fn is_half_left(head: &str) -> bool {
    let value = |name: &str| {
        let line = head.lines().find_map(|line| line.strip_prefix(name))?;
        line.strip_prefix(": ")?.parse::<u64>().ok()
    };
    ["requests", "tokens"].iter().all(|unit| {
        let limit = value(&format!("x-ratelimit-limit-{unit}"));
        let left = value(&format!("x-ratelimit-remaining-{unit}"));
        left.unwrap_or(0) >= limit.unwrap_or(0) / 2
    })
}

const EXCHANGES: &str = "sluicegate_lease_exchanges_total{";
/// A new store lends nothing for a lease and a tenth, and half of a rate takes half a minute.
const PATIENCE: Duration = Duration::from_secs(60);
