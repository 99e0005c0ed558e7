//! The project's development tasks, run as `cargo xtask <task>`.

mod arrows;
mod bench;
mod beside;
mod campaign;
mod ci;
mod clients;
mod copy;
mod deny;
mod dialects;
mod dist;
mod faults;
mod features;
mod fetch_model;
mod fetch_valkey;
mod fuzz;
mod inner;
mod interop;
mod layers;
mod listed;
mod markdown;
mod mutants;
mod mutate;
mod needs;
mod nightly;
mod outcome;
mod process;
mod python;
mod rows;
mod schemathesis;
mod seed;
mod serve;
mod servers;
mod shard;
mod shared;
mod steps;
mod suite;
mod test;
mod tidy;
mod times;
mod tools;
mod unrun;
mod workflows;
mod workspace;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::steps::Selection;

/// The project's development tasks
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask", disable_help_subcommand = true)]
struct CommandLine {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Download the model if it is absent, build the gateway quickly, and run `sluicegate serve`
    Serve(Rest),
    /// Run every test, also with real servers and SDKs; with names, the Rust tests of these names
    Test(test::Args),
    /// Format, lint and test one crate: `t wire`, `t wire data_url`, `t server upstreams::u07`
    T(inner::Args),
    /// Run all checks that have to pass before a change lands
    Ci(Selection),
    /// Run the checks that take too long for every change
    Nightly(Selection),
    /// Run the official SDKs against the gateway
    Clients(clients::Args),
    /// Test the gateway in front of another model server, llama-cpp-python
    Interop(Rest),
    /// Test gateways that share limits, keys and usage, with Valkey, Redis and PostgreSQL
    Shared(shared::Args),
    /// Build the gateway in release, into target/dist
    Dist(dist::Args),
    /// Download the weights of the embedded text engine into the user's cache
    FetchModel,
    /// Run benches: of the decoder, the limits, the text model and the gateway
    ///
    /// All of them, or one: `decode`, `limits`, `gateway [CELL…]`, `instructions`, `linear` or
    /// `tenants`. With `--quick` they are rough, and with `--write` they write docs/benchmarks.md.
    /// `instructions` takes `--write REASON`, `--against COMMIT` or `--planted`, `linear` takes
    /// `--only WORD` or `--planted`: a gateway that does needless work has to fail.
    Bench(Rest),
    /// Run long soak tests against the release build
    ///
    /// All of them, or one: `streams`, `readers`, `overload`, `restarts` or `reloads`; with `--quick`,
    /// `--cycles N` for the number of restarts, or `--write` for docs/benchmarks.md.
    Soak(Rest),
    /// Fuzz every target in turn, or one
    Fuzz(fuzz::Args),
    /// Run seeded faults against a gateway in memory and judge the outcome of each
    ///
    /// `--faults N` of `--seed N`; `--only N` prints all details of one; `--write` writes the shares
    /// of outcomes to tests/campaign/expected.toml.
    Campaign(Rest),
    /// Request every answer of tests/dialects through the gateway, and print the differences
    Dialects {
        /// Write the tables to docs/dialects.md
        #[arg(long)]
        write: bool,
    },
    /// Test the running gateway against its OpenAPI document with random requests
    Schemathesis(schemathesis::Args),
    /// Write tests/FAULTS.md: every fault, and the tests that show the expected behaviour
    Faults,
    /// Plant one fault of tests/mutations in the product at a time, and check that a test fails
    Mutate(mutate::Args),
    /// Run cargo-mutants, and compare its survivors with the accepted ones of tests/mutants
    Mutants(mutants::Args),
}

/// Arguments that are passed on.
#[derive(Debug, clap::Args)]
struct Rest {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

fn main() -> ExitCode {
    let outcome = match &CommandLine::parse().task {
        Task::Serve(Rest { args }) => serve::run(args),
        Task::Test(args) => test::run(args),
        Task::T(args) => inner::run(args),
        Task::Ci(selection) => ci::run(selection),
        Task::Nightly(selection) => selection.run("nightly", nightly::STEPS),
        Task::Clients(args) => clients::run(args),
        Task::Interop(Rest { args }) => interop::run(args),
        Task::Shared(args) => shared::run(args),
        Task::Dist(args) => dist::run(args),
        Task::FetchModel => fetch_model::run(),
        Task::Bench(Rest { args }) => bench::run(args),
        Task::Soak(Rest { args }) => bench::program("soak", args),
        Task::Fuzz(args) => fuzz::run(args),
        Task::Campaign(Rest { args }) => campaign::run(args),
        Task::Dialects { write } => dialects::run(*write),
        Task::Schemathesis(args) => schemathesis::run(args),
        Task::Faults => faults::write(),
        Task::Mutate(args) => mutate::run(args),
        Task::Mutants(args) => mutants::run(args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
