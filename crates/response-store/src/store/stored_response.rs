//! One answer that is kept.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use policy::limit::prompt_tokens;
use serde::Deserialize;
use serde_json::value::RawValue;
use wire::Splice;
use wire::lenient::Text;

/// A response, and the items that it answers.
#[derive(Debug)]
pub struct StoredResponse {
    /// The id of the response.
    pub id: String,
    /// The model, as the client has named it.
    model: Box<str>,
    /// The response, as the client has received it.
    pub response: Box<str>,
    /// The items of the input.
    pub input: Vec<InputItem>,
    output: Vec<Item>,
    conversation: Extent,
}

/// An item of the input.
#[derive(Debug)]
pub struct InputItem {
    /// Its id, if the client has sent one.
    pub id: Option<Box<str>>,
    /// The item as JSON.
    pub text: Box<str>,
}

/// The size of a conversation: of its input and its output, as the input of a further request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    pub items: usize,
    /// The length of the items and of the commas between them.
    pub bytes: usize,
    /// An estimate.
    pub tokens: u64,
}

/// An item of the output.
#[derive(Debug)]
struct Item {
    id: Option<Box<str>>,
    /// Its place in the response.
    place: Range<usize>,
    /// An estimate of its tokens as an item of an input, counted once: a request that refers to it is
    /// measured before it has a permit.
    tokens: u64,
    is_reasoning: bool,
    /// True for reasoning whose text only the server that made it knows. Without the server's own
    /// memory it means nothing, and an item with its id is refused.
    is_opaque: bool,
}

#[derive(Deserialize)]
struct ResponseView<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(borrow, default)]
    model: Text<'a>,
    #[serde(borrow, default)]
    output: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ItemView<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    encrypted_content: Text<'a>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

impl StoredResponse {
    /// Creates the answer of a complete response to these items. `is_relayed` is true if an
    /// upstream wrote the response. Returns `None` if it has no id or no readable output.
    pub fn new(input: Vec<Box<str>>, response: String, is_relayed: bool) -> Option<Self> {
        let response = response.into_boxed_str();
        let view: ResponseView<'_> = serde_json::from_str(&response).ok()?;
        let id = view.id.get().filter(|id| !id.is_empty())?.to_owned();
        let model = view.model.or_empty().into();
        let start = response.as_ptr().addr();
        let item = |raw: &RawValue| {
            let from = raw.get().as_ptr().addr() - start;
            Item::new(raw.get(), from, is_relayed)
        };
        let output: Vec<_> = view.output.into_iter().map(item).collect();
        let mut conversation = Extent::default();
        let places = output.iter().filter(|item| !item.is_opaque);
        let lengths = places.map(|item| item.place.len() + MISSING.len());
        let texts = input.iter().map(|item| item.len());
        for length in texts.chain(lengths) {
            conversation.items += 1;
            conversation.bytes += length + 1;
        }
        let tokens = input.iter().map(|item| prompt_tokens(item.as_bytes()));
        conversation.tokens = tokens.chain(output.iter().map(|item| item.tokens)).sum();
        Some(Self {
            id,
            model,
            response,
            input: input.into_iter().map(InputItem::new).collect(),
            output,
            conversation,
        })
    }

    /// Returns the name of the model that has answered.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Returns the response without copying it: its bytes live as long as the answer.
    pub fn response(self: Arc<Self>) -> Bytes {
        struct Response(Arc<StoredResponse>);

        impl AsRef<[u8]> for Response {
            fn as_ref(&self) -> &[u8] {
                self.0.response.as_bytes()
            }
        }
        Bytes::from_owner(Response(self))
    }

    /// Returns the size of [`StoredResponse::conversation`]; its length is at most this.
    pub fn extent(&self) -> Extent {
        self.conversation
    }

    /// Returns the length of [`StoredResponse::output`] at most, with a comma.
    pub fn output_length(&self, position: usize) -> usize {
        let item = self.output.get(position);
        item.map_or(0, |item| item.place.len() + MISSING.len() + 1)
    }

    /// Returns an estimate of the tokens of [`StoredResponse::output`].
    pub fn output_tokens(&self, position: usize) -> u64 {
        self.output.get(position).map_or(0, |item| item.tokens)
    }

    /// The memory of the answer, in bytes: its texts, and an estimate of the structures that refer
    /// to them.
    pub fn size(&self) -> usize {
        let input = self.input.iter().map(InputItem::size);
        let ids = self.item_ids().map(|(id, _)| 2 * id.len() + INDEX);
        let output = self.output.len() * ITEM;
        let own = ANSWER + 3 * self.id.len() + self.model.len() + self.response.len();
        own + output + input.sum::<usize>() + ids.sum::<usize>()
    }

    /// The ids of the output items, with their positions.
    pub fn item_ids(&self) -> impl Iterator<Item = (&str, usize)> {
        let items = self.output.iter().zip(0..);
        items.filter_map(|(item, position)| Some((item.id.as_deref()?, position)))
    }

    /// The items of the input and of the output, as the input of a further request.
    pub fn conversation(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let input = self.input.iter().map(|item| Cow::Borrowed(&*item.text));
        let output = (0..self.output.len()).filter_map(|position| self.output(position));
        input.chain(output)
    }

    /// Returns an item of the output as an item of an input, or `None` if it means nothing there.
    pub fn output(&self, position: usize) -> Option<Cow<'_, str>> {
        let item = self.output.get(position).filter(|item| !item.is_opaque)?;
        let text = &self.response[item.place.clone()];
        if !item.is_reasoning {
            return Some(Cow::Borrowed(text));
        }
        // Required in requests, but some servers leave it out.
        let mut splice = Splice::new(text.as_bytes());
        splice.add_missing(&[], &[(SUMMARY, "[]")]);
        String::from_utf8(splice.to_vec()).ok().map(Cow::Owned)
    }
}

impl InputItem {
    fn new(text: Box<str>) -> Self {
        let view: ItemView<'_> = serde_json::from_str(&text).unwrap_or_default();
        let id = view.id.get().map(Into::into);
        Self { id, text }
    }

    fn size(&self) -> usize {
        self.text.len() + self.id.as_ref().map_or(0, |id| id.len()) + ITEM
    }
}

impl Item {
    fn new(text: &str, from: usize, is_relayed: bool) -> Self {
        let view: ItemView<'_> = serde_json::from_str(text).unwrap_or_default();
        let is_reasoning = view.kind.get() == Some("reasoning");
        let is_sealed = !view.encrypted_content.or_empty().is_empty();
        let has_text = view
            .content
            .is_some_and(|content| !matches!(content.get(), "null" | "[]"));
        let is_opaque = is_reasoning && is_relayed && !is_sealed && !has_text;
        let tokens = match is_opaque {
            true => 0,
            false => prompt_tokens(text.as_bytes()),
        };
        Self {
            id: view.id.get().filter(|id| !id.is_empty()).map(Into::into),
            place: from..from + text.len(),
            tokens,
            is_reasoning,
            is_opaque,
        }
    }
}

/// A member of reasoning that is required in requests, and that some servers leave out.
const SUMMARY: &str = "summary";
/// The member as it is added.
const MISSING: &str = r#""summary":[],"#;
/// The memory of an answer besides its texts, in bytes.
const ANSWER: usize = 512;
/// The memory of an item besides its text.
const ITEM: usize = 64;
/// The memory of the index of an item besides its id.
const INDEX: usize = 64;
