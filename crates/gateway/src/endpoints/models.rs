//! `GET /v1/models` and `GET /v1/models/{id}`, in a shape that serves clients of
//! [OpenAI](https://platform.openai.com/docs/api-reference/models) and
//! [Anthropic](https://docs.anthropic.com/en/api/models-list) alike.

use catalog::{Model, Page, Protocol};
use http::Response;
use url::form_urlencoded;
use wire::{ApiError, Path, Violations};

use crate::exchange::refusal::{Refusal, Style};
use crate::request::reply::{ReplyBody, json};
use crate::state::Caller;

/// Lists the models that the key may use.
pub(crate) fn list(
    caller: &Caller<'_>,
    query: &str,
    style: Style,
) -> Result<Response<ReplyBody>, Refusal> {
    let catalog = caller.policy.catalog_with_facts();
    let list = page(query).and_then(|page| catalog.list(&page, |model| may_see(caller, model)));
    json(&list.map_err(|found| invalid(found, style))?)
}

/// Returns one model that the key may use.
pub(crate) fn retrieve(
    caller: &Caller<'_>,
    id: &str,
    style: Style,
) -> Result<Response<ReplyBody>, Refusal> {
    let protocol = match style {
        Style::Messages => Protocol::Messages,
        Style::OpenAi => Protocol::Responses,
    };
    let catalog = caller.policy.catalog_with_facts();
    json(&catalog.retrieve(id, protocol, |model| may_see(caller, model))?)
}

/// Returns true if the key's model patterns match. Its scopes do not matter here, because clients
/// request the list with any of their keys.
fn may_see(caller: &Caller<'_>, model: &Model) -> bool {
    caller.key.may_use(&model.id)
}

/// Parses the page from the query. Unknown parameters are ignored.
pub(crate) fn page(query: &str) -> Result<Page, Violations> {
    let mut page = Page::default();
    let mut found = Violations::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "limit" => page.limit = found.read_integer(&Path::ROOT.key("limit"), &value),
            "after_id" => page.after_id = Some(value.into_owned()),
            "before_id" => page.before_id = Some(value.into_owned()),
            _ => {}
        }
    }
    found.or(page)
}

fn invalid(found: Violations, style: Style) -> ApiError {
    match style {
        Style::Messages => messages::refusal(found),
        Style::OpenAi => found.into(),
    }
}
