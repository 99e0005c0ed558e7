//! `GET` and `DELETE /v1/responses/{id}`, `POST /v1/responses/{id}/cancel` and `GET
//! /v1/responses/{id}/input_items`:
//! [responses](https://platform.openai.com/docs/api-reference/responses/get).

mod relay;

use std::borrow::Cow;

use http::Response;
use policy::limit::Reserved;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wire::lenient::Text;
use wire::{ApiError, Json, Path, Splice, Violations};

pub(crate) use self::relay::Action;
use crate::exchange::refusal::Refusal;
use crate::request::reply::{ReplyBody, json, json_bytes};
use crate::state::Caller;
use response_store::store::{InputItem, StoredResponse};

/// The confirmation that a response was deleted.
#[derive(Serialize, JsonSchema)]
pub struct Deleted {
    /// The id of the response.
    id: String,
    /// The object type, `response`.
    object: &'static str,
    /// Always true.
    deleted: bool,
}

/// A page of the items that a response answers.
#[derive(Serialize, JsonSchema)]
pub struct ItemList {
    /// The object type, `list`.
    object: &'static str,
    /// The items.
    data: Vec<Json>,
    /// The id of the first item of the page.
    first_id: Option<String>,
    /// The id of the last item of the page.
    last_id: Option<String>,
    /// True if there are more items after the page.
    has_more: bool,
}

/// Answers a request about a response: a kept one, or one that an upstream keeps. Either takes a
/// permit.
pub(crate) async fn answer(
    mut caller: Caller<'_>,
    action: Action,
    id: &str,
    query: &str,
) -> Result<Response<ReplyBody>, Refusal> {
    let kept = caller.state.kept.as_ref();
    let Some(answer) = kept.and_then(|kept| kept.get(&caller.key.id, id)) else {
        return relay::relay(caller, action, id, query).await;
    };
    caller.record.model = Some(answer.model().to_owned());
    caller
        .take_permit(answer.model(), Reserved::default)
        .await?;
    match action {
        Action::Retrieve => Ok(json_bytes(answer.response())),
        Action::Delete => {
            // Somebody else may have deleted it by now, with the same effect.
            if let Some(kept) = kept {
                kept.remove(&caller.key.id, id);
            }
            json(&Deleted {
                id: id.to_owned(),
                object: responses::Response::OBJECT,
                deleted: true,
            })
        }
        Action::Cancel => Err(Refusal::synchronous_response()),
        Action::InputItems => input_items(&answer, query),
    }
}

/// Lists the items that a response answers, the newest first unless the query asks for another
/// order.
fn input_items(answer: &StoredResponse, query: &str) -> Result<Response<ReplyBody>, Refusal> {
    let page = Page::read(query).map_err(ApiError::from)?;
    let positions = page.positions(&answer.input);
    let shown = &positions[..positions.len().min(page.limit)];
    let item = |position: &usize| listed(&answer.input[*position], *position);
    let data: Result<Vec<_>, _> = shown
        .iter()
        .map(|position| serde_json::from_str(&item(position)))
        .collect();
    let id = |position: &usize| id_of(&answer.input[*position], *position).into_owned();
    json(&ItemList {
        object: "list",
        data: data.map_err(crate::request::reply::unserializable)?,
        first_id: shown.first().map(id),
        last_id: shown.last().map(id),
        has_more: positions.len() > shown.len(),
    })
}

/// Returns the id of an item: its own, or one of its position.
fn id_of(item: &InputItem, position: usize) -> Cow<'_, str> {
    match &item.id {
        Some(id) => Cow::Borrowed(id),
        None => Cow::Owned(format!("item_{position}")),
    }
}

/// Returns an item in the form of the API's reference: with an id, a message without a type with its
/// type, and one whose content is a string with a list of one part.
fn listed(item: &InputItem, position: usize) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct View<'a> {
        #[serde(borrow)]
        role: Text<'a>,
        #[serde(borrow)]
        content: Option<&'a RawValue>,
    }
    let view: View<'_> = serde_json::from_str(&item.text).unwrap_or_default();
    let mut splice = Splice::new(item.text.as_bytes());
    if item.id.is_none() {
        splice.set("id", format!("\"item_{position}\"").as_bytes());
    }
    splice.add_missing(&[], &[("type", "\"message\"")]);
    let text = view.content.map(RawValue::get);
    if let Some(text) = text.filter(|text| text.starts_with('"')) {
        let kind = if view.role.get() == Some("assistant") {
            "output_text"
        } else {
            "input_text"
        };
        let parts = format!(r#"[{{"type":"{kind}","text":{text}}}]"#);
        splice.replace(&["content"], parts.as_bytes());
    }
    String::from_utf8_lossy(&splice.to_vec()).into_owned()
}

/// The part of a list that a query asks for.
pub(crate) struct Page<'a> {
    limit: usize,
    is_ascending: bool,
    after: Option<&'a str>,
}

impl<'a> Page<'a> {
    /// Returns the positions of the items from the beginning of the page to the end of the list. No
    /// item is written for that.
    fn positions(&self, items: &[InputItem]) -> Vec<usize> {
        let mut positions: Vec<_> = (0..items.len()).collect();
        if !self.is_ascending {
            positions.reverse();
        }
        let is_after = |position: &usize| self.after == Some(&*id_of(&items[*position], *position));
        let after = self.after.and_then(|_| positions.iter().position(is_after));
        positions.split_off(after.map_or(0, |at| at + 1))
    }

    /// Reads the query. Unknown parameters are ignored.
    pub(crate) fn read(query: &'a str) -> Result<Self, Violations> {
        let mut page = Self {
            limit: 20,
            is_ascending: false,
            after: None,
        };
        let mut found = Violations::default();
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            let path = Path::ROOT.key(name);
            match name {
                "limit" => {
                    let limit = found.read_integer(&path, value);
                    found.check_integer(&path, limit, 1, 100);
                    page.limit = limit.and_then(|limit| limit.try_into().ok()).unwrap_or(20);
                }
                "order" => {
                    found.check_word(&path, Some(value), &["asc", "desc"]);
                    page.is_ascending = value == "asc";
                }
                "after" => page.after = Some(value),
                _ => {}
            }
        }
        found.or(page)
    }
}
