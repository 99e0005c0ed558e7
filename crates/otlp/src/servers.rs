//! The model servers that attempts were made at.

use std::collections::BTreeMap;

use policy::Policy;

/// The upstreams of a policy, by their names. There are few, so that comparing names is quicker than hashing them.
pub(crate) struct Servers(BTreeMap<String, Server>);

/// A model server.
pub(crate) struct Server {
    /// The vendor, in the words of the conventions.
    pub(crate) provider: &'static str,
    /// The host and the port.
    pub(crate) address: Option<(String, u16)>,
}

impl Servers {
    pub(crate) fn of(policy: &Policy) -> Self {
        let servers = policy.routes.upstreams().map(|server| {
            let config = &server.config;
            let server = Server {
                provider: config.provider(),
                address: config.server(),
            };
            (config.name.clone(), server)
        });
        Self(servers.collect())
    }

    /// The upstream of this name. `None` for an embedded engine, and for an upstream that was removed
    /// since.
    pub(crate) fn get(&self, name: &str) -> Option<&Server> {
        self.0.get(name)
    }
}
