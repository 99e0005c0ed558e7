//! `GET` and `DELETE /v1/responses/{id}`, `POST /v1/responses/{id}/cancel` and `GET
//! /v1/responses/{id}/input_items`:
//! [responses](https://platform.openai.com/docs/api-reference/responses/get).

mod relay;

use bytes::Bytes;
use http::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wire::lenient::Text;
use wire::{ApiError, Code, ErrorKind, Json, Splice};

pub(crate) use self::relay::Action;
use crate::kept::Answer;
use crate::refusal::Refusal;
use crate::reply::{ReplyBody, json, json_bytes};
use crate::state::Caller;

/// The confirmation that a response was deleted.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Deleted {
    /// The id of the response.
    id: String,
    /// The object type, `response`.
    object: &'static str,
    /// Always true.
    deleted: bool,
}

/// A page of the items that a response answers.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ItemList {
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

/// Answers a request about a response: a kept one, or one that an upstream keeps.
pub(crate) async fn answer(
    caller: Caller<'_>,
    action: Action,
    id: &str,
    query: &str,
) -> Result<Response<ReplyBody>, Refusal> {
    let kept = caller.state.kept.as_ref();
    let Some(answer) = kept.and_then(|kept| kept.get(&caller.key.name, id)) else {
        return relay::relay(caller, action, id, query).await;
    };
    match action {
        Action::Retrieve => Ok(json_bytes(Bytes::copy_from_slice(
            answer.response.as_bytes(),
        ))),
        Action::Delete => {
            // Somebody else may have deleted it by now, with the same effect.
            if let Some(kept) = kept {
                kept.remove(&caller.key.name, id);
            }
            json(&Deleted {
                id: id.to_owned(),
                object: responses::Response::OBJECT,
                deleted: true,
            })
        }
        Action::Cancel => {
            let sentence = "Only a response in the background can be cancelled.";
            let code = Code::UnsupportedValue.as_str();
            Err(ApiError::new(ErrorKind::InvalidRequest, code, sentence).into())
        }
        Action::InputItems => input_items(&answer, query),
    }
}

/// Lists the items that a response answers, the newest first unless the query asks for another
/// order.
fn input_items(answer: &Answer, query: &str) -> Result<Response<ReplyBody>, Refusal> {
    let page = Page::read(query)?;
    let mut items: Vec<_> = named_items(answer).collect();
    if !page.is_ascending {
        items.reverse();
    }
    let is_after = |(id, _): &(String, String)| Some(id.as_str()) == page.after;
    let from = items.iter().position(is_after).map_or(0, |at| at + 1);
    let rest = items.get(from..).unwrap_or_default();
    let shown = &rest[..rest.len().min(page.limit)];
    let data: Result<_, _> = shown
        .iter()
        .map(|(_, item)| serde_json::from_str(item))
        .collect();
    json(&ItemList {
        object: "list",
        data: data.map_err(crate::reply::unserializable)?,
        first_id: shown.first().map(|(id, _)| id.clone()),
        last_id: shown.last().map(|(id, _)| id.clone()),
        has_more: rest.len() > shown.len(),
    })
}

/// The items of the input with their ids, in the form of the API's reference. An item without an id
/// gets one of its position, a message without a type gets its type, and one whose content is a
/// string gets a list of one part.
fn named_items(answer: &Answer) -> impl Iterator<Item = (String, String)> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct View<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
        #[serde(borrow)]
        role: Text<'a>,
        #[serde(borrow)]
        content: Option<&'a RawValue>,
    }
    answer.input.iter().zip(0..).map(|(item, position)| {
        let view: View<'_> = serde_json::from_str(item).unwrap_or_default();
        let id = view
            .id
            .and_then(|id| serde_json::from_str::<String>(id.get()).ok());
        let mut splice = Splice::new(item.as_bytes());
        let id = id.unwrap_or_else(|| {
            let id = format!("item_{position}");
            splice.set("id", format!("\"{id}\"").as_bytes());
            id
        });
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
        (id, String::from_utf8_lossy(&splice.to_vec()).into_owned())
    })
}

/// The part of a list that a query asks for.
struct Page<'a> {
    limit: usize,
    is_ascending: bool,
    after: Option<&'a str>,
}

impl<'a> Page<'a> {
    /// Reads the query. Unknown parameters are ignored.
    fn read(query: &'a str) -> Result<Self, ApiError> {
        let mut page = Self {
            limit: 20,
            is_ascending: false,
            after: None,
        };
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            match (name, value) {
                ("limit", _) => match value.parse() {
                    Ok(limit @ 1..=100) => page.limit = limit,
                    _ => return Err(invalid(name, value, "an integer from 1 to 100")),
                },
                ("order", "asc" | "desc") => page.is_ascending = value == "asc",
                ("order", _) => return Err(invalid(name, value, "'asc' or 'desc'")),
                ("after", id) => page.after = Some(id),
                _ => {}
            }
        }
        Ok(page)
    }
}

fn invalid(name: &str, found: &str, expected: &str) -> ApiError {
    let found = wire::truncate_for_error(found);
    let sentence = format!("Invalid value for '{name}': expected {expected}, but got '{found}'.");
    let code = Code::InvalidValue.as_str();
    ApiError::new(ErrorKind::InvalidRequest, code, sentence).with_param(name)
}
