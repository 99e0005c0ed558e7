//! The project's development tasks, run as `cargo xtask <task>`.

mod advisories;
mod agents;
mod bench;
mod campaign;
mod ci;
mod clients;
mod deps;
mod dialects;
mod dist;
mod faults;
mod features;
mod fetch_model;
mod fetch_valkey;
mod fuzz;
mod gateway;
mod history;
mod imports;
mod inner;
mod interop;
mod language;
mod layers;
mod libtest;
mod licences;
mod lints;
mod lockfile;
mod long;
mod markdown;
mod mutate;
mod needs;
mod outcome;
mod passed;
mod process;
mod python;
mod rows;
mod schemathesis;
mod seed;
mod serve;
mod servers;
mod shared;
mod source;
mod speed;
mod suite;
mod test;
mod tidy;
mod times;
mod tools;
mod unrun;
mod wheel;
mod workspace;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::outcome::Outcome;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    match run_task(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run_task(args: &[OsString]) -> Outcome {
    let Some((name, args)) = args.split_first() else {
        return usage();
    };
    match name.to_str() {
        Some("serve") => serve::run(args),
        Some("test") => test::run(args),
        Some("t") => inner::run(args),
        Some("ci") => ci::run(args),
        Some("clients") => clients::run(args),
        Some("agents") => agents::run(args),
        Some("interop") => interop::run(args),
        Some("shared") => no_arguments(args).and_then(|()| shared::run()),
        Some("fetch-model") => no_arguments(args).and_then(|()| fetch_model::run()),
        Some("bench") => bench::run(args),
        Some("campaign") => campaign::run(args),
        Some("dist") => dist::run(args),
        Some("dialects") => dialects::run(args),
        Some("soak") => bench::soak(args),
        Some("fuzz") => fuzz::run(args),
        Some("openapi") => no_arguments(args).and_then(|()| serve::openapi()),
        Some("schemathesis") => schemathesis::run(args),
        Some("faults") => faults::run(args),
        Some("servers") => no_arguments(args).and_then(|()| servers::check()),
        Some("mutate") => mutate::run(args),
        Some("advisories") => no_arguments(args).and_then(|()| advisories::run()),
        Some("licences") => no_arguments(args).and_then(|()| licences::run()),
        Some("deps") => no_arguments(args).and_then(|()| deps::run()),
        Some("language") => no_arguments(args).and_then(|()| language::run()),
        Some("tidy") => no_arguments(args).and_then(|()| tidy::run()),
        Some("help" | "--help" | "-h") => usage(),
        _ => Err(format!("unknown task {name:?}\n\n{USAGE}")),
    }
}

fn usage() -> Outcome {
    println!("{USAGE}");
    Ok(())
}

/// Rejects arguments of a task that takes none.
fn no_arguments(args: &[OsString]) -> Outcome {
    match args {
        [] => Ok(()),
        [first, ..] => Err(format!(
            "this task takes no arguments, but {first:?} was given"
        )),
    }
}

const USAGE: &str = "\
usage: cargo xtask <task>

  serve [ARGS…]       download the model if it is absent, build with the profile `quick`, run `sluicegate serve ARGS…`
  test [NAME…]        download the model and Valkey if they are absent, run every test, also those of `shared`; with
                      NAMEs the Rust tests whose path contains one
  t CRATE [TESTS] [--accept]
                      format, lint and test one crate, such as `t wire`, `t wire data_url` or `t server upstreams::u07`;
                      --accept accepts snapshots that differ
  ci [--tier short|long] [--only STEP,…] [--from STEP] [--keep-going] [--list]
                      run all checks that have to pass before a change lands; the long tier has all other checks, each
                      of which writes its row of tests/LONG.md; --list names the steps
  clients python|python-previous|node [ARGS…]
                      run the official SDKs against the gateway; ARGS go to pytest or `node --test`
  agents [--write] [NAME…]
                      run coding agents such as Codex and Claude Code through the gateway: all, or those whose name
                      contains a NAME; --write writes the table to docs/agents.md
  interop [ARGS…]     test the gateway in front of another model server, llama-cpp-python; ARGS go to the tests
  dist [--pgo] [--lean]
                      build the gateway in release, into target/dist; --pgo trains it with the work of the benches,
                      --lean leaves out the embedded engines
  fetch-model         download the weights of the embedded text engine into the user's cache
  bench [--quick] [--write]
                      run all benches: of the decoder, the limits, the text model and the gateway
  bench decode [--quick] [--write]
                      measure the decoder of streams against others; --write writes the table to
                      tests/benches/DECODE.md, and from there to README.md and docs/benchmarks.md
  bench limits [--quick] [--write]
                      measure the ledger of limits, and gateways whose limits a Valkey lends, against one without;
                      --write writes the tables to tests/benches/LIMITS.md and LENDING.md
  bench gateway [--quick] [--write] [CELL…]
                      measure the release build in front of an upstream against a bare proxy: everything, or a CELL
                      such as 'requests'; --write writes the tables to tests/benches/RESULTS.md, and from there to
                      README.md and docs/benchmarks.md
  bench instructions [--write REASON|--planted]
                      count the instructions of a relayed request, event and conversation with valgrind, and compare
                      them with tests/benches/INSTRUCTIONS.toml; --write writes the new figures there; --planted
                      shows that a gateway with one more copy of the body fails
  soak [--quick] [--cycles N] [--write] [CELL…]
                      run long soak tests against the release build: idle streams, clients that do not read, overload,
                      restarts and reloads, or a CELL of these such as 'overload'; --cycles is the number of stops
                      under load; --write writes the table to tests/benches/SOAK.md
  fuzz [--minutes N] [--keep] [--log] [--due] [TARGET]
                      fuzz every target in turn, or one, for N minutes each (1); --keep adds inputs that reach
                      new code to the corpus, --log adds the run to fuzz/LOG.md; --due leaves out targets with a
                      recent run
  campaign [--seed N] [--faults N] [--write] [--only N]
                      run N seeded faults (100,000) against a gateway in memory and check the outcome of each; --write
                      writes the summary to tests/campaign/LOG.md; --only prints all details of one fault
  dialects [--write]  request every answer of tests/dialects through the gateway, and print what differs and a table;
                      --write writes the table to docs/dialects.md
  openapi             print the OpenAPI document of the gateway
  schemathesis [--examples N] [--without TAG]…
                      test the running gateway against its OpenAPI document with N random requests per operation (25);
                      --without excludes the operations of a tag, such as Images
  faults [--check]    write tests/FAULTS.md: every fault, and the tests that show the expected behaviour; --check
                      compares it with the last run of `cargo xtask test` instead
  shared              download Valkey if it is absent, test leases and gateways that share limits with it, and leases
                      with Redis and keys and usage with PostgreSQL if they are installed
  servers             compare tests/SERVERS.md, the list of what real servers do, with the last run of `cargo xtask test`
  mutate [--list] [--write] [--due] [--minutes N] [--build|--built] [--jobs N] [NAME…]
                      plant one fault in the product at a time, in a copy, and check that a test fails: all of
                      tests/mutations, or those whose name or row is a NAME; --write writes the results to
                      tests/MUTATIONS.md; --due leaves out those with a recent result; --minutes starts none after
                      N minutes; --build only builds them, and --built runs existing builds
  licences            check the licences and sources of all packages against deny.toml
  advisories          check the locked packages against the RustSec database, which has to be reachable
  deps                check the workspace against the layer table, the files of each crate for circles of imports, and
                      lints and lock files against the rules
  language            measure the code crate by crate: words of the old dialect, openings of documentation, lengths of
                      functions
  tidy                check every file for problems that the compiler does not find";
