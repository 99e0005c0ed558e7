//! The ways from a client to the model server, and the parts that all of them share.

use serde_json::{Value, json};
use simulator::Protocol;
use testkit::{Gateway, MESSAGES, Response, TEXT, changed};

use crate::GATEWAY;

/// The gateway in front of the model server.
pub(crate) fn gateway() -> Gateway {
    let url = std::env::var("SLUICEGATE_INTEROP_URL")
        .expect("cargo xtask interop starts the model server");
    GATEWAY.configured(&CONFIG.replace("{url}", &url))
}

/// A way from a client to the model server, which supports Chat Completions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Road {
    /// From Responses, translated.
    Responses,
    /// From Messages, translated.
    Messages,
    /// From Chat Completions, relayed byte for byte and checked against the stream grammar.
    Relay,
}

impl Road {
    pub(crate) const ALL: [Self; 3] = [Self::Responses, Self::Messages, Self::Relay];

    /// A request for the reply to some turns, with more members.
    pub(crate) fn request(self, turns: &Value, more: &Value) -> Value {
        let body = match self {
            Self::Responses => json!({"model": AS_IT_IS, "input": turns, "max_output_tokens": CAP}),
            Self::Messages => json!({"model": OF_MESSAGES, "messages": turns, "max_tokens": CAP}),
            Self::Relay => json!({"model": AS_IT_IS, "messages": turns, "max_tokens": CAP}),
        };
        changed(changed(body, &json!({"temperature": 0})), more)
    }

    pub(crate) fn post(self, gateway: &Gateway, body: &Value) -> Response {
        gateway.post(self.key(), self.path(), body)
    }

    pub(crate) const fn key(self) -> &'static str {
        if matches!(self, Self::Messages) {
            MESSAGES
        } else {
            TEXT
        }
    }

    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Responses => "/v1/responses",
            Self::Messages => "/v1/messages",
            Self::Relay => "/v1/chat/completions",
        }
    }

    /// Sends the request plain and streamed, and returns both replies.
    #[track_caller]
    pub(crate) fn both(self, gateway: &Gateway, turns: &Value, more: &Value) -> [Answer; 2] {
        let plain = self.post(gateway, &self.request(turns, more));
        assert_eq!(
            (plain.status, plain.header("content-type")),
            (200, Some("application/json")),
            "{}",
            plain.text()
        );
        let streamed = self.stream(gateway, turns, more);
        [
            self.read(&plain.json()),
            self.read(&self.fold(&streamed).reply()),
        ]
    }

    pub(crate) fn stream(self, gateway: &Gateway, turns: &Value, more: &Value) -> Response {
        let mut body = changed(self.request(turns, more), &json!({"stream": true}));
        if self == Self::Relay {
            body["stream_options"] = json!({"include_usage": true});
        }
        self.post(gateway, &body)
    }

    /// Folds a stream by the grammar of the client's protocol.
    #[track_caller]
    pub(crate) fn fold(self, response: &Response) -> grammar::End<Value> {
        let protocol = match self {
            Self::Responses => Protocol::Responses,
            Self::Messages => Protocol::Messages,
            Self::Relay => Protocol::Chat,
        };
        grammar::stream(protocol, response)
    }

    fn read(self, reply: &Value) -> Answer {
        match self {
            Self::Responses => Answer::of_responses(reply),
            Self::Messages => Answer::of_messages(reply),
            Self::Relay => Answer::of_chat(reply),
        }
    }
}

/// The content of a reply, in a form that is common to all protocols.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) text: String,
    /// Names and arguments.
    pub(crate) calls: Vec<(String, Value)>,
    /// The stop reason, in the spelling of its protocol.
    pub(crate) stop: Value,
    /// Input and output tokens.
    pub(crate) usage: (u64, u64),
}

impl Answer {
    fn of_responses(reply: &Value) -> Self {
        assert_eq!(
            (&reply["object"], &reply["model"]),
            (&json!("response"), &json!(AS_IT_IS)),
            "{reply}"
        );
        let items = of_type(&reply["output"], "message");
        let calls = of_type(&reply["output"], "function_call");
        let usage = (
            &reply["usage"]["input_tokens"],
            &reply["usage"]["output_tokens"],
        );
        let reason = &reply["incomplete_details"]["reason"];
        Self {
            text: items
                .iter()
                .map(|item| item["content"][0]["text"].as_str().unwrap())
                .collect(),
            calls: calls
                .iter()
                .map(|call| call_of(&call["name"], &call["arguments"]))
                .collect(),
            stop: if reason.is_null() {
                &reply["status"]
            } else {
                reason
            }
            .clone(),
            usage: (count(usage.0), count(usage.1)),
        }
    }

    fn of_messages(reply: &Value) -> Self {
        assert_eq!(
            (&reply["type"], &reply["model"]),
            (&json!("message"), &json!(OF_MESSAGES)),
            "{reply}"
        );
        let calls = of_type(&reply["content"], "tool_use");
        let texts = of_type(&reply["content"], "text");
        Self {
            text: texts
                .iter()
                .map(|block| block["text"].as_str().unwrap())
                .collect(),
            calls: calls
                .iter()
                .map(|call| (name(&call["name"]), call["input"].clone()))
                .collect(),
            stop: reply["stop_reason"].clone(),
            usage: (
                count(&reply["usage"]["input_tokens"]),
                count(&reply["usage"]["output_tokens"]),
            ),
        }
    }

    fn of_chat(reply: &Value) -> Self {
        let choice = &reply["choices"][0];
        assert_eq!(reply["model"], AS_IT_IS, "the client's own name: {reply}");
        let calls = choice["message"]["tool_calls"]
            .as_array()
            .into_iter()
            .flatten();
        Self {
            text: choice["message"]["content"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            calls: calls
                .map(|call| call_of(&call["function"]["name"], &call["function"]["arguments"]))
                .collect(),
            stop: choice["finish_reason"].clone(),
            usage: (
                count(&reply["usage"]["prompt_tokens"]),
                count(&reply["usage"]["completion_tokens"]),
            ),
        }
    }
}

pub(crate) fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn of_type<'a>(list: &'a Value, kind: &str) -> Vec<&'a Value> {
    list.as_array()
        .expect("a list")
        .iter()
        .filter(|entry| entry["type"] == kind)
        .collect()
}

fn call_of(called: &Value, arguments: &Value) -> (String, Value) {
    (
        name(called),
        serde_json::from_str(arguments.as_str().expect("text")).expect("arguments are JSON"),
    )
}

fn name(value: &Value) -> String {
    value.as_str().expect("a name").to_owned()
}

/// Returns zero where the count is absent.
fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// The model.
const AS_IT_IS: &str = "as-it-is";
/// The same for clients of Messages.
const OF_MESSAGES: &str = "of-messages";

/// The model server.
const CONFIG: &str = r#"
[[upstreams]]
name = "as-it-is"
protocol = "chat"
base_url = "{url}/v1"
api_key = { env = "SLUICEGATE_INTEROP_KEY" }

[[models]]
id = "as-it-is"
family = "text"
protocols = ["responses", "chat"]
targets = [{ upstream = "as-it-is", model = "smollm2" }]

[[models]]
id = "of-messages"
family = "messages"
protocols = ["messages"]
targets = [{ upstream = "as-it-is", model = "smollm2" }]
"#;

/// Enough for a sentence.
const CAP: u32 = 32;
