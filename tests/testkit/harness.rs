//! A gateway with its upstreams.

use std::net::SocketAddr;
use std::process::Command;

use serde_json::Value;
use simulator::{Protocol, Simulator};

use crate::client::{Request, Response};
use crate::law::KEYS;
pub(crate) use crate::law::{CLIENT_KEY, UPSTREAM_KEY};
pub(crate) use crate::question::{PROTOCOLS, TEXT, path, word};
use crate::server::{Scratch, Server, binary};

/// A running gateway in front of upstreams. Each test starts a separate one, so that tests do not affect each other.
pub(crate) struct House {
    pub(crate) gateway: Server,
    /// The file with the upstreams' key.
    _key: Scratch,
}

/// A builder of configurations.
pub(crate) struct Plan {
    top: String,
    upstreams: String,
    models: String,
}

impl Plan {
    /// A gateway with these limits, as lines of TOML.
    pub(crate) fn new(limits: &str) -> Self {
        Self { top: format!("{KEYS}\n[limits]\n{limits}\n"), upstreams: String::new(), models: String::new() }
    }

    /// A gateway in front of one simulator, as in [`House::before`].
    pub(crate) fn before(simulator: &Simulator, theirs: &str, limits: &str, settings: &str) -> Self {
        let mut plan = Self::new(limits);
        for protocol in PROTOCOLS {
            let name = word(protocol);
            let targets = format!(r#"[{{ upstream = "{name}", model = "{theirs}" }}]"#);
            plan = plan.upstream(name, protocol, &simulator.base_url(), settings).model(name, protocol, &targets);
        }
        plan
    }

    /// Adds a key, as lines of TOML.
    pub(crate) fn key(mut self, lines: &str) -> Self {
        self.top += &format!("[[keys]]\n{lines}\n");
        self
    }

    /// Adds an upstream, with additional settings as lines of TOML.
    pub(crate) fn upstream(mut self, name: &str, protocol: Protocol, base_url: &str, settings: &str) -> Self {
        let protocol = word(protocol);
        self.upstreams += &format!(
            "[[upstreams]]\nname = \"{name}\"\nprotocol = \"{protocol}\"\nbase_url = \"{base_url}\"\n\
             api_key = {{ file = \"KEY_FILE\" }}\n{settings}\n",
        );
        self
    }

    /// Adds an upstream that has no key.
    pub(crate) fn keyless(mut self, name: &str, protocol: Protocol, base_url: &str) -> Self {
        let protocol = word(protocol);
        self.upstreams +=
            &format!("[[upstreams]]\nname = \"{name}\"\nprotocol = \"{protocol}\"\nbase_url = \"{base_url}\"\n");
        self
    }

    /// Adds a model for the clients of every text protocol, or of Images, with its targets as TOML.
    pub(crate) fn model(mut self, id: &str, family: Protocol, targets: &str) -> Self {
        let (family, protocols) = match family {
            Protocol::Images => ("images", r#"["images_generations", "images_edits"]"#),
            _ => ("text", r#"["responses", "chat", "messages"]"#),
        };
        self.models += &format!(
            "[[models]]\nid = \"{id}\"\nfamily = \"{family}\"\nprotocols = {protocols}\n\
             string_input = true\ntargets = {targets}\n"
        );
        self
    }

    /// Starts the gateway.
    pub(crate) fn start(self) -> House {
        self.start_by(binary())
    }

    /// Starts the gateway with this command.
    pub(crate) fn start_by(self, command: Command) -> House {
        let key = Scratch::file("upstream.key", UPSTREAM_KEY);
        let upstreams = self.upstreams.replace("KEY_FILE", key.0.to_str().unwrap());
        let config = format!("{}{upstreams}{}", self.top, self.models);
        let gateway = Server::start_by(command, Some(&config), &[]);
        House { gateway, _key: key }
    }
}

impl House {
    /// A gateway in front of one simulator, which is an upstream of each protocol: model `P` of [`word`] is the model
    /// `theirs` of the upstream with protocol P.
    pub(crate) fn before(simulator: &Simulator, theirs: &str, limits: &str, settings: &str) -> Self {
        Plan::before(simulator, theirs, limits, settings).start()
    }

    /// The sum of a counter over its labels: of all lines of the metrics that begin with `beginning`.
    pub(crate) fn sum(&self, beginning: &str) -> f64 {
        self.gateway.sum(beginning)
    }

    /// As [`House::sum`], for the lines that have this label.
    pub(crate) fn sum_of(&self, beginning: &str, label: &str) -> f64 {
        self.gateway.sum_of(beginning, label)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.gateway.address()
    }

    /// Sends a request as a client of `protocol`.
    pub(crate) fn ask(&self, protocol: Protocol, body: &Value) -> Response {
        request(protocol, body).send(self.address())
    }
}

/// A request of a client of `protocol`, with the tests' key.
pub(crate) fn request(protocol: Protocol, body: &Value) -> Request {
    let request = Request::post(path(protocol), body).bearer(CLIENT_KEY);
    if protocol == Protocol::Messages { request.header("anthropic-version", "2023-06-01") } else { request }
}
