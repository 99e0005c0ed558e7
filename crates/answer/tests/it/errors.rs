//! Error statuses.

use engine::EngineError;
use network::{Peer, post, send_once, single_host};
use sluicegate_answer::Answer;

/// Of an error the status and `Retry-After` say enough.
#[tokio::test]
async fn a_packed_error_keeps_its_status() {
    for (status, coding) in [(429, "gzip"), (400, "br"), (503, "zstd"), (500, "deflate")] {
        let packed = format!(
            "HTTP/1.1 {status} X\r\nContent-Encoding: {coding}\r\nRetry-After: 7\r\n\
             Content-Length: 3\r\n\r\n\x1f\x02\x08"
        );
        let (_world, upstream) = single_host(move |_, peer: Peer| peer.send_all(packed.clone()));
        let incoming = send_once(&upstream, &post("{}")).await.unwrap();
        assert_eq!(incoming.status.as_u16(), status);
        assert_eq!(incoming.retry_after, Some(7));
        let error = Answer::read(incoming, 1 << 20).await.unwrap_err();
        let is_its_meaning = match error {
            EngineError::RateLimited { retry_after, .. } => status == 429 && retry_after == Some(7),
            EngineError::Rejected { message, .. } => {
                status == 400 && message == "The upstream refused the request."
            }
            EngineError::Overloaded { retry_after, .. } => status == 503 && retry_after == Some(7),
            EngineError::Upstream(_) => status == 500,
            _ => false,
        };
        assert!(is_its_meaning, "{status}");
    }
}
