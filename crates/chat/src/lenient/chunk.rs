//! A chunk of a stream or a plain reply, as views into its JSON.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use wire::lenient::{
    Arguments, Count, Counts, List, Members, OpenAi, OtherContent, ReadError, Reported, Text,
    Update, push, reports_error,
};

use super::Finish;
use super::usage::{Groq, LlamaCpp};

/// A chunk, or a plain reply.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    pub(super) usage: Reported<OpenAi>,
    #[serde(borrow)]
    service_tier: Text<'a>,
    x_groq: Reported<Groq>,
    timings: Reported<LlamaCpp>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    object: Text<'a>,
}

impl Chunk<'_> {
    /// Returns true if it reports an error, whatever else it has.
    pub(super) fn is_error(&self) -> bool {
        reports_error(self.error)
            || self.kind.get() == Some("error")
            || self.object.get() == Some("error")
    }

    /// The error of a choice, as a chunk that reports it, in the form of OpenRouter:
    /// <https://openrouter.ai/docs/api-reference/overview>.
    pub(super) fn error_of_choice(&self) -> Option<String> {
        let mut errors = self.choices.iter().flatten().map(|choice| choice.error);
        let error = errors.find(|error| reports_error(*error)).flatten()?;
        Some(format!("{{\"error\":{}}}", error.get()))
    }

    /// Returns true if it has choices, but its `object` is absent or names something else. An empty
    /// `object` marks chunks that clients skip, such as the filter results of Azure.
    pub(super) fn lacks_object(&self) -> bool {
        self.choices.is_some() && !matches!(self.object.get(), Some("chat.completion.chunk" | ""))
    }

    /// The position of the only choice in the answer, if the chunk does no more than continue its
    /// texts.
    pub(super) fn continued(&self) -> Option<u64> {
        let [choice] = self.choices.as_deref()? else {
            return None;
        };
        let is_alone = self.usage.0.is_none() && choice.usage.0.is_none();
        let delta = choice.delta.as_ref().filter(|_| is_alone)?;
        let goes_on = choice.finish_reason.or_empty().is_empty() && delta.is_text();
        goes_on.then_some(choice.index.0.unwrap_or_default())
    }

    /// Adds its token counts, apart from the counts of its choices.
    pub(super) fn note_counts(&self, counts: &mut Counts) {
        let reported = [self.usage.0, self.x_groq.0, self.timings.0];
        for reported in reported.iter().flatten() {
            counts.merge(reported);
        }
        if let Some(name) = self.service_tier.get() {
            counts.note_service_tier(name.as_bytes());
        }
    }

    /// Returns true if it is a plain reply, by its own account.
    pub(super) fn is_whole(&self) -> bool {
        self.object.get() == Some("chat.completion")
    }
}

/// A choice.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice<'a> {
    pub(super) index: Count,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    /// In a plain reply; some servers send it in chunks too, where a delta counts. It is in a box
    /// because the choices of chunks, which are moved for each event, seldom have one.
    #[serde(borrow)]
    pub(super) message: Option<Box<Delta<'a>>>,
    #[serde(borrow)]
    pub(super) finish_reason: Text<'a>,
    #[serde(borrow)]
    logprobs: Members<Logprobs<'a>>,
    pub(super) usage: Reported<OpenAi>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    /// The stop sequence that matched, as vLLM names it. Other values are ids of tokens.
    #[serde(borrow)]
    stop_reason: Text<'a>,
    /// The same, as SGLang names it.
    #[serde(borrow)]
    matched_stop: Text<'a>,
}

/// Log probabilities of the tokens of a choice.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Logprobs<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

impl<'a> Choice<'a> {
    /// The log probabilities of the tokens of its text, as a JSON array.
    pub(super) fn logprobs(&self) -> Option<Update<'a>> {
        let tokens = self.logprobs.0.as_ref()?.content?.get();
        (tokens.starts_with('[') && tokens != "[]").then_some(Update::Logprobs(tokens))
    }

    /// The stop sequence at which the server ended the text. Some servers have the finish reason of
    /// another protocol in the same member.
    pub(super) fn stop_sequence(&self) -> Option<&str> {
        let stop = self.stop_reason.get().or(self.matched_stop.get())?;
        (!stop.is_empty() && !Finish::is_name(stop)).then_some(stop)
    }

    /// Returns true if it has neither a delta nor a message.
    pub(super) fn is_bare(&self) -> bool {
        self.delta.is_none() && self.message.is_none()
    }
}

/// A delta, or the message of a plain reply.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning: Text<'a>,
    #[serde(borrow)]
    thinking: Text<'a>,
    /// GitHub Copilot (<https://github.com/anomalyco/opencode/pull/8900>).
    #[serde(borrow)]
    reasoning_text: Text<'a>,
    #[serde(borrow)]
    reasoning_details: Option<&'a RawValue>,
    /// LiteLLM in front of Claude (<https://docs.litellm.ai/docs/reasoning_content>).
    #[serde(borrow)]
    thinking_blocks: Option<&'a RawValue>,
    /// The seal of `reasoning_text`.
    #[serde(borrow)]
    reasoning_opaque: Option<&'a RawValue>,
    /// The seal of `reasoning_content` (<https://github.com/agentgateway/agentgateway/pull/2018>).
    #[serde(borrow)]
    reasoning_signature: Option<&'a RawValue>,
    /// The thought signature of Gemini: <https://ai.google.dev/gemini-api/docs/thought-signatures>.
    #[serde(borrow)]
    extra_content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) refusal: Text<'a>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<Piece<'a>>>,
    /// The predecessor of `tool_calls`.
    #[serde(borrow)]
    pub(super) function_call: Members<Function<'a>>,
    #[serde(borrow)]
    audio: Option<&'a RawValue>,
    #[serde(borrow)]
    images: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
}

impl<'a> Delta<'a> {
    /// Notes sources, sound, and pictures as <https://openrouter.ai/docs/features/multimodal/image-generation>.
    pub(super) fn note_other_content(&self, kinds: &mut Vec<OtherContent>) {
        let members = [
            (self.annotations, OtherContent::Annotations),
            (self.audio, OtherContent::Audio),
            (self.images, OtherContent::Images),
        ];
        for (value, kind) in members {
            let is_empty = value.is_none_or(|value| matches!(value.get(), "null" | "[]"));
            kind.note(!is_empty, kinds);
        }
    }

    /// Returns true if it has a text for content, or none, and no calls.
    fn is_text(&self) -> bool {
        let content = self.content.map_or("null", RawValue::get);
        let has_calls = self.tool_calls.iter().flatten().next().is_some();
        let is_text = content.starts_with('"') || content == "null";
        is_text && !has_calls && self.function_call.0.is_none()
    }

    /// The reasoning beside the content. Servers that have several names for it send
    /// the same in each.
    pub(super) fn take_reasoning(&mut self) -> Option<Cow<'a, str>> {
        let mut content = self.reasoning_content.map(thoughts).unwrap_or_default();
        let texts = [
            &mut content,
            &mut self.reasoning,
            &mut self.thinking,
            &mut self.reasoning_text,
        ];
        let texts = texts
            .into_iter()
            .find_map(|text| text.0.take().filter(|text| !text.is_empty()));
        texts.or_else(|| {
            let details = self.reasoning_details.or(self.thinking_blocks)?.get();
            let details: List<Part<'_>> = serde_json::from_str(details).unwrap_or_default();
            let details: String = details.0.iter().map(Part::detail).collect();
            (!details.is_empty()).then_some(Cow::Owned(details))
        })
    }

    /// Returns the opaque data beside the content.
    pub(super) fn opaque(&self) -> Vec<Update<'a>> {
        let mut opaque = Vec::new();
        if let Some(details) = self.reasoning_details {
            let details: Vec<&RawValue> = serde_json::from_str(details.get()).unwrap_or_default();
            opaque.extend(details.into_iter().filter_map(object).map(Update::Detail));
        }
        opaque.extend(self.extra_content.and_then(object).map(Update::Extra));
        let members = [
            ("thinking_blocks", self.thinking_blocks),
            ("reasoning_opaque", self.reasoning_opaque),
            ("reasoning_signature", self.reasoning_signature),
        ];
        for (name, value) in members {
            let value = value.map(RawValue::get);
            let value = value.filter(|value| !matches!(*value, "null" | "[]" | "\"\""));
            opaque.extend(value.map(|value| Update::Member { name, value }));
        }
        opaque
    }

    /// Appends the content, which is a text or a list of parts. Returns true for a list of nothing
    /// but texts and thoughts without a signature.
    ///
    /// # Errors
    /// If it is anything else.
    pub(super) fn content(
        &self,
        others: &mut Vec<OtherContent>,
        out: &mut Vec<Update<'a>>,
    ) -> Result<bool, ReadError> {
        let content = self.content.map_or("null", RawValue::get);
        match content.as_bytes().first() {
            Some(b'[') => return list(content, others, out),
            Some(b'"') => push(json::<Text<'a>>(content)?.0, Update::Text, out),
            Some(b'n') => {}
            _ => {
                return Err(ReadError::Malformed(
                    "the content is neither a text nor a list".to_owned(),
                ));
            }
        }
        Ok(false)
    }
}

/// Returns the text of `reasoning_content`, which may be in an object, as Envoy AI Gateway passes it
/// on from Bedrock (<https://github.com/envoyproxy/ai-gateway/issues/2519>): `text` in a stream, and
/// `reasoningContent.reasoningText.text` in a plain reply.
fn thoughts(value: &RawValue) -> Text<'_> {
    let mut value = value;
    for _ in 0..BEDROCK_LEVELS {
        if !value.get().starts_with('{') {
            break;
        }
        let object: BedrockThoughts<'_> = serde_json::from_str(value.get()).unwrap_or_default();
        let Some(inner) = object.text.or(object.content) else {
            return Text::default();
        };
        value = inner;
    }
    serde_json::from_str(value.get()).unwrap_or_default()
}

/// An object with the thoughts of Bedrock, or with another such object:
/// <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ReasoningContentBlock.html>.
#[derive(Default, Deserialize)]
#[serde(default)]
struct BedrockThoughts<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow, rename = "reasoningText", alias = "reasoningContent")]
    content: Option<&'a RawValue>,
}

/// The objects around the thoughts of Bedrock.
const BEDROCK_LEVELS: u8 = 3;

/// Returns the JSON text of an object that is not empty.
fn object(value: &RawValue) -> Option<&str> {
    let text = value.get();
    (text.starts_with('{') && text != "{}").then_some(text)
}

/// Appends the parts of a list. A part may also be a bare text.
fn list<'a>(
    content: &'a str,
    others: &mut Vec<OtherContent>,
    out: &mut Vec<Update<'a>>,
) -> Result<bool, ReadError> {
    let mut is_text = true;
    for part in json::<Vec<&'a RawValue>>(content)? {
        let part = match part.get().as_bytes().first() {
            Some(b'{') => json(part.get())?,
            Some(b'n') => continue,
            _ => Part {
                text: json(part.get())?,
                kind: Text(Some("text".into())),
                ..Part::default()
            },
        };
        is_text &= part.is_text();
        part.content(others, out);
    }
    Ok(is_text)
}

/// Parses a chunk, or a part of one.
pub(super) fn json<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, ReadError> {
    serde_json::from_str(data).map_err(|error| ReadError::json(&error))
}

/// A part of the content, or of the details of the reasoning.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    refusal: Text<'a>,
    /// A text, or a list of parts with texts.
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
    /// The same by another name.
    #[serde(borrow)]
    summary: Option<&'a RawValue>,
    /// The seal of thoughts.
    #[serde(borrow)]
    signature: Text<'a>,
}

impl<'a> Part<'a> {
    fn content(self, others: &mut Vec<OtherContent>, out: &mut Vec<Update<'a>>) {
        let other = match self.kind.or_empty() {
            kind if kind.contains("image") => OtherContent::Images,
            kind if kind.contains("audio") => OtherContent::Audio,
            _ => OtherContent::HostedTools,
        };
        let is_known = self.has_text() || self.refusal.0.is_some();
        other.note(!is_known, others);
        let (parts, text) = self.thoughts();
        for text in parts.into_iter().map(|part| part.text).chain([text]) {
            push(text.0, Update::Reasoning, out);
        }
        push(self.text.0, Update::Text, out);
        push(self.refusal.0, Update::Refusal, out);
    }

    /// The text of a detail of the reasoning, or its summary:
    /// <https://openrouter.ai/docs/use-cases/reasoning-tokens>.
    fn detail(&self) -> Cow<'a, str> {
        let text = self.text.0.clone().filter(|text| !text.is_empty());
        text.or_else(|| self.thoughts().1.0).unwrap_or_default()
    }

    fn has_text(&self) -> bool {
        let (parts, text) = self.thoughts();
        self.text.0.is_some() || text.0.is_some() || !parts.is_empty()
    }

    fn thoughts(&self) -> (Vec<Part<'a>>, Text<'a>) {
        let thinking = self.thinking.or(self.summary).map_or("", RawValue::get);
        let parts: List<Part<'a>> = serde_json::from_str(thinking).unwrap_or_default();
        (parts.0, serde_json::from_str(thinking).unwrap_or_default())
    }

    /// Returns true if it is a text, or thoughts without a signature.
    fn is_text(&self) -> bool {
        let (parts, _) = self.thoughts();
        let is_sealed = |part: &Part<'_>| !part.signature.or_empty().is_empty();
        self.has_text()
            && self.refusal.0.is_none()
            && !is_sealed(self)
            && !parts.iter().any(is_sealed)
    }
}

/// A piece of a call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Piece<'a> {
    pub(super) index: Count,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) function: Members<Function<'a>>,
    /// Opaque data of the call, such as a thought signature.
    #[serde(borrow)]
    pub(super) extra_content: Option<&'a RawValue>,
    /// The same at LiteLLM (<https://docs.litellm.ai/blog/gemini_3>), with other data.
    #[serde(borrow)]
    pub(super) provider_specific_fields: Option<&'a RawValue>,
}

impl<'a> Piece<'a> {
    /// The opaque data of the call that the server wants back, and the name of its member.
    pub(super) fn opaque(&self) -> Option<(&'static str, &'a str)> {
        let fields = self.provider_specific_fields.and_then(object);
        let fields = fields.filter(|fields| fields.contains("thought_signature"));
        let extra = self.extra_content.and_then(object);
        let extra = extra.map(|extra| ("extra_content", extra));
        extra.or(fields.map(|fields| ("provider_specific_fields", fields)))
    }
}

/// The name and a piece of the arguments of a call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) arguments: Arguments<'a>,
}
