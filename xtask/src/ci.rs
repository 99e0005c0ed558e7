//! `cargo xtask ci`: all checks, in the order that finds a mistake soonest.
//!
//! The short tier runs for every change. The long tier is everything else; see [`crate::long`].

use std::ffi::OsString;

use crate::outcome::Outcome;
use crate::times::{Step, Times};
use crate::{
    bench, campaign, deps, faults, licences, long, process, schemathesis, seed, servers, test,
    tidy, workspace,
};

/// Runs the steps that `args` select, and prints the duration of each.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    let plan = Plan::parse(args)?;
    if plan.is_long {
        plan.run("ci --tier long", &long::steps())
    } else {
        plan.run("ci", &short())
    }
}

/// The short tier.
fn short() -> Vec<Step> {
    vec![
        Step::new("format", "rustfmt", || {
            process::echoed(workspace::cargo("fmt").args(["--all", "--check"]))
        }),
        Step::new(
            "tidy",
            "problems that the compiler does not find, in every file",
            tidy::run,
        ),
        Step::new(
            "layers",
            "the layer table, features, lints and lock files",
            deps::run,
        ),
        Step::new(
            "licences",
            "licences and sources of all packages",
            licences::run,
        ),
        Step::new(
            "age",
            "the results of the long tier are recent enough",
            long::check_age,
        ),
        Step::new("clippy", "clippy and compiler warnings", clippy),
        Step::new("docs", "rustdoc without warnings", docs),
        Step::new(
            "alone",
            "each protocol crate compiles with its own features only",
            each_alone,
        ),
        Step {
            name: "tests",
            about: "`cargo xtask test`: Rust tests, examples, tests with real servers, current Python SDKs",
            run: Box::new(test::everything),
        },
        Step::new(
            "faults",
            "every row of tests/FAULTS.md has a test that passed",
            faults::check,
        ),
        Step::new(
            "servers",
            "every row of tests/SERVERS.md has tests that passed",
            servers::check,
        ),
        Step::new(
            "schemathesis",
            "random requests, checked against the OpenAPI document",
            schemathesis::smoke,
        ),
        Step::new("campaign", "20,000 seeded faults", campaign::short),
        Step::new(
            "instructions",
            "instructions of a relayed request, event and conversation",
            || bench::instructions(&[]),
        ),
        Step::new(
            "rotating",
            "one part of the long tier, chosen by the seed",
            long::rotating,
        ),
    ]
}

fn clippy() -> Outcome {
    let mut clippy = workspace::cargo("clippy");
    process::echoed(clippy.args([
        "--workspace",
        "--all-targets",
        "--all-features",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))
}

fn docs() -> Outcome {
    let mut doc = workspace::cargo("doc");
    process::echoed(
        doc.args(["--workspace", "--no-deps", "--locked"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

/// Tests the crates that are published separately, each with its own features only. Their tests run
/// alone in the long tier.
fn each_alone() -> Outcome {
    deps::published()?.iter().try_for_each(|package| {
        process::echoed(workspace::cargo("check").args([
            "--locked",
            "--quiet",
            "--package",
            package,
        ]))
    })
}

/// The parsed command line.
#[derive(Debug, Default, PartialEq)]
struct Plan {
    is_long: bool,
    list: bool,
    keep_going: bool,
    only: Vec<String>,
    from: Option<String>,
}

impl Plan {
    fn parse(args: &[OsString]) -> Outcome<Self> {
        let mut plan = Self::default();
        let mut args = args.iter().map(|arg| arg.to_string_lossy());
        while let Some(arg) = args.next() {
            let mut value = || {
                args.next()
                    .map(String::from)
                    .ok_or_else(|| format!("{arg} takes a value: {USAGE}"))
            };
            match &*arg {
                "--list" => plan.list = true,
                "--keep-going" => plan.keep_going = true,
                "--only" => plan.only.extend(value()?.split(',').map(str::to_owned)),
                "--from" => plan.from = Some(value()?),
                "--tier" => match &*value()? {
                    "short" => plan.is_long = false,
                    "long" => plan.is_long = true,
                    other => {
                        return Err(format!(
                            "there is no tier {other:?}: there are short and long"
                        ));
                    }
                },
                other => return Err(format!("unexpected {other:?}: {USAGE}")),
            }
        }
        Ok(plan)
    }

    /// Runs the selected steps; stops at the first failure unless `--keep-going` is given.
    fn run(&self, command: &'static str, steps: &[Step]) -> Outcome {
        let chosen = self.choose(steps)?;
        if self.list {
            chosen
                .iter()
                .for_each(|step| println!("{:<14} {}", step.name, step.about));
            return Ok(());
        }
        println!("seed {}", seed::current()?);
        let mut times = Times::of(command);
        let mut failed = Vec::new();
        for step in chosen {
            if let Err(error) = (step.run)(&mut times) {
                failed.push(format!("'{}': {error}", step.name));
                if !self.keep_going {
                    break;
                }
            }
        }
        times.finish();
        if failed.is_empty() {
            Ok(())
        } else {
            Err(format!("{command} failed at {}", failed.join("\nand at ")))
        }
    }

    fn choose<'a>(&self, steps: &'a [Step]) -> Outcome<Vec<&'a Step>> {
        let place = |name: &String| {
            let names = || {
                steps
                    .iter()
                    .map(|step| step.name)
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let place = steps.iter().position(|step| step.name == name);
            place.ok_or_else(|| format!("there is no step {name:?}: there are {}", names()))
        };
        let first = self.from.as_ref().map_or(Ok(0), place)?;
        let only = self.only.iter().map(place).collect::<Outcome<Vec<_>>>()?;
        let is_chosen = |at: &usize| *at >= first && (only.is_empty() || only.contains(at));
        Ok((0..steps.len())
            .filter(is_chosen)
            .map(|at| &steps[at])
            .collect())
    }
}

const USAGE: &str =
    "expected [--tier short|long] [--only STEP,…] [--from STEP] [--keep-going] [--list]";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Outcome<Plan> {
        Plan::parse(
            &line
                .split_whitespace()
                .map(OsString::from)
                .collect::<Vec<_>>(),
        )
    }

    fn names(line: &str) -> Outcome<String> {
        let plan = parse(line)?;
        let steps = ["one", "two", "three"].map(|name| Step::new(name, "", || Ok(())));
        Ok(plan
            .choose(&steps)?
            .iter()
            .map(|step| step.name)
            .collect::<Vec<_>>()
            .join(" "))
    }

    #[test]
    fn steps_are_chosen_by_name() {
        assert_eq!(names("").as_deref(), Ok("one two three"));
        assert_eq!(names("--only three,one").as_deref(), Ok("one three"));
        assert_eq!(names("--from two").as_deref(), Ok("two three"));
        assert!(
            names("--only four")
                .unwrap_err()
                .contains("no step \"four\": there are one, two, three")
        );
    }

    #[test]
    fn the_command_line_is_read_or_refused() {
        let expected = Plan {
            is_long: true,
            keep_going: true,
            only: vec!["soak".to_owned()],
            ..Plan::default()
        };
        assert_eq!(parse("--tier long --only soak --keep-going"), Ok(expected));
        assert!(
            parse("--tier middle")
                .unwrap_err()
                .contains("no tier \"middle\"")
        );
        assert!(
            parse("--only")
                .unwrap_err()
                .contains("--only takes a value")
        );
        assert!(parse("soak").unwrap_err().contains("unexpected \"soak\""));
    }

    #[test]
    fn a_failing_step_ends_the_run_unless_it_goes_on() {
        use std::cell::Cell;
        use std::rc::Rc;
        let ran = |line: &str| {
            let count = Rc::new(Cell::new(0));
            let counted = Rc::clone(&count);
            let steps = [
                Step::new("bad", "", || Err("no".to_owned())),
                Step::new("good", "", move || {
                    counted.set(counted.get() + 1);
                    Ok(())
                }),
            ];
            (parse(line).unwrap().run("test of ci", &steps), count.get())
        };
        let (stopped, count) = ran("");
        assert_eq!(
            (stopped.unwrap_err().as_str(), count),
            ("test of ci failed at 'bad': no", 0)
        );
        let (went_on, count) = ran("--keep-going");
        assert!(went_on.is_err());
        assert_eq!(count, 1);
    }
}
