//! `cargo xtask mutate`: plants one fault in the product at a time and checks that a test fails.
//!
//! The faults are listed in `tests/mutations`. The work is done on a copy in `target/mutate`, with
//! a separate target folder that stays warm, so that the work tree is never changed; edits in the
//! work tree during a run have no effect on it.

mod built;
mod copy;
mod list;
mod matching;
mod page;
mod share;
mod trial;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::OsString;
use std::time::Duration;

use self::copy::Copy;
pub(crate) use self::copy::renew as copy_if_changed;
use self::list::Mutation;
use self::page::Page;
pub(crate) use self::share::run as share;
use self::trial::{Finding, Trials, Verdict};
use crate::outcome::{Outcome, no_problems};
use crate::{history, times};

/// Runs the mutations that `args` select.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    let plan = Plan::parse(args)?;
    let all = list::read()?;
    let mut page = Page::read(&all)?;
    let mut chosen = plan.choose(&all)?;
    if plan.due {
        chosen = due(chosen, &page)?;
    }
    if plan.list {
        chosen
            .iter()
            .for_each(|mutation| println!("{:<40} {}", mutation.name, mutation.why));
        return Ok(());
    }
    if plan.write {
        // The page follows the current list, whatever is run of it.
        page.write(&all)?;
    }
    let (findings, wrong) = judge(&chosen, &plan, |mutation, finding| {
        page.note(mutation, finding);
        // Written at once, so that a failure of a later trial does not lose hours of work.
        if plan.write { page.write(&all) } else { Ok(()) }
    })?;
    print!("{}", page::summary(&findings));
    no_problems("mutations", &wrong)
}

/// Tries the mutations that are due again, and sums up the page.
pub(crate) fn renew() -> Outcome<String> {
    run(&["--due", "--write"].map(OsString::from))?;
    let all = list::read()?;
    let left = due(all.iter().collect(), &Page::read(&all)?)?;
    if left.is_empty() {
        Ok(format!("passed, {} mutations", all.len()))
    } else {
        Err(format!("{} not tried or not caught", left.len()))
    }
}

/// Those that were not caught yet in their current form, or on a commit that was rewritten, or whose
/// crate has changed often since.
fn due<'a>(chosen: Vec<&'a Mutation>, page: &Page) -> Outcome<Vec<&'a Mutation>> {
    let (mut due, mut changes) = (Vec::new(), BTreeMap::new());
    for mutation in chosen {
        let is_fresh = match page.settled_on(mutation) {
            Some(commit) if history::contains(commit) => {
                let area = mutation.area();
                let count = match changes.entry((commit, area.clone())) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(unknown) => {
                        *unknown.insert(history::changes_since(commit, &[&area])?)
                    }
                };
                count <= FRESH
            }
            _ => false,
        };
        if !is_fresh {
            due.push(mutation);
        }
    }
    Ok(due)
}

/// The number of commits that may have changed the crate of a mutation since it was tried, until it
/// is tried again.
const FRESH: usize = 60;

/// Checks that every mutation still matches the code: `cargo xtask tidy` does so, since all of the
/// trials take too long.
pub(crate) fn problems() -> Outcome<Vec<String>> {
    Ok(list::problems(&list::read()?))
}

/// A mutation with rows of the fault list, as in the page.
#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) rows: Vec<String>,
    /// True if it was tried in its current form.
    pub(crate) is_tried: bool,
    /// The tests that failed, by their paths.
    pub(crate) caught_by: Vec<String>,
}

/// The mutations that name rows.
pub(crate) fn trials() -> Outcome<Vec<Trial>> {
    let all = list::read()?;
    let page = Page::read(&all)?;
    let trial = |mutation: &Mutation| Trial {
        rows: mutation.rows.clone(),
        is_tried: page.is_tried(mutation),
        caught_by: page.caught_by(mutation),
    };
    Ok(all
        .iter()
        .filter(|mutation| !mutation.rows.is_empty())
        .map(trial)
        .collect())
}

/// The result of each mutation, by its name.
type Findings = BTreeMap<String, Finding>;

/// Tries one after another until the time is over, and reports each finding immediately; also
/// returns the problems that have to be fixed.
fn judge(
    chosen: &[&Mutation],
    plan: &Plan,
    mut report: impl FnMut(&Mutation, &Finding) -> Outcome,
) -> Outcome<(Findings, Vec<String>)> {
    let mut trials = Trials::new(Copy::open()?, plan.jobs);
    let started = times::now();
    let mut findings = Findings::new();
    let mut wrong = Vec::new();
    let chosen = ordered(chosen, |mutation| !plan.built || trials.is_built(mutation));
    for (number, mutation) in chosen.iter().enumerate() {
        if plan
            .minutes
            .is_some_and(|minutes| started.elapsed() >= Duration::from_mins(minutes.into()))
        {
            break;
        }
        if plan.build {
            print!("{}/{} {}: ", number + 1, chosen.len(), mutation.name);
            let unbuilt = trials.build(mutation)?;
            println!(
                "{}",
                unbuilt
                    .as_ref()
                    .map_or("built".to_owned(), |finding| finding.verdict.to_string())
            );
            unbuilt.map_or(Ok(()), |finding| report(mutation, &finding))?;
            continue;
        }
        let at_once = if plan.built { 1 } else { AT_ONCE };
        if number % at_once == 0 {
            trials.prepare(&chosen[number..chosen.len().min(number + at_once)])?;
        }
        print!("{}/{} {}: ", number + 1, chosen.len(), mutation.name);
        match trials.run(mutation) {
            Err(error) => {
                println!("not tried");
                wrong.push(error);
            }
            Ok(finding) => {
                println!(
                    "{} {}",
                    finding.verdict,
                    finding.by.first().map_or("", String::as_str)
                );
                report(mutation, &finding)?;
                wrong.extend(finding.verdict.wrong(mutation));
                findings.insert(mutation.name.clone(), finding);
            }
        }
    }
    Ok((findings, wrong))
}

/// The mutations that are fit, so that little is built between two of them; the slow ones last.
fn ordered<'a>(chosen: &[&'a Mutation], is_fit: impl Fn(&Mutation) -> bool) -> Vec<&'a Mutation> {
    let mut chosen = chosen.to_vec();
    chosen.retain(|mutation| is_fit(mutation));
    chosen.sort_by_key(|mutation| (mutation.slow, mutation.rows.is_empty(), mutation.place()));
    chosen
}

/// The number of mutations whose tests are run unchanged before the first of them is built.
const AT_ONCE: usize = 12;

/// The parsed command line.
#[derive(Debug, Default, PartialEq)]
struct Plan {
    list: bool,
    write: bool,
    /// Only build what trials need, and keep it for a later run.
    build: bool,
    /// Only run mutations that are built, and build nothing.
    built: bool,
    /// Only run mutations that the page does not contain, or whose result is old.
    due: bool,
    jobs: Option<u16>,
    /// The number of minutes after which no trial is started any more.
    minutes: Option<u16>,
    names: Vec<String>,
}

impl Plan {
    fn parse(args: &[OsString]) -> Outcome<Self> {
        let mut plan = Self::default();
        let mut args = args.iter().map(|arg| arg.to_string_lossy());
        while let Some(arg) = args.next() {
            match &*arg {
                "--list" => plan.list = true,
                "--write" => plan.write = true,
                "--build" => plan.build = true,
                "--built" => plan.built = true,
                "--due" => plan.due = true,
                "--jobs" => plan.jobs = Some(number(&arg, args.next().as_deref())?),
                "--minutes" => plan.minutes = Some(number(&arg, args.next().as_deref())?),
                name if !name.starts_with('-') => plan.names.push(name.to_owned()),
                other => return Err(format!("unexpected {other:?}: expected {USAGE}")),
            }
        }
        Ok(plan)
    }

    /// The mutations whose names begin with one of those given, or that have a row of that name, or
    /// all.
    fn choose<'a>(&self, all: &'a [Mutation]) -> Outcome<Vec<&'a Mutation>> {
        let is_of = |mutation: &Mutation, name: &String| {
            mutation.name.starts_with(name) || mutation.rows.contains(name)
        };
        if let Some(name) = self
            .names
            .iter()
            .find(|name| !all.iter().any(|mutation| is_of(mutation, name)))
        {
            return Err(format!(
                "there is no mutation {name:?}: `cargo xtask mutate --list` names them"
            ));
        }
        let is_chosen = |mutation: &&Mutation| {
            self.names.is_empty() || self.names.iter().any(|name| is_of(mutation, name))
        };
        Ok(all.iter().filter(is_chosen).collect())
    }
}

fn number(flag: &str, word: Option<&str>) -> Outcome<u16> {
    let number = word
        .and_then(|word| word.parse().ok())
        .filter(|number| *number > 0);
    number.ok_or_else(|| format!("{flag} takes a number, such as 1, not {word:?}"))
}

const USAGE: &str =
    "[--list] [--build] [--built] [--write] [--due] [--jobs N] [--minutes N] [NAME…]";

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

    #[test]
    fn the_command_line_is_read_or_refused() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        assert_eq!(parse(""), Ok(Plan::default()));
        assert_eq!(
            parse("sse --write --jobs 2 wire-depth"),
            Ok(Plan {
                write: true,
                jobs: Some(2),
                names: names(&["sse", "wire-depth"]),
                ..Plan::default()
            })
        );
        assert_eq!(
            parse("--due --minutes 5"),
            Ok(Plan {
                due: true,
                minutes: Some(5),
                ..Plan::default()
            })
        );
        assert!(parse("--jobs 0").unwrap_err().contains("takes a number"));
        assert!(
            parse("--fast")
                .unwrap_err()
                .contains("unexpected \"--fast\"")
        );
    }

    #[test]
    fn names_choose_by_their_beginning_and_rows_choose_theirs() {
        let all = list::read().unwrap();
        assert_eq!(parse("").unwrap().choose(&all).unwrap().len(), all.len());
        assert!(
            parse("no-such-guard")
                .unwrap()
                .choose(&all)
                .unwrap_err()
                .contains("no mutation \"no-such-guard\"")
        );
        let one = &all[0].name;
        assert!(
            parse(one)
                .unwrap()
                .choose(&all)
                .unwrap()
                .iter()
                .any(|mutation| mutation.name == *one)
        );
        let of_row = parse("H1").unwrap().choose(&all).unwrap();
        assert!(
            !of_row.is_empty()
                && of_row
                    .iter()
                    .all(|mutation| mutation.rows.contains(&"H1".to_owned()))
        );
    }
}
