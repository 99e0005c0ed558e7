//! Named steps of a command, of which the command line selects some.

use crate::outcome::Outcome;
use crate::seed;
use crate::times::Times;

/// A step of `cargo xtask ci` or `cargo xtask nightly`.
pub(crate) struct Step {
    /// The name for `--only` and `--from`.
    pub(crate) name: &'static str,
    /// A one-line description for `--list`.
    pub(crate) about: &'static str,
    /// Runs the step and measures it, as a whole or in parts.
    pub(crate) run: Box<dyn Fn(&mut Times) -> Outcome>,
}

impl Step {
    /// A step that is measured as a whole.
    pub(crate) fn new(
        name: &'static str,
        about: &'static str,
        run: impl Fn() -> Outcome + 'static,
    ) -> Self {
        Self {
            name,
            about,
            run: Box::new(move |times: &mut Times| times.step(name, &run)),
        }
    }
}

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
            let place = steps.iter().position(|step| step.name == name);
            place.ok_or_else(|| {
                let names: Vec<_> = steps.iter().map(|step| step.name).collect();
                format!("there is no step {name:?}: there are {}", names.join(", "))
            })
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    fn names(selection: &Selection) -> Outcome<String> {
        let steps = ["one", "two", "three"].map(|name| Step::new(name, "", || Ok(())));
        let chosen = selection.choose(&steps)?;
        let names: Vec<_> = chosen.iter().map(|step| step.name).collect();
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
        let ran = |keep_going: bool| {
            let count = Rc::new(Cell::new(0));
            let counted = Rc::clone(&count);
            let steps = [
                Step::new("bad", "", || Err("no".to_owned())),
                Step::new("good", "", move || {
                    counted.set(counted.get() + 1);
                    Ok(())
                }),
            ];
            let selection = Selection {
                keep_going,
                ..Selection::default()
            };
            (selection.run("test of ci", &steps), count.get())
        };
        let failure = Err("test of ci failed at 'bad': no".to_owned());
        assert_eq!(ran(false), (failure.clone(), 0));
        assert_eq!(ran(true), (failure, 1));
    }
}
