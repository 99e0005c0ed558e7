//! `sluicegate presets`: lists the presets of upstreams.

use std::fmt::Write as _;

use crate::error::ConfigError;
use crate::upstream::preset::Preset;
use crate::upstream::{Protocol, lines, rules};

/// Lists all presets: their names, protocols, base URLs and keys.
pub fn list() -> String {
    let mut out = String::new();
    for (name, preset) in Preset::all() {
        let first = preset.protocols.first().copied().unwrap_or(Protocol::Chat);
        let base_url = match preset.base_url(first) {
            Ok(base_url) => base_url.to_owned(),
            Err(example) => format!("base_url to be set, such as {example}"),
        };
        let (protocols, key) = (preset.protocols(), preset.describe_key());
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{name:11} {protocols:31} {base_url}, {key}");
    }
    out
}

/// Writes the settings that a preset stands for, as one upstream for each of its protocols, with the
/// rules of its vendor.
pub fn show(name: &str) -> Result<String, ConfigError> {
    let preset = Preset::find(name).map_err(ConfigError::one)?;
    let mut out = format!("# {}\n", preset.page);
    for protocol in preset.protocols.iter().copied() {
        let (base_url, note) = match preset.base_url(protocol) {
            Ok(base_url) => (base_url, ""),
            Err(example) => (example, "# The base_url is an example: set your own.\n"),
        };
        let settings = lines(
            protocol,
            base_url,
            preset.api_key(),
            &preset.auth(protocol),
            preset.quirks(protocol),
            preset.count_tokens,
        );
        let id = protocol.as_str();
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "\n{note}[[upstreams]]\nname = \"{name}-{id}\"\n{settings}"
        );
        let rules = rules::of_preset(name, protocol);
        let rules: String = rules.map(|rule| format!("# rule {rule}\n")).collect();
        if !rules.is_empty() {
            let _ = write!(out, "\n{rules}");
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Config;

    /// The upstreams that a preset is shown as are those that it stands for, with the base URLs of
    /// the vendor.
    #[test]
    fn shown_upstreams_match_the_preset() {
        assert_eq!(Preset::all().count(), 22);
        for (name, preset) in Preset::all() {
            let shown = Config::parse(&show(name).unwrap()).unwrap().upstreams;
            assert_eq!(shown.len(), preset.protocols.len(), "{name}");
            for upstream in shown {
                let id = upstream.protocol().as_str();
                let mut text = format!(
                    "[[upstreams]]\nname = \"{name}-{id}\"\npreset = \"{name}\"\nprotocol = \"{id}\"\n"
                );
                if let Err(example) = preset.base_url(upstream.protocol()) {
                    text += &format!("base_url = \"{example}\"\n");
                }
                let short = &Config::parse(&text).unwrap().upstreams[0];
                let without_key = |settings: String| {
                    let lines = settings.lines().filter(|line| !line.starts_with("api_key"));
                    lines.map(str::to_owned).collect::<Vec<_>>()
                };
                assert_eq!(
                    without_key(short.to_toml()),
                    without_key(upstream.to_toml())
                );
            }
        }
    }
}
