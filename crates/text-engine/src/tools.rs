//! Functions that the model may call: which of them come into question, and whether any is called at all.

use std::collections::HashSet;

use engine::{EngineError, TextRequest, Tool, ToolChoice};
use serde_json::{Value, json};

use crate::constrain::{Constraint, Grammars, values};
use crate::conversation::Conversation;
use crate::tokenizer::Tokenizer;

/// What the request asks about functions, as far as can be told without the model.
pub(crate) struct Calling {
    /// The functions that come into question, at least one.
    pub(crate) functions: Vec<Function>,
    pub(crate) need: Need,
}

/// Whether one of the functions is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Sure,
    /// The model decides.
    Open,
}

/// A function with the grammar of its arguments.
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) description: String,
    /// The schema of the arguments, an object.
    pub(crate) parameters: Value,
    pub(crate) arguments: Constraint,
}

impl Calling {
    /// None if no function is called.
    ///
    /// # Errors
    /// When the named function is none of the request's, or the arguments of one that comes into question have a
    /// schema that cannot be followed.
    pub(crate) fn read(
        request: &TextRequest,
        said: &Conversation,
        grammars: &Grammars,
    ) -> Result<Option<Self>, EngineError> {
        let (tools, need) = match &request.tool_choice {
            ToolChoice::None => return Ok(None),
            ToolChoice::Named(name) => (vec![named(&request.tools, name)?], Need::Sure),
            ToolChoice::Required => (most_relevant(&request.tools, &said.question).0, Need::Sure),
            // What a call brought is to be told, not asked for again.
            ToolChoice::Auto if said.has_result => return Ok(None),
            ToolChoice::Auto => match most_relevant(&request.tools, &said.question) {
                (_, 0) => return Ok(None),
                (tools, 1) => (tools, Need::Open),
                (tools, _) => (tools, Need::Sure),
            },
        };
        if tools.is_empty() {
            let reason = "A function must be called, but there is none.".to_owned();
            return Err(EngineError::Unsupported { param: Some("tool_choice".to_owned()), reason });
        }
        let schemas = tools.iter().filter_map(|tool| tool.parameters.as_ref());
        let values: usize = schemas.map(|schema| values(&schema.value())).sum();
        if values > MAX_VALUES {
            let reason =
                format!("The schemas of the functions have {values} values, and at most {MAX_VALUES} are accepted.");
            return Err(EngineError::Unsupported { param: Some("tools".to_owned()), reason });
        }
        let functions = tools.into_iter().map(|tool| Function::read(tool, grammars)).collect::<Result<_, _>>()?;
        Ok(Some(Self { functions, need }))
    }
}

impl Function {
    fn read(tool: &Tool, grammars: &Grammars) -> Result<Self, EngineError> {
        let mut parameters = tool.parameters.as_ref().map_or(Value::Null, wire::Json::value);
        match &mut parameters {
            Value::Object(members) => {
                members.insert("type".to_owned(), "object".into());
            }
            _ => parameters = json!({ "type": "object" }),
        }
        if takes_nothing(&parameters) {
            parameters["additionalProperties"] = false.into();
        }
        let what = format!("The schema of the function '{}'", tool.name);
        let arguments = grammars.json(&parameters, tool.strict == Some(true), &what)?;
        let description = tool.description.clone().unwrap_or_default();
        Ok(Self { name: tool.name.clone(), description, parameters, arguments })
    }
}

/// Whether a model asked for yes or no would say yes, by the likeliest beginning of either.
pub(crate) fn prefers_yes(scores: &[f32], tokenizer: &Tokenizer) -> bool {
    let score = |words: [&str; 2]| {
        let first = words.into_iter().filter_map(|word| tokenizer.encode(word).first().copied());
        first.filter_map(|token| scores.get(token as usize)).copied().fold(f32::MIN, f32::max)
    };
    score(["Yes", "yes"]) >= score(["No", "no"])
}

/// Whether a schema of an object names no member at all.
fn takes_nothing(schema: &Value) -> bool {
    let known = ["properties", "patternProperties", "additionalProperties", "allOf", "anyOf", "oneOf", "$ref"];
    known.iter().all(|key| schema.get(key).is_none_or(|value| value.as_object().is_some_and(serde_json::Map::is_empty)))
}

fn named<'t>(tools: &'t [Tool], name: &str) -> Result<&'t Tool, EngineError> {
    tools.iter().find(|tool| tool.name == name).ok_or_else(|| EngineError::Unsupported {
        param: Some("tool_choice".to_owned()),
        reason: format!("The function '{name}' that must be called is none of the tools."),
    })
}

/// The tools that share most with the question, and how much that is.
///
/// A model of this size decides by chance, so words decide before it: a word of the name counts two, another of
/// the description or the parameters one.
fn most_relevant<'t>(tools: &'t [Tool], question: &str) -> (Vec<&'t Tool>, usize) {
    let asked = words(question);
    let scored: Vec<_> = tools.iter().map(|tool| (tool, relevance(tool, &asked))).collect();
    let best = scored.iter().map(|(_, score)| *score).max().unwrap_or(0);
    (scored.into_iter().filter(|(_, score)| *score == best).map(|(tool, _)| tool).collect(), best)
}

fn relevance(tool: &Tool, asked: &HashSet<String>) -> usize {
    let name = words(&tool.name);
    let mut rest = words(tool.description.as_deref().unwrap_or_default());
    let parameters = tool.parameters.as_ref().map_or(Value::Null, wire::Json::value);
    for (key, schema) in parameters.get("properties").and_then(Value::as_object).into_iter().flatten() {
        rest.extend(words(key));
        rest.extend(words(schema.get("description").and_then(Value::as_str).unwrap_or_default()));
    }
    2 * asked.intersection(&name).count() + asked.intersection(&rest).filter(|word| !name.contains(*word)).count()
}

/// The stems of the words that tell something.
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
    words.filter(|word| word.chars().count() > 2 && !COMMON.contains(word)).map(stem).collect()
}

/// A word without the endings of English that make no difference here.
fn stem(word: &str) -> String {
    let endings = ["ations", "ation", "ing", "ies", "es", "ed", "s", "e", "y"];
    let cut = endings.iter().find_map(|ending| word.strip_suffix(ending).filter(|stem| stem.chars().count() > 2));
    cut.unwrap_or(word).to_owned()
}

/// Schemas of more values, all together, are refused: each function has a grammar of its own.
const MAX_VALUES: usize = 10_000;

/// Words that are in any question or any description.
const COMMON: [&str; 73] = [
    "about", "all", "and", "any", "are", "ask", "based", "been", "call", "can", "could", "did", "does", "find", "for",
    "from", "function", "get", "give", "given", "has", "have", "her", "him", "his", "how", "its", "let", "like",
    "list", "make", "may", "name", "need", "new", "not", "now", "off", "one", "our", "out", "please", "return",
    "returns", "set", "she", "should", "some", "tell", "text", "that", "the", "their", "them", "there", "this", "tool",
    "use", "used", "user", "using", "value", "want", "was", "what", "when", "where", "which", "who", "will", "with",
    "would", "you",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> Tool {
        let description = Some(description.to_owned());
        let parameters = Some(json!({ "properties": { "city": { "type": "string" } } }).into());
        Tool { name: name.to_owned(), description, parameters, strict: None }
    }

    fn found(question: &str) -> (Vec<String>, usize) {
        let tools = [
            tool("get_weather", "Get the current weather at a place"),
            tool("bookFlight", "Book a seat from one city to another"),
        ];
        let (tools, score) = most_relevant(&tools, question);
        (tools.into_iter().map(|tool| tool.name.clone()).collect(), score)
    }

    #[test]
    fn words_of_the_question_find_the_tool() {
        assert_eq!(found("What is the weather in Paris?"), (vec!["get_weather".to_owned()], 2));
        assert_eq!(found("I am booking flights."), (vec!["bookFlight".to_owned()], 4));
        assert_eq!(found("Take a seat").1, 1);
        assert_eq!(found("Tell me a joke about the user.").1, 0);
    }

    #[test]
    fn a_function_without_members_takes_nothing() {
        assert!(takes_nothing(&json!({ "type": "object", "properties": {} })));
        assert!(!takes_nothing(&json!({ "properties": { "a": true } })));
        assert!(!takes_nothing(&json!({ "additionalProperties": true })));
    }
}
