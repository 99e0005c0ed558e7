//! The tools of coding agents, and the calls that do a step with them.

use serde_json::{Value, json};

use super::super::answer::Call;
use super::super::parsed_request::Tool;
use super::step::Step;

/// A call of the first known tool that can do the step; `None` if no such tool is offered.
pub(super) fn call(offered: &[Tool], step: &Step<'_>) -> Option<Call> {
    TOOLS.iter().find_map(|(name, input)| {
        let is_known = |tool: &&Tool| tool.name == *name && input.fits(tool);
        let tool = offered.iter().find(is_known)?;
        Some(Call::of(tool, input.arguments(step, tool)?))
    })
}

/// The input of a tool, with the names of its members.
enum Input {
    /// Writes a file.
    Write(&'static str, &'static str),
    /// Reads a file.
    Read(&'static str),
    /// Reads files, each an object with its path.
    ReadAll(&'static str),
    /// Replaces a text in a file.
    Edit(&'static str, &'static str, &'static str),
    /// A patch, as a text or as the member that stands for it.
    Patch(&'static str),
    /// A shell script.
    Command(&'static str),
    /// A program with its arguments.
    Words(&'static str),
    /// A script of JavaScript that calls other tools, as a text or as the member that stands for it.
    Code(&'static str),
}

impl Input {
    /// False if the tool of another agent has the same name.
    fn fits(&self, tool: &Tool) -> bool {
        match self {
            Self::Edit(path, ..) => tool.schema["properties"][*path].is_object(),
            _ => true,
        }
    }

    /// The arguments that do a step; `None` if the tool cannot do it.
    fn arguments(&self, step: &Step<'_>, tool: &Tool) -> Option<Value> {
        let text = |member: &str, text: String| {
            if tool.is_freeform {
                Value::String(text)
            } else {
                json!({member: text})
            }
        };
        Some(match (self, step) {
            (Self::Write(path, content), Step::Write { path: file, line }) => {
                json!({*path: file, *content: format!("{line}\n")})
            }
            (Self::Read(path), Step::Read { path: file }) => json!({*path: file}),
            (Self::ReadAll(files), Step::Read { path }) => json!({*files: [{"path": path}]}),
            (
                Self::Edit(path, before, after),
                Step::Edit {
                    path: file,
                    old,
                    new,
                },
            ) => {
                json!({*path: file, *before: old, *after: new})
            }
            (Self::Patch(member), _) => text(member, step.patch()?),
            (Self::Command(member), _) => json!({*member: step.script()?}),
            (Self::Words(member), _) => json!({*member: ["bash", "-c", step.script()?]}),
            (Self::Code(member), _) => text(member, code(step)),
            _ => return None,
        })
    }
}

/// A script for the tool `exec` of Codex, whose description has the functions.
fn code(step: &Step<'_>) -> String {
    match step.patch() {
        Some(patch) => format!("text(await tools.apply_patch({}));", json!(patch)),
        None => {
            let command = json!({"cmd": step.script()});
            format!("text((await tools.exec_command({command})).output);")
        }
    }
}

/// The known tools; those that do only one thing come first.
const TOOLS: [(&str, Input); 19] = [
    // Claude Code.
    ("Write", Input::Write("file_path", "content")),
    ("Read", Input::Read("file_path")),
    ("Edit", Input::Edit("file_path", "old_string", "new_string")),
    // OpenCode.
    ("write", Input::Write("filePath", "content")),
    ("read", Input::Read("filePath")),
    ("edit", Input::Edit("filePath", "oldString", "newString")),
    // Qwen Code and Gemini CLI.
    ("write_file", Input::Write("file_path", "content")),
    ("read_file", Input::Read("file_path")),
    ("edit", Input::Edit("file_path", "old_string", "new_string")),
    // Cline.
    ("editor", Input::Write("path", "new_text")),
    ("editor", Input::Edit("path", "old_text", "new_text")),
    ("read_files", Input::ReadAll("files")),
    // Codex: its patches, which Cline also takes for the models of OpenAI, its three kinds of shells,
    // and the scripts of its newer models, which have a longer name where there are no namespaces.
    ("apply_patch", Input::Patch("input")),
    ("exec_command", Input::Command("cmd")),
    ("shell_command", Input::Command("command")),
    ("shell", Input::Words("command")),
    ("exec", Input::Code("input")),
    ("functions__exec", Input::Code("input")),
    // Claude Code, if it may only run commands.
    ("Bash", Input::Command("command")),
];
