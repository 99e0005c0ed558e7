//! The methods and paths of the endpoints, for spans.

/// The method of an endpoint, and its path with names in place of ids. `None` if the request was for no
/// endpoint.
pub fn method_and_path(route: &str) -> Option<(&'static str, &'static str)> {
    let mut routes = ROUTES.iter();
    let (_, method, path) = routes.find(|(name, ..)| *name == route)?;
    Some((method, path))
}

/// The name of each endpoint in the log, its method and its path.
pub const ROUTES: [(&str, &str, &str); 13] = [
    ("responses", "POST", "/v1/responses"),
    ("response", "GET", "/v1/responses/{id}"),
    ("response_delete", "DELETE", "/v1/responses/{id}"),
    ("response_cancel", "POST", "/v1/responses/{id}/cancel"),
    (
        "response_input_items",
        "GET",
        "/v1/responses/{id}/input_items",
    ),
    ("chat_completions", "POST", "/v1/chat/completions"),
    ("messages", "POST", "/v1/messages"),
    ("count_tokens", "POST", "/v1/messages/count_tokens"),
    ("input_tokens", "POST", "/v1/responses/input_tokens"),
    ("image_generations", "POST", "/v1/images/generations"),
    ("image_edits", "POST", "/v1/images/edits"),
    ("models", "GET", "/v1/models"),
    ("model", "GET", "/v1/models/{id}"),
];
