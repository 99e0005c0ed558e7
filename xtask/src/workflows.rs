//! The step `workflows` of `cargo xtask ci`: checks the workflows of GitHub.

use crate::outcome::{Outcome, no_problems};
use crate::tools::ACTIONLINT;
use crate::{nightly, process, workspace};

/// Lints the workflows, and checks that the nightly one runs every step of `cargo xtask nightly`.
pub(crate) fn run() -> Outcome {
    // Scripts in workflows are one command each: there is nothing for other linters to find.
    process::echoed(&mut ACTIONLINT.command("-shellcheck= -pyflakes=")?)?;
    no_problems(NIGHTLY, &missing(&workspace::read(NIGHTLY)?))
}

/// The steps that a workflow does not name, each in a sentence.
fn missing(workflow: &str) -> Vec<String> {
    let is_named = |name: &&&str| {
        let mut words = workflow.split(|letter: char| !letter.is_alphanumeric());
        words.any(|word| word == **name)
    };
    let names = nightly::STEPS.iter().map(|(name, ..)| name);
    names
        .filter(|name| !is_named(name))
        .map(|name| format!("the step {name} is not run"))
        .collect()
}

const NIGHTLY: &str = ".github/workflows/nightly.yml";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_the_workflow_does_not_run_is_reported() {
        let names: Vec<_> = nightly::STEPS.iter().map(|step| step.0).collect();
        let names = names.join(", ");
        assert_eq!(missing(&names), [""; 0]);
        assert_eq!(
            missing(&names.replace("soak", "soaked")),
            ["the step soak is not run"]
        );
    }
}
