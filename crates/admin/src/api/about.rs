//! The gateway itself: its version, features and addresses.

use schemars::JsonSchema;
use serde::Serialize;

use super::AdminRequest;
use super::failure::Failure;
use super::values::Time;

/// The gateway.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "About")]
pub(crate) struct AboutView {
    /// The version.
    version: &'static str,
    /// The features of the build.
    features: Vec<&'static str>,
    /// The start of the process.
    started: Time,
    /// The time since then, in seconds.
    uptime_seconds: u64,
    /// The base addresses of the public API, such as `http://127.0.0.1:8080`.
    listen: Vec<String>,
    /// Figures of this project, each with the command that repeats it.
    figures: &'static [Figure],
}

/// The facts about a gateway that do not change while it runs.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The version.
    pub version: &'static str,
    /// The features of the build.
    pub features: Vec<&'static str>,
    /// The start of the process, in Unix seconds.
    pub started: i64,
    /// The base addresses of the public API, such as `http://127.0.0.1:8080`.
    pub listen: Vec<String>,
}

/// A measured figure.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(crate) struct Figure {
    /// The measured quantity.
    name: &'static str,
    /// The figure with its unit.
    value: &'static str,
    /// The command that repeats it.
    command: &'static str,
}

/// Shows the gateway.
pub(super) async fn show(admin: &AdminRequest<'_>) -> Result<AboutView, Failure> {
    let about = admin.about;
    let uptime = policy::clock::unix_seconds().saturating_sub(about.started);
    Ok(AboutView {
        version: about.version,
        features: about.features.clone(),
        started: Time::seconds(about.started),
        uptime_seconds: u64::try_from(uptime).unwrap_or_default(),
        listen: about.listen.clone(),
        figures: FIGURES,
    })
}

const fn figure(name: &'static str, value: &'static str, command: &'static str) -> Figure {
    Figure {
        name,
        value,
        command,
    }
}

/// Figures of `docs/benchmarks.md`.
const FIGURES: &[Figure] = &[
    figure(
        "CPU time of a small request, on one core",
        "24.5 µs",
        "cargo xtask bench gateway",
    ),
    figure(
        "Latency added at 2000 requests a second, p50",
        "110 µs",
        "cargo xtask bench gateway",
    ),
    figure(
        "CPU time of an event of a relayed Chat stream, on one core",
        "3.28 µs",
        "cargo xtask bench gateway",
    ),
    figure(
        "CPU time of an event of Chat translated to Responses, on one core",
        "3.22 µs",
        "cargo xtask bench gateway",
    ),
    figure(
        "Memory of an open stream, of 9500",
        "15.0 KiB",
        "cargo xtask bench gateway",
    ),
    figure(
        "Time from a disconnect to the close of the upstream, p99",
        "176 µs",
        "cargo xtask bench gateway",
    ),
    figure(
        "Throughput of decoding events of 210 B in pieces of 16 KiB",
        "8.55 GB/s",
        "cargo xtask bench decode",
    ),
    figure(
        "Time of an admission to 5 limits, p50",
        "0.27 µs",
        "cargo xtask bench limits",
    ),
    figure(
        "Latency added by a quota that a store lends, p99",
        "47.0 µs",
        "cargo xtask bench limits",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../docs/benchmarks.md");

    /// The first cell of the row of each figure, and the number of the cell that has it.
    const ROWS: [(&str, usize); 9] = [
        (
            "small requests, 64 connections, on one core: CPU µs/request",
            3,
        ),
        ("added µs at 2000 requests/s, p50", 3),
        ("Chat relayed, 16 streams, on one core: CPU µs/event", 3),
        (
            "Responses from Chat, 16 streams, on one core: CPU µs/event",
            3,
        ),
        ("KiB for each of 9500 open streams", 3),
        ("µs from disconnect to the upstream's close, p99", 3),
        ("210 B, ASCII, in 16 KiB", 2),
        ("5 limits", 1),
        ("added by a lent quota, p99", 1),
    ];

    /// After a new measurement, this shows the figures that have changed.
    #[test]
    fn the_figures_are_those_of_the_benchmarks() {
        assert_eq!(FIGURES.len(), ROWS.len());
        for (figure, (name, column)) in FIGURES.iter().zip(ROWS) {
            let mut rows = PAGE.lines().filter_map(|line| {
                let cells: Vec<_> = line.split('|').skip(1).map(str::trim).collect();
                (cells.first() == Some(&name)).then(|| cells[column].to_owned())
            });
            let measured = rows.next().unwrap_or_else(|| panic!("no row '{name}'"));
            let number = |text: &str| text.split(' ').next().map(str::to_owned);
            assert_eq!(number(figure.value), number(&measured), "{}", figure.name);
            assert!(PAGE.contains(&format!("\n{}", figure.command)));
        }
    }
}
