//! `POST /v1/responses`:
//! [responses](https://platform.openai.com/docs/api-reference/responses/create).

use std::borrow::Cow;

use catalog::{Allowed, Model, Protocol};
use engine::EngineError;
use policy::affinity::{Conversation, member};
use policy::limit::Answers;
use policy::targets::UpstreamTarget;
use relay::End;
use responses::{
    Item, Part, Request, Role, Rules, Tool, ToolChoice, ToolChoiceObject, ToolMode, ValidRequest,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use translate::inbound::Responses;
use wire::{ApiError, ElementEdit, Path, Splice, TextOr};

use super::text::{
    EndpointRules, ImageUse, Permissions, RelayNotes, RelayPolicy, RequestCodec, TextEndpoint,
};
use crate::exchange::refusal::Refusal;
use crate::request::references::References;
use crate::request::response_stage::{OriginPlan, ResponseStage, StorePlan};
use crate::state::Caller;
use response_store::stored_input::{self, StoredInput};

impl EndpointRules for Responses {
    const PROTOCOL: Protocol = Protocol::Responses;
    const UPSTREAM_PROTOCOL: vendor::Protocol = vendor::Protocol::Responses;
    const LIMIT_IN_STREAM: bool = true;
}

impl RequestCodec for Responses {
    type Unchecked = Request;

    fn read(body: &[u8]) -> Result<Request, ApiError> {
        Ok(Request::read(body)?)
    }

    fn model_and_stream(request: &Request) -> (&str, bool) {
        (&request.model, request.streams())
    }

    fn validate(
        request: Request,
        model: Option<&Model>,
        permissions: Permissions,
    ) -> Result<ValidRequest, ApiError> {
        let mut rules = model.map_or_else(lenient, Model::responses_rules);
        rules.unknown_types = permissions.unknown_types;
        rules.previous_response |= permissions.references;
        rules.item_references |= permissions.references;
        Ok(request.validate(&rules)?)
    }

    fn unchecked(request: ValidRequest) -> Request {
        request.into_inner()
    }

    fn image_urls(request: &ValidRequest, visit: &mut dyn FnMut(&Path<'_>, &str)) {
        request.addresses(visit);
    }

    fn answers(request: &ValidRequest) -> Answers {
        let limit = request.max_output_tokens;
        let answers = Answers::one(limit.and_then(|limit| limit.try_into().ok()));
        answers.at_service_tier(request.service_tier.as_deref())
    }

    fn image_use(request: &ValidRequest) -> ImageUse {
        let modalities = request.extra.get("modalities").and_then(Value::as_array);
        let mut modalities = modalities.into_iter().flatten().filter_map(Value::as_str);
        if modalities.any(|modality| modality.eq_ignore_ascii_case("image")) {
            return ImageUse::Required;
        }
        let tools = request.tools.as_deref().unwrap_or_default();
        let mut others = tools.iter().filter(|tool| tool.kind() != IMAGE_TOOL);
        let has_others = others.next().is_some();
        match &request.tool_choice {
            Some(choice) if forces_images(choice, has_others) => ImageUse::Required,
            _ if tools.iter().any(|tool| tool.kind() == IMAGE_TOOL) => ImageUse::Offered,
            _ => ImageUse::None,
        }
    }

    fn identify(request: &ValidRequest, conversation: &mut Conversation) {
        let key = request.prompt_cache_key.as_deref();
        let user = || member(request.metadata.as_ref()?, "user_id");
        if let Some(key) = key.filter(|key| !key.is_empty()).or_else(user) {
            return conversation.add(key);
        }
        conversation.add(request.instructions.as_deref().unwrap_or_default());
        let items = match &request.input {
            TextOr::Text(text) => return conversation.add(text),
            TextOr::List(items) => items,
        };
        for item in items {
            let Item::Message(message) = item else { return };
            conversation.add_content(&message.content, text_of);
            if !matches!(message.role, Role::System | Role::Developer) {
                return;
            }
        }
    }
}

impl RelayPolicy for Responses {
    type Relay = relay::Responses;

    fn notes(request: &ValidRequest) -> RelayNotes {
        let mut tools = request.tools.iter().flatten();
        RelayNotes {
            has_store: request.store.is_some(),
            has_nested_functions: tools
                .any(|tool| matches!(tool, Tool::Function(tool) if tool.is_nested())),
            is_in_background: request.background == Some(true),
            ..RelayNotes::default()
        }
    }

    /// The reply to a request in the background may be unfinished.
    fn relayed_reply(
        notes: RelayNotes,
        body: &[u8],
        model: &str,
    ) -> Result<(Vec<u8>, End), EngineError> {
        if notes.is_in_background {
            relay::background_reply(body, model)
        } else {
            relay::reply::<relay::Responses>(body, model)
        }
    }

    /// Removes `metadata`: the client's notes are not for the upstream. The upstream stores nothing
    /// unless the client asks for it, although OpenAI would by default
    /// (<https://platform.openai.com/docs/api-reference/responses/create>). It does not store an
    /// answer that the gateway keeps itself either. Functions in the form of Chat Completions are
    /// written in the form of this protocol.
    fn edit(_: &UpstreamTarget, notes: RelayNotes, splice: &mut Splice<'_>) {
        splice.remove(&[], &["metadata"]);
        edit_tools(notes, splice);
        if !notes.has_store || notes.is_stored {
            splice.set("store", b"false");
        }
    }
}

impl TextEndpoint for Responses {
    fn resolve(request: &Request, caller: &Caller<'_>) -> Result<References, Refusal> {
        let model = caller.policy.catalog.find(&request.model);
        // The gateway does not keep responses that a server keeps.
        if model.is_some_and(Model::keeps_responses) {
            return tracked(request, caller);
        }
        let Some(kept) = &caller.state.kept else {
            return Ok(References::default());
        };
        Ok(References {
            stored: StoredInput::find(kept, &caller.key.id, request)?,
            is_stored: request.store != Some(false),
            attach: StorePlan::new(request, kept, caller).map(ResponseStage::Store),
            upstream: None,
        })
    }
}

/// Finds the upstream that keeps the previous response of a request whose own response an upstream
/// may keep. All keys share the account of the upstream, so a response that this key is not known to
/// have made is refused, unless the model allows it.
fn tracked(request: &Request, caller: &Caller<'_>) -> Result<References, Refusal> {
    let origin = |id| caller.state.origins.get(&caller.key.id, id);
    let model = caller.policy.catalog.find(&request.model);
    let is_open = model.is_some_and(|model| model.allows(Allowed::UnknownResponses));
    let upstream = match request.previous_response_id.as_deref() {
        Some(id) => match origin(id) {
            None if !is_open => return Err(stored_input::no_response(id).into()),
            origin => origin.map(|origin| origin.upstream),
        },
        None => None,
    };
    Ok(References {
        attach: Some(ResponseStage::NoteOrigin(OriginPlan::new(
            caller,
            &request.model,
        ))),
        upstream,
        ..References::default()
    })
}

/// Returns true if a choice leaves the model nothing but to make images. `has_others` is true if the
/// request has other tools.
fn forces_images(choice: &ToolChoice, has_others: bool) -> bool {
    match choice {
        ToolChoice::Word(word) => *word == ToolMode::Required && !has_others,
        ToolChoice::Object(ToolChoiceObject::AllowedTools(choice)) => {
            let mut tools = choice.tools.iter();
            choice.mode == Some(ToolMode::Required) && tools.all(|tool| tool.kind() == IMAGE_TOOL)
        }
        ToolChoice::Object(choice) => choice.kind() == IMAGE_TOOL,
    }
}

/// Removes the tools that make images where the key may not use them, and writes functions in the form
/// of Chat Completions, which are accepted, in the form of this protocol. Other tools stay as they are.
fn edit_tools(notes: RelayNotes, splice: &mut Splice<'_>) {
    if notes.hides_image_tools || notes.has_nested_functions {
        splice.edit_elements(&["tools"], |tool| edit_tool::<Tool>(notes, tool));
    }
    let choice = splice.value(&["tool_choice"]);
    if let Some(flat) = choice.and_then(flattened::<ToolChoiceObject>) {
        splice.replace(&["tool_choice"], &flat);
    }
    splice.edit_elements(&["tool_choice", "tools"], |tool| {
        edit_tool::<ToolChoiceObject>(notes, tool)
    });
}

fn edit_tool<T: DeserializeOwned + Serialize>(notes: RelayNotes, tool: &[u8]) -> ElementEdit {
    if notes.hides_image_tools && is_image_tool(tool) {
        return ElementEdit::Remove;
    }
    flattened::<T>(tool).map_or(ElementEdit::Keep, ElementEdit::Replace)
}

/// Returns a tool, or a choice of one, in the form of this protocol if it is a function in the form of
/// Chat Completions.
fn flattened<T: DeserializeOwned + Serialize>(tool: &[u8]) -> Option<Vec<u8>> {
    if !Splice::new(tool).has(&["function"]) {
        return None;
    }
    let tool: T = serde_json::from_slice(tool).ok()?;
    serde_json::to_vec(&tool).ok()
}

/// Returns true if the JSON text of a tool is a hosted tool that makes images, or cannot be
/// distinguished from one.
fn is_image_tool(tool: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Kind<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
    }
    serde_json::from_slice::<Kind<'_>>(tool).map_or(true, |tool| tool.kind == IMAGE_TOOL)
}

/// The type of the hosted tool that makes images:
/// <https://platform.openai.com/docs/guides/tools-image-generation>.
const IMAGE_TOOL: &str = "image_generation";

/// The text that distinguishes a part: its own text, the URL of an image, or the data or else the
/// URL of a file.
fn text_of(part: &Part) -> Option<&str> {
    match part {
        Part::InputText(part) | Part::OutputText(part) | Part::Text(part) => Some(&part.text),
        Part::Image(part) => part.image_url.as_deref(),
        Part::File(part) => part.file_data.as_deref().or(part.file_url.as_deref()),
        _ => None,
    }
}

/// Returns the rules for an unknown model. They are lenient, so that the client gets the error
/// about the model and not one about a field that another model would refuse.
fn lenient() -> Rules {
    let mut rules = Rules::default();
    rules.string_input = true;
    rules
}
