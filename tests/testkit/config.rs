//! A builder of configurations of gateways in front of upstreams.

use std::path::Path;
use std::process::Command;

use simulator::{Protocol, Simulator};

use crate::gateway::{Binary, Gateway};
use crate::privacy::{KEYS, UPSTREAM_KEY};
use crate::requests::{PROTOCOLS, protocol_name};

/// A configuration.
pub struct Config {
    top: String,
    upstreams: String,
    models: String,
}

impl Config {
    /// A gateway with these limits, as lines of TOML.
    pub fn new(limits: &str) -> Self {
        Self {
            top: format!("{KEYS}\n[limits]\n{limits}\n"),
            upstreams: String::new(),
            models: String::new(),
        }
    }

    /// A gateway in front of one simulator, which is an upstream of each protocol, with these
    /// settings: model `P` of [`protocol_name`] is the model [`UPSTREAM_MODEL`] of the upstream
    /// with protocol P.
    pub fn before(simulator: &Simulator, limits: &str, settings: &str) -> Self {
        let serve =
            |config: Self, protocol| config.served(protocol, &simulator.base_url(), settings);
        PROTOCOLS.into_iter().fold(Self::new(limits), serve)
    }

    /// Adds an upstream of this protocol, and a model that it serves, both named after the
    /// protocol.
    pub fn served(self, protocol: Protocol, base_url: &str, settings: &str) -> Self {
        let name = protocol_name(protocol);
        let targets = format!(r#"[{{ upstream = "{name}", model = "{UPSTREAM_MODEL}" }}]"#);
        self.upstream(name, protocol, base_url, settings)
            .model(name, protocol, &targets)
    }

    /// Adds a key, as lines of TOML.
    pub fn key(mut self, lines: &str) -> Self {
        self.top += &format!("[[keys]]\n{lines}\n");
        self
    }

    /// Adds sections, as lines of TOML.
    pub fn section(mut self, lines: &str) -> Self {
        self.top += lines;
        self.top.push('\n');
        self
    }

    /// Adds a quota, as lines of TOML.
    pub fn quota(mut self, lines: &str) -> Self {
        self.top += &format!("[[quotas]]\n{lines}\n");
        self
    }

    /// Adds an upstream, with additional settings as lines of TOML.
    pub fn upstream(
        mut self,
        name: &str,
        protocol: Protocol,
        base_url: &str,
        settings: &str,
    ) -> Self {
        let protocol = protocol_name(protocol);
        self.upstreams += &format!(
            "[[upstreams]]\nname = \"{name}\"\nprotocol = \"{protocol}\"\nbase_url = \"{base_url}\"\n\
             api_key = {{ file = \"KEY_FILE\" }}\n{settings}\n",
        );
        self
    }

    /// Adds an upstream that has no key.
    pub fn keyless(mut self, name: &str, protocol: Protocol, base_url: &str) -> Self {
        let protocol = protocol_name(protocol);
        self.upstreams += &format!(
            "[[upstreams]]\nname = \"{name}\"\nprotocol = \"{protocol}\"\nbase_url = \"{base_url}\"\n"
        );
        self
    }

    /// Adds a model for the clients of every text protocol, or of Images, with its targets as TOML.
    pub fn model(mut self, id: &str, family: Protocol, targets: &str) -> Self {
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
    pub fn start(self, binary: Binary) -> Gateway {
        self.start_by(binary, binary.command())
    }

    /// Starts the gateway with this command.
    pub fn start_by(self, binary: Binary, command: Command) -> Gateway {
        let key = binary.file("upstream.key", UPSTREAM_KEY);
        let mut gateway = binary.start_by(command, Some(&self.text(&key.0)));
        gateway.key = Some(key);
        gateway
    }

    /// The text of the file. The key of the upstreams is in the file `key`.
    pub fn text(&self, key: &Path) -> String {
        let upstreams = self.upstreams.replace("KEY_FILE", key.to_str().unwrap());
        format!("{}{upstreams}{}", self.top, self.models)
    }
}

impl Binary {
    /// Starts a separate gateway in front of one simulator: see [`Config::before`].
    pub fn before(self, simulator: &Simulator, limits: &str, settings: &str) -> Gateway {
        Config::before(simulator, limits, settings).start(self)
    }

    /// Starts a separate gateway with these limits in front of a conforming upstream.
    pub fn with_upstream(self, limits: &str) -> (Gateway, Simulator) {
        let simulator = Simulator::honest().unwrap();
        (self.before(&simulator, limits, ""), simulator)
    }
}

/// The model that is requested from upstreams.
pub const UPSTREAM_MODEL: &str = "their-model";
