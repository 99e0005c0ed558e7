//! `POST /v1/responses`:
//! [responses](https://platform.openai.com/docs/api-reference/responses/create).

use catalog::{Model, Protocol};
use responses::{Item, Part, Request, Role, Rules, ValidRequest};
use translate::inbound::Responses;
use translate::{outbound, relay};
use wire::{ApiError, Path, Splice, TextOr};

use super::text::{RelayNotes, TextEndpoint};
use crate::affinity::{Conversation, member};
use crate::targets::UpstreamTarget;

impl TextEndpoint for Responses {
    const PROTOCOL: Protocol = Protocol::Responses;
    const UPSTREAM_PROTOCOL: outbound::Protocol = outbound::Protocol::Responses;
    const LIMIT_IN_STREAM: bool = true;
    const USES_ENVELOPES: bool = true;
    type Unchecked = Request;
    type Relay = relay::Responses;

    fn read(body: &[u8]) -> Result<Request, ApiError> {
        Ok(Request::read(body)?)
    }

    fn model_and_stream(request: &Request) -> (&str, bool) {
        (&request.model, request.streams())
    }

    fn validate(request: Request, model: Option<&Model>) -> Result<ValidRequest, ApiError> {
        Ok(request.validate(&model.map_or_else(lenient, Model::responses_rules))?)
    }

    fn image_urls(request: &ValidRequest, visit: &mut dyn FnMut(&Path<'_>, &str)) {
        request.addresses(visit);
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

    fn notes(request: &ValidRequest) -> RelayNotes {
        RelayNotes {
            has_store: request.store.is_some(),
            ..RelayNotes::default()
        }
    }

    /// Removes `metadata`: the client's notes are not for the upstream. It stores nothing unless
    /// the client asks for it, which OpenAI would do by default
    /// (<https://platform.openai.com/docs/api-reference/responses/create>).
    fn edit(_: &UpstreamTarget, notes: RelayNotes, splice: &mut Splice<'_>) {
        splice.remove(&[], &["metadata"]);
        if !notes.has_store {
            splice.set("store", b"false");
        }
    }
}

/// The text of a part, or what else distinguishes it.
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
