//! `POST /v1/messages`: [messages](https://docs.anthropic.com/en/api/messages).

use catalog::{Model, Protocol};
use messages::{InputBlock, Request, Rules, Source, ValidRequest, refusal};
use policy::affinity::{Conversation, member};
use policy::limit::Answers;
use policy::targets::UpstreamTarget;
use translate::inbound::Messages;
use wire::{ApiError, Path, Splice};

use super::text::{
    EndpointRules, Permissions, RelayNotes, RelayPolicy, RequestCodec, TextEndpoint,
};

impl EndpointRules for Messages {
    const PROTOCOL: Protocol = Protocol::Messages;
    const UPSTREAM_PROTOCOL: vendor::Protocol = vendor::Protocol::Messages;
    const FORWARDED: &'static [&'static str] = &["anthropic-version", "anthropic-beta"];
}

impl RequestCodec for Messages {
    type Unchecked = Request;

    fn read(body: &[u8]) -> Result<Request, ApiError> {
        Request::read(body).map_err(refusal)
    }

    fn model_and_stream(request: &Request) -> (&str, bool) {
        (&request.model, request.streams())
    }

    fn validate(
        request: Request,
        model: Option<&Model>,
        permissions: Permissions,
    ) -> Result<ValidRequest, ApiError> {
        let mut rules = model.map_or_else(Rules::default, Model::messages_rules);
        rules.unknown_types = permissions.unknown_types;
        request.validate(&rules).map_err(refusal)
    }

    fn unchecked(request: ValidRequest) -> Request {
        request.into_inner()
    }

    fn image_urls(request: &ValidRequest, visit: &mut dyn FnMut(&Path<'_>, &str)) {
        request.addresses(visit);
    }

    fn answers(request: &ValidRequest) -> Answers {
        let limit = request.max_tokens;
        let answers = Answers::one(limit.and_then(|limit| limit.try_into().ok()));
        answers.at_service_tier(member(&request.extra, "service_tier"))
    }

    fn identify(request: &ValidRequest, conversation: &mut Conversation) {
        let user = || request.user().filter(|user| !user.is_empty());
        if let Some(key) = member(&request.extra, "prompt_cache_key").or_else(user) {
            return conversation.add(key);
        }
        let first = request
            .messages
            .first()
            .and_then(|message| message.content.as_ref());
        for content in request.system.iter().chain(first) {
            conversation.add_content(content, text_of);
        }
    }
}

impl RelayPolicy for Messages {
    type Relay = relay::Messages;

    /// Removes the sampling parameters for upstreams whose models refuse them.
    fn edit(server: &UpstreamTarget, _: RelayNotes, splice: &mut Splice<'_>) {
        if !server.config.sampling {
            splice.remove(&[], &["temperature", "top_p", "top_k"]);
        }
    }
}

impl TextEndpoint for Messages {}

/// The text that distinguishes a block: its own text, or the data or the URL of its source.
fn text_of(block: &InputBlock) -> Option<&str> {
    let source = match block {
        InputBlock::Text(block) => return Some(&block.text),
        InputBlock::Image(block) => &block.source,
        InputBlock::Document(block) => &block.source,
        _ => return None,
    };
    match source {
        Source::Base64(source) | Source::Text(source) => Some(&source.data),
        Source::Url(source) => Some(&source.url),
        _ => None,
    }
}
