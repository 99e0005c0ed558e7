//! Models that work for a coding agent: they write and edit the files that the prompt asks for.
//!
//! The prompt contains `the file PATH with the line: LINE` or `the file PATH from the line: OLD to
//! the line: NEW`, once or several times; a line ends with the line of the prompt, or before a
//! double quote. Files are written at once, or one by one if parallel calls are forbidden, and
//! edited one by one. Without tools, the edits are in the text, in the format that the agent asks
//! for. Requests that ask for none of this get the text of [`Answer::in_text`], which quotes the
//! results of tools: so the last text of the agent repeats the results of its tools.
//!
//! An agent that compacts its history asks for a summary. The summary has the prompt and the number
//! of steps that are done, by which the model goes on with the rest, whether the agent sends it back
//! as a text of the user or of the model.

mod step;
mod tools;

use self::step::Step;
use super::answer::{Answer, Call, Stop};
use super::error::Failure;
use super::parsed_request::{Choice, ParsedRequest};
use super::seal;
use crate::request::{Protocol, Request};

/// Generates the output for a request.
pub(super) fn answer(parsed: &ParsedRequest) -> Answer {
    let work = Work::of(parsed);
    if work.is_to_summarise {
        return Answer::of(parsed, work.summary(), Stop::End);
    }
    if let Some(calls) = work.calls(parsed) {
        return Answer::calling(parsed, calls);
    }
    let steps = work.steps.iter();
    let edits: Option<String> = steps.map(|step| step.in_text(&parsed.text)).collect();
    match edits.filter(|edits| !edits.is_empty()) {
        Some(edits) => Answer::of(parsed, edits, Stop::End),
        None => Answer::in_text(parsed),
    }
}

/// Generates the output for a request after a thought, whose seal has to come back as it was.
pub(super) fn with_thoughts(request: &Request, parsed: &ParsedRequest) -> Result<Answer, Failure> {
    seal::check(request, parsed)?;
    let work = Work::of(parsed);
    let thought = work.thought();
    let seal = seal::of(request, &thought);
    let mut answer = answer(parsed).with_thought(thought, seal);
    if answer.stop == Stop::End && work.is_done() {
        let thoughts = parsed.thoughts.len();
        answer.text = format!("{}\nThoughts that came back: {thoughts}.", answer.text);
    }
    Ok(answer)
}

/// Like [`with_thoughts`], but with a window for this many results of tools. A request for a
/// summary always fits, and a history with one.
pub(super) fn in_window(
    request: &Request,
    parsed: &ParsedRequest,
    results: usize,
) -> Result<Answer, Failure> {
    let work = Work::of(parsed);
    if work.results > results && !work.is_to_summarise && !is_summary(work.prompt) {
        return Err(Failure::too_long(request));
    }
    with_thoughts(request, parsed)
}

/// Like [`with_thoughts`], but the server is overloaded once the history has this many results of
/// tools.
pub(super) fn failing_after(
    request: &Request,
    parsed: &ParsedRequest,
    results: usize,
) -> Result<Answer, Failure> {
    let earlier: usize = parsed.earlier.iter().map(|turn| turn.results).sum();
    if earlier + parsed.results.len() < results {
        return with_thoughts(request, parsed);
    }
    let status = match request.protocol() {
        Some(Protocol::Messages) => 529,
        _ => 503,
    };
    Err(Failure::of_status(status, "Overloaded"))
}

/// The work that the history asks for.
struct Work<'a> {
    /// The user turn that asks for it.
    prompt: &'a str,
    steps: Vec<Step<'a>>,
    /// The number of steps that are done. The history may have only a summary of them.
    done: usize,
    /// The number of tool results in the history.
    results: usize,
    /// True if the agent asks for a summary of the work.
    is_to_summarise: bool,
}

impl<'a> Work<'a> {
    /// Reads the last turn that asks for work, and the results since then.
    fn of(parsed: &'a ParsedRequest) -> Self {
        let earlier = parsed.earlier.iter();
        let mut turns: Vec<_> = earlier
            .map(|turn| (turn.text.as_str(), turn.results))
            .collect();
        turns.push((&parsed.text, parsed.results.len()));
        let has_work = |(text, _): &(&str, usize)| !Step::all(text).is_empty();
        let at = turns.iter().rposition(has_work).unwrap_or(turns.len() - 1);
        let prompt = turns[at].0;
        let results = turns[at..].iter().map(|(_, results)| results).sum();
        Self {
            prompt,
            steps: Step::all(prompt),
            done: done(prompt) + prompt.matches(TRANSCRIBED).count() + results,
            results,
            is_to_summarise: SUMMARIES.iter().any(|word| parsed.text.contains(word))
                && (at + 1 < turns.len() || parsed.tools.is_empty()),
        }
    }

    /// The next calls, or `None` if nothing is left, or no tool is offered that can do it.
    fn calls(&self, parsed: &ParsedRequest) -> Option<Vec<Call>> {
        if matches!(parsed.choice, Choice::None) {
            return None;
        }
        let left = self
            .steps
            .get(self.done..)
            .filter(|left| !left.is_empty())?;
        let at_once = match parsed.parallel {
            Some(false) => 1,
            _ => left
                .iter()
                .take_while(|step| step.is_write())
                .count()
                .max(1),
        };
        let calls = left[..at_once].iter();
        calls.map(|step| tools::call(&parsed.tools, step)).collect()
    }

    fn is_done(&self) -> bool {
        !self.steps.is_empty() && self.done >= self.steps.len() && !self.is_to_summarise
    }

    fn thought(&self) -> String {
        let (done, all) = (self.done, self.steps.len());
        if done < all {
            format!("Step {} of {all} is next.", done + 1)
        } else {
            "Nothing is left to do.".to_owned()
        }
    }

    /// The text that replaces the history, in the tags that Claude Code asks for.
    fn summary(&self) -> String {
        let sentences: String = self.steps.iter().filter_map(Step::sentence).collect();
        format!("<summary>\n{DONE}{}.\n{sentences}</summary>", self.done)
    }
}

/// The number of steps that are done according to a summary in the prompt.
fn done(prompt: &str) -> usize {
    let number = prompt.rsplit_once(DONE).map(|(_, after)| after);
    let digits = number.and_then(|after| after.split('.').next());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// True for a text that the model has written as a summary.
pub(super) fn is_summary(text: &str) -> bool {
    text.contains(DONE)
}

/// The words of prompts that ask for a summary; the second one is of Qwen Code.
const SUMMARIES: [&str; 2] = ["summar", "<state_snapshot>"];

/// The words before a result in the transcript that OpenCode asks to summarise.
const TRANSCRIBED: &str = "[Tool result]: ";

/// The words before the number of steps in a summary.
const DONE: &str = "Steps that are done: ";
