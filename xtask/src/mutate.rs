//! `cargo xtask mutate`: takes one guard of the product away at a time and sees whether a test tells.
//!
//! `tests/mutations` says what is taken away. The work is done on a copy in `target/mutate`, with a target folder of its
//! own that stays warm, so that nothing here is ever left changed; what is edited here meanwhile takes no part.

mod copy;
mod list;
mod page;
mod trial;

use std::collections::BTreeMap;
use std::ffi::OsString;

use self::copy::Copy;
use self::list::Mutation;
use self::page::Page;
use self::trial::{Trials, Verdict};
use crate::Outcome;

/// Runs what `args` ask for.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    let plan = Plan::parse(args)?;
    let all = list::read()?;
    let chosen = plan.choose(&all)?;
    if plan.list {
        chosen.iter().for_each(|mutation| println!("{:<40} {}", mutation.name, mutation.why));
        return Ok(());
    }
    let mut page = Page::read(&all)?;
    let verdicts = judge(&chosen, plan.jobs, |mutation, verdict| {
        page.note(mutation, verdict);
        // At once: nobody wants to lose hours of trials with the last.
        if plan.write { page.write(&all) } else { Ok(()) }
    })?;
    print!("{}", page::summary(&chosen, &verdicts));
    let wrong: Vec<_> = chosen.iter().filter_map(|mutation| verdicts[&mutation.name].wrong(mutation)).collect();
    if wrong.is_empty() { Ok(()) } else { Err(format!("mutations:\n  {}", wrong.join("\n  "))) }
}

/// Every mutation still fits the code: `cargo xtask tidy` asks for it, since nobody waits for all of the trials.
pub(crate) fn problems() -> Outcome<Vec<String>> {
    Ok(list::problems(&list::read()?))
}

/// What came of each mutation, by its name.
type Verdicts = BTreeMap<String, Verdict>;

/// Tries one after another, and tells each verdict as it comes.
fn judge(
    chosen: &[&Mutation],
    jobs: Option<u16>,
    mut tell: impl FnMut(&Mutation, Verdict) -> Outcome,
) -> Outcome<Verdicts> {
    let mut trials = Trials::new(Copy::open()?, jobs);
    let mut verdicts = Verdicts::new();
    for (number, mutation) in (1..).zip(chosen) {
        print!("{number}/{} {}: ", chosen.len(), mutation.name);
        let verdict = trials.run(mutation)?;
        println!("{verdict}");
        tell(mutation, verdict)?;
        verdicts.insert(mutation.name.clone(), verdict);
    }
    Ok(verdicts)
}

/// What the command line asks for.
#[derive(Debug, Default, PartialEq)]
struct Plan {
    list: bool,
    write: bool,
    jobs: Option<u16>,
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
                "--jobs" => plan.jobs = Some(jobs(args.next().as_deref())?),
                name if !name.starts_with('-') => plan.names.push(name.to_owned()),
                other => return Err(format!("unexpected {other:?}: expected [--list] [--write] [--jobs N] [NAME…]")),
            }
        }
        Ok(plan)
    }

    /// The mutations whose names begin with one of those given, or all.
    fn choose<'a>(&self, all: &'a [Mutation]) -> Outcome<Vec<&'a Mutation>> {
        if let Some(name) = self.names.iter().find(|name| !all.iter().any(|mutation| mutation.name.starts_with(*name)))
        {
            return Err(format!("there is no mutation {name:?}: `cargo xtask mutate --list` names them"));
        }
        let is_chosen = |mutation: &&Mutation| {
            self.names.is_empty() || self.names.iter().any(|name| mutation.name.starts_with(name))
        };
        Ok(all.iter().filter(is_chosen).collect())
    }
}

fn jobs(word: Option<&str>) -> Outcome<u16> {
    let number = word.and_then(|word| word.parse().ok()).filter(|number| *number > 0);
    number.ok_or_else(|| format!("--jobs takes a number, such as 1, not {word:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Outcome<Plan> {
        Plan::parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn the_command_line_is_read_or_refused() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        assert_eq!(parse(""), Ok(Plan::default()));
        assert_eq!(
            parse("sse --write --jobs 2 wire-depth"),
            Ok(Plan { write: true, jobs: Some(2), names: names(&["sse", "wire-depth"]), ..Plan::default() })
        );
        assert!(parse("--jobs 0").unwrap_err().contains("takes a number"));
        assert!(parse("--fast").unwrap_err().contains("unexpected \"--fast\""));
    }

    #[test]
    fn names_choose_by_their_beginning() {
        let all = list::read().unwrap();
        assert_eq!(parse("").unwrap().choose(&all).unwrap().len(), all.len());
        assert!(parse("no-such-guard").unwrap().choose(&all).unwrap_err().contains("no mutation \"no-such-guard\""));
        let one = &all[0].name;
        assert!(parse(one).unwrap().choose(&all).unwrap().iter().any(|mutation| mutation.name == *one));
    }
}
