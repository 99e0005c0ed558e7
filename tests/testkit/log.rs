//! The access log of a gateway, which has one line for each request.

use serde_json::Value;

use crate::client::Response;
use crate::gateway::{Gateway, await_that};

/// Waits for the log line of the request that got this response. It is written after the last byte.
#[track_caller]
pub fn line(gateway: &Gateway, response: &Response) -> Value {
    let id = response
        .header("x-request-id")
        .expect("every response has an id");
    let find = || {
        let log = gateway.log.lock().unwrap();
        // The last line may be incomplete, and a log of thousands of lines is not read from its start.
        let mut places = log.rmatch_indices(id).map(|(at, _)| at);
        places.find_map(|at| {
            let start = log[..at].rfind('\n').map_or(0, |end| end + 1);
            let line = &log[start..at + log[at..].find('\n')?];
            let line: Value = serde_json::from_str(line).ok()?;
            (line["log"] == "access" && line["request_id"] == id).then_some(line)
        })
    };
    await_that("the request is in the log", || find().is_some());
    find().unwrap()
}
