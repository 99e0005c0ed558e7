//! The settings that take effect at the start only.

use std::collections::BTreeSet;
use std::path::Path;

use toml::{Table, Value};

use crate::file::Config;

/// A version of the configuration file: its text, parsed with and without the defaults.
pub struct FixedSettings {
    config: Config,
    table: Table,
}

impl FixedSettings {
    /// Reads the settings of a file, if it is valid.
    pub fn read(path: &Path) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(path).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        Some(Self {
            config: Config::parse(text).ok()?,
            table: text.parse().ok()?,
        })
    }

    /// Returns the names of the settings that have changed since `before` and need a restart.
    pub fn changed_since(&self, before: &Self) -> Vec<String> {
        let (old, new) = (&before.config, &self.config);
        let sections = [
            ("listen", old.listen == new.listen),
            ("admin", old.admin == new.admin),
            // A reload reads other files of a certificate, but cannot begin or end TLS.
            ("tls", old.tls.is_some() == new.tls.is_some()),
            (
                "admin_tls",
                old.admin_tls.is_some() == new.admin_tls.is_some(),
            ),
            ("cors", old.cors == new.cors),
            ("limits", old.limits == new.limits),
            ("websocket", old.websocket == new.websocket),
            ("text_engine", old.text_engine == new.text_engine),
            ("image_engine", old.image_engine == new.image_engine),
            ("fetch", old.fetch == new.fetch),
            ("responses", old.responses == new.responses),
            ("state", old.state == new.state),
            ("traces", old.traces == new.traces),
            ("metrics", old.metrics == new.metrics),
        ];
        let changed = sections.into_iter().filter(|(_, is_same)| !is_same);
        changed
            .flat_map(|(name, _)| differences(name, before.table.get(name), self.table.get(name)))
            .filter(|name| name != RELOADED)
            .collect()
    }
}

/// The only setting of these sections that a reload applies, with the prices.
const RELOADED: &str = "state.unknown_price";

/// Returns the names of the settings that differ between two versions of a section.
fn differences(section: &str, old: Option<&Value>, new: Option<&Value>) -> Vec<String> {
    if [old, new].iter().flatten().any(|value| !value.is_table()) {
        return vec![section.to_owned()];
    }
    let (old, new) = (old.and_then(Value::as_table), new.and_then(Value::as_table));
    let get = |table: Option<&Table>, name: &str| table.and_then(|table| table.get(name).cloned());
    let names: BTreeSet<_> = old.into_iter().chain(new).flat_map(Table::keys).collect();
    names
        .into_iter()
        .filter(|name| get(old, name) != get(new, name))
        .map(|name| format!("{section}.{name}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_need_a_restart_are_named() {
        let changed = |old: &str, new: &str| {
            let (old, new) = (FixedSettings::parse(old), FixedSettings::parse(new));
            new.unwrap().changed_since(&old.unwrap())
        };
        let key = "[[keys]]\nname = \"a\"\nhash = \"b\"\nscopes = [\"text\"]\n";
        assert!(changed("", key).is_empty(), "keys are reloaded");
        assert!(changed("", "[limits]\nkeep_alive = \"15s\"\n").is_empty());
        assert_eq!(
            changed(
                "admin = \"127.0.0.1:1\"\n[limits]\nconcurrency = 1\nkeep_alive = \"9s\"\n",
                "listen = [\"127.0.0.1:2\"]\n[limits]\nkeep_alive = \"9s\"\n[fetch]\nmode = \"off\"\n",
            ),
            ["listen", "admin", "limits.concurrency", "fetch.mode"]
        );
        let tls = |certificate| format!("[tls]\ncertificate = \"{certificate}\"\nkey = \"k\"\n");
        assert!(
            changed(&tls("a"), &tls("b")).is_empty(),
            "files are read again"
        );
        assert_eq!(changed("", &tls("a")), ["tls.certificate", "tls.key"]);
        let state = |text: &str| format!("[state]\naccounting = \"sqlite:a\"\n{text}");
        assert_eq!(
            changed(
                &state("unknown_price = \"free\""),
                &state("renewal = \"9s\"\nadmin_hosts = [\"a\"]\n[responses]\nkeep = \"1h\"\n")
            ),
            ["responses.keep", "state.admin_hosts", "state.renewal"]
        );
        assert_eq!(
            changed(
                "[text_engine]\nthreads = 1\n",
                "[text_engine]\nthreads = 2\n[image_engine]\nthreads = 1\n"
            ),
            ["text_engine.threads", "image_engine.threads"]
        );
    }
}
