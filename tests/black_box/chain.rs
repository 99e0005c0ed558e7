//! The gateway that the tests of replies use: one, or two in a row.
//!
//! `SLUICEGATE_CHAINED=1` chains them: the models of the outer gateway are all served by an inner
//! one with the embedded engines, over the protocol of the request. The tests of `chat`, `edits`,
//! `images`, `messages` and `responses` hold either way, and the long tier runs them so. The other
//! modules always test a single gateway, except `passing`, which always chains two.

use std::net::SocketAddr;
use std::sync::OnceLock;

use serde_json::Value;
use testkit::{Gateway, Request, Response};

/// Starts one gateway, or two in a row.
pub(crate) const GATEWAY: Start = Start;

pub(crate) struct Start;

impl Start {
    /// The server that tests share. It ends with the tests' process.
    pub(crate) fn shared(&self) -> &'static Server {
        static SHARED: OnceLock<Server> = OnceLock::new();
        SHARED.get_or_init(|| {
            if is_chained() {
                Server::Two(Box::new(Pair::start("")))
            } else {
                Server::Shared(crate::GATEWAY.shared())
            }
        })
    }

    /// Starts a separate server with this configuration and only the embedded image engine: no
    /// weights are loaded.
    pub(crate) fn with_image_engine(&self, config: &str) -> Server {
        if is_chained() {
            Server::Two(Box::new(Pair::before(
                crate::GATEWAY.with_image_engine(""),
                config,
            )))
        } else {
            Server::One(crate::GATEWAY.with_image_engine(config))
        }
    }
}

/// A gateway, or a pair.
pub(crate) enum Server {
    Shared(&'static Gateway),
    One(Gateway),
    Two(Box<Pair>),
}

impl Server {
    pub(crate) fn address(&self) -> SocketAddr {
        self.gateway("").address()
    }

    pub(crate) fn post(&self, key: &str, path: &str, body: &Value) -> Response {
        Request::post(path, body)
            .bearer(key)
            .send(self.gateway(path).address())
    }

    /// Waits until no permit is in use.
    #[track_caller]
    pub(crate) fn await_quiet(&self) {
        match self {
            Self::Shared(gateway) => gateway.await_quiet(),
            Self::One(gateway) => gateway.await_quiet(),
            Self::Two(pair) => pair.await_quiet(),
        }
    }

    /// The gateway that clients send requests for this path to.
    fn gateway(&self, path: &str) -> &Gateway {
        match self {
            Self::Shared(gateway) => gateway,
            Self::One(gateway) => gateway,
            Self::Two(pair) => pair.outer(path),
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
    /// Starts a pair whose outer gateways have this configuration.
    pub(crate) fn start(config: &str) -> Self {
        Self::before(
            crate::GATEWAY.configured("[text_engine]\nthreads = 2\n"),
            config,
        )
    }

    fn before(inner: Gateway, config: &str) -> Self {
        let outer = |alt_flash: &str| {
            let models = models(inner.address(), alt_flash);
            crate::GATEWAY.configured(&[config, KEEP, &models].concat())
        };
        Self {
            outer: outer("responses"),
            outer_of_chat: outer("chat"),
            inner,
        }
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

fn is_chained() -> bool {
    std::env::var_os("SLUICEGATE_CHAINED").is_some_and(|chained| chained == "1")
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
