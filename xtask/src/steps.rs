//! The named steps of `cargo xtask ci` and `cargo xtask nightly`, and their selection on the command
//! line.

use crate::outcome::{Outcome, unknown};
use crate::seed;
use crate::times::Times;

/// A step: its name, a description in a few words, and its function.
pub(crate) type Step = (&'static str, &'static str, fn() -> Outcome);

/// The steps that a command line selects.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Selection {
    /// Run only these steps, separated by commas
    #[arg(long, value_name = "STEP,…", value_delimiter = ',')]
    only: Vec<String>,
    /// Start at this step
    #[arg(long, value_name = "STEP")]
    from: Option<String>,
    /// Continue after a failed step
    #[arg(long)]
    keep_going: bool,
    /// List the steps instead of running them
    #[arg(long)]
    list: bool,
}

impl Selection {
    /// Runs the selected steps and prints their durations; stops at the first failure unless
    /// `--keep-going` is given.
    pub(crate) fn run(&self, command: &'static str, steps: &[Step]) -> Outcome {
        let chosen = self.choose(steps)?;
        if self.list {
            for (name, about, _) in chosen {
                println!("{name:<14} {about}");
            }
            return Ok(());
        }
        println!("seed {}", seed::current()?);
        let mut times = Times::of(command);
        let mut failed = Vec::new();
        for (name, _, run) in chosen {
            if let Err(error) = times.step(name, run) {
                failed.push(format!("'{name}': {error}"));
                if !self.keep_going {
                    break;
                }
            }
        }
        match failed.is_empty() {
            true => Ok(()),
            false => Err(format!("{command} failed at {}", failed.join("\nand at "))),
        }
    }

    /// Returns true if all steps are run.
    pub(crate) fn is_all(&self) -> bool {
        self.only.is_empty() && self.from.is_none() && !self.list
    }

    fn choose(&self, steps: &[Step]) -> Outcome<Vec<Step>> {
        let place = |name: &String| {
            let names: Vec<_> = steps.iter().map(|step| step.0).collect();
            let place = names.iter().position(|step| step == name);
            place.ok_or_else(|| unknown("step", name, &names))
        };
        let first = self.from.as_ref().map_or(Ok(0), place)?;
        let only = self.only.iter().map(place).collect::<Outcome<Vec<_>>>()?;
        let is_chosen = |at: &usize| *at >= first && (only.is_empty() || only.contains(at));
        let chosen = (0..steps.len()).filter(is_chosen);
        Ok(chosen.map(|at| steps[at]).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn names(selection: &Selection) -> Outcome<String> {
        let steps = ["one", "two", "three"].map(|name| -> Step { (name, "", || Ok(())) });
        let chosen = selection.choose(&steps)?;
        let names: Vec<_> = chosen.iter().map(|step| step.0).collect();
        Ok(names.join(" "))
    }

    #[test]
    fn steps_are_selected_by_name() {
        let only = |names: &[&str]| Selection {
            only: names.iter().map(ToString::to_string).collect(),
            ..Selection::default()
        };
        let from = Selection {
            from: Some("two".to_owned()),
            ..Selection::default()
        };
        assert_eq!(names(&only(&[])).as_deref(), Ok("one two three"));
        assert_eq!(names(&only(&["three", "one"])).as_deref(), Ok("one three"));
        assert_eq!(names(&from).as_deref(), Ok("two three"));
        assert_eq!(
            names(&only(&["four"])).unwrap_err(),
            "there is no step \"four\": there are one, two, three"
        );
    }

    #[test]
    fn a_failed_step_ends_the_run_unless_keep_going_is_given() {
        static GOOD: AtomicUsize = AtomicUsize::new(0);
        let ran = |keep_going: bool| {
            let steps: [Step; 2] = [
                ("bad", "", || Err("no".to_owned())),
                ("good", "", || {
                    GOOD.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                }),
            ];
            let selection = Selection {
                keep_going,
                ..Selection::default()
            };
            (
                selection.run("test of ci", &steps),
                GOOD.load(Ordering::Relaxed),
            )
        };
        let failure = Err("test of ci failed at 'bad': no".to_owned());
        assert_eq!(ran(false), (failure.clone(), 0));
        assert_eq!(ran(true), (failure, 1));
    }
}
