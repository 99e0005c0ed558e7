//! Fetch errors, and the messages that clients get for them.

use thiserror::Error;

use crate::address::Refused;
use crate::target::{NotAllowed, log_form};

/// A failed fetch. The sender of the URL is a client, or an upstream whose reply has URLs of
/// images. `Display` is for logs: it has no URL and no text that a host sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FetchError {
    /// Fetching is disabled. The sender of the URL is at fault: it has to send the image itself,
    /// unless the operator enables fetching.
    #[error("fetching is disabled")]
    Off,
    /// The URL was rejected before the DNS lookup. The sender is at fault: it has to give a public
    /// https URL, or to send the image itself.
    #[error("the URL is not allowed: {0}")]
    Url(#[from] NotAllowed),
    /// The host is not on the allow list. The sender is at fault: it has to send the image itself,
    /// unless the operator adds the host.
    #[error("the host is not on the allow list")]
    NotListed,
    /// The limit of concurrent fetches is reached. The load is at fault: the sender may retry
    /// later, and the operator may raise the limit.
    #[error("too many concurrent fetches")]
    Busy,
    /// The name resolves to at least one address that must not be dialed, or the connection leads
    /// to another address. The sender is at fault if it probes the gateway's network, and otherwise
    /// the DNS of the host: the sender has to give the URL of a public host.
    #[error("the address is refused: {0}")]
    Address(#[from] Refused),
    /// The redirect must not be followed. The host is at fault: the sender has to give the URL of
    /// the image itself.
    #[error("the redirect is refused: {0}")]
    Redirect(&'static str),
    /// The body exceeds the size limit. The sender is at fault: it has to give the URL of a smaller
    /// image.
    #[error("response body exceeds the size limit")]
    TooLarge,
    /// The timeout of the complete fetch expired. The host or the network is at fault: the sender
    /// may retry, or send the image itself.
    #[error("timeout")]
    Timeout,
    /// DNS lookup or connect failed, or the host does not speak HTTP. The host or the network is at
    /// fault: the sender has to check the URL, or may retry.
    #[error("the host cannot be reached: {0}")]
    Unreachable(&'static str),
    /// The TLS handshake failed, for example because of an invalid certificate. The host is at
    /// fault: its operator has to correct that, or the sender gives the URL of another host.
    #[error("TLS handshake failed")]
    Tls,
    /// The host responded with a status other than 200. The host or the URL is at fault: the sender
    /// has to check that the image is public.
    #[error("unexpected status {0}")]
    Status(u16),
    /// The body has a content encoding, although none was accepted. The host is at fault: the
    /// sender has to give the URL of another host, or to send the image itself.
    #[error("unsupported content encoding")]
    Encoding,
    /// The body is not PNG, JPEG or WebP, is damaged, or has too many pixels. The sender is at
    /// fault: it has to give the URL of a supported image.
    #[error("unsupported image format or size")]
    Kind,
}

impl FetchError {
    /// Returns the cause as one word, for metrics and logs.
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

    /// Returns the message for the client, in the words of OpenAI where it has the error too.
    ///
    /// All errors that depend on the network, including rejected addresses, have the same message:
    /// otherwise clients could scan for names and ports behind the gateway.
    #[must_use]
    pub fn client_message(self, url: &str) -> String {
        match self {
            Self::Off => OFF.to_owned(),
            Self::Url(why) => format!("The image URL is not allowed: {why}. {ALLOWED}"),
            Self::NotListed => NOT_LISTED.to_owned(),
            Self::Busy => BUSY.to_owned(),
            Self::Kind => KIND.to_owned(),
            _ => format!("Error while downloading https://{}.", log_form(url)),
        }
    }

    /// Returns the message for a client of the Messages protocol, in the words of Anthropic, if it
    /// has the error too.
    #[must_use]
    pub fn anthropic_message(self) -> Option<&'static str> {
        match self {
            Self::Off | Self::Url(_) | Self::NotListed | Self::Busy => None,
            Self::Kind => Some("Could not process image"),
            _ => Some("Unable to download the file. Please verify the URL and try again."),
        }
    }
}

const OFF: &str = "Image URLs are not fetched here; send the picture as a data URL.";
const ALLOWED: &str =
    "Give a public https URL with a host name, or send the picture as a data URL.";
const NOT_LISTED: &str =
    "The image URL is not allowed: its host is not one of those that are fetched from here.";
const BUSY: &str = "Too many image URLs are being fetched; try again later.";
const KIND: &str = "The image data you provided does not represent a valid image. Please check your input and try \
                    again with one of the supported image formats: ['image/jpeg', 'image/png', 'image/webp'].";

#[cfg(test)]
mod tests {
    use super::*;

    /// All errors that depend on the network have the same client message.
    #[test]
    fn f09_all_network_causes_have_one_message() {
        let network = [
            FetchError::Address(Refused("loopback")),
            FetchError::Redirect("too many redirects"),
            FetchError::TooLarge,
            FetchError::Timeout,
            FetchError::Unreachable("DNS lookup failed"),
            FetchError::Tls,
            FetchError::Status(404),
            FetchError::Encoding,
        ];
        for error in network {
            assert_eq!(error.client_message(URL), NETWORK, "{error}");
        }
        let other = [
            FetchError::Off,
            NotAllowed::Port.into(),
            FetchError::NotListed,
            FetchError::Busy,
            FetchError::Kind,
        ];
        for error in other {
            assert_ne!(error.client_message(URL), NETWORK, "{error}");
        }
    }

    const URL: &str = "https://images.example/a.png?key=secret";
    /// Without the query, which is a credential in a signed URL.
    const NETWORK: &str = "Error while downloading https://images.example/a.png.";
}
