//! The page of results, `docs/benchmarks.md`. Each program writes its part of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, machine};

/// The options that each program has.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// A short run: the figures are rough.
    #[arg(long)]
    pub quick: bool,
    /// Write the tables to their part of this page too.
    #[arg(long, value_name = "FILE", conflicts_with = "quick")]
    write: Option<PathBuf>,
}

impl Options {
    /// Prints tables, and writes them to this part of the page if requested.
    pub fn publish(&self, part: &str, tables: &str) -> Outcome {
        println!("{tables}");
        let Some(page) = &self.write else {
            return Ok(());
        };
        let failed = |error: String| format!("{}: {error}", page.display());
        let text = fs::read_to_string(page).map_err(|error| failed(error.to_string()))?;
        let text = replaced(&text, part, &format!("{}\n\n{tables}", origin(page)?));
        fs::write(page, text.map_err(failed)?).map_err(|error| failed(error.to_string()))
    }
}

/// The machine, the date, and the commit that is checked out.
fn origin(page: &Path) -> Outcome<String> {
    let folder = page.parent().unwrap_or(page);
    let mut git = Command::new("git");
    git.arg("-C").arg(folder);
    let commit = first_line(git.args(["rev-parse", "--short=12", "HEAD"]))?;
    let date = first_line(Command::new("date").arg("+%F"))?;
    Ok(format!(
        "Measured on {}; {date}, commit `{commit}`.",
        machine::kind()
    ))
}

fn first_line(command: &mut Command) -> Outcome<String> {
    let program = command.get_program().display().to_string();
    let output = command
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    match String::from_utf8_lossy(&output.stdout).lines().next() {
        Some(line) if output.status.success() => Ok(line.to_owned()),
        _ => Err(format!(
            "{program}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

/// The page with another text between `<!-- results: PART -->` and `<!-- end -->`.
fn replaced(page: &str, part: &str, text: &str) -> Outcome<String> {
    let begin = format!("<!-- results: {part} -->\n");
    let missing = || format!("there is no part {part:?}");
    let (before, rest) = page.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    Ok([before, &begin, "\n", text.trim(), "\n\n", END, after].concat())
}

const END: &str = "<!-- end -->";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_part_is_replaced() {
        let page =
            "<!-- results: b -->\nb\n<!-- end -->\n<!-- results: a -->\nold\n<!-- end -->\ny\n";
        assert_eq!(
            replaced(page, "a", "| new |\n").as_deref(),
            Ok(
                "<!-- results: b -->\nb\n<!-- end -->\n<!-- results: a -->\n\n| new |\n\n<!-- end -->\ny\n"
            )
        );
        assert_eq!(
            replaced(page, "c", "| new |\n"),
            Err("there is no part \"c\"".to_owned())
        );
    }
}
