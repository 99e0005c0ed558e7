//! The table of servers and client protocols.

use std::collections::BTreeMap;

use testkit::requests::{PROTOCOLS, protocol_name};

use crate::Verdict;

/// A row for each server: of its hard cases, those that come through as owed for clients of each
/// protocol.
pub(crate) fn table(verdicts: &[Verdict<'_>]) -> String {
    let mut servers = BTreeMap::<&str, BTreeMap<&str, (usize, usize)>>::new();
    for verdict in verdicts
        .iter()
        .filter(|verdict| !verdict.visit.case.is_soft)
    {
        let server = verdict
            .visit
            .case
            .name
            .split('/')
            .next()
            .unwrap_or_default();
        for row in [server, "all"] {
            let cell = servers
                .entry(row)
                .or_default()
                .entry(protocol_name(verdict.visit.client))
                .or_default();
            cell.0 += usize::from(verdict.wrong.is_empty());
            cell.1 += 1;
        }
    }
    let names = PROTOCOLS.map(protocol_name);
    let mut text = format!(
        "| server | {} |\n|---{}|\n",
        names.join(" | "),
        "|---:".repeat(names.len())
    );
    for (server, cells) in servers {
        let cell = |name| {
            cells
                .get(name)
                .map_or_else(String::new, |(owed, all)| format!("{owed} of {all}"))
        };
        text += &format!("| {server} | {} |\n", names.map(cell).join(" | "));
    }
    text
}
