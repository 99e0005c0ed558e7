//! An in-memory network: scripted DNS, a dialer that records addresses, and https hosts with
//! certificates of a test CA.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use sluicegate_fetch::{
    BoxFuture, Connection, Dial, FetchError, Fetcher, Options, Picture, Resolve, RootCertStore,
    WithPeer,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, version};

/// The address of the hosts of this network.
pub(crate) const PUBLIC: &str = "93.184.215.14:443";
/// Their IPv6 address.
pub(crate) const PUBLIC_V6: &str = "[2606:4700::1111]:443";
/// The first address as NAT64.
pub(crate) const PUBLIC_NAT64: &str = "[64:ff9b::5db8:d70e]:443";

/// The response of a host.
#[derive(Clone)]
pub(crate) enum Reply {
    /// These bytes, then closes the connection.
    Bytes(Vec<u8>),
    /// These bytes, then stalls.
    Stall(Vec<u8>),
    /// The first bytes, then the second ones repeatedly.
    Endless(Vec<u8>, Vec<u8>),
    /// The bytes one by one, each after this delay.
    Slow(Vec<u8>, Duration),
}

/// The certificate of a host.
#[derive(Clone, Copy)]
pub(crate) enum Certificate {
    Good,
    Expired,
    OfAnotherName,
    OfAnotherCa,
}

/// The network. It responds by the host and path of the request, and records lookups, dials and
/// requests.
#[derive(Clone)]
pub(crate) struct World {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    acceptor: TlsAcceptor,
    roots: RootCertStore,
    closed: Notify,
}

#[derive(Default)]
struct State {
    /// The results of consecutive lookups of each name; the last one repeats.
    names: HashMap<String, VecDeque<Vec<SocketAddr>>>,
    replies: HashMap<String, Reply>,
    lookups: Vec<String>,
    dialed: Vec<SocketAddr>,
    requests: Vec<String>,
    /// The peer address, if it differs from the dialed one.
    peer: Option<SocketAddr>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Certificate::Good)
    }

    pub(crate) fn with(certificate: Certificate) -> Self {
        let (acceptor, roots) = tls(certificate);
        Self {
            shared: Arc::new(Shared {
                state: Mutex::default(),
                acceptor,
                roots,
                closed: Notify::new(),
            }),
        }
    }

    /// Sets the results of consecutive lookups of a name; the last one repeats.
    pub(crate) fn name(&self, host: &str, lookups: &[&[SocketAddr]]) {
        let lookups = lookups.iter().map(|addresses| addresses.to_vec()).collect();
        self.state(|state| state.names.insert(host.to_owned(), lookups));
    }

    /// Sets the response to requests for `url`: host and path. The host gets a public address.
    pub(crate) fn reply(&self, url: &str, reply: Reply) {
        let host = url.split('/').next().unwrap();
        self.state(|state| {
            state.replies.insert(url.to_owned(), reply);
            let public = || VecDeque::from([vec![PUBLIC.parse().unwrap()]]);
            state.names.entry(host.to_owned()).or_insert_with(public);
        });
    }

    pub(crate) fn peer(&self, peer: &str) {
        self.state(|state| state.peer = Some(peer.parse().unwrap()));
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            roots: self.shared.roots.clone(),
            ..Options::default()
        }
    }

    pub(crate) fn fetcher(&self) -> Fetcher {
        self.fetcher_with(self.options())
    }

    pub(crate) fn fetcher_with(&self, options: Options) -> Fetcher {
        Fetcher::with(options, Arc::new(self.clone()), Arc::new(self.clone()))
    }

    pub(crate) async fn fetch(&self, url: &str) -> Result<Picture, FetchError> {
        self.fetcher().fetch(url).await
    }

    pub(crate) fn take_lookups(&self) -> Vec<String> {
        self.state(|state| std::mem::take(&mut state.lookups))
    }

    pub(crate) fn take_dialed(&self) -> Vec<SocketAddr> {
        self.state(|state| std::mem::take(&mut state.dialed))
    }

    pub(crate) fn take_requests(&self) -> Vec<String> {
        self.state(|state| std::mem::take(&mut state.requests))
    }

    /// Waits until a connection is closed.
    pub(crate) async fn closed(&self) {
        self.shared.closed.notified().await;
    }

    fn state<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.shared.state.lock().unwrap())
    }

    /// Serves one request.
    async fn serve(&self, stream: DuplexStream) -> io::Result<()> {
        let mut stream = self.shared.acceptor.accept(stream).await?;
        let sni = stream
            .get_ref()
            .1
            .server_name()
            .unwrap_or_default()
            .to_owned();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8(head).unwrap();
        let path = head.split(' ').nth(1).unwrap();
        let reply = self.state(|state| state.replies.get(&format!("{sni}{path}")).cloned());
        self.state(|state| state.requests.push(head));
        match reply.unwrap_or_else(|| Reply::Bytes(response("404 Not Found", &[], b""))) {
            Reply::Bytes(bytes) => {
                stream.write_all(&bytes).await?;
                stream.shutdown().await
            }
            Reply::Stall(bytes) => {
                stream.write_all(&bytes).await?;
                stream.flush().await?;
                stream.read_u8().await.map(|_| ())
            }
            Reply::Endless(first, again) => {
                stream.write_all(&first).await?;
                loop {
                    stream.write_all(&again).await?;
                }
            }
            Reply::Slow(bytes, pause) => {
                for byte in bytes {
                    tokio::time::sleep(pause).await;
                    stream.write_all(&[byte]).await?;
                    stream.flush().await?;
                }
                stream.shutdown().await
            }
        }
    }
}

impl Resolve for World {
    fn resolve<'a>(&'a self, host: &'a str, _: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        let found = self.state(|state| {
            state.lookups.push(host.to_owned());
            let lookups = state.names.get_mut(host)?;
            if lookups.len() > 1 {
                lookups.pop_front()
            } else {
                lookups.front().cloned()
            }
        });
        Box::pin(async move { found.ok_or_else(|| io::ErrorKind::NotFound.into()) })
    }
}

impl Dial for World {
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Connection>>> {
        let peer = self.state(|state| {
            state.dialed.push(address);
            state.peer.unwrap_or(address)
        });
        let is_there = [PUBLIC, PUBLIC_V6, PUBLIC_NAT64].contains(&address.to_string().as_str());
        Box::pin(async move {
            if !is_there {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let (near, far) = duplex(64 << 10);
            let world = self.clone();
            tokio::spawn(async move {
                // Errors show in the result of the fetch.
                let _ = world.serve(far).await;
                world.shared.closed.notify_one();
            });
            Ok(Box::new(WithPeer::new(near, peer)) as Box<dyn Connection>)
        })
    }
}

/// A response with a `Content-Length`.
pub(crate) fn response(status: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut response = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        response += &format!("{name}: {value}\r\n");
    }
    let mut response = (response + "\r\n").into_bytes();
    response.extend_from_slice(body);
    response
}

pub(crate) fn redirect(status: u16, location: &str) -> Reply {
    Reply::Bytes(response(
        &format!("{status} Elsewhere"),
        &[("Location", location)],
        b"",
    ))
}

/// The start of a PNG, up to its header, which is all that is read.
pub(crate) fn png(width: u32, height: u32) -> Vec<u8> {
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    png.extend(width.to_be_bytes());
    png.extend(height.to_be_bytes());
    png.extend(b"\x08\x06\0\0\0\0\0\0\0");
    png
}

/// The start of a JPEG, up to its frame header.
pub(crate) fn jpeg(width: u16, height: u16) -> Vec<u8> {
    let mut jpeg = b"\xff\xd8\xff\xc0\x00\x0b\x08".to_vec();
    jpeg.extend(height.to_be_bytes());
    jpeg.extend(width.to_be_bytes());
    jpeg.extend(b"\x01\x01\x11\x00\xff\xd9");
    jpeg
}

/// The start of a WebP, up to its extended header, which stores sides minus one.
pub(crate) fn webp(width: u8, height: u8) -> Vec<u8> {
    let mut webp = b"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0".to_vec();
    webp.extend([width - 1, 0, 0, height - 1, 0, 0]);
    webp
}

fn tls(certificate: Certificate) -> (TlsAcceptor, RootCertStore) {
    let ca = Ca::new("A CA");
    let signer = match certificate {
        Certificate::OfAnotherCa => &Ca::new("Another CA"),
        _ => &ca,
    };
    let (chain, key) = signer.certificate(certificate);
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(ca.certificate).unwrap();
    (TlsAcceptor::from(Arc::new(config)), roots)
}

struct Ca {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
}

impl Ca {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().der().clone();
        Self {
            issuer: Issuer::new(params, key),
            certificate,
        }
    }

    fn certificate(&self, kind: Certificate) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let names = match kind {
            Certificate::OfAnotherName => vec!["another.example".to_owned()],
            _ => vec!["ok.example".to_owned(), "*.ok.example".to_owned()],
        };
        let mut params = CertificateParams::new(names).unwrap();
        if let Certificate::Expired = kind {
            params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        (
            certificate,
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )
    }
}
