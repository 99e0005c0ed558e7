//! Features of requests that the gateway itself does not serve.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Protocol;

wire::text_enum! {
    /// Something that is refused unless a model allows it: it needs a server that keeps state, or
    /// an answer that only servers of the same protocol can give.
    #[derive(PartialOrd, Ord, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[non_exhaustive]
    pub enum Allowed {
        /// Chat Completions: `n` above 1.
        N = "n",
        /// Chat Completions: audio output, by `audio` and `modalities`.
        Audio = "audio",
        /// Chat Completions: a hosted search, by `web_search_options`.
        WebSearch = "web_search",
        /// Responses: `previous_response_id`.
        PreviousResponseId = "previous_response_id",
        /// Responses: `previous_response_id` of a response whose creating key is not known, such as
        /// one from before a restart.
        UnknownResponses = "unknown_responses",
        /// Responses: items of type `item_reference`.
        ItemReference = "item_reference",
        /// Responses: `store` as the request has it; the default of most servers is true.
        Store = "store",
        /// Responses: `conversation`.
        Conversation = "conversation",
        /// Responses: `background`.
        Background = "background",
        /// Responses: `prompt`.
        Prompt = "prompt",
        /// Every protocol: images and documents by the id of a file.
        FileId = "file_id",
        /// Messages: `max_tokens` of 0, which warms a prompt cache.
        CacheWarming = "cache_warming",
    }
}

impl Allowed {
    /// Returns the protocols whose requests can ask for it.
    #[must_use]
    pub const fn protocols(self) -> &'static [Protocol] {
        match self {
            Self::N | Self::Audio | Self::WebSearch => &[Protocol::Chat],
            Self::PreviousResponseId
            | Self::UnknownResponses
            | Self::ItemReference
            | Self::Store
            | Self::Conversation
            | Self::Background
            | Self::Prompt => &[Protocol::Responses],
            Self::FileId => &[Protocol::Responses, Protocol::Chat, Protocol::Messages],
            Self::CacheWarming => &[Protocol::Messages],
        }
    }

    /// Returns true if it needs responses that the server keeps.
    pub(super) const fn needs_kept_responses(self) -> bool {
        matches!(
            self,
            Self::PreviousResponseId
                | Self::UnknownResponses
                | Self::ItemReference
                | Self::Store
                | Self::Conversation
                | Self::Background
        )
    }
}
