//! The header that carries an upstream's API key.

use http::HeaderName;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use upstream::{Credential, OptionsError};

use super::Protocol;

/// The header that carries the key.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "Found")]
pub(crate) enum Auth {
    /// `Authorization: Bearer …`.
    Bearer,
    /// The key alone, in a header of this name.
    Header(HeaderName),
}

/// The form of the setting.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
enum Found {
    /// `bearer` or `x-api-key`.
    Word(#[schemars(extend("enum" = ["bearer", "x-api-key"]))] String),
    /// The key alone, in a header of this name.
    Table {
        /// The name.
        header: String,
    },
}

/// Written by hand for its error message: serde's names no values.
impl<'de> Deserialize<'de> for Auth {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let refuse = |found: &str| {
            D::Error::custom(format!(
                "{found}; \"bearer\", \"x-api-key\" and {{ header = \"api-key\" }} are accepted"
            ))
        };
        match Found::deserialize(from) {
            Ok(Found::Word(word)) if word == "bearer" => Ok(Self::Bearer),
            Ok(Found::Word(word)) if word == "x-api-key" => Ok(Self::x_api_key()),
            Ok(Found::Word(word)) => Err(refuse(&format!("'{word}' is not known"))),
            Ok(Found::Table { header }) => header
                .parse()
                .map(Self::Header)
                .map_err(|_| refuse(&format!("'{header}' is not the name of a header"))),
            Err(_) => Err(refuse("neither a word nor a table with only `header`")),
        }
    }
}

impl Auth {
    /// The header that the vendor of a protocol uses.
    pub(crate) fn default_of(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Messages => Self::x_api_key(),
            _ => Self::Bearer,
        }
    }

    pub(crate) fn credential(&self, key: &str) -> Result<Credential, OptionsError> {
        match self {
            Self::Bearer => Credential::bearer(key),
            Self::Header(name) => Credential::header(name.clone(), key),
        }
    }

    /// The value in the configuration.
    pub(crate) fn to_toml(&self) -> String {
        match self {
            Self::Bearer => "\"bearer\"".to_owned(),
            Self::Header(name) if name == "x-api-key" => "\"x-api-key\"".to_owned(),
            Self::Header(name) => format!("{{ header = \"{name}\" }}"),
        }
    }

    fn x_api_key() -> Self {
        Self::Header(HeaderName::from_static("x-api-key"))
    }
}
