//! The table of servers and client protocols, in `docs/dialects.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use testkit::requests::{PROTOCOLS, protocol_name};

use crate::Visit;
use crate::case::{Case, Outcome};

/// The visits of clients of one protocol to one server, by what they are owed.
#[derive(Default)]
struct Cell {
    whole: usize,
    incomplete: usize,
    failed: usize,
    /// Those that do not get what they are owed.
    failing: usize,
    /// Those of soft cases.
    soft: usize,
}

impl Cell {
    fn add(&mut self, visit: &Visit<'_>, failing: &BTreeSet<String>) {
        let count = match visit.case.owed(visit.client, visit.mode).outcome {
            _ if visit.case.is_soft => &mut self.soft,
            _ if failing.contains(&visit.name()) => &mut self.failing,
            Outcome::Complete => &mut self.whole,
            Outcome::Incomplete => &mut self.incomplete,
            Outcome::Failure | Outcome::NotComplete => &mut self.failed,
        };
        *count += 1;
    }

    fn text(&self) -> String {
        let mut text = format!("{} / {} / {}", self.whole, self.incomplete, self.failed);
        for (count, what) in [(self.failing, "not as owed"), (self.soft, "soft")] {
            if count > 0 {
                text += &format!(", {count} {what}");
            }
        }
        text
    }
}

/// A row for each server, and one for all of them. `failing` are the names of the visits that do
/// not get what they are owed.
pub(crate) fn table(visits: &[Visit<'_>], failing: &BTreeSet<String>) -> String {
    let mut rows = BTreeMap::<(bool, &str), BTreeMap<&str, Cell>>::new();
    for visit in visits {
        for row in [(false, visit.case.server()), (true, "**all**")] {
            let cells = rows.entry(row).or_default();
            let cell = cells.entry(protocol_name(visit.client)).or_default();
            cell.add(visit, failing);
        }
    }
    let names = PROTOCOLS.map(protocol_name);
    let lines = "|---".repeat(names.len());
    let mut text = format!("| server | {} |\n|---{lines}|\n", names.join(" | "));
    for ((_, server), cells) in rows {
        let cells = names.map(|name| cells.get(name).map_or_else(String::new, Cell::text));
        text += &format!("| {server} | {} |\n", cells.join(" | "));
    }
    text
}

/// The line of the README that refers to the page.
fn summary(cases: &[Case]) -> String {
    let answers: usize = cases.iter().map(Case::bodies).sum();
    let servers: BTreeSet<_> = cases.iter().map(Case::server).collect();
    let servers = servers.iter().filter(|name| !name.starts_with("generic-"));
    format!(
        "{LINK} {answers} answers of {} servers and endpoints, and what clients get for each |",
        servers.count()
    )
}

/// Compares the pages with the cases, or writes them. Returns what differs.
pub(crate) fn pages(cases: &[Case], visits: &[Visit<'_>], is_writing: bool) -> Vec<&'static str> {
    let page = read("docs/dialects.md");
    let (text, _) = page.split_once(HEADING).unwrap();
    let readme = read("README.md");
    let line = summary(cases);
    let lines = readme
        .lines()
        .map(|old| if old.starts_with(LINK) { &line } else { old });
    let pages = [
        (
            "docs/dialects.md",
            &page,
            format!("{text}{HEADING}{LEGEND}{}", table(visits, &BTreeSet::new())),
        ),
        (
            "README.md",
            &readme,
            lines.flat_map(|line| [line, "\n"]).collect(),
        ),
    ];
    let mut differing = Vec::new();
    for (name, old, new) in pages {
        if *old != new {
            differing.push(name);
        }
        if is_writing {
            fs::write(path(name), new).unwrap();
        }
    }
    differing
}

fn read(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap()
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

/// The heading of the part of the page that is written.
const HEADING: &str = "\n## Results\n\n";
const LEGEND: &str = "\
A cell counts the visits of clients of that protocol: whole / incomplete / failed. All of them get what they are owed;
a visit that does not is an error of the test. Those of soft cases are counted behind.

";
/// The beginning of the line of the README.
const LINK: &str = "| [Dialects](docs/dialects.md) |";
