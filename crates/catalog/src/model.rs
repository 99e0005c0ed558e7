//! A model of the catalog: the endpoints that serve it, and the validation rules relaxed for it.

mod allowed;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;

pub use self::allowed::Allowed;
use crate::Facts;

/// A model offered by the gateway.
///
/// In a configuration, `id`, `family` and `protocols` are required; the rest defaults to the values
/// of [`Model::new`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(from = "Settings")]
#[schemars(!from)]
#[non_exhaustive]
pub struct Model {
    /// The id used in requests, or a prefix of such ids followed by `*`.
    #[schemars(example = &"coder")]
    pub id: String,
    /// The family, which determines the endpoints that may serve the model. The scope required of a
    /// key depends on the endpoint, not on the family.
    #[schemars(example = &"text")]
    pub family: Family,
    /// The endpoints that serve the model.
    #[schemars(extend("examples" = [["responses", "chat", "messages"]]))]
    protocols: BTreeSet<Protocol>,
    /// The display name. Absent: derived from the id.
    #[schemars(with = "Option<String>", example = &"Coder")]
    pub display_name: String,
    /// The creation time as a Unix time in seconds.
    #[schemars(default = "created")]
    pub created: i64,
    /// The owner of the model.
    #[schemars(default = "owner")]
    pub owned_by: String,
    /// True if the Responses API accepts a plain string as `input`.
    #[schemars(default)]
    pub string_input: bool,
    /// True if the model reasons when the request does not set an effort.
    #[schemars(default)]
    pub reasoning: bool,
    /// The features that requests may use although the gateway itself does not serve them. Every
    /// target of the model has to be a server of the request's protocol.
    #[schemars(default, extend("examples" = [["n"]]))]
    pub allow: BTreeSet<Allowed>,
    /// Its limits and capabilities, as clients see them. Absent ones come from `[facts]`.
    #[schemars(default)]
    pub facts: Facts,
}

impl Model {
    /// Creates a model with the strictest rules and a display name derived from its id, such as
    /// `Alt Flash` for `alt-flash`.
    #[must_use]
    pub fn new(
        id: impl Into<String>,
        family: Family,
        protocols: impl IntoIterator<Item = Protocol>,
    ) -> Self {
        let id = id.into();
        Self {
            family,
            protocols: protocols.into_iter().collect(),
            display_name: display_name(&id),
            created: created(),
            owned_by: owner(),
            string_input: false,
            reasoning: false,
            allow: BTreeSet::new(),
            facts: Facts::default(),
            id,
        }
    }

    /// Returns the prefix of a pattern: `gpt-` if the id is `gpt-*`, and `None` if the id names one
    /// model.
    ///
    /// A pattern serves requests for every name with this prefix that no exact id and no longer
    /// prefix matches. It is not listed, because the names behind it are not known.
    #[must_use]
    pub fn prefix(&self) -> Option<&str> {
        self.id.strip_suffix('*')
    }

    /// Returns true if requests for `name` are for this model. A pattern matches no name that is
    /// empty, too long or has control characters: the client has chosen it, and it is logged.
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.prefix().map_or(self.id == name, |prefix| {
            name.starts_with(prefix)
                && (1..=MAX_NAME).contains(&name.len())
                && !name.contains(char::is_control)
        })
    }

    /// Iterates over the endpoints that serve the model, in the order of [`Protocol::ALL`].
    pub fn protocols(&self) -> impl Iterator<Item = Protocol> {
        self.protocols.iter().copied()
    }

    /// Returns true if the model is served on the endpoint of `protocol`.
    #[must_use]
    pub fn is_served_on(&self, protocol: Protocol) -> bool {
        self.protocols.contains(&protocol)
    }

    /// Returns the validation rules of the Responses API for this model.
    #[must_use]
    pub fn responses_rules(&self) -> responses::Rules {
        let mut rules = responses::Rules::default();
        rules.string_input = self.string_input;
        rules.previous_response =
            self.allows(Allowed::PreviousResponseId) || self.allows(Allowed::UnknownResponses);
        rules.item_references = self.allows(Allowed::ItemReference);
        rules.conversation = self.allows(Allowed::Conversation);
        rules.prompt = self.allows(Allowed::Prompt);
        rules.background = self.allows(Allowed::Background);
        rules.file_ids = self.allows(Allowed::FileId);
        rules
    }

    /// Returns the validation rules of the Chat Completions API for this model.
    #[must_use]
    pub fn chat_rules(&self) -> chat::Rules {
        let mut rules = chat::Rules::default();
        rules.many_choices = self.allows(Allowed::N);
        rules.audio = self.allows(Allowed::Audio);
        rules.web_search = self.allows(Allowed::WebSearch);
        rules.file_ids = self.allows(Allowed::FileId);
        rules
    }

    /// Returns the validation rules of the Messages API for this model.
    #[must_use]
    pub fn messages_rules(&self) -> messages::Rules {
        let mut rules = messages::Rules::default();
        rules.cache_warming = self.allows(Allowed::CacheWarming);
        rules.file_ids = self.allows(Allowed::FileId);
        rules
    }

    /// Returns true if requests may ask for this.
    #[must_use]
    pub fn allows(&self, word: Allowed) -> bool {
        self.allow.contains(&word)
    }

    /// Returns true if its servers may keep responses, so that the gateway does not.
    #[must_use]
    pub fn keeps_responses(&self) -> bool {
        self.allow.iter().any(|word| word.needs_kept_responses())
    }

    /// Returns the validation rules of the Images API for this model: the default.
    #[must_use]
    pub fn images_rules(&self) -> images::Rules {
        images::Rules::default()
    }
}

wire::text_enum! {
    /// A family of models. Its name is also the name of an API key scope.
    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[non_exhaustive]
    pub enum Family {
        /// Text models of the Responses and Chat Completions APIs.
        Text = "text",
        /// Text models of the Messages API.
        Messages = "messages",
        /// Models for image generations and edits.
        Images = "images",
    }
}

impl Family {
    /// Returns true if models of the family may be served on the endpoint of `protocol`.
    ///
    /// Operators may serve text models of both families on every text endpoint.
    #[must_use]
    pub const fn may_be_served_on(self, protocol: Protocol) -> bool {
        let images = matches!(
            protocol,
            Protocol::ImagesGenerations | Protocol::ImagesEdits
        );
        matches!(self, Self::Images) == images
    }
}

/// An endpoint that serves models: one per protocol, except for Images, which has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Protocol {
    /// The Responses API.
    Responses,
    /// The Chat Completions API.
    Chat,
    /// The Messages API.
    Messages,
    /// Image generation from a prompt.
    ImagesGenerations,
    /// Image edits.
    ImagesEdits,
}

impl Protocol {
    /// All endpoints.
    pub const ALL: [Self; 5] = [
        Self::Responses,
        Self::Chat,
        Self::Messages,
        Self::ImagesGenerations,
        Self::ImagesEdits,
    ];

    /// Returns the path of the endpoint; its method is POST.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Responses => "/v1/responses",
            Self::Chat => "/v1/chat/completions",
            Self::Messages => "/v1/messages",
            Self::ImagesGenerations => "/v1/images/generations",
            Self::ImagesEdits => "/v1/images/edits",
        }
    }
}

wire::read_objects! {
    /// The configuration of a model.
    #[serde(deny_unknown_fields)]
    struct Settings {
        id: String,
        family: Family,
        protocols: BTreeSet<Protocol>,
        display_name: Option<String>,
        created: Option<i64>,
        owned_by: Option<String>,
        #[serde(default)]
        string_input: bool,
        #[serde(default)]
        reasoning: bool,
        #[serde(default)]
        allow: BTreeSet<Allowed>,
        #[serde(default)]
        facts: Facts,
    }
}

impl From<Settings> for Model {
    fn from(settings: Settings) -> Self {
        let model = Self::new(settings.id, settings.family, settings.protocols);
        Self {
            display_name: settings.display_name.unwrap_or(model.display_name),
            created: settings.created.unwrap_or(model.created),
            owned_by: settings.owned_by.unwrap_or(model.owned_by),
            string_input: settings.string_input,
            reasoning: settings.reasoning,
            allow: settings.allow,
            facts: settings.facts,
            ..model
        }
    }
}

/// Derives a display name from an id: its words, capitalized.
fn display_name(id: &str) -> String {
    let capital = |word: &str| {
        let mut rest = word.chars();
        rest.next()
            .into_iter()
            .flat_map(char::to_uppercase)
            .chain(rest)
            .collect::<String>()
    };
    id.split('-').map(capital).collect::<Vec<_>>().join(" ")
}

/// The default creation time, used by the built-in models.
const fn created() -> i64 {
    1_786_000_000
}

fn owner() -> String {
    "sluicegate".to_owned()
}

/// The longest name that a pattern matches, in bytes.
const MAX_NAME: usize = 256;
