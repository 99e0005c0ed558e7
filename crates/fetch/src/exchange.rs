//! One HTTP exchange on a new connection.

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, HOST, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::FetchError;
use crate::target::Target;

/// A response.
pub(crate) enum Answer {
    /// Status 200 with this body.
    Body(Bytes),
    /// A redirect to this location.
    Redirect(String),
}

/// Requests `target` and reads the response.
///
/// This future drives the connection, without a separate task: dropping it closes the connection.
pub(crate) async fn exchange<S>(
    stream: S,
    target: &Target,
    max_bytes: usize,
) -> Result<Answer, FetchError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin,
{
    let (sender, connection) = http1::Builder::new()
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(http_error)?;
    let response = send(sender, request(target)?, max_bytes);
    tokio::pin!(response, connection);
    tokio::select! {
        biased;
        answer = &mut response => answer,
        // The host has closed the connection; the bytes that it sent before can still be read.
        _ = &mut connection => response.await,
    }
}

async fn send(
    mut sender: SendRequest<Empty<Bytes>>,
    request: Request<Empty<Bytes>>,
    max_bytes: usize,
) -> Result<Answer, FetchError> {
    let response = sender.send_request(request).await.map_err(http_error)?;
    if matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return location(response.headers()).map(Answer::Redirect);
    }
    if response.status() != StatusCode::OK {
        return Err(FetchError::Status(response.status().as_u16()));
    }
    if response
        .headers()
        .get_all(CONTENT_ENCODING)
        .iter()
        .any(|coding| !is_identity(coding))
    {
        return Err(FetchError::Encoding);
    }
    read(response, max_bytes).await.map(Answer::Body)
}

/// Returns true if a value of `Content-Encoding` names no coding. Case does not matter (RFC 9110 §8.4.1).
fn is_identity(coding: &HeaderValue) -> bool {
    coding.is_empty() || coding.as_bytes().eq_ignore_ascii_case(IDENTITY.as_bytes())
}

/// Builds a request with exactly these headers: no cookie, no credential, no referrer.
fn request(target: &Target) -> Result<Request<Empty<Bytes>>, FetchError> {
    Request::get(target.path_and_query())
        .header(HOST, target.host())
        .header(USER_AGENT, AGENT)
        .header(ACCEPT, IMAGE_TYPES)
        .header(ACCEPT_ENCODING, IDENTITY)
        .body(Empty::new())
        .map_err(|_| FetchError::Unreachable("invalid request target"))
}

fn location(headers: &HeaderMap) -> Result<String, FetchError> {
    let mut all = headers.get_all(LOCATION).iter();
    let (Some(location), None) = (all.next(), all.next()) else {
        return Err(FetchError::Redirect("missing or repeated Location"));
    };
    let location = str::from_utf8(location.as_bytes())
        .map_err(|_| FetchError::Redirect("Location is not UTF-8"))?;
    Ok(location.to_owned())
}

/// Reads a body into a buffer that grows with it, whatever length was declared.
async fn read(response: Response<Incoming>, max_bytes: usize) -> Result<Bytes, FetchError> {
    let mut body = response.into_body();
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(FetchError::TooLarge);
    }
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(http_error)?.into_data() else {
            continue;
        };
        if data.len() > max_bytes - bytes.len() {
            return Err(FetchError::TooLarge);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}

fn http_error(_: hyper::Error) -> FetchError {
    FetchError::Unreachable("invalid HTTP, or connection reset")
}

const AGENT: &str = concat!("sluicegate/", env!("CARGO_PKG_VERSION"));
const IMAGE_TYPES: &str = "image/png,image/jpeg,image/webp";
const IDENTITY: &str = "identity";
/// The maximum size of a response head, in bytes.
const MAX_HEAD: usize = 64 << 10;
const MAX_HEADERS: usize = 100;
