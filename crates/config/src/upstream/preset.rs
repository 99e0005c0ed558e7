//! Presets: the settings that a vendor's documentation prescribes for an upstream. They are data,
//! in `presets.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use toml::Table;

use super::auth::Auth;
use super::secret::Secret;
use super::{CountTokens, Protocol, Upstream};

wire::read_objects!(Preset, OfProtocol);

/// The settings of a vendor's servers.
#[derive(Debug, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub(crate) struct Preset {
    /// The vendor's page.
    pub(crate) page: String,
    /// The protocols of the server, the default first.
    pub(crate) protocols: Vec<Protocol>,
    api_key: Option<Secret>,
    base_url: Option<String>,
    /// In place of a base URL, if it depends on the customer.
    example: Option<String>,
    auth: Option<Auth>,
    pub(crate) count_tokens: Option<CountTokens>,
    #[serde(default)]
    quirks: Table,
    responses: Option<OfProtocol>,
    chat: Option<OfProtocol>,
    messages: Option<OfProtocol>,
    images: Option<OfProtocol>,
}

/// The settings that differ for one protocol.
#[derive(Debug, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
struct OfProtocol {
    base_url: Option<String>,
    example: Option<String>,
    auth: Option<Auth>,
    quirks: Option<Table>,
}

impl Preset {
    /// Returns the preset of this name.
    pub(crate) fn find(name: &str) -> Result<&'static Self, String> {
        PRESETS.get(name).ok_or_else(|| {
            let known = names().join(", ");
            format!("preset: '{name}' is not known; there are: {known}")
        })
    }

    /// All presets, by name.
    pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static Self)> {
        PRESETS.iter().map(|(name, preset)| (name.as_str(), preset))
    }

    /// The base URL, or an example of one that the operator has to set.
    pub(crate) fn base_url(&self, protocol: Protocol) -> Result<&str, &str> {
        let own = self.of(protocol);
        let base_url = own.and_then(|own| own.base_url.as_ref());
        let example = own.and_then(|own| own.example.as_ref());
        match (base_url, example) {
            (Some(base_url), _) => Ok(base_url),
            (None, Some(example)) => Err(example),
            (None, None) => {
                let example = self.example.as_deref().unwrap_or_default();
                self.base_url.as_deref().ok_or(example)
            }
        }
    }

    /// Adds the settings that an upstream of this preset does not have itself.
    pub(crate) fn complete(&self, upstream: &mut Upstream) -> Result<(), String> {
        let name = upstream.preset.clone().unwrap_or_default();
        let default = self.protocols.first().copied();
        let protocol = upstream.protocol.or(default).unwrap_or(Protocol::Chat);
        if !self.protocols.contains(&protocol) {
            let (known, found) = (self.protocols(), protocol.as_str());
            return Err(format!(
                "protocol: preset '{name}' has {known}, not {found}"
            ));
        }
        upstream.protocol = Some(protocol);
        if upstream.base_url.is_empty() {
            let base_url = self.base_url(protocol).map_err(|example| {
                format!("base_url: preset '{name}' needs one, such as {example}")
            })?;
            upstream.base_url = base_url.to_owned();
        }
        if upstream.api_key.is_none() {
            match &self.api_key {
                Some(Secret::Env(variable)) if !is_set(variable) => {
                    upstream.unset_variable = Some(variable.clone());
                }
                usual => upstream.api_key.clone_from(usual),
            }
        }
        if !upstream.quirk_words.contains_key("key_header") {
            upstream.auth.get_or_insert_with(|| self.auth(protocol));
        }
        upstream.count_tokens = upstream.count_tokens.or(self.count_tokens);
        for (word, value) in self.quirks(protocol) {
            let own = upstream.quirk_words.entry(word);
            own.or_insert_with(|| value.clone());
        }
        Ok(())
    }

    /// The source of the key, as in the configuration.
    pub(crate) fn api_key(&self) -> Option<String> {
        self.api_key.as_ref().map(Secret::to_toml)
    }

    /// Describes the source of the key.
    pub(crate) fn describe_key(&self) -> String {
        let none = || "without a key".to_owned();
        self.api_key.as_ref().map_or_else(none, Secret::describe)
    }

    /// The words for its protocols.
    pub(crate) fn protocols(&self) -> String {
        let words: Vec<_> = self.protocols.iter().map(|known| known.as_str()).collect();
        words.join(", ")
    }

    /// The header that carries the key.
    pub(crate) fn auth(&self, protocol: Protocol) -> Auth {
        let own = self.of(protocol).and_then(|own| own.auth.as_ref());
        own.or(self.auth.as_ref())
            .cloned()
            .unwrap_or_else(|| Auth::default_of(protocol))
    }

    pub(crate) fn quirks(&self, protocol: Protocol) -> &Table {
        let own = self.of(protocol).and_then(|own| own.quirks.as_ref());
        own.unwrap_or(&self.quirks)
    }

    fn of(&self, protocol: Protocol) -> Option<&OfProtocol> {
        match protocol {
            Protocol::Responses => self.responses.as_ref(),
            Protocol::Chat => self.chat.as_ref(),
            Protocol::Messages => self.messages.as_ref(),
            Protocol::Images => self.images.as_ref(),
        }
    }
}

/// The names of all presets.
pub(crate) fn names() -> Vec<&'static str> {
    Preset::all().map(|(name, _)| name).collect()
}

/// True if the environment has a variable that is not empty.
fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// The tests check that the file is valid and complete.
static PRESETS: LazyLock<BTreeMap<String, Preset>> =
    LazyLock::new(|| toml::from_str(include_str!("../presets.toml")).unwrap_or_default());
