//! Settings for fetching images that requests refer to by URL.

use std::net::SocketAddr;
use std::time::Duration;

use ::fetch::target::Target;
use bytesize::ByteSize;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Time, bytes};

wire::read_objects!(Fetch);

/// `[fetch]`: the settings for fetching images that requests refer to by URL.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    remote = "Self",
    default,
    deny_unknown_fields,
    rename_all = "snake_case"
)]
pub struct Fetch {
    /// The URLs that are fetched.
    mode: Mode,
    /// The hosts of `mode = "allow_list"`, matched exactly.
    #[schemars(extend("examples" = [["img.example.com"]]))]
    hosts: Vec<String>,
    /// The timeout for one image, redirects included. Default 15 s.
    #[serde(with = "Time")]
    timeout: Duration,
    /// Concurrent fetches, over all keys. Default 32.
    pub at_once: usize,
    /// Concurrent fetches for one key. Default 4.
    pub at_once_per_key: usize,
}

/// The URLs that are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// None.
    Off,
    /// URLs of the listed hosts.
    AllowList,
    /// Every public URL.
    Global,
}

impl Default for Fetch {
    fn default() -> Self {
        Self {
            mode: Mode::Global,
            hosts: Vec::new(),
            timeout: Duration::from_secs(15),
            at_once: 32,
            at_once_per_key: 4,
        }
    }
}

/// Returns true for the host of a URL that can be fetched. Hosts are compared as text.
fn is_host(text: &str) -> bool {
    let url = Target::parse(&format!("https://{text}/"));
    url.is_ok_and(|url| url.host() == text.to_ascii_lowercase())
}

impl Fetch {
    /// Converts it to the options of the fetcher. `listeners` are the gateway's own addresses,
    /// which are never fetched from.
    pub fn options(&self, listeners: &[SocketAddr], picture: ByteSize) -> ::fetch::Options {
        let hosts = self.hosts.iter().map(|host| host.to_ascii_lowercase());
        ::fetch::Options {
            mode: match self.mode {
                Mode::Off => ::fetch::Mode::Off,
                Mode::AllowList => ::fetch::Mode::AllowList(hosts.collect()),
                Mode::Global => ::fetch::Mode::Global,
            },
            timeout: self.timeout,
            max_bytes: bytes(picture),
            at_once: self.at_once,
            listeners: listeners.to_vec(),
            ..::fetch::Options::default()
        }
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.mode == Mode::AllowList && self.hosts.is_empty() {
            problems.push("fetch.hosts: mode \"allow_list\" needs at least one host".to_owned());
        }
        if self.mode != Mode::AllowList && !self.hosts.is_empty() {
            problems.push("fetch.hosts: only allowed with mode \"allow_list\"".to_owned());
        }
        for host in self.hosts.iter().filter(|host| !is_host(host)) {
            problems.push(format!(
                "fetch.hosts: has '{host}', but must have names of public hosts, without a scheme, a port or a path, such as 'img.example.com'"
            ));
        }
        for (name, value) in [
            ("fetch.at_once", self.at_once),
            ("fetch.at_once_per_key", self.at_once_per_key),
        ] {
            if value == 0 {
                problems.push(format!(
                    "{name}: must be more than 0; to fetch nothing, set fetch.mode to \"off\""
                ));
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;

    fn problems(settings: &str) -> String {
        let parsed = Config::parse(&format!("[fetch]\nmode = \"allow_list\"\n{settings}\n"));
        parsed.map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn hosts_are_names_as_they_are_compared() {
        assert_eq!(
            problems("hosts = [\"img.example.com\", \"IMG2.example.com\"]"),
            ""
        );
        for host in [
            "https://img.example.com",
            "img.example.com/cats",
            "img.example.com:443",
            "*.example.com",
            "bücher.example",
            "192.0.2.1",
            "",
        ] {
            let expected = format!(
                "fetch.hosts: has '{host}', but must have names of public hosts, without a scheme, a port or a path, such as 'img.example.com'"
            );
            assert_eq!(problems(&format!("hosts = [\"{host}\"]")), expected);
        }
    }
}
