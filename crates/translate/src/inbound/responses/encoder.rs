//! Encodes calls in the form in which the client offered the tool.

use responses::{Encoder, Event, Request};
use serde_json::{Value, json};
use wire::ApiError;

use super::freeform::InputReader;
use super::tools::{ClientTool, ClientTools, Kind};

/// An encoder of Responses that knows the tools of the client.
#[derive(Debug)]
pub struct ToolEncoder {
    pub(super) inner: Encoder,
    tools: ClientTools,
    open: Option<OpenCall>,
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

    /// Starts a call of the function with this name.
    pub(super) fn call(&mut self, id: &str, function: &str, out: &mut Vec<Event>) {
        self.end_call(out);
        match self.tools.find(function) {
            None => self.inner.call(id, function, out),
            Some(ClientTool {
                kind,
                namespace,
                name,
            }) => match kind {
                Kind::Function => self.inner.call_in(id, name, namespace.as_deref(), out),
                Kind::Freeform => {
                    self.inner.custom_call(id, name, namespace.as_deref(), out);
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
