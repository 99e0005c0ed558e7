//! Every endpoint with a request body, in front of each upstream protocol.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use simulator::Protocol;
use testkit::requests::{self, RED, TEXT_PROTOCOLS, ask, protocol_name};
use testkit::{CLIENT_KEY, Form, Request, Response};

/// An endpoint, and the format of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// A text response in this protocol.
    Text(Protocol),
    /// A token count.
    Count,
    /// An image generation.
    Generation,
    /// An edit as JSON.
    Edit,
    /// An edit as a form.
    Form,
}

/// A way of a request through a gateway of [`Binary::before`](testkit::Binary::before): endpoint
/// and upstream protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Road {
    pub(crate) asks: Asks,
    upstream: Protocol,
}

/// Each text protocol in front of each upstream, relayed and translated, and the other endpoints.
pub(crate) fn roads() -> Vec<Road> {
    let of = |client| {
        TEXT_PROTOCOLS.map(|upstream| Road {
            asks: Asks::Text(client),
            upstream,
        })
    };
    let count = Road {
        asks: Asks::Count,
        upstream: Protocol::Messages,
    };
    let pictures = [Asks::Generation, Asks::Edit, Asks::Form].map(|asks| Road {
        asks,
        upstream: Protocol::Images,
    });
    TEXT_PROTOCOLS
        .into_iter()
        .flat_map(of)
        .chain([count])
        .chain(pictures)
        .collect()
}

impl Road {
    /// The path of the endpoint.
    pub(crate) fn path(self) -> &'static str {
        match self.asks {
            Asks::Text(client) => requests::path(client),
            Asks::Count => "/v1/messages/count_tokens",
            Asks::Generation => "/v1/images/generations",
            Asks::Edit | Asks::Form => "/v1/images/edits",
        }
    }

    /// The media type of the request.
    pub(crate) fn kind(self) -> &'static str {
        if self.asks == Asks::Form {
            Form::KIND
        } else {
            "application/json"
        }
    }

    /// A short request with the key of the tests.
    pub(crate) fn request(self, stream: bool) -> Request {
        self.by(CLIENT_KEY, stream)
    }

    /// The same with another key.
    pub(crate) fn by(self, key: &str, stream: bool) -> Request {
        self.post("", &self.body(stream)).bearer(key)
    }

    /// A plain request with this query.
    pub(crate) fn to(self, query: &str) -> Request {
        self.post(query, &self.body(false)).bearer(CLIENT_KEY)
    }

    /// A plain request with this body.
    pub(crate) fn with(self, body: &[u8]) -> Request {
        self.post("", body).bearer(CLIENT_KEY)
    }

    /// A valid body of a plain request with exactly this length.
    pub(crate) fn body_of(self, length: usize) -> Vec<u8> {
        let mut body = self.body(false);
        match self.asks {
            Asks::Form => {
                let more = length - Self::form(false).text("unknown", "").bytes().len();
                body = Self::form(false).text("unknown", &"x".repeat(more)).bytes();
            }
            _ => body.resize(length, b' '),
        }
        assert_eq!(body.len(), length);
        body
    }

    /// The status of a refusal and its code, or in Messages its type.
    #[track_caller]
    pub(crate) fn refusal(self, response: &Response) -> (u16, String) {
        let body = response.json();
        assert_eq!(
            body["type"] == "error",
            self.is_of_messages(),
            "{self:?}: {body}"
        );
        let code = &body["error"][if self.is_of_messages() {
            "type"
        } else {
            "code"
        }];
        (
            response.status,
            code.as_str()
                .unwrap_or_else(|| panic!("no code: {body}"))
                .to_owned(),
        )
    }

    /// The expected code or type: `messages` where the endpoint is one of Messages, else `openai`.
    pub(crate) fn code(self, openai: &str, messages: &str) -> String {
        if self.is_of_messages() {
            messages
        } else {
            openai
        }
        .to_owned()
    }

    fn is_of_messages(self) -> bool {
        matches!(self.asks, Asks::Text(Protocol::Messages) | Asks::Count)
    }

    fn post(self, query: &str, body: &[u8]) -> Request {
        Request::post_bytes(&format!("{}{query}", self.path()), body)
            .header("content-type", self.kind())
    }

    fn body(self, stream: bool) -> Vec<u8> {
        let model = protocol_name(self.upstream);
        let body: Value = match self.asks {
            Asks::Text(client) => ask(client, model, "Hello.", stream),
            Asks::Count => {
                json!({"model": model, "messages": [{"role": "user", "content": "Hello."}]})
            }
            Asks::Generation => ask(Protocol::Images, model, "A boat.", stream),
            Asks::Edit => {
                let images = json!([{"image_url": format!("data:image/png;base64,{RED}")}]);
                json!({"model": model, "prompt": "A sail.", "stream": stream, "images": images})
            }
            Asks::Form => return Self::form(stream).bytes(),
        };
        body.to_string().into_bytes()
    }

    fn form(stream: bool) -> Form {
        let form = Form::default()
            .text("model", "images")
            .text("prompt", "A sail.");
        form.text("stream", &stream.to_string())
            .file("image", &STANDARD.decode(RED).unwrap())
    }
}
