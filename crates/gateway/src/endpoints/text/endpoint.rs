//! The traits of a text endpoint, by their callers: the constants of an endpoint, the reading of its
//! requests, and the relaying of requests to an upstream of the same protocol.

use catalog::{Model, Protocol};
use engine::EngineError;
use policy::affinity::Conversation;
use policy::limit::Answers;
use policy::targets::UpstreamTarget;
use relay::{End, RelayProtocol};
use translate::inbound::ClientProtocol;
use wire::{ApiError, Code, Path, Splice};

use crate::exchange::refusal::Refusal;
use crate::request::references::References;
use crate::state::Caller;

/// A text endpoint: the constants of its protocol, and the handling of its requests.
pub(crate) trait TextEndpoint:
    EndpointRules + RequestCodec + RelayPolicy + Send + Sync + 'static
{
    /// Finds the references of a request, and prepares to store its response, or to note which
    /// upstream stores it.
    fn resolve(_: &Self::Unchecked, _: &Caller<'_>) -> Result<References, Refusal> {
        Ok(References::default())
    }
}

/// The constants of a text endpoint.
pub(crate) trait EndpointRules {
    /// The endpoint's protocol in the catalog.
    const PROTOCOL: Protocol;
    /// The same protocol, as an upstream protocol.
    const UPSTREAM_PROTOCOL: vendor::Protocol;
    /// The error code of an image URL that cannot be used.
    const IMAGE_URL_CODE: Code = Code::InvalidValue;
    /// True if a streaming request over a limit gets a failure event; otherwise it
    /// gets a 429.
    const LIMIT_IN_STREAM: bool = false;
    /// The headers of a client that are forwarded to an upstream of the same protocol.
    const FORWARDED: &'static [&'static str] = &[];
}

/// Reads and validates requests, and extracts the facts that admission and routing need.
pub(crate) trait RequestCodec: ClientProtocol<Request: Send + Sync> {
    /// A parsed request that is not validated yet.
    type Unchecked;

    fn read(body: &[u8]) -> Result<Self::Unchecked, ApiError>;

    /// Reads a request without building its messages, if they have no violations and no URLs. It is
    /// enough for a request that is only relayed.
    fn skim(_: &[u8]) -> Option<Self::Unchecked> {
        None
    }

    /// The model that a request names, and true if it requests a stream.
    fn model_and_stream(request: &Self::Unchecked) -> (&str, bool);

    /// Validates a request by the rules of its model, and with further permissions.
    fn validate(
        request: Self::Unchecked,
        model: Option<&Model>,
        permissions: Permissions,
    ) -> Result<Self::Request, ApiError>;

    /// Returns a validated request for another validation.
    fn unchecked(request: Self::Request) -> Self::Unchecked;

    /// Visits every image URL of a request, with its path in the document.
    fn image_urls(request: &Self::Request, visit: &mut dyn FnMut(&Path<'_>, &str));

    /// The answers that a request asks for.
    fn answers(request: &Self::Request) -> Answers;

    /// Returns whether a request makes images, which only some keys may do.
    fn image_use(_: &Self::Request) -> ImageUse {
        ImageUse::None
    }

    /// Adds the values that identify the conversation of a request: its cache key, else its end
    /// user, else its system instructions and its first message.
    fn identify(request: &Self::Request, conversation: &mut Conversation);
}

/// The part that images have in the answer to a text request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageUse {
    /// The request does not mention any.
    None,
    /// It offers a hosted tool that makes images, which the model need not use.
    Offered,
    /// It asks for images.
    Required,
}

/// The parts of a request that are valid beyond the rules of its model.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Permissions {
    /// Unknown types and roles, because an upstream of the same protocol interprets them.
    pub(crate) unknown_types: bool,
    /// References to input items that the gateway stores.
    pub(crate) references: bool,
}

/// Edits requests that are relayed to an upstream of the same protocol, and checks its answers.
pub(crate) trait RelayPolicy: ClientProtocol {
    /// The protocol that checks a relayed answer.
    type Relay: RelayProtocol + Default + Unpin + 'static;

    /// The facts about a request that its relaying depends on.
    fn notes(_: &Self::Request) -> RelayNotes {
        RelayNotes::default()
    }

    /// Edits the fields of a request that is relayed to this upstream.
    fn edit(_: &UpstreamTarget, _: RelayNotes, _: &mut Splice<'_>) {}

    /// Creates the protocol that checks the answer to a relayed request.
    fn relay(_: RelayNotes) -> Self::Relay {
        Self::Relay::default()
    }

    /// Returns the complete reply of an upstream to a request that is relayed, for the client.
    fn relayed_reply(
        _: RelayNotes,
        body: &[u8],
        model: &str,
    ) -> Result<(Vec<u8>, End), EngineError> {
        relay::reply::<Self::Relay>(body, model)
    }
}

/// The facts about a request that its relaying depends on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RelayNotes {
    /// True if the client requests a stream without the usage, which the log needs.
    pub(crate) hides_usage: bool,
    /// True if the request has options of the stream.
    pub(crate) has_stream_options: bool,
    /// True if the request has a value for `store`, or leaves it to a server that keeps responses.
    pub(crate) has_store: bool,
    /// True if the gateway stores the response, so that no upstream needs to.
    pub(crate) is_stored: bool,
    /// The number of choices that it asks for, if it has one.
    pub(crate) choices: usize,
    /// True if it is processed in the background.
    pub(crate) is_in_background: bool,
    /// True if the hosted tools that make images are left out, because the key may not use them.
    pub(crate) hides_image_tools: bool,
    /// True if functions are in the form of another protocol, which the upstream may not read.
    pub(crate) has_nested_functions: bool,
    /// True if no member of the request can have opaque data of a server, so that it is not searched.
    pub(crate) has_no_seals: bool,
}
