//! `cargo xtask bench` and `cargo xtask soak`: run the benches of the crates, and the programs of
//! `tests/benches` with a gateway without engines.

mod worktree;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::outcome::Outcome;
use crate::{dist, fetch_valkey, needs, process, suite, workspace};

/// Runs the bench that the first of `args` names, with the remaining arguments; otherwise all of
/// them, one after another.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    match args {
        [first, rest @ ..] if first == "decode" => lean_bench("sse_decode", rest)?,
        [first, rest @ ..] if first == "limits" => limits(rest)?,
        [first, rest @ ..] if first == "gateway" => gateway(rest)?,
        [first, rest @ ..] if first == "instructions" => return instructions(rest),
        [first, rest @ ..] if first == "linear" => return linear(rest),
        [first, rest @ ..] if first == "tenants" => return program("tenants", rest),
        _ => {
            lean_bench("sse_decode", args)?;
            limits(args)?;
            let text =
                "run --release --locked --package sluicegate-candle --all-features --bin speed";
            process::echoed(&mut workspace::cargo(text))?;
            gateway(args)?;
        }
    }
    match writes(args) {
        true => {
            process::run(Command::new("python3").arg(workspace::root().join("tests/book/plots.py")))
        }
        false => Ok(()),
    }
}

/// Counts the instructions of a relayed request, event and conversation, and compares them with the
/// committed figures; or writes these (`--write REASON`), shows that one more copy of the body is
/// reported (`--planted`), or compares with another commit (`--against COMMIT`) or with a bare proxy
/// (`--bare FILE`).
pub(crate) fn instructions(args: &[OsString]) -> Outcome {
    let own = counted()?;
    let count = |figures: &Path, gateway: &Path, args: &[OsString]| {
        let mut command = Command::new(workspace::binary("instructions")?);
        process::run(command.arg(figures).arg(gateway).args(args))
    };
    let committed = workspace::root().join("tests/benches/INSTRUCTIONS.toml");
    match args {
        [only] if only == "--planted" => {
            count(&committed, &own, &[])?;
            let gateway = worktree::gateway("HEAD".as_ref(), Some(worktree::COPY))?;
            count(&committed, &gateway, args)
        }
        [first, commit] if first == "--against" => {
            let gateway = worktree::gateway(commit, None)?;
            let theirs = gateway.with_extension("toml");
            count(&theirs, &gateway, &["--write".into(), commit.clone()])?;
            count(&theirs, &own, &["--most".into(), "3".into()])
        }
        args => count(&committed, &own, args),
    }
}

/// Counts the instructions for n and for 4 n parts of requests and answers; or shows that a quadratic
/// loop is found (`--planted`).
pub(crate) fn linear(args: &[OsString]) -> Outcome {
    let own = counted()?;
    let gateway = match args.iter().any(|arg| arg == "--planted") {
        true => worktree::gateway("HEAD".as_ref(), Some(worktree::QUADRATIC_LOOP))?,
        false => own,
    };
    let mut command = Command::new(workspace::binary("linear")?);
    process::echoed(command.arg(gateway).args(args))
}

/// Measures the ledger of limits, and gateways whose limits a Valkey lends.
fn limits(args: &[OsString]) -> Outcome {
    lean_bench("limits", args)?;
    needs::compiler()?;
    let mut lending = Command::new(dist::programs("--bin lending")?.join("lending"));
    lending.arg("--gateway").arg(dist::with_stores()?);
    lending.arg("--valkey").arg(fetch_valkey::server()?);
    process::echoed(lending.args(workspace::with_page(args, PAGE)))
}

/// Measures the gateway against a bare proxy. The page has the size of the gateway with engines,
/// which is built for that.
fn gateway(args: &[OsString]) -> Outcome {
    let mut args = args.to_vec();
    if writes(&args) {
        args.extend(["--with-engines".into(), dist::build(false)?.into()]);
    }
    program("against_bare_proxy", &args)
}

fn writes(args: &[OsString]) -> bool {
    args.iter().any(|arg| arg == "--write")
}

/// Runs a bench of `tests/benches`, built beside the programs.
fn lean_bench(name: &str, args: &[OsString]) -> Outcome {
    let line = "bench --locked --all-features --package sluicegate-benches --bench";
    let mut command = workspace::cargo(line);
    command.args([name, "--target-dir"]).arg(dist::lean()?);
    command.arg("--").args(workspace::with_page(args, PAGE));
    process::echoed(&mut command)
}

/// Runs a program with the limit of file descriptors raised as far as possible: thousands of
/// streams need more than most systems permit by default.
pub(crate) fn program(name: &str, args: &[OsString]) -> Outcome {
    let mut command = Command::new("sh");
    command.args(["-c", r#"ulimit -S -n "$(ulimit -H -n)"; exec "$0" "$@""#]);
    needs::compiler()?;
    dist::build(true)?;
    command.arg(dist::programs("--bins")?.join(name));
    process::echoed(command.args(workspace::with_page(args, PAGE)))
}

/// Builds the gateway whose instructions are counted, and the test programs that send its requests.
/// Returns the path of the gateway.
fn counted() -> Outcome<PathBuf> {
    needs::valgrind()?;
    suite::build()?;
    process::run(&mut dist::counted(workspace::cargo("")))?;
    Ok(workspace::target()?.join("counts/sluicegate"))
}

/// The page of results.
const PAGE: &str = "docs/benchmarks.md";
