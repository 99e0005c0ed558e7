//! Validates a request and prepares its generation before it enters the queue.

use engine::{Effort, EngineError, Format, Reasoning, Sampling, TextRequest};
use serde_json::Value;

use crate::constrain::{Constraint, Grammars};
use crate::conversation::Conversation;
use crate::loaded_model::LoadedModel;
use crate::prompt::{FittedConversation, Task, fit};
use crate::tools::ToolSelection;

pub(crate) struct PreparedRequest {
    pub(crate) prompt: FittedConversation,
    pub(crate) selection: Option<ToolSelection>,
    pub(crate) output: OutputFormat,
    pub(crate) stop: Vec<String>,
    pub(crate) sampling: Sampling,
    /// Maximum number of tokens of the plan; 0 disables it.
    pub(crate) plan: u64,
    /// Maximum number of tokens of the complete output.
    pub(crate) cap: u64,
}

/// The format of the answer, with its compiled grammar.
pub(crate) enum OutputFormat {
    Text,
    Json {
        schema: Option<Value>,
        constraint: Box<Constraint>,
    },
}

/// Validates a request, compiles its schemas and fits its prompt into the context.
///
/// # Errors
/// If its images or files cannot be read, its schemas are not supported, or it does not fit the
/// context.
pub(crate) fn prepare(
    loaded: &LoadedModel,
    request: TextRequest,
) -> Result<PreparedRequest, EngineError> {
    let conversation = Conversation::read(&request)?;
    let selection = ToolSelection::read(&request, &conversation, &loaded.grammars)?;
    let output = output_format(&request.format, &loaded.grammars)?;
    let task = match (&selection, &output) {
        (Some(selection), _) => Task::Choose(&selection.functions),
        (None, OutputFormat::Json { schema, .. }) => Task::Json(schema.as_ref()),
        (None, OutputFormat::Text) => Task::Answer,
    };
    let context = loaded.model.context();
    let prompt = fit(&loaded.tokenizer, conversation, task, context)?;
    let plan = plan(&request.reasoning);
    let cap = request.max_output_tokens.unwrap_or(DEFAULT_CAP);
    let TextRequest { stop, sampling, .. } = request;
    Ok(PreparedRequest {
        prompt,
        selection,
        output,
        stop,
        sampling,
        plan,
        cap,
    })
}

fn output_format(format: &Format, grammars: &Grammars) -> Result<OutputFormat, EngineError> {
    match format {
        Format::Text => Ok(OutputFormat::Text),
        Format::JsonObject => Ok(OutputFormat::Json {
            schema: None,
            constraint: Box::new(grammars.json_object()?),
        }),
        Format::JsonSchema { schema, strict, .. } => {
            let schema = schema.value();
            let constraint = grammars.json(
                &schema,
                *strict == Some(true),
                "The JSON schema of the answer",
            )?;
            Ok(OutputFormat::Json {
                schema: Some(schema),
                constraint: Box::new(constraint),
            })
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
