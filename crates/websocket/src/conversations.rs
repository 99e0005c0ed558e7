//! The responses that a connection can continue, in memory of the connection.
//!
//! A response refers to the one that it continues, so that a conversation of many responses is in
//! memory once. The memory of all connections is bounded, and a connection lets go of its oldest
//! responses first.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use gateway::exchange::body::budget::Share;
use response_store::stored_input::items;
use responses::Reasoning;
use serde::Deserialize;
use serde_json::value::RawValue;
use upstream::Previous;
use wire::Splice;

/// The responses of a connection, oldest first.
pub(crate) struct Conversations {
    kept: VecDeque<Arc<Kept>>,
    share: Share,
}

/// A response with what its request has added to the conversation.
#[derive(Debug)]
struct Kept {
    id: String,
    before: Before,
    /// The items of the input and of the output.
    items: Items,
    share: Share,
}

/// Items of a conversation as JSON, separated by commas.
#[derive(Debug, Default)]
pub(crate) struct Items {
    text: String,
    count: usize,
}

/// The conversation before a request.
#[derive(Clone, Debug, Default)]
pub(crate) enum Before {
    /// The conversation begins with this request.
    #[default]
    Nothing,
    /// A response of this connection.
    Kept(Continued),
    /// A response of another connection, with this id. The gateway finds it, or refuses.
    Elsewhere(String),
}

/// A response that is continued.
#[derive(Clone, Debug)]
pub(crate) struct Continued(Arc<Kept>);

#[derive(Deserialize)]
struct ItemView<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    encrypted_content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

impl Conversations {
    /// Creates an empty memory that takes what it keeps from `share`.
    pub(crate) fn new(share: Share) -> Self {
        Self {
            kept: VecDeque::new(),
            share,
        }
    }

    /// Finds the response of an id.
    pub(crate) fn before(&self, id: Option<&str>) -> Before {
        let Some(id) = id else {
            return Before::Nothing;
        };
        let mut newest = self.kept.iter().rev();
        match newest.find(|kept| kept.id == id) {
            Some(kept) => Before::Kept(Continued(Arc::clone(kept))),
            None => Before::Elsewhere(id.to_owned()),
        }
    }

    /// Keeps a finished response, unless there is no memory for it even without the older ones.
    pub(crate) fn keep(&mut self, id: String, before: Before, items: Items) {
        let bytes = items.text.len() + id.len() + OVERHEAD;
        while self.kept.len() >= MAX_KEPT || self.share.grow(bytes).is_err() {
            if self.kept.pop_front().is_none() {
                return;
            }
        }
        self.kept.push_back(Arc::new(Kept {
            id,
            before,
            items,
            share: self.share.clone(),
        }));
    }
}

impl Drop for Kept {
    /// Returns the memory, and drops the responses before this one without recursion, which long
    /// conversations would overflow the stack with.
    fn drop(&mut self) {
        self.share
            .shrink(self.items.text.len() + self.id.len() + OVERHEAD);
        let mut before = std::mem::take(&mut self.before);
        while let Before::Kept(Continued(kept)) = before {
            before = match Arc::into_inner(kept) {
                Some(mut kept) => std::mem::take(&mut kept.before),
                None => Before::Nothing,
            };
        }
    }
}

impl Before {
    /// Returns the id of the response that is continued, as the client has named it.
    pub(crate) fn id(&self) -> Option<&str> {
        match self {
            Self::Nothing => None,
            Self::Kept(Continued(kept)) => Some(&kept.id),
            Self::Elsewhere(id) => Some(id),
        }
    }

    /// True if the gateway does not see that its request continues a response.
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self, Self::Kept(_))
    }

    /// Edits a request, so that it has the conversation before it.
    pub(crate) fn expand(&self, splice: &mut Splice<'_>) {
        let Self::Kept(_) = self else {
            return;
        };
        let mut parts = Vec::new();
        let mut at = self;
        while let Self::Kept(Continued(kept)) = at {
            parts.push(kept.items.text.as_str());
            at = &kept.before;
        }
        parts.reverse();
        let own = items(splice.document());
        let own = own.iter().map(|item| &**item);
        let all = parts.into_iter().chain(own).filter(|part| !part.is_empty());
        let input = format!("[{}]", all.collect::<Vec<_>>().join(","));
        splice.set("input", input.as_bytes());
        if let Self::Elsewhere(id) = at {
            let id = serde_json::Value::from(id.as_str()).to_string();
            splice.replace(&["previous_response_id"], id.as_bytes());
        }
    }

    /// Returns the response that a request continues, and what it has of the conversation before it
    /// after [`Before::expand`]. `None` if that is not all.
    pub(crate) fn previous(&self, request: &[u8]) -> Option<Previous> {
        let (mut known, mut at) = (0, self);
        while let Self::Kept(Continued(kept)) = at {
            known += kept.items.count;
            at = &kept.before;
        }
        match (self, at) {
            (Self::Kept(Continued(kept)), Self::Nothing) => Some(Previous {
                id: kept.id.clone(),
                known,
                all: known + items(request).len(),
            }),
            _ => None,
        }
    }

    /// True if the request still refers to a response after [`Before::expand`].
    pub(crate) fn refers_elsewhere(&self) -> bool {
        let mut at = self;
        while let Self::Kept(Continued(kept)) = at {
            at = &kept.before;
        }
        matches!(at, Self::Elsewhere(_))
    }
}

/// Returns the items of a request and of its response as they are continued, separated by commas.
pub(crate) fn conversation<'a>(
    request: &'a [u8],
    output: impl IntoIterator<Item = &'a str>,
) -> Items {
    let mut all = items(request);
    let output = output.into_iter().filter(|item| !is_opaque(item));
    all.extend(output.map(Into::into));
    Items {
        text: all.join(","),
        count: all.len(),
    }
}

/// True for reasoning that only the server that made it knows: without its own memory, an item with
/// this id is refused. The summary of an item that the gateway has translated is the reasoning itself.
fn is_opaque(item: &str) -> bool {
    let Ok(view) = serde_json::from_str::<ItemView<'_>>(item) else {
        return false;
    };
    let is_empty = |value: Option<&RawValue>| {
        value.is_none_or(|value| matches!(value.get(), "null" | "\"\"" | "[]"))
    };
    let is_reasoning = view.kind.is_some_and(|kind| kind.get() == "\"reasoning\"");
    let is_translated = view.id.is_some_and(|id| id.starts_with(Reasoning::OWN_ID));
    let is_sealed = !is_empty(view.encrypted_content);
    is_reasoning && !is_translated && !is_sealed && is_empty(view.content)
}

/// The number of responses that a connection keeps at most.
const MAX_KEPT: usize = 1024;
/// The memory of a response besides its texts, in bytes.
const OVERHEAD: usize = 256;

#[cfg(test)]
mod tests {
    use gateway::exchange::body::budget::Budget;

    use super::*;

    fn conversations(bytes: u64) -> Conversations {
        Conversations::new(Budget::new(bytes, bytes).share("key"))
    }

    fn list(items: &[&str]) -> Items {
        Items {
            text: items.join(","),
            count: items.len(),
        }
    }

    fn expanded(before: &Before, request: &str) -> String {
        let mut splice = Splice::new(request.as_bytes());
        before.expand(&mut splice);
        String::from_utf8(splice.to_vec()).unwrap()
    }

    #[test]
    fn a_request_gets_the_conversation_before_it() {
        let mut kept = conversations(1 << 20);
        kept.keep("resp_1".to_owned(), Before::Nothing, list(&["1", "2"]));
        let first = kept.before(Some("resp_1"));
        kept.keep("resp_2".to_owned(), first, list(&["3"]));
        assert_eq!(
            expanded(&kept.before(Some("resp_2")), r#"{"input":[4]}"#),
            r#"{"input":[1,2,3,4]}"#
        );
        let previous = kept.before(Some("resp_2")).previous(br#"{"input":[4]}"#);
        let (known, all) = (3, 4);
        let id = "resp_2".to_owned();
        assert_eq!(previous, Some(Previous { id, known, all }));
        assert_eq!(
            expanded(&kept.before(Some("resp_1")), r#"{"input":"Hi."}"#),
            r#"{"input":[1,2,{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi."}]}]}"#
        );
        assert_eq!(
            expanded(&kept.before(Some("resp_0")), r#"{"input":[4]}"#),
            r#"{"input":[4]}"#
        );
    }

    #[test]
    fn a_response_of_elsewhere_is_still_referred_to() {
        let mut kept = conversations(1 << 20);
        let elsewhere = kept.before(Some("resp_0"));
        kept.keep("resp_1".to_owned(), elsewhere, list(&["1"]));
        let before = kept.before(Some("resp_1"));
        assert!(before.refers_elsewhere());
        assert_eq!(before.previous(b"{}"), None);
        assert_eq!(
            expanded(&before, r#"{"previous_response_id":"resp_1","input":[2]}"#),
            r#"{"previous_response_id":"resp_0","input":[1,2]}"#
        );
    }

    /// The oldest responses are let go, and their memory is returned when no other one continues
    /// them.
    #[test]
    fn memory_is_bounded() {
        let mut kept = conversations(2048);
        let keep = |kept: &mut Conversations, id: &str, bytes: usize| {
            kept.keep(id.to_owned(), Before::Nothing, list(&[&"1".repeat(bytes)]));
        };
        keep(&mut kept, "a", 600);
        keep(&mut kept, "b", 600);
        keep(&mut kept, "c", 600);
        let is_kept = |kept: &Conversations, id| kept.before(Some(id)).is_kept();
        assert!(!is_kept(&kept, "a") && is_kept(&kept, "b") && is_kept(&kept, "c"));
        keep(&mut kept, "d", 4000);
        assert!(!is_kept(&kept, "b") && !is_kept(&kept, "d"));
        keep(&mut kept, "e", 1700);
        assert!(is_kept(&kept, "e"));
    }

    #[test]
    fn a_long_conversation_is_dropped() {
        let mut kept = conversations(1 << 30);
        let mut before = Before::Nothing;
        for n in 0..200_000 {
            kept.keep(n.to_string(), before, list(&["1"]));
            before = kept.before(Some(&n.to_string()));
        }
        drop(kept);
        drop(before);
    }

    #[test]
    fn reasoning_that_is_nothing_by_itself_is_left_out() {
        let output = [
            r#"{"type":"reasoning","id":"rs_1","summary":[]}"#,
            r#"{"type":"reasoning","id":"rs_2","encrypted_content":"x"}"#,
            r#"{"type":"reasoning","id":"rs_3","encrypted_content":null,"content":[1]}"#,
            r#"{"type":"message"}"#,
            r#"{"type":"reasoning","id":"rs_sg_1","summary":[{"type":"summary_text","text":"Hm."}]}"#,
        ];
        assert_eq!(
            conversation(br#"{"input":[]}"#, output).text,
            output[1..].join(",")
        );
    }
}
