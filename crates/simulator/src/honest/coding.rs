//! A model that works for a coding agent: it writes the files that the prompt asks for.
//!
//! The prompt contains `the file PATH with the line: LINE` once or several times; a line ends with
//! the line of the prompt, or before a double quote. All files are written at once, or one by one if
//! parallel calls are forbidden. Without tools, the edits are in the text, in the format that the
//! agent asks for. Requests that ask for none of this get the text of [`Answer::in_text`], which
//! quotes the results of tools: so the last text of the agent repeats the results of its tools.

use serde_json::{Value, json};

use super::answer::{Answer, Call, Stop};
use super::parsed_request::{Choice, ParsedRequest};

/// Generates the output for a request.
pub(super) fn answer(parsed: &ParsedRequest) -> Answer {
    let tasks = Task::all(&parsed.text);
    let Some((name, input)) = tool(parsed) else {
        let edits: Option<String> = tasks.iter().map(|task| task.edit(&parsed.text)).collect();
        return match edits.filter(|edits| !edits.is_empty()) {
            Some(edits) => Answer::of(parsed, edits, Stop::End),
            None => Answer::in_text(parsed),
        };
    };
    let at_once = match parsed.parallel {
        Some(false) => 1,
        _ => tasks.len(),
    };
    let left = tasks.iter().skip(parsed.results.len()).take(at_once);
    let calls: Vec<_> = left.map(|task| task.call(name, input)).collect();
    if calls.is_empty() {
        Answer::in_text(parsed)
    } else {
        Answer::calling(parsed, calls)
    }
}

/// The first known tool that the request has and permits.
fn tool(parsed: &ParsedRequest) -> Option<&'static (&'static str, Input)> {
    if matches!(parsed.choice, Choice::None) {
        return None;
    }
    let is_offered = |name: &str| parsed.tools.iter().any(|tool| tool.name == name);
    TOOLS.iter().find(|(name, _)| is_offered(name))
}

/// A file to write.
struct Task<'a> {
    path: &'a str,
    line: &'a str,
}

impl<'a> Task<'a> {
    /// The tasks of a prompt.
    fn all(prompt: &'a str) -> Vec<Self> {
        let places = prompt.split("the file ").skip(1);
        places.filter_map(Self::read).collect()
    }

    fn read(place: &'a str) -> Option<Self> {
        let (path, rest) = place.split_once(" with the line: ")?;
        let line = rest.split(['\n', '"']).next()?.trim();
        Some(Self { path, line })
    }

    fn call(&self, tool: &str, input: &Input) -> Call {
        Call {
            name: tool.to_owned(),
            arguments: self.arguments(input),
        }
    }

    fn arguments(&self, input: &Input) -> Value {
        match input {
            Input::File { path, content } => {
                json!({*path: self.path, *content: format!("{}\n", self.line)})
            }
            Input::Command(command) => json!({*command: self.script()}),
            Input::Words(command) => json!({*command: ["bash", "-c", self.script()]}),
        }
    }

    /// A shell script that writes the file and prints its size.
    fn script(&self) -> String {
        let (line, path) = (quoted(self.line), quoted(self.path));
        format!("printf '%s\\n' {line} > {path} && wc -c {path}")
    }

    /// The edit as text, in the first known format that the prompt asks for.
    fn edit(&self, prompt: &str) -> Option<String> {
        let Self { path, line } = self;
        if prompt.contains("*file listing*") {
            return Some(format!("{path}\n```\n{line}\n```\n\n"));
        }
        prompt.contains("*SEARCH/REPLACE block*").then(|| {
            format!("{path}\n```\n<<<<<<< SEARCH\n=======\n{line}\n>>>>>>> REPLACE\n```\n\n")
        })
    }
}

/// The input of a tool, with the names of its members.
enum Input {
    File {
        path: &'static str,
        content: &'static str,
    },
    /// A shell script.
    Command(&'static str),
    /// A program with its arguments.
    Words(&'static str),
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The tools of agents that can write a file; those that only do that come first.
const TOOLS: [(&str, Input); 7] = [
    // Claude Code.
    ("Write", file("file_path")),
    // OpenCode.
    ("write", file("filePath")),
    // Qwen Code and Gemini CLI.
    ("write_file", file("file_path")),
    // Codex, with its three kinds of shells.
    ("exec_command", Input::Command("cmd")),
    ("shell_command", Input::Command("command")),
    ("shell", Input::Words("command")),
    // Claude Code, if it may only run commands.
    ("Bash", Input::Command("command")),
];

const fn file(path: &'static str) -> Input {
    Input::File {
        path,
        content: "content",
    }
}
