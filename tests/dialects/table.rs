//! The tables of servers and client protocols, in `docs/dialects.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use testkit::requests::{PROTOCOLS, protocol_name};

use crate::Visit;
use testkit::dialects::{Case, Outcome};

/// The visits of clients of one protocol to one server, by the outcome that they are owed.
#[derive(Default)]
struct Cell {
    whole: usize,
    incomplete: usize,
    failed: usize,
    /// Visits that were not as owed.
    failing: usize,
    /// Visits of soft cases.
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

/// The rows of a table, by whether they come last and by their first cell.
type Rows<'a> = BTreeMap<(bool, String), BTreeMap<&'a str, Cell>>;

/// A row for each server, and one for all of them. `failing` are the names of the visits that were
/// not as owed.
pub(crate) fn table(visits: &[Visit<'_>], failing: &BTreeSet<String>) -> String {
    let mut rows = Rows::new();
    for visit in visits {
        let rows_of = [(false, visit.case.server()), (true, "**all**")];
        for (is_last, name) in rows_of {
            add(&mut rows, (is_last, name.to_owned()), visit, failing);
        }
    }
    text("server", &rows)
}

/// A row for the servers of each protocol.
fn short_table(cases: &[Case], visits: &[Visit<'_>]) -> String {
    let mut rows = Rows::new();
    for visit in visits {
        let protocol = visit.case.protocol;
        let of_protocol = cases.iter().filter(|case| case.protocol == protocol);
        let row = format!("{} ({})", protocol_name(protocol), servers(of_protocol));
        add(&mut rows, (false, row), visit, &BTreeSet::new());
    }
    text("protocol (servers)", &rows)
}

fn add<'a>(
    rows: &mut Rows<'a>,
    row: (bool, String),
    visit: &Visit<'a>,
    failing: &BTreeSet<String>,
) {
    let cells = rows.entry(row).or_default();
    let cell = cells.entry(protocol_name(visit.client)).or_default();
    cell.add(visit, failing);
}

fn text(first: &str, rows: &Rows<'_>) -> String {
    let names = PROTOCOLS.map(protocol_name);
    let lines = "|---".repeat(names.len());
    let mut text = format!("| {first} | {} |\n|---{lines}|\n", names.join(" | "));
    for ((_, row), cells) in rows {
        let cells = names.map(|name| cells.get(name).map_or_else(String::new, Cell::text));
        text += &format!("| {row} | {} |\n", cells.join(" | "));
    }
    text
}

/// The number of servers that the cases name.
fn servers<'a>(cases: impl Iterator<Item = &'a Case>) -> usize {
    let names: BTreeSet<_> = cases.map(Case::server).collect();
    let named = names.iter().filter(|name| !name.starts_with("generic-"));
    named.count()
}

/// The number of answers and of servers, as a sentence.
fn summary(cases: &[Case]) -> String {
    let answers: usize = cases.iter().map(Case::bodies).sum();
    let servers = servers(cases.iter());
    format!("There are {answers} answers of {servers} servers and endpoints.")
}

/// Compares the page with the cases, or writes it. Returns true if it differs.
pub(crate) fn page_differs(cases: &[Case], visits: &[Visit<'_>], is_writing: bool) -> bool {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path).unwrap();
    let (text, _) = page.split_once(HEADING).unwrap();
    let (short, long) = (short_table(cases, visits), table(visits, &BTreeSet::new()));
    let summary = summary(cases);
    let new = format!("{text}{HEADING}{summary} {LEGEND}{short}\n{long}");
    if is_writing {
        fs::write(path, &new).unwrap();
    }
    page != new
}

/// The page, from the folder of the package.
const PAGE: &str = "../../docs/dialects.md";
/// The heading of the part of the page that is written.
const HEADING: &str = "\n## Results\n\n";
const LEGEND: &str = "\
A cell counts the visits of clients of a protocol: whole / incomplete /
failed. All of them get what they are owed; a visit that does not is an error of the test. Those of soft cases are
counted behind.

";
