//! API keys of upstreams, and the headers that carry them.

use std::fmt;
use std::sync::{OnceLock, PoisonError, RwLock};

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::headers::{X_API_KEY, is_ours};
use crate::options_error::OptionsError;

/// An API key and the header that carries it. Its `Debug` shows neither.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    pub(crate) name: HeaderName,
    pub(crate) value: HeaderValue,
    /// The key without a prefix such as `Bearer`.
    key: Box<str>,
}

impl Credential {
    /// A credential that is sent as `Authorization: Bearer …`.
    ///
    /// # Errors
    /// When the key is not a valid header value.
    pub fn bearer(key: &str) -> Result<Self, OptionsError> {
        Self::new(AUTHORIZATION, key, format!("Bearer {key}"))
    }

    /// A credential that is sent as `x-api-key: …`.
    ///
    /// # Errors
    /// When the key is not a valid header value.
    pub fn x_api_key(key: &str) -> Result<Self, OptionsError> {
        Self::header(X_API_KEY, key)
    }

    /// A credential that is sent as the value of the header `name`, without a prefix.
    ///
    /// # Errors
    /// When the key is not a valid header value, or the gateway sets this header itself.
    pub fn header(name: HeaderName, key: &str) -> Result<Self, OptionsError> {
        if is_ours(&name) {
            return Err(OptionsError::KeyHeader(name.to_string()));
        }
        Self::new(name, key, key.to_owned())
    }

    fn new(name: HeaderName, key: &str, value: String) -> Result<Self, OptionsError> {
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(OptionsError::Credential);
        }
        let mut value = HeaderValue::try_from(value).map_err(|_| OptionsError::Credential)?;
        value.set_sensitive(true);
        Ok(Self {
            name,
            value,
            key: key.into(),
        })
    }

    /// Sets the header that carries the key.
    pub(crate) fn set(&self, headers: &mut HeaderMap) {
        headers.insert(&self.name, self.value.clone());
    }

    /// Redacts the key in a text, and a prefix of it at the end of the text.
    fn redact(&self, text: &mut String) {
        let key = &*self.key;
        if text.contains(key) {
            *text = text.replace(key, REDACTED);
        }
        if let Some(partial) = (MIN_REDACTED_LEN..key.len())
            .rev()
            .find(|length| text.ends_with(&key[..*length]))
        {
            text.truncate(text.len() - partial);
            text.push_str(REDACTED);
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential")
    }
}

/// The credential of an upstream, which can be replaced while requests are sent.
pub(crate) struct CurrentCredential {
    first: Option<Credential>,
    /// The current and the previous one. Unset until the first one is replaced, so that a key that
    /// never changes costs no lock.
    replaced: OnceLock<RwLock<[Credential; 2]>>,
}

impl CurrentCredential {
    pub(crate) fn new(first: Option<Credential>) -> Self {
        Self {
            first,
            replaced: OnceLock::new(),
        }
    }

    /// Replaces the credential; an upstream without one keeps none.
    pub(crate) fn replace(&self, credential: Credential) {
        let Some(first) = &self.first else { return };
        let pair = || RwLock::new([first.clone(), first.clone()]);
        let mut pair = self
            .replaced
            .get_or_init(pair)
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if pair[0] != credential {
            pair[1] = std::mem::replace(&mut pair[0], credential);
        }
    }

    /// Returns the current credential, if it is no longer the first one.
    pub(crate) fn replacement(&self) -> Option<Credential> {
        let pair = self.replaced.get()?.read();
        Some(pair.unwrap_or_else(PoisonError::into_inner)[0].clone())
    }

    /// Redacts the current key in a text, and the previous one, which requests may still carry.
    pub(crate) fn redact(&self, text: &mut String) {
        match (self.replaced.get(), &self.first) {
            (Some(pair), _) => {
                let pair = pair.read().unwrap_or_else(PoisonError::into_inner);
                pair.iter().for_each(|credential| credential.redact(text));
            }
            (None, Some(first)) => first.redact(text),
            (None, None) => {}
        }
    }
}

/// The replacement of a key.
const REDACTED: &str = "[key]";
/// The shortest prefix of a key that is redacted: anything shorter reveals nothing.
const MIN_REDACTED_LEN: usize = 4;
