//! Renders prompts as tokens, in the ChatML template of the model.

use engine::EngineError;
use serde_json::Value;
use toktrie::TokenId;

use crate::conversation::{Conversation, append};
use crate::tokenizer::Tokenizer;
use crate::tools::Function;

/// The task of the model in one step of a generation.
#[derive(Clone, Copy)]
pub(crate) enum Task<'a> {
    /// Answer in text.
    Answer,
    /// Answer in JSON that matches the schema, if there is one.
    Json(Option<&'a Value>),
    /// Plan the answer.
    Plan,
    /// Decide if one of these functions is useful.
    Decide(&'a [Function]),
    /// Choose one of these functions to call.
    Choose(&'a [Function]),
    /// Write the arguments of this function.
    Arguments(&'a Function),
}

/// A conversation that fits into the context.
pub(crate) struct FittedConversation {
    pub(crate) conversation: Conversation,
    /// Number of tokens of the prompt.
    pub(crate) tokens: u64,
    /// Parts of the request that were left out.
    pub(crate) dropped: Vec<String>,
}

/// Renders the prompt for a task. `plan` is the plan that the model has written before, or empty.
pub(crate) fn render(
    tokenizer: &Tokenizer,
    conversation: &Conversation,
    task: Task<'_>,
    plan: &str,
) -> Vec<TokenId> {
    let prefix = if matches!(task, Task::Answer) {
        conversation.answer_prefix.as_str()
    } else {
        ""
    };
    let messages = [
        format!("system\n{SYSTEM}"),
        format!("user\n{}", message(conversation, task, plan)),
    ];
    let mut tokens = Vec::new();
    for message in &messages {
        tokens.push(tokenizer.start());
        tokens.extend(tokenizer.encode(message));
        tokens.push(tokenizer.end());
        tokens.extend(tokenizer.encode("\n"));
    }
    tokens.push(tokenizer.start());
    tokens.extend(tokenizer.encode(&format!("assistant\n{prefix}")));
    tokens
}

/// Shortens a conversation to the context of the model: drops the oldest history first, then
/// truncates the instructions.
///
/// # Errors
/// If the last question does not fit even without the rest.
pub(crate) fn fit(
    tokenizer: &Tokenizer,
    conversation: Conversation,
    task: Task<'_>,
    context: usize,
) -> Result<FittedConversation, EngineError> {
    let whole = Conversation {
        history: Vec::new(),
        instructions: String::new(),
        ..conversation.clone()
    };
    let least = count(tokenizer, &whole, task, context)?;
    let mut room = context.saturating_sub(least + MARGIN);
    let mut dropped = Vec::new();
    let instructions = beginning(tokenizer, &conversation.instructions, room);
    if instructions.len() < conversation.instructions.len() {
        dropped.push("instructions".to_owned());
    }
    room = room.saturating_sub(tokenizer.encode(&instructions).len());
    let history = newest(tokenizer, &conversation.history, room);
    if history.len() < conversation.history.len() {
        dropped.push("turns".to_owned());
    }
    let conversation = Conversation {
        history,
        instructions,
        ..conversation
    };
    let tokens = render(tokenizer, &conversation, task, "").len();
    match tokens < context {
        true => Ok(FittedConversation {
            conversation,
            tokens: tokens as u64,
            dropped,
        }),
        false => Err(too_long(context, tokens)),
    }
}

/// Counts the tokens of the parts that cannot be left out.
fn count(
    tokenizer: &Tokenizer,
    conversation: &Conversation,
    task: Task<'_>,
    context: usize,
) -> Result<usize, EngineError> {
    // A prompt that is certainly too long is not tokenized, which would be expensive.
    let bytes = message(conversation, task, "").len();
    let fewest = bytes / tokenizer.longest();
    let found = if fewest >= context {
        fewest
    } else {
        render(tokenizer, conversation, task, "").len()
    };
    if found < context {
        Ok(found)
    } else {
        Err(too_long(context, found))
    }
}

fn too_long(context: usize, found: usize) -> EngineError {
    EngineError::ContextLength {
        limit: context.saturating_sub(1) as u64,
        found: found as u64,
    }
}

/// The longest prefix of a text with at most `room` tokens.
fn beginning(tokenizer: &Tokenizer, text: &str, room: usize) -> String {
    let most = text.floor_char_boundary(room.saturating_mul(tokenizer.longest()));
    let tokens = tokenizer.encode(&text[..most]);
    if most == text.len() && tokens.len() <= room {
        return text.to_owned();
    }
    tokenizer.decode(&tokens[..room.min(tokens.len())])
}

/// The last lines that have at most `room` tokens in total.
fn newest(tokenizer: &Tokenizer, lines: &[String], mut room: usize) -> Vec<String> {
    let mut first = lines.len();
    while let Some(line) = first.checked_sub(1).and_then(|index| lines.get(index)) {
        if line.len() / tokenizer.longest() > room {
            break;
        }
        let Some(left) = room.checked_sub(tokenizer.encode(line).len() + 1) else {
            break;
        };
        room = left;
        first -= 1;
    }
    lines[first..].to_vec()
}

/// The user's message: a plain question, or a context followed by a question.
fn message(conversation: &Conversation, task: Task<'_>, plan: &str) -> String {
    if conversation.is_single_question() && plan.is_empty() && matches!(task, Task::Answer) {
        return single_question(&conversation.question);
    }
    let mut context = conversation.instructions.clone();
    conversation
        .history
        .iter()
        .chain(&conversation.facts)
        .for_each(|line| append(&mut context, line));
    append(&mut context, &functions(task));
    let closing = closing(task, !context.is_empty());
    if !plan.is_empty() {
        append(&mut context, &format!("Plan: {plan}"));
    }
    if !context.is_empty() {
        context = format!("Context:\n{context}\n\n");
    }
    format!(
        "{context}Question from the user: {}\n{closing}",
        conversation.question
    )
}

/// A question or remark without context. A question gets the suffix "Answer the question.": without
/// it, the model is as likely to answer "What is the capital of France?" in French.
fn single_question(text: &str) -> String {
    match text.trim_end().ends_with('?') {
        true => format!("Question from the user: {text}\nAnswer the question."),
        false => text.to_owned(),
    }
}

/// The list of the functions of a task, or an empty text.
fn functions(task: Task<'_>) -> String {
    let functions = match task {
        Task::Decide(functions) | Task::Choose(functions) => functions,
        Task::Arguments(function) => std::slice::from_ref(function),
        Task::Answer | Task::Json(_) | Task::Plan => return String::new(),
    };
    let mut text = "Functions:".to_owned();
    for function in functions {
        let described = function.description.lines().next().unwrap_or_default();
        text += &format!(
            "\n- {}: {}",
            function.name,
            truncated(described, MAX_DESCRIPTION)
        );
    }
    text
}

/// The last line of the message: the instruction for the task.
fn closing(task: Task<'_>, has_context: bool) -> String {
    match task {
        Task::Answer if has_context => "Answer the question using the context.".to_owned(),
        Task::Answer => "Answer the question.".to_owned(),
        Task::Json(None) => "Answer the question with a JSON object.".to_owned(),
        Task::Json(Some(schema)) => {
            format!(
                "Answer the question with JSON of this schema: {}",
                truncated(&schema.to_string(), MAX_SCHEMA)
            )
        }
        Task::Plan => "Do not answer yet. Say in one sentence how to find the answer.".to_owned(),
        Task::Decide(_) => {
            "Is one of the functions needed to answer the question? Say Yes or No.".to_owned()
        }
        Task::Choose(_) => {
            "Say the name of the function that helps to answer the question.".to_owned()
        }
        Task::Arguments(function) => {
            let members = function
                .parameters
                .get("properties")
                .unwrap_or(&Value::Null);
            let members = truncated(&members.to_string(), MAX_SCHEMA).to_owned();
            format!(
                "Write the arguments of {} for this question as JSON. They are: {members}",
                function.name
            )
        }
    }
}

/// Truncates a text to at most `most` bytes.
fn truncated(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// The system prompt that the model was trained with.
const SYSTEM: &str = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";

/// Number of tokens reserved for the answer if parts of the request have to be left out.
const MARGIN: usize = 256;

/// Maximum length of a function's description in the prompt, in bytes: a small model does not
/// follow longer ones.
const MAX_DESCRIPTION: usize = 300;

/// Maximum length of a schema in the prompt, in bytes. The grammar enforces the complete schema.
const MAX_SCHEMA: usize = 2000;
