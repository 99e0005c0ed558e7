//! The errors for image URLs, and for the forms and pictures of image edits.

use fetch::FetchError;
use fetch::target::log_form;
use wire::{ApiError, Code, ErrorKind};

use super::Refusal;

impl Refusal {
    /// The image at a URL, which is in the field `param`, was not fetched: 503 if too many fetches
    /// are running, and else 400. The log gets the cause with the URL's host and path, but not the
    /// query, which is a credential in a signed URL.
    pub(crate) fn image_url(error: FetchError, url: &str, param: Option<&str>) -> Self {
        let sentence = error.client_message(url);
        let refused = match error {
            FetchError::Busy => {
                ApiError::new(ErrorKind::Unavailable, "service_unavailable", sentence)
                    .with_retry_after(1)
            }
            _ => ApiError::new(ErrorKind::InvalidRequest, "invalid_value", sentence),
        };
        let refused = match error.anthropic_message() {
            Some(sentence) => refused.with_anthropic_sentence(sentence),
            None => refused,
        };
        let refused = ApiError {
            param: param.map(str::to_owned),
            ..refused
        };
        Self {
            cause: Some(format!("{error}: {}", log_form(url)).into()),
            ..refused.into()
        }
    }

    /// Gives an error of image URLs the code of the client's protocol.
    pub(crate) fn with_image_url_code(mut self, code: Code) -> Self {
        if self.error.code == Code::InvalidValue.as_str() {
            self.error.code = code.as_str();
        }
        self
    }

    /// More image URLs than are fetched for one request: 400.
    pub(crate) fn too_many_image_urls(most: usize) -> Self {
        let sentence = format!("Too many image URLs: at most {most} are fetched for one request.");
        ApiError::new(ErrorKind::InvalidRequest, "invalid_value", sentence).into()
    }

    /// A multipart form that is not as RFC 7578 asks, or exceeds a limit of its structure: 400.
    pub(crate) fn malformed_form(why: &str) -> Self {
        let sentence = format!("Could not parse multipart form: {why}.");
        ApiError::new(ErrorKind::InvalidRequest, "invalid_value", sentence).into()
    }

    /// A part of a form above its limit: 413.
    pub(crate) fn part_too_large(name: Option<&str>) -> Self {
        let name = wire::truncate_for_error(name.unwrap_or("part"));
        Self::larger(name, format!("The part '{name}' is larger than the limit."))
    }

    /// A picture above the limit, in a JSON body or a form: 413.
    pub(crate) fn picture_too_large(param: &str, found: usize, limit: usize) -> Self {
        let sentence =
            format!("'{param}' is a picture of {found} bytes; at most {limit} are taken.");
        Self::larger(param, sentence)
    }

    fn larger(param: &str, sentence: String) -> Self {
        let code = Code::RequestTooLarge.as_str();
        ApiError::new(ErrorKind::TooLarge, code, sentence)
            .with_param(param)
            .into()
    }
}
