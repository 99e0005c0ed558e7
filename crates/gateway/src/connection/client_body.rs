//! The body of a request as the client sends it.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};

use super::state::ConnectionState;

/// The body of any request. It has one type, so that the code that answers requests is compiled once,
/// in this crate, and not for each kind of connection.
pub type ClientBody = UnsyncBoxBody<Bytes, BodyError>;

/// The error of the body of a request.
pub type BodyError = Box<dyn Error + Send + Sync>;

/// Boxes the body of a request.
pub fn client_body<B>(body: B) -> ClientBody
where
    B: Body<Data = Bytes, Error: Into<BodyError>> + Send + 'static,
{
    body.map_err(Into::into).boxed_unsync()
}

/// Creates the body of a request that is complete at once.
pub fn whole_client_body(bytes: impl Into<Bytes>) -> ClientBody {
    client_body(Full::new(bytes.into()))
}

/// Boxes the body of a request that is received on `connection`, which notes when it was read to its
/// end.
pub fn tracked_client_body<B>(body: B, connection: Arc<ConnectionState>) -> ClientBody
where
    B: Body<Data = Bytes, Error: Into<BodyError>> + Send + Unpin + 'static,
{
    // The head may have been received together with earlier bytes, so it is noted again here.
    connection.note_body(!body.is_end_stream());
    TrackedBody { body, connection }.boxed_unsync()
}

/// The body of a request, which notes on the connection when it was read to its end.
struct TrackedBody<B> {
    body: B,
    connection: Arc<ConnectionState>,
}

impl<B> Body for TrackedBody<B>
where
    B: Body<Data = Bytes, Error: Into<BodyError>> + Unpin,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.connection.note_body(false);
        }
        // Nothing that is wrong with the body of a stream can be answered: its errors end the stream.
        polled.map_err(|error| match self.connection.is_stream() {
            false => error.into(),
            true => io::Error::from(io::ErrorKind::ConnectionReset).into(),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Empty;

    use super::*;

    #[tokio::test]
    async fn a_refused_request_is_read_to_its_end() {
        let connection = Arc::<ConnectionState>::default();
        connection.note_bytes();
        let mut body = tracked_client_body(
            Full::new(Bytes::from_static(b"Hello.")),
            Arc::clone(&connection),
        );
        assert!(connection.is_mid_request());
        body.frame().await.unwrap().unwrap();
        assert!(!connection.is_mid_request());
        connection.note_bytes();
        assert!(connection.is_mid_request(), "the next request has started");
        drop(tracked_client_body(
            Empty::<Bytes>::new(),
            Arc::clone(&connection),
        ));
        assert!(!connection.is_mid_request(), "it has no body");
    }
}
