//! The requests of the benches, with the gateway's model names and paths or with the upstream's.

use std::borrow::Cow;
use std::net::SocketAddr;

use bytes::Bytes;

use crate::conversation;

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// A small chat completion, not streamed.
    Small,
    /// A small response of Responses, not streamed.
    SmallResponses,
    /// A small response of Messages, not streamed.
    SmallMessages,
    /// A stream of chat events.
    Chat,
    /// A stream of Responses events.
    Responses,
    /// A stream of Responses events, from an upstream with the Chat protocol. Without a gateway:
    /// [`Question::Chat`].
    Translated,
    /// A stream of Messages events.
    Messages,
    /// A chat completion with a conversation of 300 KiB, not streamed.
    Conversation,
    /// The same conversation for Responses, from an upstream with the Chat protocol. Without a
    /// gateway: [`Question::Conversation`].
    TranslatedConversation,
    /// A stream that sends only its first event.
    Idle,
    /// A large picture.
    Picture,
    /// As [`Question::Small`], from an upstream that takes a fixed time.
    Service,
    /// An endless stream, at the rate at which it is read.
    Endless,
}

/// The names that a request uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// The upstream's, for it and the bare proxy.
    Upstream,
    /// The gateway's: it has another name for every model.
    Gateway,
}

impl Question {
    /// The request as it is sent to `host`.
    pub fn request(self, names: Names, host: SocketAddr) -> Bytes {
        let question = match (names, self) {
            (Names::Upstream, Self::Translated) => Self::Chat,
            (Names::Upstream, Self::TranslatedConversation) => Self::Conversation,
            _ => self,
        };
        let (path, model, rest) = question.parts();
        let prefix = if names == Names::Gateway { "our-" } else { "" };
        authorized(
            path,
            host,
            &format!(r#"{{"model":"{prefix}{model}",{rest}}}"#),
        )
    }

    /// Returns true if its response is a stream of events.
    pub fn is_stream(self) -> bool {
        !matches!(
            self,
            Self::Small
                | Self::SmallResponses
                | Self::SmallMessages
                | Self::Service
                | Self::Picture
                | Self::Conversation
                | Self::TranslatedConversation
        )
    }

    /// Path, model and the other members of the body.
    fn parts(self) -> (&'static str, &'static str, Cow<'static, str>) {
        let (path, model, rest) = match self {
            Self::Conversation => {
                return (
                    "/chat/completions",
                    CONVERSATION,
                    conversation::chat().into(),
                );
            }
            Self::TranslatedConversation => {
                return ("/responses", CONVERSATION, conversation::responses().into());
            }
            Self::Messages => (
                "/messages",
                MESSAGES,
                r#""max_tokens":1024,"messages":[{"role":"user","content":"count to 60"}],"stream":true"#,
            ),
            Self::Small => (
                "/chat/completions",
                SMALL,
                r#""messages":[{"role":"user","content":"Say hello."}]"#,
            ),
            Self::SmallResponses => (
                "/responses",
                SMALL_RESPONSES,
                r#""input":[{"role":"user","content":[{"type":"input_text","text":"Say hello."}]}]"#,
            ),
            Self::SmallMessages => (
                "/messages",
                SMALL_MESSAGES,
                r#""max_tokens":64,"messages":[{"role":"user","content":"Say hello."}]"#,
            ),
            Self::Chat => (
                "/chat/completions",
                CHAT,
                r#""messages":[{"role":"user","content":"count to 60"}],"stream":true"#,
            ),
            Self::Responses => (
                "/responses",
                RESPONSES,
                r#""input":[{"role":"user","content":[{"type":"input_text","text":"count to 60"}]}],"stream":true"#,
            ),
            Self::Translated => (
                "/responses",
                CHAT,
                r#""input":[{"role":"user","content":[{"type":"input_text","text":"count to 60"}]}],"stream":true"#,
            ),
            Self::Idle => (
                "/chat/completions",
                IDLE,
                r#""messages":[{"role":"user","content":"count to 60"}],"stream":true"#,
            ),
            Self::Service => (
                "/chat/completions",
                SERVICE,
                r#""messages":[{"role":"user","content":"Say hello."}]"#,
            ),
            Self::Endless => (
                "/chat/completions",
                ENDLESS,
                r#""messages":[{"role":"user","content":"count on"}],"stream":true"#,
            ),
            Self::Picture => (
                "/images/generations",
                PICTURE,
                r#""prompt":"A lighthouse at night.""#,
            ),
        };
        (path, model, rest.into())
    }
}

/// A request with a JSON body and the key of [`keyed`].
pub fn authorized(path: &str, host: SocketAddr, body: &str) -> Bytes {
    authorized_by(KEY, path, host, body)
}

/// A request with a JSON body and this key.
pub fn authorized_by(key: &str, path: &str, host: SocketAddr, body: &str) -> Bytes {
    let length = body.len();
    let head = format!(
        "POST /v1{path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\nuser-agent: sluicegate-benches\r\n\
         accept: */*\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    Bytes::from(head + body)
}

/// The start of a configuration: listeners, these limits, and a key that may do everything.
pub fn keyed(limits: &str) -> String {
    format!(
        "listen = [\"127.0.0.1:0\"]\nadmin = \"127.0.0.1:0\"\n\
         [limits]\n{limits}\
         [[keys]]\nname = \"bench\"\nhash = \"sha256:{KEY_HASH}\"\nscopes = [\"text\", \"messages\", \"images\"]\n"
    )
}

/// A gateway with the upstream at `address`, with all the features that a production deployment
/// enables, and these limits.
pub fn configuration(address: SocketAddr, limits: &str) -> String {
    let mut config = keyed(limits);
    for protocol in ["chat", "responses", "messages", "images"] {
        config += &format!(
            "[[upstreams]]\nname = \"{protocol}\"\nprotocol = \"{protocol}\"\nbase_url = \"http://{address}/v1\"\n"
        );
    }
    let text = r#""chat", "responses""#;
    let messages = r#""messages""#;
    let images = r#""images_generations""#;
    for (model, family, upstream, protocols) in [
        (SMALL, "text", "chat", text),
        (SMALL_RESPONSES, "text", "responses", text),
        (SMALL_MESSAGES, "text", "messages", messages),
        (CHAT, "text", "chat", text),
        (RESPONSES, "text", "responses", text),
        (MESSAGES, "text", "messages", messages),
        (CONVERSATION, "text", "chat", text),
        (IDLE, "text", "chat", text),
        (SERVICE, "text", "chat", text),
        (ENDLESS, "text", "chat", text),
        (PICTURE, "images", "images", images),
    ] {
        config += &format!(
            "[[models]]\nid = \"our-{model}\"\nfamily = \"{family}\"\nprotocols = [{protocols}]\n\
             targets = [{{ upstream = \"{upstream}\", model = \"{model}\" }}]\n"
        );
    }
    config
}

/// A quota that no bench uses up.
pub const AMPLE: &str = "[[quotas]]\nkey = \"*\"\nconcurrency = 100_000\n\
                     requests_per_minute = 1_000_000_000\ntokens_per_minute = 1_000_000_000\n";
/// The upstream's model that answers with a small reply. All are named after their behaviour.
pub const SMALL: &str = "small";
pub(crate) const SMALL_RESPONSES: &str = "small-responses";
pub(crate) const SMALL_MESSAGES: &str = "small-messages";
pub(crate) const CHAT: &str = "chat-stream";
pub(crate) const RESPONSES: &str = "responses-stream";
pub(crate) const MESSAGES: &str = "messages-stream";
pub(crate) const CONVERSATION: &str = "conversation";
pub(crate) const IDLE: &str = "idle-stream";
pub(crate) const PICTURE: &str = "picture";
pub(crate) const SERVICE: &str = "service";
pub(crate) const ENDLESS: &str = "endless";
/// A small model that the upstream serves under [`OTHER_PATH`] only, where it serves no other.
pub const OTHER: &str = "other";
/// The path under which the upstream serves [`OTHER`].
pub const OTHER_PATH: &str = "/other/v1";

/// The key whose hash the gateway has.
const KEY: &str = "sg_bench_key_00000000000000000000000";
const KEY_HASH: &str = "022aea616ced6070aa587983a82105ea3981078b4eb31d583a25b56221163fae";
