//! The least work that a proxy on hyper can do: each request is forwarded to the only upstream,
//! each response is returned, and both bodies are streamed through. The cost of the gateway is
//! compared with it.
//!
//! `bare_proxy ADDRESS` forwards everything to `ADDRESS` and prints its own address.

use std::net::SocketAddr;

use hyper::body::Incoming;
use hyper::header::{CONNECTION, HOST};
use hyper::http::uri::{Authority, Scheme};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};

type Upstream = Client<HttpConnector, Incoming>;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let invalid = |why: &str| std::io::Error::new(std::io::ErrorKind::InvalidInput, why.to_owned());
    let address = std::env::args()
        .nth(1)
        .ok_or_else(|| invalid("the address of the upstream is missing"))?;
    let authority: Authority = address.parse().map_err(|_| invalid("not an address"))?;
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let upstream: Upstream = Client::builder(TokioExecutor::new()).build(connector);

    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    println!("bare proxy listens on http://{}", listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        tokio::spawn(serve(socket, upstream.clone(), authority.clone()));
    }
}

async fn serve(socket: TcpStream, upstream: Upstream, authority: Authority) {
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
