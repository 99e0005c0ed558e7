//! Opens a WebSocket: connects, and switches from HTTP.

use engine::EngineError;
use http::HeaderMap;
use http::header::SEC_WEBSOCKET_EXTENSIONS;
use tokio::time::{Instant, timeout_at};
use tokio_tungstenite::client_async_with_config;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use crate::failure::Failure;
use crate::host::Host;
use crate::outgoing::Outgoing;
use crate::sockets::{Counted, Socket};

/// The response of a host to the request for a WebSocket.
pub(crate) enum Opened {
    Socket(Box<Socket>),
    /// It has another status than 101.
    Refused {
        /// True if the host offers none. The limits and failures of a server pass.
        is_final: bool,
    },
}

/// A WebSocket that could not be opened.
pub(crate) struct OpeningFailed {
    pub(crate) failure: Failure,
    /// True if the connection was open, so that the host may understand HTTP alone.
    pub(crate) was_connected: bool,
}

/// Connects and sends the handshake, within the timeout for connecting.
pub(crate) async fn open(
    host: &Host,
    outgoing: &Outgoing,
    deadline: Instant,
) -> Result<Opened, OpeningFailed> {
    let started = Instant::now();
    let deadline = deadline.min(started + host.connect_timeout);
    let failed = |was_connected| {
        move |failure| OpeningFailed {
            failure,
            was_connected,
        }
    };
    let (request, credential) = host.upgrade(outgoing).map_err(failed(false))?;
    let io = host.connect(deadline).await.map_err(failed(false))?;
    let handshake = client_async_with_config(request, Counted::new(io), Some(config()));
    let broken = |error: String| {
        let error = EngineError::Upstream(format!("WebSocket handshake failed: {error}"));
        failed(true)(Failure::unsent(error))
    };
    match timeout_at(deadline, handshake).await {
        // RFC 6455 §4.1, which tungstenite leaves to its callers: none was offered.
        Ok(Ok((_, response))) if names_extension(response.headers()) => {
            Err(broken("extension that was not offered".to_owned()))
        }
        Ok(Ok((stream, _))) => {
            let socket = Socket::new(stream, started.elapsed(), credential);
            Ok(Opened::Socket(Box::new(socket)))
        }
        Ok(Err(Error::Http(response))) => {
            let status = response.status();
            Ok(Opened::Refused {
                is_final: !status.is_server_error() && !PASSING.contains(&status.as_u16()),
            })
        }
        Ok(Err(error)) => Err(broken(error.to_string())),
        Err(_) => Err(broken("timeout".to_owned())),
    }
}

fn names_extension(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(SEC_WEBSOCKET_EXTENSIONS).iter();
    values.any(|value| !value.as_bytes().trim_ascii().is_empty())
}

/// The sizes of messages and buffers. The buffers grow as needed.
fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
        .max_message_size(Some(MAX_EVENT))
        .max_frame_size(Some(MAX_EVENT))
}

/// The client errors that pass: of a key that is about to be replaced, and of a limit.
const PASSING: [u16; 2] = [401, 429];
/// The initial size of a buffer, in bytes.
const BUFFER: usize = 8 << 10;
/// The size of the largest event, as over HTTP.
const MAX_EVENT: usize = 32 << 20;
