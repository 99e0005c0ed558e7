//! The upstreams, and the configuration of the gateway.

use std::fmt::Write as _;

use super::agent::AGENTS;

/// A model server behind the gateway.
pub(super) struct Upstream {
    pub(super) name: &'static str,
    /// Its column of the table.
    pub(super) title: &'static str,
    /// Its protocol in the configuration.
    protocol: &'static str,
    /// The vendor whose form its replies have, with the settings of the gateway for it.
    vendor: Option<&'static str>,
}

pub(super) const UPSTREAMS: [Upstream; 6] = [
    Upstream {
        name: "responses",
        title: "Responses",
        protocol: "responses",
        vendor: None,
    },
    Upstream {
        name: "messages",
        title: "Messages",
        protocol: "messages",
        vendor: None,
    },
    Upstream {
        name: "chat",
        title: "Chat",
        protocol: "chat",
        vendor: None,
    },
    vendor("azure", "Chat of Azure"),
    vendor("mistral", "Chat of Mistral"),
    vendor("gemini", "Chat of Gemini"),
];

const fn vendor(name: &'static str, title: &'static str) -> Upstream {
    Upstream {
        name,
        title,
        protocol: "chat",
        vendor: Some(name),
    }
}

/// The name of the model that an agent uses to reach an upstream. Each pair has its own, by which
/// its requests are found in the log.
pub(super) fn model(agent: &str, upstream: &Upstream) -> String {
    format!("{agent}-over-{}", upstream.name)
}

/// The configuration of the gateway in front of a simulator with this base URL.
pub(super) fn config(simulator: &str) -> String {
    let root = simulator.strip_suffix("/v1").unwrap_or(simulator);
    let mut text = String::new();
    for upstream in &UPSTREAMS {
        let Upstream {
            name,
            protocol,
            vendor,
            ..
        } = upstream;
        let (path, preset) = vendor.map_or_else(Default::default, |vendor| {
            let key = "api_key = { env = \"SLUICEGATE_TEXT_KEY\" }";
            (
                format!("/{vendor}"),
                format!("preset = \"{vendor}\"\n{key}\n"),
            )
        });
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "[[upstreams]]\nname = \"{name}\"\nprotocol = \"{protocol}\"\n{preset}base_url = \"{root}{path}/v1\"\n"
        );
        for agent in &AGENTS {
            let id = model(agent.name, upstream);
            let _ = writeln!(
                text,
                "[[models]]\nid = \"{id}\"\nfamily = \"text\"\nprotocols = [\"responses\", \"chat\", \"messages\"]\n\
                 targets = [{{ upstream = \"{name}\", model = \"coding-agent\" }}]\n"
            );
        }
    }
    text
}
