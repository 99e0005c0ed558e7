//! An in-memory network with servers that are functions of their connections.

#![allow(
    clippy::unwrap_used,
    reason = "it is used in tests, which a panic fails"
)]

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use engine::EngineError;
use http::{HeaderMap, HeaderValue, Method};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use upstream::{
    BoxFuture, Connection, Dial, Effort, Incoming, Network, Options, Outgoing, Resolve, Upstream,
    WithPeer,
};
use url::Url;

type Serve = Arc<dyn Fn(usize, Peer) -> BoxFuture<'static, ()> + Send + Sync>;

/// The network: DNS names, and servers at their addresses.
#[derive(Clone, Default)]
pub struct World {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    names: HashMap<String, Name>,
    servers: HashMap<SocketAddr, Server>,
    dialled: Vec<SocketAddr>,
}

/// The result of a DNS lookup.
#[derive(Clone)]
pub enum Name {
    /// It has these addresses.
    At(Vec<SocketAddr>),
    /// It does not come.
    Stalls,
}

/// The behaviour of an address.
#[derive(Clone)]
enum Server {
    Serves {
        serve: Serve,
        connections: usize,
    },
    /// It does not come.
    Stalls,
}

impl World {
    /// Adds a server at a new address of `name`: a function of the number of the connection, from
    /// 0, and of the connection.
    pub fn serve<F>(&self, name: &str, serve: impl Fn(usize, Peer) -> F + Send + Sync + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let serve: Serve = Arc::new(move |number, peer| Box::pin(serve(number, peer)));
        let address = self.address(name);
        self.state(|state| {
            state.servers.insert(
                address,
                Server::Serves {
                    serve,
                    connections: 0,
                },
            )
        });
    }

    /// Makes connects to the address of `name` hang.
    pub fn stall(&self, name: &str) {
        let address = self.address(name);
        self.state(|state| state.servers.insert(address, Server::Stalls));
    }

    /// Makes the address of `name` refuse connections.
    pub fn refuse(&self, name: &str) {
        let address = self.address(name);
        self.state(|state| state.servers.remove(&address));
    }

    /// Sets the result of the lookup of a name.
    pub fn name(&self, name: &str, found: Name) {
        self.state(|state| state.names.insert(name.to_owned(), found));
    }

    /// Returns the first address of a name, and assigns one if it has none.
    pub fn address(&self, name: &str) -> SocketAddr {
        self.state(|state| {
            let next = (Ipv4Addr::new(192, 0, 2, state.names.len() as u8 + 1), 80).into();
            let found = state
                .names
                .entry(name.to_owned())
                .or_insert_with(|| Name::At(vec![next]));
            match found {
                Name::At(addresses) => addresses[0],
                Name::Stalls => next,
            }
        })
    }

    /// The addresses of all dialled connections, in order.
    pub fn dialled(&self) -> Vec<SocketAddr> {
        self.state(|state| state.dialled.clone())
    }

    /// Returns the number of dialled connections.
    pub fn dials(&self) -> usize {
        self.state(|state| state.dialled.len())
    }

    /// An upstream that is reached over this network.
    pub fn upstream(&self, options: Options) -> Upstream {
        let network = Network {
            resolver: Arc::new(self.clone()),
            dialer: Arc::new(self.clone()),
            ..Network::default()
        };
        Upstream::with_network(&network, options).unwrap()
    }

    fn state<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap())
    }
}

/// Returns a network with one server, and an upstream for it.
pub fn single_host<F>(serve: impl Fn(usize, Peer) -> F + Send + Sync + 'static) -> (World, Upstream)
where
    F: Future<Output = ()> + Send + 'static,
{
    let world = World::default();
    world.serve("a.example", serve);
    let upstream = world.upstream(options());
    (world, upstream)
}

impl Resolve for World {
    fn resolve<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        let found = self.state(|state| state.names.get(host).cloned());
        Box::pin(async move {
            match found {
                Some(Name::At(addresses)) => Ok(addresses),
                Some(Name::Stalls) => std::future::pending().await,
                None => Err(io::Error::other(format!("unknown host {host}:{port}"))),
            }
        })
    }
}

impl Dial for World {
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Connection>>> {
        Box::pin(async move {
            let found = self.state(|state| {
                state.dialled.push(address);
                let server = state.servers.get_mut(&address)?;
                if let Server::Serves { connections, .. } = server {
                    *connections += 1;
                }
                Some(server.clone())
            });
            match found {
                Some(Server::Serves { serve, connections }) => {
                    let (near, far) = duplex(16 << 10);
                    tokio::spawn(serve(
                        connections - 1,
                        Peer {
                            io: Box::new(WithPeer::new(far, address)),
                        },
                    ));
                    Ok(Box::new(WithPeer::new(near, address)) as Box<dyn Connection>)
                }
                Some(Server::Stalls) => std::future::pending().await,
                None => Err(io::ErrorKind::ConnectionRefused.into()),
            }
        })
    }
}

/// Starts a server over TCP on localhost, and returns an upstream for it. With `resets`,
/// connections end with a RST.
pub async fn tcp<F>(
    resets: bool,
    serve: impl Fn(usize, Peer) -> F + Send + Sync + 'static,
) -> Upstream
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for number in 0.. {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            if resets {
                stream.set_zero_linger().unwrap();
            }
            tokio::spawn(serve(
                number,
                Peer {
                    io: Box::new(stream),
                },
            ));
        }
    });
    Upstream::new(Options::new(base.parse().unwrap())).unwrap()
}

/// The server's side of a connection.
pub struct Peer {
    /// The bytes of the connection.
    pub io: Box<dyn Connection>,
}

/// A received request.
#[derive(Debug, PartialEq, Eq)]
pub struct Received {
    /// The head, with its empty line.
    pub head: String,
    /// The body.
    pub body: String,
}

impl Peer {
    /// Reads the next request. Returns `None` if the connection ends.
    pub async fn request(&mut self) -> Option<Received> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.io.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).unwrap();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .unwrap_or("0");
        let mut body = vec![0; length.parse().unwrap()];
        self.io.read_exact(&mut body).await.ok()?;
        Some(Received {
            head,
            body: String::from_utf8(body).unwrap(),
        })
    }

    /// Sends bytes, and ignores a closed connection.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.io.write_all(bytes.as_ref()).await;
        let _ = self.io.flush().await;
    }

    /// Sends the same response to every request.
    pub async fn always(mut self, bytes: impl AsRef<[u8]>) {
        while self.request().await.is_some() {
            self.send(&bytes).await;
        }
    }

    /// Sends a response to one request, and closes the connection.
    pub async fn send_all(mut self, bytes: impl AsRef<[u8]>) {
        self.request().await;
        self.send(bytes).await;
    }

    /// Waits until the client closes the connection.
    pub async fn closed(&mut self) {
        while self.io.read_u8().await.is_ok() {}
    }
}

/// The settings of the upstream `http://a.example/v1`.
pub fn options() -> Options {
    Options::new(url("http://a.example/v1"))
}

/// Like [`options`], with the fallback host `http://b.example/v1`.
pub fn with_fallback() -> Options {
    Options {
        fallback_base_url: Some(url("http://b.example/v1")),
        ..options()
    }
}

/// Parses a URL.
pub fn url(url: &str) -> Url {
    url.parse().unwrap()
}

/// A request with this body that is not for a stream.
pub fn post(body: impl Into<Bytes>) -> Outgoing {
    Outgoing {
        method: Method::POST,
        path: "/responses".into(),
        content_type: HeaderValue::from_static("application/json"),
        headers: HeaderMap::new(),
        body: body.into().into(),
        accept_stream: false,
        client: "client".into(),
        sockets: None,
    }
}

/// The same as [`post`], for a stream.
pub fn for_stream() -> Outgoing {
    Outgoing {
        accept_stream: true,
        ..post("{}")
    }
}

/// Sends a request without a retry. The timeouts of the upstream end it long before its deadline.
pub async fn send_once(upstream: &Upstream, request: &Outgoing) -> Result<Incoming, EngineError> {
    let deadline = Instant::now() + Duration::from_secs(24 * 60 * 60);
    upstream.send_with_retry(request, deadline, ONCE).await
}

/// Sends a request that may be retried.
pub async fn send(upstream: &Upstream) -> Result<Incoming, EngineError> {
    let deadline = Instant::now() + Duration::from_secs(600);
    upstream
        .send_with_retry(&post("{}"), deadline, WITH_RETRY)
        .await
}

/// One attempt, and only if a circuit breaker admits it.
pub const ONCE: Effort = Effort {
    may_retry: false,
    has_alternative: true,
};
/// The same with a retry.
pub const WITH_RETRY: Effort = Effort {
    may_retry: true,
    ..ONCE
};

/// A JSON response with a `Content-Length`.
pub fn response(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A JSON response with status 200.
pub fn ok(body: &str) -> String {
    response("200 OK", body)
}

/// A CA that signs certificates of test servers.
pub struct Ca {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate as PEM.
    pub pem: String,
}

/// The certificate of a test server.
#[derive(Clone, Copy, Debug)]
pub enum Certificate {
    /// A valid one.
    Good,
    /// One that has expired.
    Expired,
    /// One for another host.
    OfAnotherName,
    /// One that no CA has signed.
    SelfSigned,
}

impl Ca {
    /// Creates a CA with a new key.
    #[must_use]
    pub fn generate() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "A CA");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let base64 = STANDARD.encode(params.self_signed(&key).unwrap().der());
        let pem = format!("-----BEGIN CERTIFICATE-----\n{base64}\n-----END CERTIFICATE-----\n");
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    /// A TLS server with a certificate of this kind.
    pub fn acceptor(&self, kind: Certificate) -> TlsAcceptor {
        let name = if let Certificate::OfAnotherName = kind {
            "c.example"
        } else {
            "a.example"
        };
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        if let Certificate::Expired = kind {
            params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = match kind {
            Certificate::SelfSigned => params.self_signed(&key).unwrap(),
            _ => params.signed_by(&key, &self.issuer).unwrap(),
        };
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}
