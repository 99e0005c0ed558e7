//! A model and what it promises: where it is served, and which rules it bends (spec §1.5, §4).

use std::collections::BTreeSet;

use serde::Deserialize;

wire::read_objects!(Settings);

/// A model that the gateway offers.
///
/// As part of a configuration it needs `id`, `family` and `protocols`; the rest is as [`Model::new`] makes it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Settings")]
#[non_exhaustive]
pub struct Model {
    /// The name by which callers ask for it.
    pub id: String,
    /// Its family, by which it is known where it may be served. What a key needs is for the endpoint to say.
    pub family: Family,
    /// Where it is served.
    protocols: BTreeSet<Protocol>,
    /// Its name for people.
    pub display_name: String,
    /// Since when it is offered, in Unix seconds.
    pub created: i64,
    /// Whose it is.
    pub owned_by: String,
    /// Whether Responses takes a plain string for its `input` (spec §4.2).
    pub string_input: bool,
    /// Whether it thinks before it answers when the caller says nothing of it.
    pub reasoning: bool,
}

impl Model {
    /// A model with the strictest rules, named for people after its id: `alt-flash` is `Alt Flash`.
    #[must_use]
    pub fn new(id: impl Into<String>, family: Family, protocols: impl IntoIterator<Item = Protocol>) -> Self {
        let id = id.into();
        Self {
            family,
            protocols: protocols.into_iter().collect(),
            display_name: display_name(&id),
            created: CREATED,
            owned_by: OWNER.to_owned(),
            string_input: false,
            reasoning: false,
            id,
        }
    }

    /// Where it is served, in the order of [`Protocol::ALL`].
    pub fn protocols(&self) -> impl Iterator<Item = Protocol> {
        self.protocols.iter().copied()
    }

    /// Whether it is served there.
    #[must_use]
    pub fn speaks(&self, protocol: Protocol) -> bool {
        self.protocols.contains(&protocol)
    }

    /// The rules of Responses that it bends.
    #[must_use]
    pub fn responses_rules(&self) -> responses::Rules {
        let mut rules = responses::Rules::default();
        rules.string_input = self.string_input;
        rules
    }

    /// The rules of Chat Completions that it bends: none.
    #[must_use]
    pub fn chat_rules(&self) -> chat::Rules {
        chat::Rules::default()
    }

    /// The rules of Messages that it bends: none.
    #[must_use]
    pub fn messages_rules(&self) -> messages::Rules {
        messages::Rules::default()
    }

    /// The rules of Images that it bends: none.
    #[must_use]
    pub fn images_rules(&self) -> images::Rules {
        images::Rules::default()
    }
}

/// A family of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Family {
    /// Responses and Chat Completions.
    Text,
    /// Messages.
    Messages,
    /// Image generations and edits.
    Images,
}

impl Family {
    /// Its word, which is also the capability's (spec §5.2).
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Messages => "messages",
            Self::Images => "images",
        }
    }

    /// Whether its models can be served there: an operator may open a text model to each text protocol.
    #[must_use]
    pub const fn may_speak(self, protocol: Protocol) -> bool {
        let images = matches!(protocol, Protocol::ImagesGenerations | Protocol::ImagesEdits);
        matches!(self, Self::Images) == images
    }
}

/// A place where models are served: a protocol, and of Images each of its two endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Protocol {
    /// Responses.
    Responses,
    /// Chat Completions.
    Chat,
    /// Messages.
    Messages,
    /// Images made from a prompt.
    ImagesGenerations,
    /// Images made from images.
    ImagesEdits,
}

impl Protocol {
    /// Every place.
    pub const ALL: [Self; 5] =
        [Self::Responses, Self::Chat, Self::Messages, Self::ImagesGenerations, Self::ImagesEdits];

    /// The path of its endpoint; its method is POST.
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

/// A model as a configuration states it.
#[derive(Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
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
            ..model
        }
    }
}

/// The words of an id, each with a capital.
fn display_name(id: &str) -> String {
    let capital = |word: &str| {
        let mut rest = word.chars();
        rest.next().into_iter().flat_map(char::to_uppercase).chain(rest).collect::<String>()
    };
    id.split('-').map(capital).collect::<Vec<_>>().join(" ")
}

/// Since when the built-in models are offered.
const CREATED: i64 = 1_786_000_000;
/// Whose models are when nobody says otherwise.
const OWNER: &str = "sluicegate";
