//! Maps a method and path to an endpoint. Paths are matched exactly; nothing is normalized, and only
//! the id of a model is decoded.

use auth::Scope;
use http::Method;
use percent_encoding::percent_decode_str;

use crate::exchange::refusal::{Refusal, Style};

/// The endpoints under `/v1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// `POST /v1/responses`
    Responses,
    /// `GET /v1/responses` with an upgrade to a WebSocket
    WebSocket,
    /// `GET /v1/responses/{id}`
    Response(String),
    /// `DELETE /v1/responses/{id}`
    DeleteResponse(String),
    /// `POST /v1/responses/input_tokens`
    InputTokens,
    /// `POST /v1/responses/{id}/cancel`
    CancelResponse(String),
    /// `GET /v1/responses/{id}/input_items`
    InputItems(String),
    /// `POST /v1/chat/completions`
    Chat,
    /// `POST /v1/messages`
    Messages,
    /// `POST /v1/messages/count_tokens`
    CountTokens,
    /// `POST /v1/images/generations`
    ImageGenerations,
    /// `POST /v1/images/edits`
    ImageEdits,
    /// `GET /v1/models`
    Models,
    /// `GET /v1/models/{id}`
    Model(String),
}

impl Endpoint {
    /// Returns the endpoint of a method and path, 404 for an unknown path, or 405 for a method that
    /// it does not allow. The paths of single responses are known only if responses are kept.
    pub fn of(
        method: &Method,
        path: &str,
        has_responses: impl FnOnce() -> bool,
    ) -> Result<Self, Refusal> {
        let endpoint = match path {
            RESPONSES => Self::Responses,
            "/v1/chat/completions" => Self::Chat,
            "/v1/messages" => Self::Messages,
            "/v1/messages/count_tokens" => Self::CountTokens,
            "/v1/responses/input_tokens" => Self::InputTokens,
            "/v1/images/generations" => Self::ImageGenerations,
            "/v1/images/edits" => Self::ImageEdits,
            "/v1/models" => Self::Models,
            _ => Self::with_id(method, path)
                .filter(|endpoint| !endpoint.is_of_response() || has_responses())
                .ok_or_else(|| Refusal::not_found(method, path))?,
        };
        if endpoint.methods().contains(method) {
            Ok(endpoint)
        } else {
            Err(Refusal::method(method, path, endpoint.allow()))
        }
    }

    /// Returns the endpoint of a path with an id.
    fn with_id(method: &Method, path: &str) -> Option<Self> {
        // The names of models have slashes, and nothing follows them.
        if let Some(model) = path.strip_prefix("/v1/models/") {
            let model = percent_decode_str(model).decode_utf8_lossy();
            return (!model.is_empty()).then(|| Self::Model(model.into_owned()));
        }
        let id = |id: &str| (!id.is_empty() && !id.contains('/')).then(|| id.to_owned());
        let rest = path.strip_prefix("/v1/responses/")?;
        match rest.split_once('/') {
            Some((response, "input_items")) => id(response).map(Self::InputItems),
            Some((response, "cancel")) => id(response).map(Self::CancelResponse),
            Some(_) => None,
            // Not an id, but an endpoint that is not served:
            // https://platform.openai.com/docs/api-reference/responses/compact
            None if rest == "compact" => None,
            None if method == Method::DELETE => id(rest).map(Self::DeleteResponse),
            None => id(rest).map(Self::Response),
        }
    }

    /// True for the endpoints of a single response.
    fn is_of_response(&self) -> bool {
        matches!(
            self,
            Self::Response(_)
                | Self::DeleteResponse(_)
                | Self::CancelResponse(_)
                | Self::InputItems(_)
        )
    }

    /// The allowed methods of the endpoint's path.
    fn methods(&self) -> &'static [Method] {
        match self {
            Self::Response(_) | Self::DeleteResponse(_) => {
                &[Method::GET, Method::HEAD, Method::DELETE]
            }
            Self::Models | Self::Model(_) | Self::InputItems(_) => &[Method::GET, Method::HEAD],
            _ => &[Method::POST],
        }
    }

    /// The allowed methods of the endpoint's path, as in the header `Allow`.
    pub fn allow(&self) -> &'static str {
        match self.methods() {
            [_, _, _, ..] => "GET, HEAD, DELETE",
            [_, _] => "GET, HEAD",
            _ => "POST",
        }
    }

    /// The scope that a key needs; `None` for the model list.
    pub(crate) fn scope(&self) -> Option<Scope> {
        match self {
            Self::Responses
            | Self::WebSocket
            | Self::Response(_)
            | Self::DeleteResponse(_)
            | Self::CancelResponse(_)
            | Self::InputItems(_)
            | Self::InputTokens
            | Self::Chat => Some(Scope::Text),
            Self::Messages | Self::CountTokens => Some(Scope::Messages),
            Self::ImageGenerations | Self::ImageEdits => Some(Scope::Images),
            Self::Models | Self::Model(_) => None,
        }
    }

    /// True if `x-api-key` is accepted besides `Authorization`.
    pub fn takes_x_api_key(&self) -> bool {
        matches!(
            self,
            Self::Messages | Self::CountTokens | Self::Models | Self::Model(_)
        )
    }

    /// The value in logs and metrics, from a closed list.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::WebSocket => "websocket",
            Self::Response(_) => "response",
            Self::DeleteResponse(_) => "response_delete",
            Self::CancelResponse(_) => "response_cancel",
            Self::InputItems(_) => "response_input_items",
            Self::Chat => "chat_completions",
            Self::Messages => "messages",
            Self::CountTokens => "count_tokens",
            Self::InputTokens => "input_tokens",
            Self::ImageGenerations => "image_generations",
            Self::ImageEdits => "image_edits",
            Self::Models => "models",
            Self::Model(_) => "model",
        }
    }
}

/// The error format of a path, known or not. The model list serves both protocol families, which
/// differ in their headers.
pub fn style(path: &str, headers: &http::HeaderMap) -> Style {
    let is_under = |root: &str| {
        path.strip_prefix(root)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let is_messages_client =
        || headers.contains_key("anthropic-version") || headers.contains_key("x-api-key");
    if is_under("/v1/messages") || (is_under("/v1/models") && is_messages_client()) {
        Style::Messages
    } else {
        Style::OpenAi
    }
}

/// The path of the Responses endpoint.
pub(crate) const RESPONSES: &str = "/v1/responses";

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths in spans are those that are served, under the same names.
    #[test]
    fn spans_have_the_methods_and_paths_of_the_endpoints() {
        for (name, method, path) in telemetry::requests::routes::ROUTES {
            let method = method.parse().unwrap();
            let endpoint = Endpoint::of(&method, path, || true).unwrap();
            assert_eq!(endpoint.name(), name, "{method} {path}");
        }
    }

    #[test]
    fn only_exact_paths_match() {
        for path in [
            "/",
            "/v1",
            "/v1/responses/",
            "/v1/responses/compact",
            "/v1//responses",
            "/V1/responses",
            "/v1/%72esponses",
            "/v1/models/",
            "/v1/models%2Fa",
            "/v1/x/../models",
            "/v1/responses;a",
            "responses",
            "",
        ] {
            let refusal = Endpoint::of(&Method::POST, path, || true).unwrap_err();
            assert_eq!(refusal.error.code, "unknown_url", "{path}");
        }
        for path in [
            "/v1/responses/",
            "/v1/responses//input_items",
            "/v1/responses/resp_1/",
            "/v1/responses/resp_1/items",
            "/v1/responses/resp_1/input_items/",
        ] {
            let refusal = Endpoint::of(&Method::GET, path, || true).unwrap_err();
            assert_eq!(refusal.error.code, "unknown_url", "{path}");
        }
    }

    #[test]
    fn the_id_of_a_model_is_the_rest_of_its_path() {
        for (path, id) in [
            ("/v1/models/m", "m"),
            ("/v1/models/qwen/qwen3:8b", "qwen/qwen3:8b"),
            ("/v1/models/qwen%2Fqwen3%3A8b", "qwen/qwen3:8b"),
            ("/v1/models/a%2fb%25c", "a/b%c"),
            ("/v1/models/a+b%zz%", "a+b%zz%"),
            ("/v1/models/m%C3%B6del", "m\u{f6}del"),
            ("/v1/models/a//b/", "a//b/"),
            ("/v1/models/%ff", "\u{fffd}"),
        ] {
            let found = Endpoint::of(&Method::GET, path, || true).ok();
            assert_eq!(found, Some(Endpoint::Model(id.to_owned())), "{path}");
        }
    }

    #[test]
    fn single_responses_have_paths_where_they_are_kept() {
        let of =
            |method, path, has_responses: bool| Endpoint::of(&method, path, || has_responses).ok();
        let path = "/v1/responses/resp_1";
        let id = || "resp_1".to_owned();
        assert_eq!(of(Method::GET, path, true), Some(Endpoint::Response(id())));
        assert_eq!(
            of(Method::DELETE, path, true),
            Some(Endpoint::DeleteResponse(id()))
        );
        assert_eq!(
            of(Method::GET, "/v1/responses/resp_1/input_items", true),
            Some(Endpoint::InputItems(id()))
        );
        for method in [Method::GET, Method::DELETE] {
            let refusal = Endpoint::of(&method, path, || false).unwrap_err();
            assert_eq!(refusal.error.code, "unknown_url");
        }
        let refusal = Endpoint::of(&Method::PUT, path, || true).unwrap_err();
        assert_eq!(refusal.accepted, Some("GET, HEAD, DELETE"));
    }

    #[test]
    fn each_path_takes_its_methods_and_says_which() {
        for (path, allow) in [
            ("/v1/responses", "POST"),
            ("/v1/models", "GET, HEAD"),
            ("/v1/models/m", "GET, HEAD"),
        ] {
            for method in [
                Method::GET,
                Method::POST,
                Method::PUT,
                Method::HEAD,
                Method::TRACE,
                Method::CONNECT,
            ] {
                let found = Endpoint::of(&method, path, || true);
                match allow.split(", ").any(|allowed| method == allowed) {
                    true => assert!(found.is_ok()),
                    false => assert_eq!(found.unwrap_err().accepted, Some(allow)),
                }
            }
        }
    }
}
