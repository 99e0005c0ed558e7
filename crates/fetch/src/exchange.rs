//! One request and its answer, on a connection of its own.

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, HOST, LOCATION, USER_AGENT};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::FetchError;
use crate::target::Target;

/// What a host said.
pub(crate) enum Answer {
    /// 200, with this body.
    Body(Bytes),
    /// The picture is there.
    Elsewhere(String),
}

/// Asks for `target` and reads the answer.
///
/// The connection is driven by this future, not by a task beside it: dropping the one closes the other.
pub(crate) async fn exchange<S>(stream: S, target: &Target, max_bytes: usize) -> Result<Answer, FetchError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin,
{
    let (sender, connection) = http1::Builder::new()
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(no_http)?;
    let talk = talk(sender, request(target)?, max_bytes);
    tokio::pin!(talk, connection);
    tokio::select! {
        biased;
        answer = &mut talk => answer,
        // The host has closed; what it sent before is still there to be read.
        _ = &mut connection => talk.await,
    }
}

async fn talk(
    mut sender: SendRequest<Empty<Bytes>>,
    request: Request<Empty<Bytes>>,
    max_bytes: usize,
) -> Result<Answer, FetchError> {
    let response = sender.send_request(request).await.map_err(no_http)?;
    if is_redirect(response.status()) {
        return location(response.headers()).map(Answer::Elsewhere);
    }
    if response.status() != StatusCode::OK {
        return Err(FetchError::Status(response.status().as_u16()));
    }
    if response.headers().get_all(CONTENT_ENCODING).iter().any(|coding| coding != IDENTITY) {
        return Err(FetchError::Encoding);
    }
    read(response, max_bytes).await.map(Answer::Body)
}

/// These headers and no others: no cookie, no key, no referrer.
fn request(target: &Target) -> Result<Request<Empty<Bytes>>, FetchError> {
    Request::get(target.path_and_query())
        .header(HOST, target.host())
        .header(USER_AGENT, AGENT)
        .header(ACCEPT, PICTURES)
        .header(ACCEPT_ENCODING, IDENTITY)
        .body(Empty::new())
        .map_err(|_| FetchError::Unreachable("the path cannot be asked for"))
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn location(headers: &HeaderMap) -> Result<String, FetchError> {
    let mut all = headers.get_all(LOCATION).iter();
    let (Some(location), None) = (all.next(), all.next()) else {
        return Err(FetchError::Redirect("there is not one Location"));
    };
    let location = str::from_utf8(location.as_bytes()).map_err(|_| FetchError::Redirect("its Location is no text"))?;
    Ok(location.to_owned())
}

/// Reads a body into memory that grows with it, whatever length was announced.
async fn read(response: Response<Incoming>, max_bytes: usize) -> Result<Bytes, FetchError> {
    let mut body = response.into_body();
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(FetchError::TooLarge);
    }
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(no_http)?.into_data() else { continue };
        if data.len() > max_bytes - bytes.len() {
            return Err(FetchError::TooLarge);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}

fn no_http(_: hyper::Error) -> FetchError {
    FetchError::Unreachable("it does not speak HTTP, or broke off")
}

const AGENT: &str = concat!("sluicegate/", env!("CARGO_PKG_VERSION"));
const PICTURES: &str = "image/png,image/jpeg,image/webp";
const IDENTITY: &str = "identity";
/// The largest head of an answer, in bytes.
const MAX_HEAD: usize = 64 << 10;
const MAX_HEADERS: usize = 100;
