//! `cargo xtask dialects`: runs the gateway in front of servers that bend their protocol.

use std::ffi::OsString;

use crate::outcome::Outcome;
use crate::{process, workspace};

/// Requests every case of `tests/dialects`, and prints what differs and the table; `--write` writes
/// the table to `docs/dialects.md`, and the counts to the README.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    let mut test = workspace::cargo("test");
    test.args([
        "--locked",
        "--package",
        "sluicegate-server",
        "--no-default-features",
        "--test",
        "dialects",
        "--",
        "--nocapture",
    ]);
    match args {
        [] => {}
        [arg] if arg == "--write" => {
            test.env("SLUICEGATE_DIALECTS_WRITE", "1");
        }
        _ => return Err(format!("this task takes --write only, not {args:?}")),
    }
    process::echoed(&mut test)
}
