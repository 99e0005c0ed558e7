//! The order and the ids of a conversation as all servers accept them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use engine::{AssistantPart, TextRequest, ToolCall, ToolResult, Turn, UserPart};
use vendor::call_id;

use super::{DroppedField, DroppedFields};

/// Returns the request with ids of calls that occur once, and the only result of each call directly
/// behind it.
///
/// Servers count calls from 0 in each answer, and "`tool_use` ids must be unique" in Messages. A
/// user may speak while a tool runs, and "an assistant message with 'tool_calls' must be followed by
/// tool messages" in Chat Completions.
pub(super) fn ordered<'a>(
    request: &'a TextRequest,
    dropped: &mut DroppedFields,
) -> Cow<'a, TextRequest> {
    let mut request = Cow::Borrowed(request);
    if !has_calls_or_results(&request.turns) {
        return request;
    }
    if has_repeated_id(&request.turns) {
        number_anew(&mut request.to_mut().turns);
    }
    if has_late_result(&request.turns) {
        let turns = std::mem::take(&mut request.to_mut().turns);
        request.to_mut().turns = behind_calls(turns);
        dropped.add(DroppedField::MessagePosition);
    }
    if has_result_without_call(&request.turns) {
        without_lone_results(&mut request.to_mut().turns);
        dropped.add(DroppedField::CallId);
    }
    if has_several_results(&request.turns) {
        let turns = std::mem::take(&mut request.to_mut().turns);
        request.to_mut().turns = with_one_result_each(turns);
        dropped.add(DroppedField::ToolResult);
    }
    if has_call_without_result(&request.turns) {
        let turns = std::mem::take(&mut request.to_mut().turns);
        request.to_mut().turns = with_all_results(turns);
        dropped.add(DroppedField::ToolResult);
    }
    request
}

fn has_calls_or_results(turns: &[Turn]) -> bool {
    let has = |turn: &Turn| matches!(turn, Turn::Tool(_)) || calls(turn).next().is_some();
    turns.iter().any(has)
}

/// Returns true if a call has more than one result: "each tool_use must have a single result"
/// (<https://github.com/QwenLM/qwen-code/issues/8163>).
fn has_several_results(turns: &[Turn]) -> bool {
    let mut known = HashSet::new();
    let mut ids = turns.iter().filter_map(result_id);
    !ids.all(|id| known.insert(id))
}

fn result_id(turn: &Turn) -> Option<&str> {
    match turn {
        Turn::Tool(result) => Some(&result.call_id),
        _ => None,
    }
}

/// Adds each later result of a call to its first one.
fn with_one_result_each(turns: Vec<Turn>) -> Vec<Turn> {
    let mut places = HashMap::<String, usize>::new();
    let mut single: Vec<Turn> = Vec::with_capacity(turns.len());
    for turn in turns {
        let place = result_id(&turn).and_then(|id| places.get(id));
        match (place.and_then(|place| single.get_mut(*place)), turn) {
            (Some(Turn::Tool(first)), Turn::Tool(more)) => add_result(first, more),
            (_, turn) => {
                places.extend(result_id(&turn).map(|id| (id.to_owned(), single.len())));
                single.push(turn);
            }
        }
    }
    single
}

fn add_result(first: &mut ToolResult, more: ToolResult) {
    first.is_error |= more.is_error;
    let mut more = more.content.into_iter();
    if let (Some(UserPart::Text(text)), [UserPart::Text(next), ..]) =
        (first.content.last_mut(), more.as_slice())
    {
        text.push_str("\n\n");
        text.push_str(next);
        more.next();
    }
    first.content.extend(more);
}

/// Returns true if a call has no result, such as after the user has interrupted it. Servers refuse that: "`tool_use` ids were found without `tool_result` blocks
/// immediately after" (<https://github.com/anthropics/claude-code/issues/1776>,
/// <https://github.com/microsoft/vscode/issues/299295>).
fn has_call_without_result(turns: &[Turn]) -> bool {
    let mut open = Vec::new();
    let mut goes_on = false;
    for turn in turns {
        let is_assistant = matches!(turn, Turn::Assistant(_));
        match turn {
            Turn::Tool(result) => open.retain(|id| *id != result.call_id),
            turn if open.is_empty() || goes_on && is_assistant => {
                open.extend(calls(turn).map(|call| call.id.as_str()));
            }
            _ => return true,
        }
        goes_on = is_assistant;
    }
    !open.is_empty()
}

/// Adds the results that are missing behind those that the turn of the calls has.
fn with_all_results(turns: Vec<Turn>) -> Vec<Turn> {
    let mut open: Vec<String> = Vec::new();
    let mut goes_on = false;
    let mut complete: Vec<Turn> = Vec::with_capacity(turns.len() + 1);
    for turn in turns {
        let is_assistant = matches!(turn, Turn::Assistant(_));
        match &turn {
            Turn::Tool(result) => open.retain(|id| *id != result.call_id),
            turn => {
                if !(goes_on && is_assistant) {
                    complete.extend(open.drain(..).map(interrupted));
                }
                open.extend(calls(turn).map(|call| call.id.clone()));
            }
        }
        complete.push(turn);
        goes_on = is_assistant;
    }
    complete.extend(open.drain(..).map(interrupted));
    complete
}

/// The result of a call that has none.
fn interrupted(call_id: String) -> Turn {
    Turn::Tool(ToolResult {
        call_id,
        content: vec![UserPart::Text(INTERRUPTED.to_owned())],
        is_error: true,
    })
}

/// Returns true if the call of any result is not in the conversation, such as after its beginning
/// was cut off. Every vendor refuses such a result.
fn has_result_without_call(turns: &[Turn]) -> bool {
    let mut known = HashSet::new();
    turns.iter().any(|turn| {
        known.extend(calls(turn).map(|call| call.id.as_str()));
        matches!(turn, Turn::Tool(result) if !known.contains(result.call_id.as_str()))
    })
}

/// Replaces results without a call by messages of the user.
fn without_lone_results(turns: &mut [Turn]) {
    let mut known = HashSet::new();
    for turn in turns {
        known.extend(calls(turn).map(|call| call.id.clone()));
        if let Turn::Tool(result) = turn
            && !known.contains(&result.call_id)
        {
            let head = UserPart::Text(LONE_RESULT.to_owned());
            let content = std::mem::take(&mut result.content);
            *turn = Turn::User(std::iter::once(head).chain(content).collect());
        }
    }
}

/// Returns the system messages as one, at the beginning.
pub(super) fn with_one_system<'a>(
    turns: &'a [Turn],
    dropped: &mut DroppedFields,
) -> Cow<'a, [Turn]> {
    let is_system = |turn: &&Turn| matches!(turn, Turn::System(_));
    let leading = turns.iter().take_while(is_system).count();
    let all = turns.iter().filter(is_system).count();
    if all <= 1 && leading == all {
        return Cow::Borrowed(turns);
    }
    if all > leading {
        dropped.add(DroppedField::SystemPosition);
    }
    let texts = turns.iter().filter_map(|turn| match turn {
        Turn::System(text) => Some(text.as_str()),
        _ => None,
    });
    let system = Turn::System(texts.collect::<Vec<_>>().join("\n\n"));
    let others = turns.iter().filter(|turn| !is_system(turn)).cloned();
    std::iter::once(system).chain(others).collect()
}

/// Returns true if all texts of a conversation are instructions, such as "You are a poet. Write a
/// haiku.", which servers of Messages refuse: "at least one message is required"
/// (<https://github.com/langchain-ai/langchain/issues/30764>).
pub(super) fn has_only_instructions(turns: &[Turn]) -> bool {
    let is_blank = |part: &UserPart| matches!(part, UserPart::Text(text) if text.trim().is_empty());
    let is_instruction = |turn: &Turn| match turn {
        Turn::System(_) => true,
        Turn::User(parts) => parts.iter().all(is_blank),
        Turn::Assistant(_) | Turn::Tool(_) => false,
    };
    let is_said = |turn: &Turn| matches!(turn, Turn::System(text) if !text.trim().is_empty());
    turns.iter().all(is_instruction) && turns.iter().any(is_said)
}

/// Makes the instructions messages of the user.
pub(super) fn ask_by_instructions(turns: &mut [Turn]) {
    for turn in turns {
        if let Turn::System(text) = turn {
            *turn = Turn::User(vec![UserPart::Text(std::mem::take(text))]);
        }
    }
}

/// The calls of a turn.
fn calls(turn: &Turn) -> impl Iterator<Item = &ToolCall> {
    let parts = match turn {
        Turn::Assistant(parts) => parts.as_slice(),
        _ => &[],
    };
    parts.iter().filter_map(|part| match part {
        AssistantPart::Call(call) => Some(call),
        _ => None,
    })
}

fn has_repeated_id(turns: &[Turn]) -> bool {
    let mut known = HashSet::new();
    let mut ids = turns.iter().flat_map(calls);
    !ids.all(|call| known.insert(call.id.as_str()))
}

/// Gives each later call with a known id an id of its own, and its result the same. The ids follow
/// from the earlier turns alone, so that they are the same in every later request.
fn number_anew(turns: &mut [Turn]) {
    let mut counts = HashMap::<String, usize>::new();
    // The ids of the calls that wait for their results, and of the last results.
    let mut open = HashMap::<String, VecDeque<String>>::new();
    let mut last = HashMap::<String, String>::new();
    for turn in turns {
        match turn {
            Turn::Assistant(parts) => {
                for part in parts {
                    let AssistantPart::Call(call) = part else {
                        continue;
                    };
                    let count = counts.entry(call.id.clone()).or_default();
                    *count += 1;
                    let old = call.id.clone();
                    if *count > 1 {
                        call.id = call_id::digest(&format!("{old} {count}"));
                    }
                    open.entry(old).or_default().push_back(call.id.clone());
                }
            }
            Turn::Tool(result) => {
                let next = open.get_mut(&result.call_id).and_then(VecDeque::pop_front);
                if let Some(id) = next.or_else(|| last.get(&result.call_id).cloned()) {
                    let old = std::mem::replace(&mut result.call_id, id.clone());
                    last.insert(old, id);
                }
            }
            Turn::System(_) | Turn::User(_) => {}
        }
    }
}

/// Returns true if anything stands between a call and its result, other than the rest of the turn
/// and other results.
fn has_late_result(turns: &[Turn]) -> bool {
    let mut open = HashSet::new();
    let mut late = HashSet::new();
    for (turn, before) in turns
        .iter()
        .zip(std::iter::once(None).chain(turns.iter().map(Some)))
    {
        match turn {
            Turn::Tool(result) if late.contains(result.call_id.as_str()) => return true,
            Turn::Tool(result) => {
                open.remove(result.call_id.as_str());
            }
            Turn::Assistant(_) if matches!(before, Some(Turn::Assistant(_))) => {
                open.extend(calls(turn).map(|call| call.id.as_str()));
            }
            turn => {
                late.extend(open.drain());
                open.extend(calls(turn).map(|call| call.id.as_str()));
            }
        }
    }
    false
}

/// Moves each result behind the turn of its call. What stood between follows, and messages of the
/// user that meet by that form one.
fn behind_calls(turns: Vec<Turn>) -> Vec<Turn> {
    let called = turns.iter().flat_map(calls);
    let mut results: HashMap<_, Vec<Turn>> = called.map(|call| (call.id.clone(), vec![])).collect();
    let mut others: Vec<(Turn, bool)> = Vec::with_capacity(turns.len());
    let mut follows_assistant = false;
    for turn in turns {
        let is_assistant = matches!(turn, Turn::Assistant(_));
        // A turn of the model that goes on with the next one has no results before its end.
        if follows_assistant
            && is_assistant
            && let Some((_, goes_on)) = others.last_mut()
        {
            *goes_on = true;
        }
        follows_assistant = is_assistant;
        let of_call = match &turn {
            Turn::Tool(result) => results.get_mut(&result.call_id),
            _ => None,
        };
        match of_call {
            Some(results) => results.push(turn),
            None => others.push((turn, false)),
        }
    }
    let mut ordered: Vec<Turn> = Vec::new();
    let mut open: Vec<String> = Vec::new();
    for (turn, goes_on) in others {
        open.extend(calls(&turn).map(|call| call.id.clone()));
        match (ordered.last_mut(), turn) {
            (Some(Turn::User(parts)), Turn::User(more)) => parts.extend(more),
            (_, turn) => ordered.push(turn),
        }
        if !goes_on {
            let ended = open.drain(..).filter_map(|id| results.remove(&id));
            ordered.extend(ended.flatten());
        }
    }
    ordered
}

/// The text before the result of a call that is not in the conversation.
const LONE_RESULT: &str = "Result of an earlier tool call:\n";
/// The text of the result of a call that has none.
const INTERRUPTED: &str = "The tool call was interrupted.";
