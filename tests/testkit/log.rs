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
        // The last line may be incomplete.
        let whole = log
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        let mut lines = whole.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.find(|line| line["log"] == "access" && line["request_id"] == id)
    };
    await_that("the request is in the log", || find().is_some());
    find().unwrap()
}
