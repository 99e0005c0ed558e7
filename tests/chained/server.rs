//! A gateway in front of another, with the interface of a single server.

#[path = "../testkit/gateway.rs"]
#[allow(dead_code, reason = "the helpers of more tests than these")]
mod single;

use std::net::SocketAddr;
use std::sync::OnceLock;

use serde_json::Value;

use self::single::Server as Single;
pub(crate) use self::single::{IMAGES, MESSAGES, TEXT};
use crate::client::{Request, Response};

/// Two gateways in a row. The models of the outer one are all served by the inner one, each over one protocol; the
/// model that clients use with two protocols has two outer gateways, so that each of them is relayed.
pub(crate) struct Server {
    outer: Single,
    outer_of_chat: Single,
    /// The gateway with the embedded engines.
    inner: Single,
}

impl Server {
    /// The server that tests share. It ends with the tests' process.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Server> = OnceLock::new();
        SHARED.get_or_init(|| Self::configured(""))
    }

    /// Starts a separate server whose outer gateways have this configuration.
    pub(crate) fn configured(config: &str) -> Self {
        Self::before(Single::configured("[local]\nthreads = 2\n"), config)
    }

    /// Starts a separate server with only the embedded image engine: no weights are loaded.
    pub(crate) fn drawing(config: &str) -> Self {
        Self::before(Single::drawing(""), config)
    }

    fn before(inner: Single, config: &str) -> Self {
        let outer = |alt_flash: &str| Single::configured(&[config, &models(inner.address(), alt_flash)].concat());
        Self { outer: outer("responses"), outer_of_chat: outer("chat"), inner }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.outer.address()
    }

    pub(crate) fn post(&self, key: &str, path: &str, body: &Value) -> Response {
        Request::post(path, body).bearer(key).send(self.outer(path).address())
    }

    /// The outer gateway that relays requests to this path.
    pub(crate) fn outer(&self, path: &str) -> &Single {
        if path == "/v1/chat/completions" { &self.outer_of_chat } else { &self.outer }
    }

    /// Waits until no permit is in use in any of the gateways.
    #[track_caller]
    pub(crate) fn await_quiet(&self) {
        [&self.outer, &self.outer_of_chat, &self.inner].into_iter().for_each(Single::await_quiet);
    }
}

/// The built-in models, served by the gateway at `inner`.
fn models(inner: SocketAddr, alt_flash: &str) -> String {
    let mut config = String::new();
    for (protocol, key) in [
        ("responses", "SLUICEGATE_TEXT_KEY"),
        ("chat", "SLUICEGATE_TEXT_KEY"),
        ("messages", "SLUICEGATE_MESSAGES_KEY"),
        ("images", "SLUICEGATE_IMAGE_KEY"),
    ] {
        config += &format!(
            "[[upstreams]]\nname = \"{protocol}\"\nprotocol = \"{protocol}\"\nbase_url = \"http://{inner}/v1\"\n\
             api_key = {{ env = \"{key}\" }}\n"
        );
    }
    for (id, family, protocols, upstream) in [
        ("model-5.5", "text", r#"["responses"]"#, "responses"),
        ("alt-flash", "text", r#"["responses", "chat"]"#, alt_flash),
        ("msg-sonnet-5", "messages", r#"["messages"]"#, "messages"),
        ("model-image-2.5-sunburst", "images", r#"["images_generations", "images_edits"]"#, "images"),
        ("model-image-2.5-flare", "images", r#"["images_generations", "images_edits"]"#, "images"),
    ] {
        config += &format!(
            "[[models]]\nid = \"{id}\"\nfamily = \"{family}\"\nprotocols = {protocols}\n\
             string_input = {}\ntargets = [{{ upstream = \"{upstream}\" }}]\n",
            id == "alt-flash",
        );
    }
    config
}
