//! Encodes calls in the form in which the client offered the tool.

use engine::TextEvent;
use responses::{Encoder, Event, Request};
use serde_json::{Value, json};
use vendor::envelope::is_envelope;
use wire::{ApiError, Object};

use super::super::freeform::InputReader;
use super::tools::{ClientTool, ClientTools, Kind};

/// An encoder of Responses that knows the tools of the client.
#[derive(Debug)]
pub struct ToolEncoder {
    pub(super) inner: Encoder,
    tools: ClientTools,
    open: Option<OpenCall>,
    /// The envelopes for the next call, for a client that has not requested encrypted reasoning.
    seals: Option<Vec<Value>>,
}

/// A call whose arguments are not passed on as they are.
#[derive(Debug)]
enum OpenCall {
    Freeform(InputReader),
    Search { id: String, arguments: String },
}

impl ToolEncoder {
    pub(super) fn new(inner: Encoder, request: &Request) -> Self {
        Self {
            inner,
            tools: ClientTools::of(request),
            open: None,
            seals: (!request.includes(Request::ENCRYPTED_REASONING)).then(Vec::new),
        }
    }

    /// Opens the stream.
    pub(crate) fn open(&mut self, out: &mut Vec<Event>) {
        self.inner.open(out);
    }

    /// Ends the stream with a failure. An open call is abandoned.
    pub(crate) fn fail(&mut self, error: &ApiError, out: &mut Vec<Event>) {
        self.open = None;
        self.inner.fail(error, out);
    }

    /// Keeps the envelope of an event for the next call: a server may refuse its own call without it
    /// (<https://ai.google.dev/gemini-api/docs/thought-signatures>).
    pub(super) fn keep_seal(&mut self, event: &TextEvent) {
        if let (
            TextEvent::ReasoningSignature(seal) | TextEvent::RedactedReasoning(seal),
            Some(seals),
        ) = (event, &mut self.seals)
            && is_envelope(seal)
        {
            seals.push(seal.as_str().into());
        }
    }

    /// Returns the members that a call has beside the ones of every call.
    fn extra(&mut self, namespace: Option<String>) -> Object {
        let seals = self.seals.as_mut().map(std::mem::take);
        let seals = seals.filter(|seals| !seals.is_empty());
        let namespace = namespace.map(|name| ("namespace".to_owned(), name.into()));
        let seals = seals.map(|seals| (SEALS.to_owned(), json!({ OURS: seals })));
        namespace.into_iter().chain(seals).collect()
    }

    /// Starts a call of the function with this name.
    pub(super) fn call(&mut self, id: &str, function: &str, out: &mut Vec<Event>) {
        self.end_call(out);
        match self.tools.find(function).cloned() {
            None => {
                let extra = self.extra(None);
                self.inner.call_with(id, function, extra, out);
            }
            Some(ClientTool {
                kind,
                namespace,
                name,
            }) => match kind {
                Kind::Function => {
                    let extra = self.extra(namespace);
                    self.inner.call_with(id, &name, extra, out);
                }
                Kind::Freeform => {
                    let extra = self.extra(namespace);
                    self.inner.custom_call(id, &name, extra, out);
                    self.open = Some(OpenCall::Freeform(InputReader::default()));
                }
                Kind::Search => {
                    let (id, arguments) = (id.to_owned(), String::new());
                    self.open = Some(OpenCall::Search { id, arguments });
                }
            },
        }
    }

    /// Adds to the arguments of the last call.
    pub(super) fn arguments(&mut self, text: &str, out: &mut Vec<Event>) {
        match &mut self.open {
            None => self.inner.arguments(text, out),
            Some(OpenCall::Freeform(input)) => {
                let text = input.push(text);
                self.inner.custom_input(&text, out);
            }
            Some(OpenCall::Search { arguments, .. }) => arguments.push_str(text),
        }
    }

    /// Completes a call whose arguments are not passed on as they are.
    pub(super) fn end_call(&mut self, out: &mut Vec<Event>) {
        match self.open.take() {
            None => {}
            Some(OpenCall::Freeform(input)) => self.inner.custom_input(&input.finish(), out),
            Some(OpenCall::Search { id, arguments }) => {
                let arguments: Value =
                    serde_json::from_str(&arguments).unwrap_or_else(|_| json!({}));
                let item = json!({
                    "type": "tool_search_call",
                    "call_id": id,
                    "status": "completed",
                    "execution": "client",
                    "arguments": arguments,
                });
                self.inner.item("tsc", item, out);
            }
        }
    }
}

/// The member of a call that has the envelopes, by the name of the gateway.
pub(super) const SEALS: &str = "extra_content";
pub(super) const OURS: &str = "sluicegate";
