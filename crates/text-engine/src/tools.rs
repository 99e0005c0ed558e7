//! Selects the candidate functions of a request, and decides if one of them is called.

use std::collections::HashSet;

use engine::{EngineError, TextRequest, Tool, ToolChoice};
use serde_json::{Value, json};

use crate::constrain::{Constraint, Grammars, count_values};
use crate::conversation::Conversation;
use crate::tokenizer::Tokenizer;

/// The functions that a generation may call, selected without the model.
pub(crate) struct ToolSelection {
    /// The candidate functions, at least one.
    pub(crate) functions: Vec<Function>,
    pub(crate) need: Need,
}

/// The need to call one of the functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Required,
    ModelDecides,
}

/// A function with the grammar of its arguments.
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) description: String,
    /// The schema of the arguments, an object.
    pub(crate) parameters: Value,
    pub(crate) arguments: Constraint,
}

impl ToolSelection {
    /// Selects the candidate functions. Returns `None` if no function is called.
    ///
    /// # Errors
    /// If `tool_choice` names an unknown function, or the schema of a candidate is not supported.
    pub(crate) fn read(
        request: &TextRequest,
        conversation: &Conversation,
        grammars: &Grammars,
    ) -> Result<Option<Self>, EngineError> {
        let (tools, need) = match &request.tool_choice {
            ToolChoice::None => return Ok(None),
            ToolChoice::Named(name) => (vec![tool_named(&request.tools, name)?], Need::Required),
            ToolChoice::Required => (
                most_relevant(&request.tools, &conversation.question).0,
                Need::Required,
            ),
            // The model answers with the result of the previous call instead of calling again.
            ToolChoice::Auto if conversation.has_result => return Ok(None),
            ToolChoice::Auto => match most_relevant(&request.tools, &conversation.question) {
                (_, 0) => return Ok(None),
                (tools, 1) => (tools, Need::ModelDecides),
                (tools, _) => (tools, Need::Required),
            },
        };
        if tools.is_empty() {
            let reason = "A function must be called, but there is none.".to_owned();
            return Err(EngineError::Unsupported {
                param: Some("tool_choice".to_owned()),
                reason,
            });
        }
        let schemas = tools.iter().filter_map(|tool| tool.parameters.as_ref());
        let values: usize = schemas.map(|schema| count_values(&schema.value())).sum();
        if values > MAX_VALUES {
            let reason = format!(
                "The schemas of the functions have {values} values, and at most {MAX_VALUES} are accepted."
            );
            return Err(EngineError::Unsupported {
                param: Some("tools".to_owned()),
                reason,
            });
        }
        let functions = tools
            .into_iter()
            .map(|tool| Function::read(tool, grammars))
            .collect::<Result<_, _>>()?;
        Ok(Some(Self { functions, need }))
    }
}

impl Function {
    fn read(tool: &Tool, grammars: &Grammars) -> Result<Self, EngineError> {
        let mut parameters = tool
            .parameters
            .as_ref()
            .map_or(Value::Null, wire::Json::value);
        match &mut parameters {
            Value::Object(members) => {
                members.insert("type".to_owned(), "object".into());
            }
            _ => parameters = json!({ "type": "object" }),
        }
        if has_no_members(&parameters) {
            parameters["additionalProperties"] = false.into();
        }
        let what = format!("The schema of the function '{}'", tool.name);
        let arguments = grammars.json(&parameters, tool.strict == Some(true), &what)?;
        let description = tool.description.clone().unwrap_or_default();
        Ok(Self {
            name: tool.name.clone(),
            description,
            parameters,
            arguments,
        })
    }
}

/// Returns true if the model prefers "Yes" to "No", by the score of the likelier first token of
/// each.
pub(crate) fn prefers_yes(scores: &[f32], tokenizer: &Tokenizer) -> bool {
    let score = |words: [&str; 2]| {
        let first = words
            .into_iter()
            .filter_map(|word| tokenizer.encode(word).first().copied());
        first
            .filter_map(|token| scores.get(token as usize))
            .copied()
            .fold(f32::MIN, f32::max)
    };
    score(["Yes", "yes"]) >= score(["No", "no"])
}

/// Returns true if the schema of an object has no members at all.
fn has_no_members(schema: &Value) -> bool {
    let known = [
        "properties",
        "patternProperties",
        "additionalProperties",
        "allOf",
        "anyOf",
        "oneOf",
        "$ref",
    ];
    known.iter().all(|key| {
        schema
            .get(key)
            .is_none_or(|value| value.as_object().is_some_and(serde_json::Map::is_empty))
    })
}

fn tool_named<'t>(tools: &'t [Tool], name: &str) -> Result<&'t Tool, EngineError> {
    tools
        .iter()
        .find(|tool| tool.name == name)
        .ok_or_else(|| EngineError::Unsupported {
            param: Some("tool_choice".to_owned()),
            reason: format!(
                "Invalid value for 'tool_choice': no function named '{name}' was specified in the 'tools' parameter."
            ),
        })
}

/// Returns the tools that share the most words with the question, and their score.
///
/// A model of this size chooses tools almost at random, so shared words decide first: a word of the
/// name scores 2, a word of the description or of the parameters scores 1.
fn most_relevant<'t>(tools: &'t [Tool], question: &str) -> (Vec<&'t Tool>, usize) {
    let question = words(question);
    let scored: Vec<_> = tools
        .iter()
        .map(|tool| (tool, relevance(tool, &question)))
        .collect();
    let best = scored.iter().map(|(_, score)| *score).max().unwrap_or(0);
    (
        scored
            .into_iter()
            .filter(|(_, score)| *score == best)
            .map(|(tool, _)| tool)
            .collect(),
        best,
    )
}

fn relevance(tool: &Tool, question: &HashSet<String>) -> usize {
    let name = words(&tool.name);
    let mut rest = words(tool.description.as_deref().unwrap_or_default());
    let parameters = tool
        .parameters
        .as_ref()
        .map_or(Value::Null, wire::Json::value);
    for (key, schema) in parameters
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        rest.extend(words(key));
        rest.extend(words(
            schema
                .get("description")
                .and_then(Value::as_str)
                .unwrap_or_default(),
        ));
    }
    2 * question.intersection(&name).count()
        + question
            .intersection(&rest)
            .filter(|word| !name.contains(*word))
            .count()
}

/// The stems of the significant words of a text.
fn words(text: &str) -> HashSet<String> {
    let mut spaced = String::new();
    let mut before = ' ';
    for letter in text.chars() {
        if before.is_lowercase() && letter.is_uppercase() {
            spaced.push(' ');
        }
        spaced.extend(letter.to_lowercase());
        before = letter;
    }
    let words = spaced.split(|letter: char| !letter.is_alphanumeric());
    words
        .filter(|word| word.chars().count() > 2 && !COMMON.contains(word))
        .map(stem)
        .collect()
}

/// Strips common English endings from a word.
fn stem(word: &str) -> String {
    let endings = ["ations", "ation", "ing", "ies", "es", "ed", "s", "e", "y"];
    let stem = endings.iter().find_map(|ending| {
        word.strip_suffix(ending)
            .filter(|stem| stem.chars().count() > 2)
    });
    stem.unwrap_or(word).to_owned()
}

/// Maximum number of values in the schemas of all candidate functions: each of them is compiled to
/// a grammar.
const MAX_VALUES: usize = 10_000;

/// Common words of questions and descriptions, which are ignored.
const COMMON: [&str; 73] = [
    "about", "all", "and", "any", "are", "ask", "based", "been", "call", "can", "could", "did",
    "does", "find", "for", "from", "function", "get", "give", "given", "has", "have", "her", "him",
    "his", "how", "its", "let", "like", "list", "make", "may", "name", "need", "new", "not", "now",
    "off", "one", "our", "out", "please", "return", "returns", "set", "she", "should", "some",
    "tell", "text", "that", "the", "their", "them", "there", "this", "tool", "use", "used", "user",
    "using", "value", "want", "was", "what", "when", "where", "which", "who", "will", "with",
    "would", "you",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> Tool {
        let description = Some(description.to_owned());
        let parameters = Some(json!({ "properties": { "city": { "type": "string" } } }).into());
        Tool {
            name: name.to_owned(),
            description,
            parameters,
            strict: None,
        }
    }

    fn found(question: &str) -> (Vec<String>, usize) {
        let tools = [
            tool("get_weather", "Get the current weather at a place"),
            tool("bookFlight", "Book a seat from one city to another"),
        ];
        let (tools, score) = most_relevant(&tools, question);
        (
            tools.into_iter().map(|tool| tool.name.clone()).collect(),
            score,
        )
    }

    #[test]
    fn words_of_the_question_find_the_tool() {
        assert_eq!(
            found("What is the weather in Paris?"),
            (vec!["get_weather".to_owned()], 2)
        );
        assert_eq!(
            found("I am booking flights."),
            (vec!["bookFlight".to_owned()], 4)
        );
        assert_eq!(found("Take a seat").1, 1);
        assert_eq!(found("Tell me a joke about the user.").1, 0);
    }

    #[test]
    fn a_function_without_members_takes_nothing() {
        assert!(has_no_members(
            &json!({ "type": "object", "properties": {} })
        ));
        assert!(!has_no_members(&json!({ "properties": { "a": true } })));
        assert!(!has_no_members(&json!({ "additionalProperties": true })));
    }
}
