//! `cargo xtask mutants`: runs cargo-mutants, and compares the mutants that no test has caught with
//! the accepted ones, which `tests/mutants` lists.
//!
//! The work is done on a copy in `target/mutants`, with a separate target folder that stays warm.
//! Each mutant is tested by the tests of its own crate. A mutant is named by its file, its place and
//! its change; lists leave the place out, so that moves within a file change nothing.

use std::collections::BTreeMap;
use std::fs;

use crate::copy::Copy;
use crate::outcome::{At as _, Outcome, no_problems};
use crate::shard::Shard;
use crate::tools::MUTANTS;
use crate::{process, seed, shared, workspace};

/// The command line.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Try only mutants in lines that differ from the merge base with REF
    #[arg(long, value_name = "REF")]
    in_diff: Option<String>,
    /// Try part K of N equal parts; K counts modulo N
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
    /// Try N mutants of each crate, chosen by the seed
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Try only mutants of these crates, such as `quota`
    #[arg(long, value_name = "CRATE", num_args = 1..)]
    package: Vec<String>,
    /// Print the mutants instead
    #[arg(long)]
    list: bool,
}

/// Tries the chosen mutants, crate by crate.
pub(crate) fn run(args: &Args) -> Outcome {
    let copy = Copy::open("mutants")?;
    let seed = seed::current()?;
    let chosen = chosen(&copy, args)?;
    let mut packages = chosen.keys();
    let needs_server = packages.any(|package| WITH_SERVERS.contains(&package.as_str()));
    if needs_server && !args.list && shared::beside_servers()? {
        return Ok(());
    }
    let mut problems = Vec::new();
    for (package, mut mutants) in chosen {
        if let Some(size) = args.sample {
            mutants.sort_by_cached_key(|mutant| seed::of(&format!("{seed} {mutant}")));
            mutants.truncate(size);
        }
        if args.list {
            mutants.iter().for_each(|mutant| println!("{mutant}"));
            continue;
        }
        let results = tried(&copy, &package, &mutants)?;
        problems.extend(judged(&package, &results)?);
    }
    no_problems("mutants", &problems)
}

/// The mutants that the command line selects, by crate.
fn chosen(copy: &Copy, args: &Args) -> Outcome<BTreeMap<String, Vec<String>>> {
    let mut list = MUTANTS.command("--workspace --list")?;
    if let Some(reference) = &args.in_diff {
        let diff = process::output(workspace::git("diff --merge-base").arg(reference))?;
        let path = copy.folder.join("changes.diff");
        fs::write(&path, diff).at(&path)?;
        list.arg("--in-diff").arg(path);
    }
    copy.enter(&mut list);
    let printed = process::output(&mut list)?;
    let mut all: Vec<_> = printed.lines().map(str::to_owned).collect();
    if let Some(shard) = args.shard {
        all = shard.of(all);
    }
    let mut crates = BTreeMap::<_, Vec<_>>::new();
    for mutant in all {
        let package = mutant.split('/').nth(1).unwrap_or_default().to_owned();
        if args.package.is_empty() || args.package.contains(&package) {
            crates.entry(package).or_default().push(mutant);
        }
    }
    Ok(crates)
}

/// Tries mutants of one crate, one after another. Returns the mutants by result: `caught`, `missed`,
/// `timeout` or `unviable`.
fn tried(copy: &Copy, package: &str, mutants: &[String]) -> Outcome<Results> {
    let output = copy.folder.join(package);
    fs::create_dir_all(&output).at(&output)?;
    let mut run = MUTANTS.command("--in-place --output")?;
    run.arg(&output);
    run.args(["--package", &format!("sluicegate-{package}")]);
    let names = mutants.iter().map(|mutant| escaped(mutant));
    run.args(names.map(|name| format!("--re=^{name}$")));
    run.args(options(package).split_whitespace());
    copy.enter(&mut run);
    // A case that one mutant has failed is not tried again for the next one.
    run.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
    // Fewer kills and schedules than in an ordinary run.
    run.env("SLUICEGATE_TEST_KILLS", "10");
    run.env("SLUICEGATE_SIM_SCHEDULES", "2000");
    seed::pass(seed::current()?, &mut run);
    let status = process::start(&mut run)?.wait().at("cargo-mutants")?;
    // The others say that some survived or timed out.
    if !matches!(status.code(), Some(0 | 2 | 3)) {
        return Err(format!("cargo-mutants ended with {status}"));
    }
    let results = RESULTS.iter().map(|result| {
        let path = output.join(format!("mutants.out/{result}.txt"));
        let text = fs::read_to_string(&path).at(&path)?;
        Ok((*result, text.lines().map(str::to_owned).collect()))
    });
    results.collect()
}

/// The options with which the tests of a crate run: those with servers, without the embedded engines,
/// and many at once where they mostly wait.
fn options(package: &str) -> &'static str {
    match package {
        "accounting" => "--features=postgres -- -- --include-ignored",
        "lease" => "-- -- --include-ignored --skip=in_redis",
        // Sooner built than the optimizations save in its tests.
        "quota" => "--cargo-arg=--config=profile.dev.package.sluicegate-quota.opt-level=0",
        "server" => {
            "--no-default-features --features=postgres,sqlite,valkey -- -- --test-threads=8"
        }
        _ => "",
    }
}

/// The mutants of a run, by result.
type Results = BTreeMap<&'static str, Vec<String>>;

/// Prints the counts of a crate, and returns its survivors that its list does not accept. A listed
/// mutant that was caught is named, so that it can leave the list.
fn judged(package: &str, results: &Results) -> Outcome<Vec<String>> {
    let path = format!("tests/mutants/{package}.txt");
    // A crate without a list accepts none.
    let list = workspace::read(&path).unwrap_or_default();
    let accepted = accepted(&list, WITH_REASONS.contains(&package)).at(&path)?;
    let counts = RESULTS.map(|result| format!("{} {result}", results[result].len()));
    println!("{package}: {}", counts.join(", "));
    for mutant in &results["timeout"] {
        println!("  timed out: {mutant}");
    }
    let lines = |result| results[result].iter().map(|mutant| without_place(mutant));
    for line in lines("caught").filter(|line| accepted.contains(line)) {
        println!("  caught, though {path} accepts it: {line}");
    }
    let survivors = lines("missed").filter(|line| !accepted.contains(line));
    let survivors = survivors.map(|line| format!("no test catches {line}"));
    Ok(survivors.collect())
}

/// The mutants of a list. A reason may follow behind `#`.
fn accepted(list: &str, needs_reasons: bool) -> Outcome<Vec<String>> {
    let rows = list.lines().map(|row| {
        let (mutant, reason) = row.split_once("  # ").unwrap_or((row, ""));
        match needs_reasons && reason.trim().is_empty() {
            true => Err(format!("{mutant:?} has no reason behind `  # `")),
            false => Ok(mutant.to_owned()),
        }
    });
    rows.collect()
}

/// `crates/a/src/b.rs: replace c` for `crates/a/src/b.rs:1:2: replace c`.
fn without_place(mutant: &str) -> String {
    let (place, change) = mutant.split_once(": ").unwrap_or((mutant, ""));
    let file = place.split(':').next().unwrap_or(place);
    format!("{file}: {change}")
}

/// Escapes a text for a regular expression.
fn escaped(text: &str) -> String {
    // Others must not be escaped: `\<` is the start of a word.
    let slash = |letter| r"\.+*?()|[]{}^$".contains(letter).then_some('\\');
    let letters = text.chars();
    let escaped = letters.flat_map(|letter| slash(letter).into_iter().chain([letter]));
    escaped.collect()
}

const RESULTS: [&str; 4] = ["caught", "missed", "timeout", "unviable"];
/// The crates whose tests need PostgreSQL or Valkey.
const WITH_SERVERS: [&str; 2] = ["accounting", "lease"];
/// The crates whose lists state a reason for each line, because they guard keys, locks and money.
const WITH_REASONS: [&str; 4] = ["accounting", "auth", "lease", "quota"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_lose_their_place() {
        let name = "crates/a/src/b.rs:1:2: replace * with / in <A as B>::c";
        assert_eq!(
            escaped(name),
            r"crates/a/src/b\.rs:1:2: replace \* with / in <A as B>::c"
        );
        assert_eq!(
            without_place(name),
            "crates/a/src/b.rs: replace * with / in <A as B>::c"
        );
    }

    #[test]
    fn accepted_survivors_need_a_reason_where_money_is() {
        let list = "a.rs: replace b with true  # It is equivalent.\n";
        let expected = Ok(vec!["a.rs: replace b with true".to_owned()]);
        assert_eq!(accepted(list, true), expected);
        let bare = "a.rs: replace b with true\n";
        assert_eq!(accepted(bare, false), expected);
        assert!(accepted(bare, true).unwrap_err().contains("has no reason"));
    }
}
