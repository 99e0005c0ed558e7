//! Validates a request and prepares its generation before it enters the queue.

use engine::{Effort, EngineError, Format, Reasoning, Sampling, TextRequest};
use serde_json::Value;

use crate::constrain::{Constraint, Grammars};
use crate::conversation::Conversation;
use crate::loaded_model::LoadedModel;
use crate::prompt::{Fitted, Task, fit};
use crate::tools::Calling;

/// A validated request.
pub(crate) struct Prepared {
    pub(crate) conversation: Conversation,
    /// Number of tokens of the prompt.
    pub(crate) tokens: u64,
    /// Parts of the request that were left out.
    pub(crate) dropped: Vec<String>,
    pub(crate) calling: Option<Calling>,
    pub(crate) shape: Shape,
    pub(crate) stop: Vec<String>,
    pub(crate) sampling: Sampling,
    /// Maximum number of tokens of the plan; 0 disables it.
    pub(crate) plan: u64,
    /// Maximum number of tokens of the complete output.
    pub(crate) cap: u64,
}

/// The output format of the answer.
pub(crate) enum Shape {
    Text,
    Json { schema: Option<Value>, constraint: Box<Constraint> },
}

/// Validates a request, compiles its schemas and fits its prompt into the context.
///
/// # Errors
/// If its images or files cannot be read, its schemas are not supported, or it does not fit the context.
pub(crate) fn prepare(loaded: &LoadedModel, request: TextRequest) -> Result<Prepared, EngineError> {
    let conversation = Conversation::read(&request)?;
    let calling = Calling::read(&request, &conversation, &loaded.grammars)?;
    let shape = shape(&request.format, &loaded.grammars)?;
    let task = match (&calling, &shape) {
        (Some(calling), _) => Task::Choose(&calling.functions),
        (None, Shape::Json { schema, .. }) => Task::Json(schema.as_ref()),
        (None, Shape::Text) => Task::Answer,
    };
    let context = loaded.model.context();
    let Fitted { conversation, tokens, dropped } = fit(&loaded.tokenizer, conversation, task, context)?;
    let (plan, cap) = (plan(&request.reasoning), request.max_output_tokens.unwrap_or(DEFAULT_CAP));
    let (stop, sampling) = (request.stop, request.sampling);
    Ok(Prepared { conversation, tokens, dropped, calling, shape, stop, sampling, plan, cap })
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

/// Maximum number of tokens of a plan.
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

/// Maximum number of output tokens if the request does not specify one.
const DEFAULT_CAP: u64 = 1024;
