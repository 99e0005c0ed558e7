//! Flattens the turns of a request to a context and one question, the form that a small model
//! follows best.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::{
    AssistantPart, EngineError, ImageSource, TextRequest, ToolCall, ToolResult, Turn, UserPart,
};

use crate::picture;

/// The content of a prompt, before it is rendered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conversation {
    pub(crate) instructions: String,
    /// Turns before the last question, oldest first.
    pub(crate) history: Vec<String>,
    /// Context of the last question: pictures, files, results of calls.
    pub(crate) facts: Vec<String>,
    /// The last text of the user.
    pub(crate) question: String,
    /// The beginning of the answer, if the request ends with an assistant turn.
    pub(crate) answer_prefix: String,
    /// True if the last turn is the result of a call.
    pub(crate) has_result: bool,
}

impl Conversation {
    /// Reads the turns of a request.
    ///
    /// # Errors
    /// If a turn has an image or file that cannot be read.
    pub(crate) fn read(request: &TextRequest) -> Result<Self, EngineError> {
        let mut found = Self::default();
        let mut calls = HashMap::new();
        let turns = match request.turns.split_last() {
            Some((Turn::Assistant(parts), turns)) => {
                found.answer_prefix = answer_text(parts);
                turns
            }
            _ => &request.turns,
        };
        for turn in turns {
            found.add_turn(turn, &mut calls)?;
        }
        if found.question.is_empty() && found.facts.is_empty() && found.history.is_empty() {
            found.question = std::mem::take(&mut found.instructions);
        }
        Ok(found)
    }

    /// Returns true if there is nothing but a question.
    pub(crate) fn is_single_question(&self) -> bool {
        self.instructions.is_empty() && self.history.is_empty() && self.facts.is_empty()
    }

    fn add_turn<'r>(
        &mut self,
        turn: &'r Turn,
        calls: &mut HashMap<&'r str, &'r ToolCall>,
    ) -> Result<(), EngineError> {
        match turn {
            Turn::System(text) => append(&mut self.instructions, text),
            Turn::User(parts) => self.add_user_turn(parts)?,
            Turn::Assistant(parts) => self.add_assistant_turn(parts, calls),
            Turn::Tool(result) => {
                self.add_result(result, calls.get(result.call_id.as_str()).copied())?;
            }
        }
        Ok(())
    }

    /// Adds a user turn. Consecutive user turns form one question; a user turn after an answer
    /// starts a new one.
    fn add_user_turn(&mut self, parts: &[UserPart]) -> Result<(), EngineError> {
        if self.has_result {
            self.archive_question();
        }
        let text = text_of_parts(parts, &mut self.facts)?;
        append(&mut self.question, &text);
        Ok(())
    }

    fn add_assistant_turn<'r>(
        &mut self,
        parts: &'r [AssistantPart],
        calls: &mut HashMap<&'r str, &'r ToolCall>,
    ) {
        for part in parts {
            if let AssistantPart::Call(call) = part {
                calls.insert(&call.id, call);
            }
        }
        let text = answer_text(parts);
        let calls = parts
            .iter()
            .any(|part| matches!(part, AssistantPart::Call(_)));
        match (text.is_empty(), calls) {
            (true, _) => {}
            // Text beside a call does not answer the question yet.
            (false, true) => self.facts.push(format!("Assistant: {text}")),
            (false, false) => {
                self.archive_question();
                self.history.push(format!("Assistant: {text}"));
            }
        }
    }

    fn add_result(
        &mut self,
        result: &ToolResult,
        call: Option<&ToolCall>,
    ) -> Result<(), EngineError> {
        let text = text_of_parts(&result.content, &mut self.facts)?;
        let of = call.map_or("a function".to_owned(), |call| {
            format!("{}({})", call.name, call.arguments.trim())
        });
        let verb = if result.is_error { "failed with" } else { "is" };
        self.facts
            .push(format!("The result of {of} {verb}: {text}"));
        self.has_result = true;
        Ok(())
    }

    /// Moves the last question and its facts to the history.
    fn archive_question(&mut self) {
        if !self.question.is_empty() {
            self.history
                .push(format!("User: {}", std::mem::take(&mut self.question)));
        }
        self.history.append(&mut self.facts);
        self.has_result = false;
    }
}

/// Returns the text of user parts; descriptions of images and files are added to `facts`.
fn text_of_parts(parts: &[UserPart], facts: &mut Vec<String>) -> Result<String, EngineError> {
    let mut found = String::new();
    for part in parts {
        match part {
            UserPart::Text(text) => append(&mut found, text),
            UserPart::Image { source, .. } => facts.push(image(source)?),
            UserPart::File {
                name,
                media_type,
                data,
            } => facts.push(file(name.as_deref(), media_type, data)?),
            UserPart::CacheBreakpoint(_) => {}
            UserPart::FileUrl { .. } => {
                return Err(unsupported(
                    "The document is given by its address; this model takes documents as base64 \
                     alone."
                        .to_owned(),
                ));
            }
        }
    }
    Ok(found)
}

fn image(source: &ImageSource) -> Result<String, EngineError> {
    match source {
        ImageSource::Inline { data, .. } => picture::describe(data)
            .map_err(|why| unsupported(format!("The image cannot be read: {why}."))),
        ImageSource::Url(_) => Err(unsupported(
            "The image is given by its address; this model takes images as base64 alone."
                .to_owned(),
        )),
    }
}

fn file(name: Option<&str>, media_type: &str, data: &str) -> Result<String, EngineError> {
    let name = wire::truncate_for_error(name.unwrap_or("file"));
    let kind = media_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    if !kind.starts_with("text/") && kind != "application/json" {
        let found = wire::truncate_for_error(media_type);
        let reason = format!(
            "The file '{name}' is '{found}'; this model takes 'text/…' and 'application/json'."
        );
        return Err(unsupported(reason));
    }
    let bytes = STANDARD.decode(data);
    let bytes =
        bytes.map_err(|why| unsupported(format!("The file '{name}' is not base64: {why}.")))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| unsupported(format!("The file '{name}' is not UTF-8 text.")))?;
    Ok(format!("The file {name} says:\n{}", text.trim_end()))
}

fn unsupported(reason: String) -> EngineError {
    EngineError::Unsupported {
        param: None,
        reason,
    }
}

/// The text of an assistant turn, without its reasoning and calls.
fn answer_text(parts: &[AssistantPart]) -> String {
    let mut found = String::new();
    for part in parts {
        if let AssistantPart::Text(text) | AssistantPart::Refusal(text) = part {
            append(&mut found, text);
        }
    }
    found
}

/// Appends a paragraph on a line of its own, unless it is empty.
pub(crate) fn append(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Turn {
        Turn::User(vec![UserPart::Text(text.to_owned())])
    }

    fn assistant(text: &str) -> Turn {
        Turn::Assistant(vec![AssistantPart::Text(text.to_owned())])
    }

    fn read(turns: Vec<Turn>) -> Result<Conversation, EngineError> {
        Conversation::read(&TextRequest {
            turns,
            ..TextRequest::default()
        })
    }

    #[test]
    fn a_single_question_has_no_context() {
        let found = read(vec![user("Hi"), user("there")]).unwrap();
        assert_eq!(
            (found.question.as_str(), found.is_single_question()),
            ("Hi\nthere", true)
        );
    }

    #[test]
    fn turns_before_the_last_question_are_history() {
        let turns = vec![
            Turn::System("Be brief.".to_owned()),
            user("I am Ada."),
            assistant("Hello."),
            user("Who am I?"),
        ];
        let found = read(turns).unwrap();
        assert_eq!(found.instructions, "Be brief.");
        assert_eq!(found.history, ["User: I am Ada.", "Assistant: Hello."]);
        assert_eq!(found.question, "Who am I?");
    }

    #[test]
    fn a_result_is_a_fact_with_its_call() {
        let call = ToolCall {
            id: "1".to_owned(),
            name: "add".to_owned(),
            arguments: "{\"a\": 1}".to_owned(),
            seal: None,
        };
        let content = vec![UserPart::Text("2".to_owned())];
        let result = ToolResult {
            call_id: "1".to_owned(),
            content,
            is_error: false,
        };
        let turns = vec![
            user("One more?"),
            Turn::Assistant(vec![AssistantPart::Call(call)]),
            Turn::Tool(result),
        ];
        let found = read(turns.clone()).unwrap();
        assert_eq!(found.facts, ["The result of add({\"a\": 1}) is: 2"]);
        assert_eq!(
            (found.question.as_str(), found.has_result),
            ("One more?", true)
        );
        let found = read([turns, vec![assistant("Two."), user("Thanks")]].concat()).unwrap();
        let history = [
            "User: One more?",
            "The result of add({\"a\": 1}) is: 2",
            "Assistant: Two.",
        ];
        assert_eq!(
            (found.history.as_slice(), found.has_result),
            (history.map(str::to_owned).as_slice(), false)
        );
    }

    #[test]
    fn an_answer_at_the_end_is_the_beginning_of_the_next() {
        let found = read(vec![user("Count."), assistant("One, two,")]).unwrap();
        assert_eq!(
            (found.question.as_str(), found.answer_prefix.as_str()),
            ("Count.", "One, two,")
        );
        assert!(found.is_single_question());
    }

    #[test]
    fn a_text_file_is_read_and_another_refused() {
        let file = |media_type: &str| {
            let (name, media_type) = (Some("a.txt".to_owned()), media_type.to_owned());
            vec![Turn::User(vec![UserPart::File {
                name,
                media_type,
                data: "aGk=".to_owned(),
            }])]
        };
        assert_eq!(
            read(file("text/plain; charset=utf-8")).unwrap().facts,
            ["The file a.txt says:\nhi"]
        );
        let refused = read(file("application/pdf")).unwrap_err().to_string();
        assert!(
            refused.starts_with("The file 'a.txt' is 'application/pdf';"),
            "{refused}"
        );
        let refused = read(file(&"x".repeat(1000))).unwrap_err().to_string();
        assert!(refused.len() < 200, "{refused}");
    }

    #[test]
    fn an_address_of_an_image_is_refused() {
        let source = ImageSource::Url("https://example.org/a.png".to_owned());
        let refused = read(vec![Turn::User(vec![UserPart::Image {
            source,
            detail: None,
        }])])
        .unwrap_err();
        assert!(matches!(refused, EngineError::Unsupported { .. }));
    }
}
