//! The steps of the work that a prompt asks for.

use super::DONE;

/// A step of the work, for which a tool is called once.
pub(super) enum Step<'a> {
    /// Writes a file with this line.
    Write { path: &'a str, line: &'a str },
    /// Reads a file, which many agents require before an edit.
    Read { path: &'a str },
    /// Replaces a line of a file.
    Edit {
        path: &'a str,
        old: &'a str,
        new: &'a str,
    },
}

impl<'a> Step<'a> {
    /// The steps of a prompt; each file is read before its first edit. A summary stands for all that
    /// is before it.
    pub(super) fn all(prompt: &'a str) -> Vec<Self> {
        let mut steps: Vec<Self> = Vec::new();
        let summary = prompt.rsplit_once(DONE);
        let work = summary.map_or(prompt, |(_, summary)| summary);
        for place in work.split("the file ").skip(1) {
            let Some(step) = Self::parse(place) else {
                continue;
            };
            if let Self::Edit { path, .. } = step
                && !steps.iter().any(|step| step.path() == path)
            {
                steps.push(Self::Read { path });
            }
            steps.push(step);
        }
        steps
    }

    fn parse(place: &'a str) -> Option<Self> {
        let sentence = place.split(['\n', '"']).next()?.trim();
        if let Some((path, line)) = sentence.split_once(" with the line: ") {
            return Some(Self::Write { path, line });
        }
        let (path, lines) = sentence.split_once(" from the line: ")?;
        let (old, new) = lines.split_once(" to the line: ")?;
        Some(Self::Edit { path, old, new })
    }

    /// The line of a prompt that asks for the step.
    pub(super) fn sentence(&self) -> Option<String> {
        match self {
            Self::Write { path, line } => {
                Some(format!("Create the file {path} with the line: {line}\n"))
            }
            Self::Edit { path, old, new } => Some(format!(
                "Edit the file {path} from the line: {old} to the line: {new}\n"
            )),
            Self::Read { .. } => None,
        }
    }

    fn path(&self) -> &'a str {
        match self {
            Self::Write { path, .. } | Self::Read { path } | Self::Edit { path, .. } => path,
        }
    }

    pub(super) fn is_write(&self) -> bool {
        matches!(self, Self::Write { .. })
    }

    /// A patch as Codex applies it: <https://github.com/openai/codex/tree/main/codex-rs/apply-patch>.
    pub(super) fn patch(&self) -> Option<String> {
        let hunk = match self {
            Self::Write { path, line } => format!("*** Add File: {path}\n+{line}"),
            Self::Edit { path, old, new } => {
                format!("*** Update File: {path}\n@@\n-{old}\n+{new}")
            }
            Self::Read { .. } => return None,
        };
        Some(format!("*** Begin Patch\n{hunk}\n*** End Patch\n"))
    }

    /// A shell script that writes the file and prints its size, or prints the file.
    pub(super) fn script(&self) -> Option<String> {
        match self {
            Self::Write { path, line } => {
                let (line, path) = (quoted(line), quoted(path));
                Some(format!("printf '%s\\n' {line} > {path} && wc -c {path}"))
            }
            Self::Read { path } => Some(format!("cat {}", quoted(path))),
            Self::Edit { .. } => None,
        }
    }

    /// The new file as text, in the first known format that the prompt asks for.
    pub(super) fn in_text(&self, prompt: &str) -> Option<String> {
        let Self::Write { path, line } = self else {
            return None;
        };
        if prompt.contains("*file listing*") {
            return Some(format!("{path}\n```\n{line}\n```\n\n"));
        }
        prompt.contains("*SEARCH/REPLACE block*").then(|| {
            format!("{path}\n```\n<<<<<<< SEARCH\n=======\n{line}\n>>>>>>> REPLACE\n```\n\n")
        })
    }
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
