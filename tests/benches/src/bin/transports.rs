//! Measures the cost of TLS and of HTTP/2: the same requests to the gateway over both versions of HTTP,
//! with TLS and without, in turns. The ratio is to HTTP/1.1 without TLS.
//!
//! `cargo run --release --package sluicegate-benches --features others --bin transports`, after a
//! release build of the gateway.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use benches::load::{WARM_UP, bounded, to_message};
use benches::question::{self, Question};
use benches::subject::{ROOM, Subject, beside, gateway_by};
use benches::upstream::Upstream;
use benches::{Outcome, page};
use bytes::Bytes;
use clap::Parser;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Measures the cost of TLS and of HTTP/2.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    page: page::Options,
}

/// A way to reach the gateway.
#[derive(Clone, Copy)]
struct Transport {
    name: &'static str,
    has_tls: bool,
    is_http2: bool,
}

/// A load: so many requests at the same time, on one connection each over HTTP/1.1, and with as many on
/// one connection as `streams` over HTTP/2.
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    question: Question,
    requests: usize,
    streams: usize,
}

#[derive(Clone)]
enum Client {
    Http1(Arc<tokio::sync::Mutex<http1::SendRequest<Full<Bytes>>>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// The gateways, and the client of the one with TLS.
struct Gateways {
    plain: Subject,
    tls: Subject,
    connector: TlsConnector,
    _folder: Folder,
}

fn main() -> ExitCode {
    benches::run(&mut Builder::new_multi_thread(), run(Arguments::parse()))
}

async fn run(arguments: Arguments) -> Outcome {
    let upstream = Upstream::start().await.map_err(to_message)?;
    let gateways = Gateways::start(&upstream)?;
    let (rounds, span) = match arguments.page.quick {
        true => (1, Duration::from_millis(300)),
        false => (7, Duration::from_secs(2)),
    };
    let mut table = format!(
        "| CPU µs | {} |\n",
        TRANSPORTS.map(|it| it.name).join(" | ")
    );
    table += "|---|---:|---:|---:|---:|\n";
    for load in LOADS {
        eprintln!("measuring {}", load.name);
        let mut costs = TRANSPORTS.map(|_| Vec::new());
        for _ in 0..rounds {
            for (transport, costs) in TRANSPORTS.iter().zip(&mut costs) {
                costs.push(gateways.cost(*transport, load, span).await?);
            }
        }
        let medians = costs.map(median);
        let cells = medians.map(|cost| format!("{cost:.2} ({:.2})", cost / medians[0]));
        table += &format!("| {} | {} |\n", load.name, cells.join(" | "));
    }
    arguments.page.publish("transports", &table)
}

impl Gateways {
    fn start(upstream: &Upstream) -> Outcome<Self> {
        let own = std::env::current_exe().map_err(to_message)?;
        let program = beside(&own, "sluicegate")?;
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed([NAME.to_owned()]).map_err(to_message)?;
        let folder = Folder::create()?;
        let [certificate, key] = [
            folder.write("certificate.pem", &cert.pem())?,
            folder.write("key.pem", &signing_key.serialize_pem())?,
        ];
        let config = question::configuration(upstream.address, ROOM);
        let tls = format!(
            "{config}[tls]\ncertificate = \"{}\"\nkey = \"{}\"\n",
            certificate.display(),
            key.display()
        );
        Ok(Self {
            plain: gateway_by(Command::new(&program), &config)?,
            tls: gateway_by(Command::new(&program), &tls)?,
            connector: connector(cert.der().clone())?,
            _folder: folder,
        })
    }

    /// The CPU time of the gateway for each request, or for each event, in microseconds.
    async fn cost(&self, transport: Transport, load: Load, span: Duration) -> Outcome<f64> {
        let subject = if transport.has_tls {
            &self.tls
        } else {
            &self.plain
        };
        let per_connection = if transport.is_http2 { load.streams } else { 1 };
        let mut clients = Vec::new();
        for _ in 0..load.requests / per_connection {
            let client = self.connect(subject, transport).await?;
            clients.extend(std::iter::repeat_n(client, per_connection));
        }
        ask_all(&clients, subject, load, WARM_UP).await?;
        let before = subject.usage()?;
        let units = ask_all(&clients, subject, load, span).await?;
        let usage = subject.usage()?.since(before);
        Ok((usage.user + usage.system).as_secs_f64() * 1e6 / units.max(1) as f64)
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "the server under test is dialled, on loopback"
    )]
    async fn connect(&self, subject: &Subject, transport: Transport) -> Outcome<Client> {
        let socket = TcpStream::connect(subject.address)
            .await
            .map_err(to_message)?;
        socket.set_nodelay(true).map_err(to_message)?;
        if !transport.has_tls {
            return begin(socket, transport.is_http2).await;
        }
        let name = ServerName::try_from(NAME).map_err(to_message)?;
        let stream = self
            .connector
            .connect(name, socket)
            .await
            .map_err(to_message)?;
        begin(stream, transport.is_http2).await
    }
}

fn connector(certificate: CertificateDer<'static>) -> Outcome<TlsConnector> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).map_err(to_message)?;
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(to_message)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Begins HTTP on a connection.
async fn begin(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    is_http2: bool,
) -> Outcome<Client> {
    let io = TokioIo::new(stream);
    if is_http2 {
        let (client, connection) = http2::handshake(TokioExecutor::new(), io)
            .await
            .map_err(to_message)?;
        tokio::spawn(connection);
        return Ok(Client::Http2(client));
    }
    let (client, connection) = http1::handshake(io).await.map_err(to_message)?;
    tokio::spawn(connection);
    Ok(Client::Http1(Arc::new(tokio::sync::Mutex::new(client))))
}

/// Sends requests on all clients, each as soon as it has its response. Returns the number of responses,
/// or of events.
async fn ask_all(
    clients: &[Client],
    subject: &Subject,
    load: Load,
    span: Duration,
) -> Outcome<usize> {
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for client in clients {
        let (client, raw) = (client.clone(), subject.request(load.question));
        tasks.spawn(async move {
            let mut units = 0;
            while started.elapsed() < span {
                units += client.ask(&raw, load.question).await?;
            }
            Outcome::Ok(units)
        });
    }
    let mut units = 0;
    while let Some(joined) = bounded(span + GRACE, tasks.join_next()).await? {
        units += joined.map_err(to_message)??;
    }
    Ok(units)
}

impl Client {
    /// Sends a request and reads the response. Returns the number of its events, or 1.
    async fn ask(&self, raw: &Bytes, question: Question) -> Outcome<usize> {
        let is_http2 = matches!(self, Self::Http2(_));
        let request = parse(raw, is_http2).ok_or("the request cannot be parsed")?;
        let response: Response<_> = match self {
            Self::Http1(client) => {
                let mut client = client.lock().await;
                client.ready().await.map_err(to_message)?;
                client.send_request(request).await
            }
            Self::Http2(client) => client.clone().send_request(request).await,
        }
        .map_err(to_message)?;
        if response.status() != 200 {
            return Err(format!("status {}", response.status()));
        }
        let body = response.into_body().collect().await.map_err(to_message)?;
        let events = memchr::memmem::find_iter(&body.to_bytes(), b"\n\n").count();
        Ok(if question.is_stream() { events } else { 1 })
    }
}

/// The request in these bytes. The URL has the host over HTTP/2, and a header over HTTP/1.1.
fn parse(raw: &Bytes, is_http2: bool) -> Option<Request<Full<Bytes>>> {
    let at = memchr::memmem::find(raw, b"\r\n\r\n")?;
    let head = std::str::from_utf8(&raw[..at]).ok()?;
    let mut lines = head.split("\r\n");
    let path = lines.next()?.split(' ').nth(1)?;
    let mut request = match is_http2 {
        true => Request::post(format!("http://{NAME}{path}")),
        false => Request::post(path).header("host", NAME),
    };
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        if name != "host" && name != "content-length" {
            request = request.header(name, value);
        }
    }
    request.body(Full::new(raw.slice(at + 4..))).ok()
}

fn median(mut costs: Vec<f64>) -> f64 {
    costs.sort_by(f64::total_cmp);
    costs.get(costs.len() / 2).copied().unwrap_or_default()
}

/// A temporary folder, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn create() -> Outcome<Self> {
        let name = format!("sluicegate-transports-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).map_err(to_message)?;
        Ok(Self(path))
    }

    fn write(&self, name: &str, text: &str) -> Outcome<PathBuf> {
        let path = self.0.join(name);
        fs::write(&path, text).map_err(to_message)?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const NAME: &str = "gate.example";
const TRANSPORTS: [Transport; 4] = [
    Transport {
        name: "HTTP/1.1",
        has_tls: false,
        is_http2: false,
    },
    Transport {
        name: "HTTP/1.1, TLS",
        has_tls: true,
        is_http2: false,
    },
    Transport {
        name: "HTTP/2",
        has_tls: false,
        is_http2: true,
    },
    Transport {
        name: "HTTP/2, TLS",
        has_tls: true,
        is_http2: true,
    },
];
const LOADS: [Load; 2] = [
    Load {
        name: "small request, 64 at once",
        question: Question::Small,
        requests: 64,
        streams: 16,
    },
    Load {
        name: "event of a relayed Chat stream, 16 at once",
        question: Question::Chat,
        requests: 16,
        streams: 4,
    },
];
const GRACE: Duration = Duration::from_secs(10);
