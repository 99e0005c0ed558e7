//! `POST /v1/chat/completions`: [chat
//! completions](https://platform.openai.com/docs/api-reference/chat/create).

use catalog::{Model, Protocol};
use chat::{Message, Part, Request, Rules, ValidRequest};
use policy::affinity::{Conversation, member};
use policy::limit::Answers;
use policy::targets::UpstreamTarget;
use translate::inbound::Chat;
use wire::{ApiError, Code, Path, Splice};

use super::text::{
    EndpointRules, ImageUse, Permissions, RelayNotes, RelayPolicy, RequestCodec, TextEndpoint,
};

impl EndpointRules for Chat {
    const PROTOCOL: Protocol = Protocol::Chat;
    const UPSTREAM_PROTOCOL: vendor::Protocol = vendor::Protocol::Chat;
    const IMAGE_URL_CODE: Code = Code::InvalidImageUrl;
}

impl RequestCodec for Chat {
    type Unchecked = Request;

    fn read(body: &[u8]) -> Result<Request, ApiError> {
        Ok(Request::read(body)?)
    }

    fn skim(body: &[u8]) -> Option<Request> {
        Request::skim(body)
    }

    fn model_and_stream(request: &Request) -> (&str, bool) {
        (&request.model, request.streams())
    }

    fn validate(
        request: Request,
        model: Option<&Model>,
        permissions: Permissions,
    ) -> Result<ValidRequest, ApiError> {
        let mut rules = model.map_or_else(Rules::default, Model::chat_rules);
        rules.unknown_types = permissions.unknown_types;
        Ok(request.validate(&rules)?)
    }

    fn unchecked(request: ValidRequest) -> Request {
        request.into_inner()
    }

    fn image_urls(request: &ValidRequest, visit: &mut dyn FnMut(&Path<'_>, &str)) {
        request.addresses(visit);
    }

    fn answers(request: &ValidRequest) -> Answers {
        let limit = request.output_cap();
        let answers = Answers {
            count: request.n.and_then(|n| n.try_into().ok()).unwrap_or(1),
            ..Answers::one(limit.and_then(|limit| limit.try_into().ok()))
        };
        answers.at_service_tier(member(&request.extra, "service_tier"))
    }

    /// Gemini and OpenRouter answer with pictures if the modalities name them:
    /// <https://openrouter.ai/docs/features/multimodal/image-generation>.
    fn image_use(request: &ValidRequest) -> ImageUse {
        let modalities = request.modalities.as_deref().unwrap_or_default();
        let is_image = |modality: &String| modality.eq_ignore_ascii_case("image");
        match modalities.iter().any(is_image) {
            true => ImageUse::Required,
            false => ImageUse::None,
        }
    }

    fn identify(request: &ValidRequest, conversation: &mut Conversation) {
        let user = || member(request.extra.get("metadata")?.as_object()?, "user_id");
        if let Some(key) = member(&request.extra, "prompt_cache_key").or_else(user) {
            return conversation.add(key);
        }
        for message in &request.messages {
            match message {
                Message::System(message) | Message::Developer(message) => {
                    conversation.add_content(&message.content, text_of);
                }
                Message::User(message) => {
                    return conversation.add_content(&message.content, text_of);
                }
                _ => return,
            }
        }
    }
}

impl RelayPolicy for Chat {
    type Relay = relay::Chat;

    fn notes(request: &ValidRequest) -> RelayNotes {
        RelayNotes {
            hides_usage: request.streams() && !request.includes_usage(),
            has_stream_options: request.stream_options.is_some(),
            choices: request.n.and_then(|n| n.try_into().ok()).unwrap_or(1),
            // Messages that were not read completely have no unknown members either.
            has_no_seals: !request.messages.iter().any(Message::has_extra),
            ..RelayNotes::default()
        }
    }

    /// Requests the usage of every stream from servers that accept options of the stream; the client
    /// gets it only if it has requested it too.
    fn edit(server: &UpstreamTarget, notes: RelayNotes, splice: &mut Splice<'_>) {
        if !notes.hides_usage || server.config.quirks.no_stream_options {
            return;
        }
        if !notes.has_stream_options {
            splice.set("stream_options", br#"{"include_usage":true}"#);
        } else if !splice.replace(&["stream_options", "include_usage"], b"true") {
            splice.add_missing(&["stream_options"], &[("include_usage", "true")]);
        }
    }

    fn relay(notes: RelayNotes) -> relay::Chat {
        let relay = relay::Chat::with_choices(notes.choices);
        if notes.hides_usage {
            relay.hiding_usage()
        } else {
            relay
        }
    }
}

impl TextEndpoint for Chat {}

/// The text that distinguishes a part: its own text, the URL of an image or the data of a file.
fn text_of(part: &Part) -> Option<&str> {
    match part {
        Part::Text(part) => Some(&part.text),
        Part::Image(part) => Some(&part.image_url.url),
        Part::File(part) => part.file.file_data.as_deref(),
        _ => None,
    }
}
