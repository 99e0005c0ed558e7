//! Grammars for constrained output: JSON, JSON that matches a schema, or one of several words.

use std::sync::Arc;

use engine::EngineError;
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use serde_json::{Map, Value, json};
use toktrie::{SimpleVob, TokEnv, TokenId};

use crate::tokenizer::Tokenizer;

/// Compiles constraints for one vocabulary.
pub(crate) struct Grammars {
    factory: ParserFactory,
}

/// The state of a generation in its grammar.
#[derive(Clone)]
pub(crate) struct Constraint {
    matcher: Matcher,
}

impl Grammars {
    pub(crate) fn new(tokenizer: &Tokenizer) -> Result<Self, String> {
        let env: TokEnv = Arc::new(tokenizer.clone());
        let mut factory = ParserFactory::new_simple(&env).map_err(|why| why.to_string())?;
        factory.quiet();
        // Sufficient for the largest accepted schema, while one token takes at most about 0.2 s of
        // CPU time.
        let limits = factory.limits_mut();
        limits.max_items_in_row = 5 * MAX_VALUES;
        limits.step_max_items = 250 * MAX_VALUES;
        limits.step_lexer_fuel = 1000 * MAX_VALUES as u64;
        Ok(Self { factory })
    }

    /// Any JSON object. The number of members per level is limited, because a small model does not
    /// stop by itself.
    pub(crate) fn json_object(&self) -> Result<Constraint, EngineError> {
        self.constraint(
            TopLevelGrammar::from_lark(JSON_OBJECT.to_owned()),
            "The JSON object format",
        )
    }

    /// JSON that matches a schema. Unless `strict`, unsupported keywords of the schema are ignored.
    ///
    /// # Errors
    /// If there is no grammar for it. The message begins with `what`, the name of the schema.
    pub(crate) fn json(
        &self,
        schema: &Value,
        strict: bool,
        what: &str,
    ) -> Result<Constraint, EngineError> {
        let values = count_values(schema);
        if values > MAX_VALUES {
            let line = format!("it has {values} values, and at most {MAX_VALUES} are accepted");
            return Err(unsupported(what, &line));
        }
        let schema = match schema {
            Value::Object(members) => members.clone(),
            _ => Map::new(),
        };
        let compile = |mut schema: Map<String, Value>| {
            schema.insert("x-guidance".to_owned(), options(!strict));
            let constraint =
                self.constraint(TopLevelGrammar::from_json_schema(schema.into()), what)?;
            if constraint.can_begin() {
                Ok(constraint)
            } else {
                Err(unsupported(what, "nothing fits it, or it is too large"))
            }
        };
        // The caller's own schema decides if it is supported. Then it is narrowed as far as
        // something still matches.
        let wide = compile(schema.clone())?;
        let narrow = [Members::Known, Members::Any]
            .into_iter()
            .find_map(|members| {
                let mut schema = schema.clone();
                bound_members(&mut schema, Role::Alone, members);
                compile(schema).ok()
            });
        Ok(narrow.unwrap_or(wide))
    }

    /// Exactly one of several words.
    pub(crate) fn choice(&self, words: &[&str]) -> Result<Constraint, EngineError> {
        let quoted: Vec<String> = words
            .iter()
            .map(|word| Value::from(*word).to_string())
            .collect();
        let grammar = TopLevelGrammar::from_lark(format!("start: {}", quoted.join(" | ")));
        self.constraint(grammar, "The list of function names")
    }

    fn constraint(&self, grammar: TopLevelGrammar, what: &str) -> Result<Constraint, EngineError> {
        let parser = self.factory.create_parser(grammar).map_err(|why| {
            let why = why.to_string();
            match why.lines().next().unwrap_or_default() {
                line if line.starts_with("panic") => unsupported(what, "it is not understood"),
                line => unsupported(what, line.trim_end_matches('.')),
            }
        })?;
        Ok(Constraint {
            matcher: Matcher::new(Ok(parser)),
        })
    }
}

impl Constraint {
    /// Consumes and returns the tokens that the grammar leaves no choice about.
    pub(crate) fn forced(&mut self) -> Vec<TokenId> {
        if self.is_done() {
            Vec::new()
        } else {
            self.matcher.consume_ff_tokens()
        }
    }

    /// The set of tokens that may come next, with the end token if the grammar may end here.
    pub(crate) fn allowed(&mut self) -> Result<SimpleVob, EngineError> {
        self.matcher.compute_mask_or_eos().map_err(internal)
    }

    /// Consumes a token that was drawn.
    pub(crate) fn take(&mut self, token: TokenId) -> Result<(), EngineError> {
        self.matcher.consume_token(token).map_err(internal)
    }

    /// Returns true if there is a first token: a valid grammar may match nothing, or exceed the
    /// limits of the parser.
    fn can_begin(&self) -> bool {
        let mut trial = self.clone();
        trial.forced();
        trial.is_done() || trial.allowed().is_ok()
    }

    /// Returns true if the grammar allows nothing more.
    pub(crate) fn is_done(&self) -> bool {
        self.matcher.is_stopped() && !self.matcher.is_error()
    }
}

fn unsupported(what: &str, why: &str) -> EngineError {
    EngineError::Unsupported {
        param: None,
        reason: format!("{what} cannot be followed: {why}."),
    }
}

/// Counts the values of a schema, including itself.
pub(crate) fn count_values(schema: &Value) -> usize {
    1 + match schema {
        Value::Object(members) => members.values().map(count_values).sum(),
        Value::Array(entries) => entries.iter().map(count_values).sum(),
        _ => 0,
    }
}

fn internal(why: impl std::fmt::Display) -> EngineError {
    EngineError::Internal(format!(
        "grammar failed: {}",
        why.to_string().lines().next().unwrap_or_default()
    ))
}

/// The options of a schema grammar: output on one line, with the spaces that models are trained
/// with.
fn options(lenient: bool) -> Value {
    json!({ "whitespace_flexible": false, "key_separator": ": ", "item_separator": ", ", "lenient": lenient })
}

/// The role of a subschema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It describes its value alone.
    Alone,
    /// It describes its value together with other subschemas.
    Combined,
}

/// The members allowed in an object whose schema has `properties` but not `additionalProperties`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Members {
    /// Only those in `properties`.
    Known,
    Any,
}

/// Adds bounds where a schema has none: to the length of texts and lists, and to additional
/// members.
///
/// A value that matches the bounded schema also matches the original one.
fn bound(schema: &mut Value, role: Role, allowed: Members) {
    if let Value::Object(members) = schema {
        bound_members(members, role, allowed);
    }
}

fn bound_members(members: &mut Map<String, Value>, role: Role, allowed: Members) {
    let free = !["enum", "const", "$ref"]
        .iter()
        .any(|key| members.contains_key(*key));
    if free
        && has_type(members, "string")
        && !["pattern", "format"]
            .iter()
            .any(|key| members.contains_key(*key))
    {
        cap(members, "maxLength", "minLength", MAX_LENGTH);
    }
    if free && has_type(members, "array") {
        cap(members, "maxItems", "minItems", MAX_ITEMS);
    }
    let combined = ["allOf", "anyOf", "oneOf", "$ref", "patternProperties"];
    let may_be_closed = role == Role::Alone
        && allowed == Members::Known
        && !combined.iter().any(|key| members.contains_key(*key));
    if may_be_closed
        && members
            .get("properties")
            .and_then(Value::as_object)
            .is_some_and(|known| !known.is_empty())
    {
        members
            .entry("additionalProperties")
            .or_insert(Value::Bool(false));
    }
    for key in ["properties", "patternProperties", "$defs", "definitions"] {
        let inner = members.get_mut(key).and_then(Value::as_object_mut);
        inner
            .into_iter()
            .flat_map(Map::values_mut)
            .for_each(|schema| bound(schema, Role::Alone, allowed));
    }
    for key in ["items", "additionalProperties"] {
        members
            .get_mut(key)
            .into_iter()
            .for_each(|schema| bound(schema, Role::Alone, allowed));
    }
    for (key, role) in [
        ("prefixItems", Role::Alone),
        ("allOf", Role::Combined),
        ("anyOf", role),
        ("oneOf", role),
    ] {
        let inner = members.get_mut(key).and_then(Value::as_array_mut);
        inner
            .into_iter()
            .flatten()
            .for_each(|schema| bound(schema, role, allowed));
    }
}

/// Returns true if `type` of the schema includes this type.
fn has_type(members: &Map<String, Value>, kind: &str) -> bool {
    match members.get("type") {
        Some(Value::String(found)) => found == kind,
        Some(Value::Array(found)) => found.iter().any(|found| found == kind),
        _ => false,
    }
}

fn cap(members: &mut Map<String, Value>, most: &str, least: &str, value: u64) {
    let least = members.get(least).and_then(Value::as_u64).unwrap_or(0);
    members
        .entry(most)
        .or_insert_with(|| value.max(least).into());
}

/// A JSON object with at most 8 members, and lists with at most 8 entries, at each level.
const JSON_OBJECT: &str = r#"
start: object
object: "{" (pair (", " pair){0,7})? "}"
array: "[" (value (", " value){0,7})? "]"
pair: key ": " value
value: object | array | text | plain
key: %json { "type": "string", "minLength": 1, "maxLength": 40 }
text: %json { "type": "string", "maxLength": 200 }
plain: %json { "anyOf": [{ "type": "number" }, { "type": "boolean" }, { "type": "null" }] }
"#;

/// Maximum number of values in a schema: the compiler of its grammar may recurse once per value.
const MAX_VALUES: usize = 2000;

/// Maximum length of a text in characters, if the schema does not limit it.
const MAX_LENGTH: u64 = 200;

/// Maximum length of a list, if the schema does not limit it.
const MAX_ITEMS: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn bounded(mut schema: Value) -> Value {
        bound(&mut schema, Role::Alone, Members::Known);
        schema
    }

    #[test]
    fn unbounded_schemas_are_bounded() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": { "type": ["string", "null"] },
                "tags": { "type": "array", "minItems": 9, "items": { "type": "string", "maxLength": 5 } },
            },
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "name": { "type": ["string", "null"], "maxLength": 200 },
                "tags": {
                    "type": "array", "minItems": 9, "maxItems": 9,
                    "items": { "type": "string", "maxLength": 5 },
                },
            },
            "additionalProperties": false,
        });
        assert_eq!(bounded(schema), expected);
    }

    #[test]
    fn bounded_and_combined_schemas_are_not_changed() {
        for schema in [
            json!({ "type": "string", "enum": ["a"] }),
            json!({ "type": "string", "format": "date" }),
            json!({ "allOf": [{ "properties": { "a": { "type": "integer" } } }] }),
            json!({ "properties": { "a": true }, "additionalProperties": true }),
            json!({ "const": { "type": "string" } }),
        ] {
            assert_eq!(bounded(schema.clone()), schema);
        }
    }
}
