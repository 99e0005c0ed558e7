//! `cargo xtask mutate`: plants one fault in the product at a time and checks that a test fails.
//!
//! The faults are listed in `tests/mutations`. The work is done on a copy in `target/mutate`, with
//! a target folder that stays warm; edits of the work tree during a run have no effect on it.

mod list;
mod matching;
mod trial;

pub(crate) use self::list::{Mutation, problems, read as all};
use self::trial::Trials;
use crate::outcome::{Outcome, no_problems};
use crate::shard::Shard;
use crate::{process, shared, workspace};

/// Plant one fault in the product at a time, in a copy, and check that a test fails.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Only mutations whose name begins with a NAME, or that have a row of that name [default: all]
    names: Vec<String>,
    /// Only mutations of files that were changed since REF, such as `origin/main`
    #[arg(long, value_name = "REF")]
    in_diff: Option<String>,
    /// Only the K-th of N equal parts
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
    /// Print the names and guards, and try nothing
    #[arg(long)]
    list: bool,
}

/// Tries the mutations that `args` select, and fails unless every one is caught.
pub(crate) fn run(args: &Args) -> Outcome {
    let all = all()?;
    let chosen = args.choose(&all)?;
    if args.list {
        for mutation in &chosen {
            println!("{:<40} {}", mutation.name, mutation.why);
        }
        return Ok(());
    }
    let needs_server = chosen.iter().any(|mutation| mutation.needs_server());
    if needs_server && shared::beside_servers()? {
        return Ok(());
    }
    let mut trials = Trials::open()?;
    let mut wrong = Vec::new();
    for (number, mutation) in chosen.iter().enumerate() {
        let result = trials.run(mutation, &chosen[number..]);
        let result = result.map(|test| format!("caught by {test}"));
        let (Ok(line) | Err(line)) = &result;
        let name = &mutation.name;
        println!("{}/{} {name}: {line}", number + 1, chosen.len());
        if let Err(problem) = result {
            wrong.push(format!("{name}: {problem}"));
        }
    }
    println!("{} of {} caught", chosen.len() - wrong.len(), chosen.len());
    no_problems("mutations", &wrong)
}

impl Args {
    /// The selected mutations, ordered so that little is built between two of them.
    fn choose<'a>(&self, all: &'a [Mutation]) -> Outcome<Vec<&'a Mutation>> {
        let is_of = |mutation: &Mutation, name: &String| {
            mutation.name.starts_with(name) || mutation.rows.contains(name)
        };
        let is_unknown = |name: &&String| !all.iter().any(|mutation| is_of(mutation, name));
        if let Some(name) = self.names.iter().find(is_unknown) {
            let list = "`cargo xtask mutate --list` names them";
            return Err(format!("there is no mutation {name:?}: {list}"));
        }
        let mut chosen: Vec<_> = all.iter().collect();
        if !self.names.is_empty() {
            chosen.retain(|mutation| self.names.iter().any(|name| is_of(mutation, name)));
        }
        if let Some(commit) = &self.in_diff {
            let mut diff = workspace::git("diff --name-only --merge-base");
            let changed = process::output(diff.arg(commit))?;
            chosen.retain(|mutation| changed.lines().any(|file| file == mutation.file));
        }
        chosen.sort_by_key(|&mutation| (mutation.arguments().0.join(" "), &mutation.file));
        Ok(match self.shard {
            Some(shard) => shard.of(chosen),
            None => chosen,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Args {
        Args {
            names: names.iter().map(ToString::to_string).collect(),
            ..Args::default()
        }
    }

    #[test]
    fn names_select_by_prefix_and_rows_by_name() {
        let all = all().unwrap();
        assert_eq!(names(&[]).choose(&all).unwrap().len(), all.len());
        assert!(
            names(&["no-such-guard"])
                .choose(&all)
                .unwrap_err()
                .contains("no mutation \"no-such-guard\"")
        );
        let one = &all[0].name;
        let chosen = names(&[one]);
        let chosen = chosen.choose(&all).unwrap();
        assert!(chosen.iter().any(|mutation| mutation.name == *one));
        let h1 = names(&["H1"]);
        let h1 = h1.choose(&all).unwrap();
        assert!(!h1.is_empty());
        assert!(
            h1.iter()
                .all(|mutation| mutation.rows.contains(&"H1".to_owned()))
        );
    }

    #[test]
    fn an_unknown_commit_is_an_error() {
        let all = all().unwrap();
        let since = |commit: &str| Args {
            in_diff: Some(commit.to_owned()),
            ..Args::default()
        };
        assert!(since("HEAD").choose(&all).is_ok());
        assert!(since("no-such-commit").choose(&all).is_err());
    }
}
