//! `GET /v1/models` and `GET /v1/models/{id}`, in a shape that serves clients of
//! [OpenAI](https://platform.openai.com/docs/api-reference/models) and
//! [Anthropic](https://docs.anthropic.com/en/api/models-list) alike.

use catalog::{Model, Page};
use http::Response;
use url::form_urlencoded;
use wire::{ApiError, Code, ErrorKind};

use crate::exchange::refusal::Refusal;
use crate::request::reply::{ReplyBody, json};
use crate::state::Caller;

/// Lists the models that the key may use.
pub(crate) fn list(caller: &Caller<'_>, query: &str) -> Result<Response<ReplyBody>, Refusal> {
    let page = page(query)?;
    let list = caller
        .policy
        .catalog
        .list(&page, |model| may_see(caller, model));
    json(&list.map_err(ApiError::from)?)
}

/// Returns one model that the key may use.
pub(crate) fn retrieve(caller: &Caller<'_>, id: &str) -> Result<Response<ReplyBody>, Refusal> {
    json(
        &caller
            .policy
            .catalog
            .retrieve(id, |model| may_see(caller, model))?,
    )
}

/// Returns true if the key's model patterns match. Its scopes do not matter here, because clients
/// request the list with any of their keys.
fn may_see(caller: &Caller<'_>, model: &Model) -> bool {
    caller.key.may_use(&model.id)
}

/// Parses the page from the query. Unknown parameters are ignored.
fn page(query: &str) -> Result<Page, ApiError> {
    let mut page = Page::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "limit" => page.limit = Some(value.parse().map_err(|_| not_a_number(&value))?),
            "after_id" => page.after_id = Some(value.into_owned()),
            "before_id" => page.before_id = Some(value.into_owned()),
            _ => {}
        }
    }
    Ok(page)
}

fn not_a_number(found: &str) -> ApiError {
    let found: String = found.chars().take(32).collect();
    let sentence =
        format!("Invalid type for 'limit': expected an integer, but got '{found}' instead.");
    ApiError::new(
        ErrorKind::InvalidRequest,
        Code::InvalidType.as_str(),
        sentence,
    )
    .with_param("limit")
}
