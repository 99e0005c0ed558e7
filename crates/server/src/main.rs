//! The binary. Everything is in the library beside it, so that tests can have a gateway in their own process.

use std::process::ExitCode;

fn main() -> ExitCode {
    sluicegate_server::main()
}
