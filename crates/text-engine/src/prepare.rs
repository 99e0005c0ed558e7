//! What of a request can be known before its turn: that it can be answered, and how.

use engine::{Effort, EngineError, Format, Reasoning, Sampling, TextRequest};
use serde_json::Value;

use crate::Engine;
use crate::constrain::{Constraint, Grammars};
use crate::conversation::Conversation;
use crate::prompt::{Fitted, Task, fit};
use crate::tools::Calling;

/// A request that can be answered.
pub(crate) struct Prepared {
    pub(crate) said: Conversation,
    /// Tokens of the prompt.
    pub(crate) tokens: u64,
    /// What of the request was left out.
    pub(crate) dropped: Vec<String>,
    pub(crate) calling: Option<Calling>,
    pub(crate) shape: Shape,
    pub(crate) stop: Vec<String>,
    pub(crate) sampling: Sampling,
    /// The most tokens of the plan; 0 is no plan.
    pub(crate) plan: u64,
    /// The most tokens of it all.
    pub(crate) cap: u64,
}

/// The form of the answer.
pub(crate) enum Shape {
    Text,
    Json { schema: Option<Value>, constraint: Box<Constraint> },
}

/// # Errors
/// When the request cannot be answered: what it shows cannot be read, its schemas cannot be followed, or it does not
/// fit the context.
pub(crate) fn prepare(engine: &Engine, request: TextRequest) -> Result<Prepared, EngineError> {
    let said = Conversation::read(&request)?;
    let calling = Calling::read(&request, &said, &engine.grammars)?;
    let shape = shape(&request.format, &engine.grammars)?;
    let task = match (&calling, &shape) {
        (Some(calling), _) => Task::Choose(&calling.functions),
        (None, Shape::Json { schema, .. }) => Task::Json(schema.as_ref()),
        (None, Shape::Text) => Task::Answer,
    };
    let Fitted { said, tokens, dropped } = fit(&engine.tokenizer, said, task, engine.model.context())?;
    let (plan, cap) = (plan(&request.reasoning), request.max_output_tokens.unwrap_or(DEFAULT_CAP));
    let (stop, sampling) = (request.stop, request.sampling);
    Ok(Prepared { said, tokens, dropped, calling, shape, stop, sampling, plan, cap })
}

fn shape(format: &Format, grammars: &Grammars) -> Result<Shape, EngineError> {
    match format {
        Format::Text => Ok(Shape::Text),
        Format::JsonObject => Ok(Shape::Json { schema: None, constraint: Box::new(grammars.json_object()?) }),
        Format::JsonSchema { schema, strict, .. } => {
            let schema = schema.value();
            let constraint = grammars.json(&schema, *strict == Some(true), "The JSON schema of the answer")?;
            Ok(Shape::Json { schema: Some(schema), constraint: Box::new(constraint) })
        }
    }
}

/// The most tokens of a plan.
fn plan(reasoning: &Reasoning) -> u64 {
    if !reasoning.wanted() {
        return 0;
    }
    match reasoning.effort {
        Some(Effort::None | Effort::Minimal) => 24,
        Some(Effort::Low) => 40,
        Some(Effort::Medium) | None => 56,
        Some(Effort::High | Effort::XHigh | Effort::Max) => 80,
    }
}

/// The most tokens to write where the caller names no cap.
const DEFAULT_CAP: u64 = 1024;
