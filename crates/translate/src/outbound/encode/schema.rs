//! JSON Schemas of tools and of answers, as the upstreams accept them.

mod alternatives;
mod claude;
mod root;
mod sound;
mod strict;
#[cfg(test)]
mod tests;
mod tidy;

use engine::{EngineError, Format, TextRequest};
use serde_json::{Value, json};
use wire::Json;

use super::{DroppedField, DroppedFields};

/// Returns the schema of a tool's arguments as OpenAI accepts it: an object with its type and
/// properties.
pub(super) fn of_tool(
    tool: &engine::Tool,
    dropped: &mut DroppedFields,
) -> Result<Option<Json>, EngineError> {
    let Some(schema) = &tool.parameters else {
        return Ok(None);
    };
    let schema = of_answer(schema, dropped)?;
    Ok(Some(root::completed(schema, &root::FORBIDDEN, dropped)))
}

/// Returns the schema of a tool's arguments as Claude accepts it.
pub(super) fn of_claude_tool(
    tool: &engine::Tool,
    dropped: &mut DroppedFields,
) -> Result<Json, EngineError> {
    let Some(schema) = &tool.parameters else {
        return Ok(empty());
    };
    let schema = of_answer(schema, dropped)?;
    Ok(root::completed(schema, &root::ALTERNATIVES, dropped))
}

/// The schema of a tool whose arguments are not known.
pub(super) fn empty() -> Json {
    json!({ "type": "object", "properties": {} }).into()
}

/// Returns the schema of an answer as OpenAI accepts it: in the form of draft 2020-12.
pub(super) fn of_answer(schema: &Json, dropped: &mut DroppedFields) -> Result<Json, EngineError> {
    let schema = tidy::tidied(super::embed(schema)?, dropped);
    // A repair may have nested it deeper.
    super::embed(&schema)
}

/// Returns the schema of an answer as Claude accepts it: its objects permit no other members, and
/// some limits are not known.
pub(super) fn for_claude_answer(
    schema: &Json,
    dropped: &mut DroppedFields,
) -> Result<Json, EngineError> {
    let schema = of_answer(schema, dropped)?;
    let mut value = schema.value();
    if !claude::close(&mut value) {
        return Ok(schema);
    }
    dropped.add(DroppedField::Schema);
    Ok(Json::from(&value))
}

/// Gives the alternatives in the schemas of a request the types that Moonshot looks for in them.
pub(super) fn type_alternatives(request: &mut TextRequest, dropped: &mut DroppedFields) {
    let tools = request.tools.iter_mut();
    let of_tools = tools.filter_map(|tool| tool.parameters.as_mut());
    let of_answer = match &mut request.format {
        Format::JsonSchema { schema, .. } => Some(schema),
        Format::Text | Format::JsonObject => None,
    };
    for schema in of_tools.chain(of_answer) {
        *schema = alternatives::typed(schema, dropped);
    }
}

/// Returns `strict` if the schema permits it; else it is named.
pub(super) fn permitted(
    strict: Option<bool>,
    schema: &Json,
    dropped: &mut DroppedFields,
) -> Option<bool> {
    if strict == Some(true) && !permits_strict(schema) {
        dropped.add(DroppedField::Strict);
        return Some(false);
    }
    strict
}

/// Returns true if OpenAI accepts a schema in strict mode.
pub(super) fn permits_strict(schema: &Json) -> bool {
    serde_json::from_str(schema.text()).is_ok_and(|schema: Value| strict::permits(&schema))
}
