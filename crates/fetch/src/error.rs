//! Why a picture was not fetched, and how much of that a client is told.

use thiserror::Error;

use crate::address::Refused;
use crate::target::NotAllowed;

/// Why a picture was not fetched. Its `Display` is for the log: it names no URL and repeats nothing that a host sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FetchError {
    /// Nothing is fetched here.
    #[error("fetching is off")]
    Off,
    /// The URL was refused before its name was looked up.
    #[error("the URL is not allowed: {0}")]
    Url(#[from] NotAllowed),
    /// The host is not on the list of those that are allowed.
    #[error("the host is not on the list")]
    NotListed,
    /// As many fetches as are allowed are under way.
    #[error("too many fetches are under way")]
    Busy,
    /// The name leads, also, to an address that is never dialled.
    #[error("the address is refused: {0}")]
    Address(#[from] Refused),
    /// A redirect that is not followed.
    #[error("the redirect is refused: {0}")]
    Redirect(&'static str),
    /// More bytes than are taken.
    #[error("the body is too large")]
    TooLarge,
    /// The time for the whole fetch is over.
    #[error("the time is over")]
    Timeout,
    /// No host, no connection, or no HTTP on it.
    #[error("the host cannot be reached: {0}")]
    Unreachable(&'static str),
    /// The host could not show that it is who it should be.
    #[error("no secure connection")]
    Tls,
    /// Another answer than 200.
    #[error("the host answered {0}")]
    Status(u16),
    /// A body that would have to be unpacked.
    #[error("the body has a content encoding")]
    Encoding,
    /// A body that is no PNG, JPEG or WebP, or one with too many pixels.
    #[error("the body is no picture that is taken")]
    Kind,
}

impl FetchError {
    /// One word for the cause, for metrics and logs.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Url(_) | Self::NotListed => "url",
            Self::Busy => "busy",
            Self::Address(_) => "address",
            Self::Redirect(_) => "redirect",
            Self::TooLarge => "too_large",
            Self::Timeout => "timeout",
            Self::Unreachable(_) => "unreachable",
            Self::Tls => "tls",
            Self::Status(_) => "status",
            Self::Encoding => "encoding",
            Self::Kind => "kind",
        }
    }

    /// What a client may be told.
    ///
    /// Whatever comes to light by asking the network has one and the same text, a refused address too: otherwise
    /// the gateway would tell strangers which names and ports exist behind it.
    #[must_use]
    pub fn client_message(self) -> String {
        match self {
            Self::Off => OFF.to_owned(),
            Self::Url(why) => format!("The image URL is not allowed: {why}. {ALLOWED}"),
            Self::NotListed => NOT_LISTED.to_owned(),
            Self::Busy => BUSY.to_owned(),
            Self::Kind => KIND.to_owned(),
            Self::Address(_)
            | Self::Redirect(_)
            | Self::TooLarge
            | Self::Timeout
            | Self::Unreachable(_)
            | Self::Tls
            | Self::Status(_)
            | Self::Encoding => NETWORK.to_owned(),
        }
    }
}

const OFF: &str = "Image URLs are not fetched here; send the picture as a data URL.";
const ALLOWED: &str = "Give a public https URL with a host name, or send the picture as a data URL.";
const NOT_LISTED: &str = "The image URL is not allowed: its host is not one of those that are fetched from here.";
const BUSY: &str = "Too many image URLs are being fetched; try again later.";
const KIND: &str = "The image URL does not lead to a PNG, JPEG or WebP picture of a size that is taken.";
const NETWORK: &str = "The image URL could not be fetched; check that it is public, or send the picture as a data URL.";

#[cfg(test)]
mod tests {
    use super::*;

    /// All causes in the network are told in one text.
    #[test]
    fn f09_what_the_network_shows_is_told_in_one_text() {
        let network = [
            FetchError::Address(Refused("loopback")),
            FetchError::Redirect("there are too many"),
            FetchError::TooLarge,
            FetchError::Timeout,
            FetchError::Unreachable("no such name"),
            FetchError::Tls,
            FetchError::Status(404),
            FetchError::Encoding,
        ];
        for error in network {
            assert_eq!(error.client_message(), NETWORK, "{error}");
        }
        let other =
            [FetchError::Off, NotAllowed::Port.into(), FetchError::NotListed, FetchError::Busy, FetchError::Kind];
        for error in other {
            assert_ne!(error.client_message(), NETWORK, "{error}");
        }
    }
}
