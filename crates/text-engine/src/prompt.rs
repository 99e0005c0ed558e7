//! What is said to the model as the tokens of a prompt, in its ChatML template.

use engine::EngineError;
use serde_json::Value;
use toktrie::TokenId;

use crate::conversation::Conversation;
use crate::tokenizer::Tokenizer;
use crate::tools::Function;

/// What is wanted of the model at one step.
#[derive(Clone, Copy)]
pub(crate) enum Task<'a> {
    /// The answer, as text.
    Answer,
    /// The answer, as JSON: of a schema, if there is one.
    Json(Option<&'a Value>),
    /// How to go about the answer.
    Plan,
    /// Whether one of these functions is of use.
    Decide(&'a [Function]),
    /// Which of these functions to call.
    Choose(&'a [Function]),
    /// What to call this function with.
    Arguments(&'a Function),
}

/// A conversation that was made to fit.
pub(crate) struct Fitted {
    pub(crate) said: Conversation,
    /// Tokens of the prompt.
    pub(crate) tokens: u64,
    /// What was left out.
    pub(crate) dropped: Vec<String>,
}

/// The tokens of a prompt for a task. A plan is what the model thought of before.
pub(crate) fn render(tokenizer: &Tokenizer, said: &Conversation, task: Task<'_>, plan: &str) -> Vec<TokenId> {
    let begun = if matches!(task, Task::Answer) { said.begun.as_str() } else { "" };
    let messages = [format!("system\n{SYSTEM}"), format!("user\n{}", message(said, task, plan))];
    let mut tokens = Vec::new();
    for message in &messages {
        tokens.push(tokenizer.start());
        tokens.extend(tokenizer.encode(message));
        tokens.push(tokenizer.end());
        tokens.extend(tokenizer.encode("\n"));
    }
    tokens.push(tokenizer.start());
    tokens.extend(tokenizer.encode(&format!("assistant\n{begun}")));
    tokens
}

/// Leaves out of a conversation what does not fit the model's context: the oldest of its history, then the end of
/// its instructions.
///
/// # Errors
/// When the last question alone does not fit.
pub(crate) fn fit(
    tokenizer: &Tokenizer,
    said: Conversation,
    task: Task<'_>,
    context: usize,
) -> Result<Fitted, EngineError> {
    let whole = Conversation { history: Vec::new(), instructions: String::new(), ..said.clone() };
    let least = count(tokenizer, &whole, task, context)?;
    let mut room = context.saturating_sub(least + MARGIN);
    let mut dropped = Vec::new();
    let instructions = beginning(tokenizer, &said.instructions, room);
    if instructions.len() < said.instructions.len() {
        dropped.push("instructions".to_owned());
    }
    room = room.saturating_sub(tokenizer.encode(&instructions).len());
    let history = newest(tokenizer, &said.history, room);
    if history.len() < said.history.len() {
        dropped.push("turns".to_owned());
    }
    let said = Conversation { history, instructions, ..said };
    let tokens = render(tokenizer, &said, task, "").len();
    match tokens < context {
        true => Ok(Fitted { said, tokens: tokens as u64, dropped }),
        false => Err(too_long(context, tokens)),
    }
}

/// The tokens of what cannot be left out.
fn count(tokenizer: &Tokenizer, said: &Conversation, task: Task<'_>, context: usize) -> Result<usize, EngineError> {
    // What is hopeless is not worth the work of splitting it.
    let bytes = message(said, task, "").len();
    let fewest = bytes / tokenizer.longest();
    let found = if fewest >= context { fewest } else { render(tokenizer, said, task, "").len() };
    if found < context { Ok(found) } else { Err(too_long(context, found)) }
}

fn too_long(context: usize, found: usize) -> EngineError {
    EngineError::ContextLength { limit: context.saturating_sub(1) as u64, found: found as u64 }
}

/// The beginning of a text that has at most `room` tokens.
fn beginning(tokenizer: &Tokenizer, text: &str, room: usize) -> String {
    let most = text.floor_char_boundary(room.saturating_mul(tokenizer.longest()));
    let tokens = tokenizer.encode(&text[..most]);
    if most == text.len() && tokens.len() <= room {
        return text.to_owned();
    }
    tokenizer.decode(&tokens[..room.min(tokens.len())])
}

/// The last of some lines that have at most `room` tokens together.
fn newest(tokenizer: &Tokenizer, lines: &[String], mut room: usize) -> Vec<String> {
    let mut first = lines.len();
    while let Some(line) = first.checked_sub(1).and_then(|index| lines.get(index)) {
        if line.len() / tokenizer.longest() > room {
            break;
        }
        let Some(left) = room.checked_sub(tokenizer.encode(line).len() + 1) else { break };
        room = left;
        first -= 1;
    }
    lines[first..].to_vec()
}

/// The user's message: a plain question, or a context with a question on it.
fn message(said: &Conversation, task: Task<'_>, plan: &str) -> String {
    if said.is_lone() && plan.is_empty() && matches!(task, Task::Answer) {
        return lone(&said.question);
    }
    let mut lines: Vec<&str> = Vec::new();
    lines.extend((!said.instructions.is_empty()).then_some(said.instructions.as_str()));
    lines.extend(said.history.iter().chain(&said.facts).map(String::as_str));
    let functions = functions(task);
    lines.extend((!functions.is_empty()).then_some(functions.as_str()));
    let has_context = !lines.is_empty();
    let plan = if plan.is_empty() { String::new() } else { format!("Plan: {plan}") };
    lines.extend((!plan.is_empty()).then_some(plan.as_str()));
    let context = if lines.is_empty() { String::new() } else { format!("Context:\n{}\n\n", lines.join("\n")) };
    let closing = closing(task, has_context);
    format!("{context}Question from the user: {}\n{closing}", said.question)
}

/// A lone question or remark. What is asked is told to be answered: with a bare "What is the capital of France?" the
/// model is as ready to go on in French.
fn lone(text: &str) -> String {
    match text.trim_end().ends_with('?') {
        true => format!("Question from the user: {text}\nAnswer the question."),
        false => text.to_owned(),
    }
}

/// The list of functions that a task is about.
fn functions(task: Task<'_>) -> String {
    let functions = match task {
        Task::Decide(functions) | Task::Choose(functions) => functions,
        Task::Arguments(function) => std::slice::from_ref(function),
        Task::Answer | Task::Json(_) | Task::Plan => return String::new(),
    };
    let mut text = "Functions:".to_owned();
    for function in functions {
        let described = function.description.lines().next().unwrap_or_default();
        text += &format!("\n- {}: {}", function.name, cut(described, MAX_DESCRIPTION));
    }
    text
}

/// What to do, in the last line.
fn closing(task: Task<'_>, has_context: bool) -> String {
    match task {
        Task::Answer if has_context => "Answer the question using the context.".to_owned(),
        Task::Answer => "Answer the question.".to_owned(),
        Task::Json(None) => "Answer the question with a JSON object.".to_owned(),
        Task::Json(Some(schema)) => {
            format!("Answer the question with JSON of this schema: {}", cut(&schema.to_string(), MAX_SCHEMA))
        }
        Task::Plan => "Do not answer yet. Say in one sentence how to find the answer.".to_owned(),
        Task::Decide(_) => "Is one of the functions needed to answer the question? Say Yes or No.".to_owned(),
        Task::Choose(_) => "Say the name of the function that helps to answer the question.".to_owned(),
        Task::Arguments(function) => {
            let members = function.parameters.get("properties").unwrap_or(&Value::Null);
            let members = cut(&members.to_string(), MAX_SCHEMA).to_owned();
            format!("Write the arguments of {} for this question as JSON. They are: {members}", function.name)
        }
    }
}

/// At most `most` bytes of a text.
fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// The system text that the model was trained with.
const SYSTEM: &str = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";

/// Tokens that are kept free for an answer when something has to be left out.
const MARGIN: usize = 256;

/// The most bytes of a function's description that are shown: the model follows no more.
const MAX_DESCRIPTION: usize = 300;

/// The most bytes of a schema that are shown; the grammar knows it all.
const MAX_SCHEMA: usize = 2000;
