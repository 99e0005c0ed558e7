//! The committed figures of `INSTRUCTIONS.toml`, and how much a measurement may differ from them.

use std::fmt;
use std::path::Path;

use benches::Outcome;
use serde::{Deserialize, Serialize};

use crate::callgrind::Count;

/// The cost of each of [`UNITS`].
pub(crate) type Costs = [Count; 4];

/// The costs of both.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) gateway: Costs,
    pub(crate) bare: Costs,
}

/// The committed figures.
#[derive(Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figures {
    /// The reason of the last change of the figures.
    reason: String,
    request: Figure,
    event: Figure,
    conversation: Figure,
    request_with_quotas: Figure,
}

/// The committed cost of one unit.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Figure {
    instructions: u64,
    code_lines: u64,
}

impl Figures {
    /// Reads the committed figures.
    pub(crate) fn read(path: &Path) -> Outcome<Self> {
        let failed = |error: String| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        toml::from_str(&text).map_err(|error| failed(error.to_string()))
    }

    /// The figures of a measurement.
    pub(crate) fn of(measured: &Measured, reason: &str) -> Self {
        let [request, event, conversation, request_with_quotas] = measured.gateway.map(
            |Count {
                 instructions,
                 code_lines,
             }| Figure {
                instructions,
                code_lines,
            },
        );
        Self {
            reason: reason.to_owned(),
            request,
            event,
            conversation,
            request_with_quotas,
        }
    }

    /// The text of the file.
    pub(crate) fn page(&self) -> String {
        format!("{HEAD}{}", toml::to_string(self).unwrap_or_default())
    }

    /// Compares a measurement of the gateway with the figures.
    ///
    /// # Errors
    ///
    /// If something costs more than [`MOST`] percent above its figure.
    pub(crate) fn hold(&self, gateway: &Costs) -> Outcome {
        let found = self.excesses(gateway);
        if found.is_empty() {
            Ok(())
        } else {
            Err(format!("{}; {ADVICE}", found.join("; ")))
        }
    }

    /// Checks that a gateway in which something costly was planted is caught.
    ///
    /// # Errors
    ///
    /// If the instructions of its conversation are not reported as too many.
    pub(crate) fn miss(&self, gateway: &Costs) -> Outcome {
        let found = self.excesses(gateway);
        println!("{}", found.join("\n"));
        let [_, _, conversation, _] = UNITS;
        let is_caught = |excess: &String| {
            excess.contains(conversation) && excess.contains(" instructions, committed")
        };
        match found.iter().any(is_caught) {
            true => Ok(()),
            false => Err("what was planted is not reported".to_owned()),
        }
    }

    /// Prints all comparisons, and returns those that fail.
    fn excesses(&self, gateway: &Costs) -> Vec<String> {
        let mut found = Vec::new();
        let figures = [
            self.request,
            self.event,
            self.conversation,
            self.request_with_quotas,
        ];
        for ((unit, figure), count) in UNITS.iter().zip(figures).zip(gateway) {
            for (what, committed, counted) in [
                ("instructions", figure.instructions, count.instructions),
                ("code lines", figure.code_lines, count.code_lines),
            ] {
                let change = counted as f64 / committed.max(1) as f64 - 1.0;
                println!(
                    "{what} of a relayed {unit}: {counted}, committed {committed} ({:+.1} %)",
                    change * 100.0
                );
                if counted * 100 > committed * (100 + MOST) {
                    found.push(format!(
                        "a relayed {unit} takes {counted} {what}, committed are {committed}"
                    ));
                }
            }
        }
        found
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<33} {:>12} {:>12} {:>7}",
            "", "gateway", "bare proxy", "ratio"
        )?;
        for (unit, (gateway, bare)) in UNITS.iter().zip(self.gateway.iter().zip(&self.bare)) {
            for (what, gateway, bare) in [
                ("instructions", gateway.instructions, bare.instructions),
                ("code lines", gateway.code_lines, bare.code_lines),
            ] {
                let ratio = gateway as f64 / bare.max(1) as f64;
                writeln!(
                    f,
                    "{:<33} {gateway:>12} {bare:>12} {ratio:>7.2}",
                    format!("{what}, {unit}")
                )?;
            }
        }
        Ok(())
    }
}

/// The units that are counted. A conversation has 300 KiB: one more copy of it is above the limit.
const UNITS: [&str; 4] = ["request", "event", "conversation", "request with quotas"];
/// The percentage above its figure that a cost may reach.
const MOST: u64 = 3;
const ADVICE: &str = "make it cheaper, or raise the figure by `cargo xtask bench instructions --write 'why'` in the same commit";
const HEAD: &str = "\
# The cost of a small relayed Chat request, of a relayed event of a stream, of a relayed Chat request with a conversation
# of 300 KiB, and of a small one with quotas, counted by callgrind: instructions in user space, and different lines of
# 64 bytes of code that at least every second of them executes. `cargo xtask ci` fails at 3 % above; a commit that raises
# a figure says why. Written by `cargo xtask bench instructions --write REASON`.

";

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(instructions: u64, code_lines: u64) -> Measured {
        let count = Count {
            instructions,
            code_lines,
        };
        Measured {
            gateway: [count; 4],
            bare: [count; 4],
        }
    }

    #[test]
    fn three_percent_more_is_allowed_and_not_four() {
        let figures = Figures::of(&measured(1_000, 500), "the first");
        assert_eq!(figures.hold(&measured(1_030, 515).gateway), Ok(()));
        assert_eq!(figures.hold(&measured(1, 1).gateway), Ok(()));
        let error = figures.hold(&measured(1_040, 500).gateway).unwrap_err();
        assert!(
            error.starts_with(
                "a relayed request takes 1040 instructions, committed are 1000; a relayed event"
            ),
            "{error}"
        );
        assert!(
            figures
                .hold(&measured(1_000, 520).gateway)
                .unwrap_err()
                .contains("520 code lines")
        );
    }

    #[test]
    fn a_planted_cost_has_to_be_reported_for_the_conversation() {
        let figures = Figures::of(&measured(1_000, 500), "the first");
        let [fine, dear] =
            [1_000, 1_100].map(|instructions| measured(instructions, 500).gateway[0]);
        assert_eq!(figures.miss(&[fine, fine, dear, fine]), Ok(()));
        assert!(figures.miss(&[dear, dear, fine, dear]).is_err());
    }

    #[test]
    fn the_file_is_read_as_it_is_written() {
        let figures = Figures::of(&measured(1_000, 500), "a 'first' figure");
        assert_eq!(toml::from_str::<Figures>(&figures.page()), Ok(figures));
    }
}
