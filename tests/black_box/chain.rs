//! A gateway in front of another, with the interface of a single one.

use std::net::SocketAddr;
use std::sync::OnceLock;

use serde_json::Value;
use testkit::{Binary, Gateway, Request, Response};

/// Starts pairs of gateways.
pub(crate) struct Chain(pub(crate) Binary);

impl Chain {
    /// The pair that tests share. It ends with the tests' process.
    pub(crate) fn shared(&self) -> &'static Pair {
        static SHARED: OnceLock<Pair> = OnceLock::new();
        SHARED.get_or_init(|| self.configured(""))
    }

    /// Starts a separate pair whose outer gateways have this configuration.
    pub(crate) fn configured(&self, config: &str) -> Pair {
        self.before(self.0.configured("[local]\nthreads = 2\n"), config)
    }

    /// Starts a separate pair with only the embedded image engine: no weights are loaded.
    pub(crate) fn with_image_engine(&self, config: &str) -> Pair {
        self.before(self.0.with_image_engine(""), config)
    }

    fn before(&self, inner: Gateway, config: &str) -> Pair {
        let outer = |alt_flash: &str| {
            self.0
                .configured(&[config, KEEP, &models(inner.address(), alt_flash)].concat())
        };
        Pair {
            outer: outer("responses"),
            outer_of_chat: outer("chat"),
            inner,
        }
    }
}

/// Two gateways in a row. The models of the outer one are all served by the inner one, each over
/// one protocol; the model that clients use with two protocols has two outer gateways, so that each
/// of them is relayed.
pub(crate) struct Pair {
    outer: Gateway,
    outer_of_chat: Gateway,
    /// The gateway with the embedded engines.
    inner: Gateway,
}

impl Pair {
    pub(crate) fn address(&self) -> SocketAddr {
        self.outer.address()
    }

    pub(crate) fn post(&self, key: &str, path: &str, body: &Value) -> Response {
        Request::post(path, body)
            .bearer(key)
            .send(self.outer(path).address())
    }

    /// The outer gateway that relays requests to this path.
    pub(crate) fn outer(&self, path: &str) -> &Gateway {
        if path == "/v1/chat/completions" {
            &self.outer_of_chat
        } else {
            &self.outer
        }
    }

    /// Waits until no permit is in use in any of the gateways.
    #[track_caller]
    pub(crate) fn await_quiet(&self) {
        [&self.outer, &self.outer_of_chat, &self.inner]
            .into_iter()
            .for_each(Gateway::await_quiet);
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
        (
            "model-image-2.5-sunburst",
            "images",
            r#"["images_generations", "images_edits"]"#,
            "images",
        ),
        (
            "model-image-2.5-flare",
            "images",
            r#"["images_generations", "images_edits"]"#,
            "images",
        ),
    ] {
        config += &format!(
            "[[models]]\nid = \"{id}\"\nfamily = \"{family}\"\nprotocols = {protocols}\n\
             string_input = {}\ntargets = [{{ upstream = \"{upstream}\" }}]\n",
            id == "alt-flash",
        );
    }
    config
}

/// As without a configuration file: the outer gateways keep answers.
const KEEP: &str = "[responses]\nkeep = \"1h\"\n";
