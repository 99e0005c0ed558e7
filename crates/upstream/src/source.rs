//! The connection that the body of a response is received over.

use std::task::{Context, Poll};

use bytes::Bytes;
use engine::EngineError;
use net::LazyTimer;

use crate::http1::Http1Connection;
use crate::sockets::Turn;

/// The connection that a body is received over.
pub(crate) enum Source {
    Http1(Box<Http1Connection>),
    /// A response over a WebSocket.
    Turn(Box<Turn>),
}

impl Source {
    pub(crate) fn is_end(&self) -> bool {
        match self {
            Self::Http1(connection) => connection.is_end(),
            Self::Turn(turn) => turn.is_end(),
        }
    }

    /// The number of bytes that are left, if that is known.
    pub(crate) fn length(&self) -> Option<u64> {
        match self {
            Self::Http1(connection) => connection.length(),
            Self::Turn(_) => None,
        }
    }

    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, EngineError>> {
        match self {
            Self::Http1(connection) => connection
                .poll_body(cx)
                .map_err(|error| EngineError::Truncated(error.to_string())),
            Self::Turn(turn) => turn.poll(cx),
        }
    }

    pub(crate) fn timer(&mut self) -> &mut LazyTimer {
        match self {
            Self::Http1(connection) => &mut connection.timer,
            Self::Turn(turn) => turn.timer(),
        }
    }
}
