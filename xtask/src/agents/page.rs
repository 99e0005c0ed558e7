//! `docs/agents.md`: the results of all agents.

use super::agent::Agent;
use super::trial::Verdict;
use super::upstream::UPSTREAMS;
use crate::outcome::Outcome;
use crate::{markdown, workspace};

/// The results of an agent, one for each upstream.
pub(super) struct Row<'a> {
    pub(super) agent: &'a Agent,
    pub(super) version: String,
    pub(super) results: Vec<Verdict>,
    /// The hosts beside the gateway that it asked for.
    pub(super) hosts: Vec<String>,
}

/// A result as it appears in the table.
pub(super) fn cell(result: &Verdict) -> String {
    match result {
        Ok(1) => "passed, 1 request".to_owned(),
        Ok(count) => format!("passed, {count} requests"),
        Err(failure) => format!("FAILED: {failure}"),
    }
}

/// The table of all results.
pub(super) fn table(rows: &[Row]) -> String {
    let titles = UPSTREAMS.iter().map(|upstream| upstream.title);
    let titles = ["agent", "version", "uses"].into_iter().chain(titles);
    let titles: Vec<_> = titles.chain(["other hosts"]).collect();
    let mut table = line(&titles);
    table += &format!("|{}\n", "---|".repeat(titles.len()));
    for Row {
        agent,
        version,
        results,
        hosts,
    } in rows
    {
        let first = [agent.title, version, agent.protocol].map(str::to_owned);
        let hosts = if hosts.is_empty() {
            "none".to_owned()
        } else {
            hosts
                .iter()
                .map(|name| host(name))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let cells = first.into_iter().chain(results.iter().map(cell));
        table += &line(&cells.chain([hosts]).collect::<Vec<_>>());
    }
    table
}

fn line<S: AsRef<str>>(cells: &[S]) -> String {
    let cells: Vec<_> = cells.iter().map(AsRef::as_ref).collect();
    markdown::line(&cells)
}

/// The runs that failed, each in a sentence.
pub(super) fn failures(rows: &[Row]) -> Vec<String> {
    let all = rows.iter().flat_map(|row| {
        let results = row.results.iter().zip(&UPSTREAMS);
        results.filter_map(|(result, upstream)| {
            let failure = result.as_ref().err()?;
            Some(format!(
                "{} over {}: {failure}",
                row.agent.name, upstream.name
            ))
        })
    });
    all.collect()
}

/// Writes the page with this table.
pub(super) fn write(table: &str) -> Outcome {
    workspace::write("docs/agents.md", format!("{OPENING}{table}{CLOSING}"))
}

/// The name of a host on the page, which never names a registry of packages.
fn host(name: &str) -> &str {
    if name.starts_with("registry.") {
        "a registry of packages"
    } else {
        name
    }
}

const OPENING: &str = "\
# Coding agents

`cargo xtask agents --write` writes this page. It installs the agents that [tests/agents](../tests/agents) pins, and
runs each of them without a terminal through the gateway, with every upstream. The upstreams are the
[simulator](../crates/simulator/README.md#a-model-for-coding-agents) in three protocols and three dialects of Chat
Completions, which the gateway reaches with the preset of the vendor. The model is scripted: a run shows that the agent,
the gateway and the protocols fit, and not how well a model solves tasks.

A run has to write two files. The model calls a tool of the agent twice in one turn, or in two turns if the agent
forbids parallel calls. A run passes if

- both files have the right content,
- the agent prints the model's last text, which quotes the results of both calls,
- all requests are in the gateway's log with the outcome `completed`, and use the protocol that the agent should use,
- and the agent ends within two minutes, with success.

";
const CLOSING: &str = "
*Uses* is the protocol of the agent; the columns after it are the upstreams. Where both protocols are the same, the
gateway relays, and otherwise it translates. All agents stream. OpenCode has a third request, for a title.

aider offers no tools, but reads edits from the text: its runs pass if it writes the files, with a single request.

The agents run with nothing in their environment but a search path, an empty home folder, the address of the gateway, a
key, and settings against telemetry and updates. A proxy refuses all else that they request; *other hosts* are those
that they asked it for. None of them needs these.
";

#[cfg(test)]
mod tests {
    use super::super::agent::AGENTS;
    use super::*;

    #[test]
    fn results_are_a_table_and_failures_are_listed() {
        let mut results = vec![Ok(2); UPSTREAMS.len()];
        results[1] = Err("exit status: 1".to_owned());
        let rows = [Row {
            agent: &AGENTS[0],
            version: "1.2".to_owned(),
            results,
            hosts: vec!["a.example".to_owned(), "registry.example".to_owned()],
        }];
        let table = table(&rows);
        let lines: Vec<_> = table.lines().collect();
        assert!(lines[0].starts_with("| agent | version | uses | Responses | Messages | "));
        let start = "| Codex | 1.2 | Responses | passed, 2 requests | FAILED: exit status: 1 | ";
        assert!(lines[2].starts_with(start), "{table}");
        assert!(
            lines[2].ends_with(" | a.example, a registry of packages |"),
            "{table}"
        );
        assert_eq!(failures(&rows), ["codex over messages: exit status: 1"]);
    }
}
