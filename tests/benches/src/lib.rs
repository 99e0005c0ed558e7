//! Shared by the benches and the soak tests: the load, the upstream, the measured processes, and
//! the page of results.

pub mod callgrind;
pub mod client;
mod conversation;
pub mod cores;
pub mod load;
mod machine;
pub mod page;
pub mod question;
pub mod subject;
pub mod upstream;
pub mod usage;

use std::process::ExitCode;

use tokio::runtime::Builder;

/// A result whose error is a complete message for a person.
pub type Outcome<T = ()> = Result<T, String>;

/// Runs a program to its end on a runtime of its own, and prints its error.
pub fn run(runtime: &mut Builder, program: impl Future<Output = Outcome>) -> ExitCode {
    let runtime = runtime.enable_all().build().map_err(load::to_message);
    exit(runtime.and_then(|runtime| runtime.block_on(program)))
}

/// Prints the error of a program that has ended with one.
pub fn exit(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}
