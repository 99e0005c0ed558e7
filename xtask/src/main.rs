//! The project's chores, run as `cargo xtask <chore>`.

mod advisories;
mod bench;
mod campaign;
mod ci;
mod clients;
mod deps;
mod faults;
mod features;
mod fetch_model;
mod fuzz;
mod gateway;
mod inner;
mod interop;
mod layers;
mod licences;
mod lints;
mod lockfile;
mod long;
mod mutate;
mod needs;
mod passed;
mod process;
mod programs;
mod python;
mod schemathesis;
mod seed;
mod serve;
mod suite;
mod test;
mod tidy;
mod times;
mod tools;
mod unrun;
mod workspace;

use std::ffi::OsString;
use std::process::ExitCode;

/// What a chore comes to: its error is a whole message for a person.
type Outcome<T = ()> = Result<T, String>;

fn main() -> ExitCode {
    match chore(std::env::args_os().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn chore(mut args: Vec<OsString>) -> Outcome {
    if args.is_empty() {
        return usage();
    }
    let name = args.remove(0);
    match name.to_str() {
        Some("serve") => serve::run(&args),
        Some("test") => test::run(&args),
        Some("t") => inner::run(&args),
        Some("ci") => ci::run(&args),
        Some("clients") => clients::run(&args),
        Some("interop") => interop::run(&args),
        Some("fetch-model") => nothing(&args).and_then(|()| fetch_model::run()),
        Some("bench") => bench::run(&args),
        Some("campaign") => campaign::run(&args),
        Some("soak") => programs::run("soak", "SOAK.md", &args),
        Some("fuzz") => fuzz::run(&args),
        Some("openapi") => nothing(&args).and_then(|()| serve::openapi()),
        Some("schemathesis") => schemathesis::run(&args),
        Some("faults") => faults::run(&args),
        Some("mutate") => mutate::run(&args),
        Some("advisories") => nothing(&args).and_then(|()| advisories::run()),
        Some("licences") => nothing(&args).and_then(|()| licences::run()),
        Some("deps") => nothing(&args).and_then(|()| deps::run()),
        Some("tidy") => nothing(&args).and_then(|()| tidy::run()),
        Some("help" | "--help" | "-h") => usage(),
        _ => Err(format!("there is no chore {name:?}\n\n{USAGE}")),
    }
}

fn usage() -> Outcome {
    println!("{USAGE}");
    Ok(())
}

/// Refuses arguments to a chore that takes none.
fn nothing(args: &[OsString]) -> Outcome {
    match args {
        [] => Ok(()),
        [first, ..] => Err(format!("this chore takes no arguments, but {first:?} was given")),
    }
}

const USAGE: &str = "\
usage: cargo xtask <chore>

  serve [ARGS…]       bring the model if it is absent, build in release, run `sluicegate serve ARGS…`
  test [NAME…]        bring the model if it is absent, run every test; with NAMEs the Rust tests whose path has one
  t CRATE [TESTS] [--accept]
                      format, lint and test one crate, such as `t wire`, `t wire data_url` or `t server upstreams::u07`;
                      --accept takes over snapshots that differ
  ci [--tier short|long] [--only STEP,…] [--from STEP] [--keep-going] [--list]
                      everything that has to pass before a change lands; the long tier is everything else, each part of
                      which writes its row of tests/LONG.md; --list names the steps
  clients python|python-previous|node [ARGS…]
                      run the official SDKs against the gateway; ARGS go to pytest or `node --test`
  interop [ARGS…]     run the gateway in front of another model server, llama-cpp-python; ARGS go to the tests
  fetch-model         bring the weights of the embedded text engine into the user's cache
  bench [ARGS…]       run the benches; ARGS go to the bench programs of the crates
  bench gateway [--quick] [--write] [CELL…]
                      measure the release build in front of an upstream against a bare proxy: everything, or a CELL
                      such as 'requests'; --write puts the table into tests/benches/RESULTS.md
  bench instructions [--write REASON]
                      count the instructions of a relayed request and event with valgrind, and hold them against
                      tests/benches/INSTRUCTIONS.toml; --write puts what was counted there
  soak [--quick] [--cycles N] [--write] [CELL…]
                      hold the release build against loads that it has to outlast: idle streams, clients that do not
                      read, overload, restarts and reloads, or a CELL of these such as 'overload'; --cycles is how often
                      it is stopped under load; --write puts the table into tests/benches/SOAK.md
  fuzz [--minutes N] [--keep] [--log] [TARGET]
                      fuzz every target in turn, or one, for N minutes each (1); --keep adds to the corpus what
                      reached new code, --log adds the run to fuzz/LOG.md
  campaign [--seed N] [--faults N] [--write] [--only N]
                      put N seeded faults (100,000) to a gateway in memory and hold each against what is owed; --write
                      puts the summary into tests/campaign/LOG.md; --only tells one of them in full
  openapi             print the OpenAPI document of what is served
  schemathesis [--examples N] [--without TAG]…
                      hold the running gateway against its OpenAPI document with N random requests an operation (25);
                      --without leaves out the operations of a tag, such as Images
  faults [--check]    write tests/FAULTS.md: every fault, and the tests that show what happens then; --check holds it
                      against the last run of `cargo xtask test` instead
  mutate [--list] [--write] [--untried] [--renamed] [--minutes N] [--build|--built] [--jobs N] [NAME…]
                      plant one fault in the product at a time, in a copy, and see that a test fails: all of
                      tests/mutations, or those whose name or row is a NAME; --write puts the results into
                      tests/MUTATIONS.md; --untried leaves out those that the page has; --minutes begins none after
                      N minutes; --build only builds them, and --built runs what was built; --renamed runs nothing, and
                      keeps the results of mutations whose texts changed with a renaming alone
  licences            hold the licences and sources of all packages against deny.toml
  advisories          look the locked packages up in the RustSec database, which has to be reachable
  deps                hold the workspace against the layer table, its lints and the lock files against the rules
  tidy                look over every file for what the compiler does not see";
