//! The handshake of a WebSocket ([RFC 6455, section 4.2](https://www.rfc-editor.org/rfc/rfc6455#section-4.2)).

use std::sync::{Arc, Mutex, PoisonError};

use gateway::connection::client_body::ClientBody;
use gateway::connection::state::{ConnectionState, OpenedBy};
use gateway::cors;
use gateway::exchange::body::Body;
use gateway::state::GatewayState;
use http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS,
    SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Request, Response};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// A WebSocket that the gateway has permitted.
#[derive(Debug)]
pub struct Opening {
    /// The name of the key.
    pub(crate) key: Arc<str>,
    /// The headers of each request that is made on the connection.
    pub(crate) headers: HeaderMap,
}

/// Answers one request received on `connection`, as [`cors::answer`] does. If the response switches
/// to a WebSocket, `opening` is set.
pub async fn answer(
    state: &Arc<GatewayState>,
    request: Request<ClientBody>,
    connection: &Arc<ConnectionState>,
    opening: &Mutex<Option<Opening>>,
) -> Response<Body> {
    let sent = request.headers();
    let headers = sent.contains_key(UPGRADE).then(|| sent.clone());
    let mut response = cors::answer(state, request, connection).await;
    if let Some(headers) = headers
        && let Some(OpenedBy(key)) = response.extensions_mut().remove()
    {
        accept(&headers, response.headers_mut());
        let headers = of_requests(headers);
        let mut opening = opening.lock().unwrap_or_else(PoisonError::into_inner);
        *opening = Some(Opening { key, headers });
    }
    response
}

/// Adds the headers of an accepted handshake. No extension and no subprotocol is accepted.
fn accept(sent: &HeaderMap, response: &mut HeaderMap) {
    response.insert(UPGRADE, HeaderValue::from_static("websocket"));
    response.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    let key = sent.get(SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes);
    let accepted = derive_accept_key(key.unwrap_or_default());
    if let Ok(accepted) = HeaderValue::from_str(&accepted) {
        response.insert(SEC_WEBSOCKET_ACCEPT, accepted);
    }
}

/// Turns the headers of the handshake into the headers of the requests.
fn of_requests(mut headers: HeaderMap) -> HeaderMap {
    for name in [
        CONNECTION,
        CONTENT_LENGTH,
        SEC_WEBSOCKET_EXTENSIONS,
        SEC_WEBSOCKET_KEY,
        SEC_WEBSOCKET_PROTOCOL,
        SEC_WEBSOCKET_VERSION,
        UPGRADE,
    ] {
        headers.remove(name);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers
}
