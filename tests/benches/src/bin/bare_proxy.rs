//! The least work that a proxy on hyper can do: each request is forwarded to the only upstream,
//! each response is returned, and both bodies are streamed through. The cost of the gateway is
//! compared with it. It has the gateway's allocator.
//!
//! `bare_proxy ADDRESS [--per-core]` forwards everything to `ADDRESS` and prints its own address.
//! With `--per-core` there is a runtime for each core that shares nothing with the others, and each
//! takes its turn of the connections.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::{io, thread};

use hyper::body::Incoming;
use hyper::header::{CONNECTION, HOST};
use hyper::http::uri::{Authority, Scheme};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioIo};
#[cfg(feature = "jemalloc")]
use tikv_jemallocator::Jemalloc;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

type Upstream = Client<HttpConnector, Incoming>;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let address = args
        .next()
        .ok_or_else(|| invalid("the address of the upstream is missing"))?;
    let authority = address.parse().map_err(|_| invalid("not an address"))?;
    let runtimes = match args.next().as_deref() {
        None => vec![Builder::new_multi_thread().enable_all().build()?],
        Some("--per-core") => (0..thread::available_parallelism()?.get())
            .map(|_| Builder::new_current_thread().enable_all().build())
            .collect::<io::Result<_>>()?,
        Some(_) => return Err(invalid("expected ADDRESS [--per-core]")),
    };
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    println!("bare proxy listens on http://{}", listener.local_addr()?);
    deal(&listener, runtimes, &authority)
}

/// Gives each runtime a thread, and the connections to the runtimes in turn.
fn deal(listener: &TcpListener, runtimes: Vec<Runtime>, authority: &Authority) -> io::Result<()> {
    let mut workers = Vec::new();
    for runtime in runtimes {
        let (send, receive) = unbounded_channel();
        let authority = authority.clone();
        thread::spawn(move || runtime.block_on(work(receive, authority)));
        workers.push(send);
    }
    for worker in workers.iter().cycle() {
        let (socket, _) = listener.accept()?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        worker
            .send(socket)
            .map_err(|_| invalid("a runtime has ended"))?;
    }
    Ok(())
}

/// Serves connections, with one pool to the upstream.
async fn work(mut sockets: UnboundedReceiver<TcpStream>, authority: Authority) -> io::Result<()> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let upstream: Upstream = Client::builder(TokioExecutor::new()).build(connector);
    while let Some(socket) = sockets.recv().await {
        let socket = tokio::net::TcpStream::from_std(socket)?;
        tokio::spawn(serve(socket, upstream.clone(), authority.clone()));
    }
    Ok(())
}

async fn serve(socket: tokio::net::TcpStream, upstream: Upstream, authority: Authority) {
    let service = service_fn(move |request| pass(request, upstream.clone(), authority.clone()));
    // An error here is a client or an upstream that disconnected.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(socket), service)
        .await;
}

async fn pass(
    mut request: Request<Incoming>,
    upstream: Upstream,
    authority: Authority,
) -> Result<Response<Incoming>, Error> {
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(authority);
    *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
    // Hop-by-hop headers belong to the connection, not to the request.
    request.headers_mut().remove(CONNECTION);
    request.headers_mut().remove(HOST);
    let mut response = upstream.request(request).await?;
    response.headers_mut().remove(CONNECTION);
    Ok(response)
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why.to_owned())
}
