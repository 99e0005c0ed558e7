//! The committed figures of `INSTRUCTIONS.toml`, and how much a measurement may differ from them.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use benches::Outcome;
use benches::callgrind::Count;

/// The cost of each of [`UNITS`].
pub(crate) type Costs = [Count; 4];

/// The costs of the gateway and of a bare proxy, displayed with their ratios.
#[derive(Debug)]
pub(crate) struct Ratios {
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

    /// The figures of a measurement of the gateway.
    pub(crate) fn of(gateway: &Costs, reason: &str) -> Self {
        let [request, event, conversation, request_with_quotas] = gateway.map(
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

    /// Prints the comparison of a measurement of the gateway with the figures, and returns the counts
    /// of instructions that are over `most` percent above theirs. Code lines are only printed: they
    /// say more about the compiler than about the work.
    pub(crate) fn excesses(&self, gateway: &Costs, most: u64) -> Vec<String> {
        let mut found = Vec::new();
        let figures = [
            self.request,
            self.event,
            self.conversation,
            self.request_with_quotas,
        ];
        for ((unit, figure), count) in UNITS.iter().zip(figures).zip(gateway) {
            let instructions = Change(figure.instructions, count.instructions);
            let remark = instructions.remark();
            println!("instructions of a relayed {unit}: {instructions}{remark}");
            let code_lines = Change(figure.code_lines, count.code_lines);
            println!("code lines of a relayed {unit}: {code_lines}");
            if instructions.percent() > most as f64 {
                found.push(format!(
                    "instructions of a relayed {unit}: {instructions}, allowed are +{most} %"
                ));
            }
        }
        found
    }
}

/// Fails if a count is too high.
pub(crate) fn held(excesses: &[String]) -> Outcome {
    match excesses {
        [] => Ok(()),
        found => Err(format!("{}; {ADVICE}", found.join("; "))),
    }
}

/// Fails unless the conversation costs too much, in which something was planted.
pub(crate) fn caught(excesses: &[String]) -> Outcome {
    let [_, _, conversation, _] = UNITS;
    match excesses.iter().any(|excess| excess.contains(conversation)) {
        true => Ok(()),
        false => Err("what was planted is not reported".to_owned()),
    }
}

/// The committed and the counted figure.
struct Change(u64, u64);

impl Change {
    fn percent(&self) -> f64 {
        let Self(committed, counted) = *self;
        (counted as f64 - committed as f64) * 100.0 / committed.max(1) as f64
    }

    /// A warning about a figure that should be looked at.
    fn remark(&self) -> &'static str {
        let percent = self.percent();
        if percent > WARNING {
            "; warning: it has risen"
        } else if percent < -STALE {
            "; warning: the committed figure is stale, write it again"
        } else {
            ""
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(committed, counted) = self;
        let percent = self.percent();
        write!(f, "{counted}, committed {committed} ({percent:+.1} %)")
    }
}

impl fmt::Display for Ratios {
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
/// The percentage above its figure that a count of instructions may reach: the head of the file says
/// why.
pub(crate) const MOST: u64 = 10;
/// The percentage above its figure that is worth a warning.
const WARNING: f64 = 3.0;
/// The percentage below its figure from which on an increase could hide.
const STALE: f64 = 10.0;
const ADVICE: &str = "make it cheaper, or raise the figure by `cargo xtask bench instructions --write 'why'` in the same commit";
const HEAD: &str = "\
# The cost of a small relayed Chat request, of a relayed event of a stream, of a relayed Chat request with a conversation
# of 300 KiB, and of a small one with quotas, counted by callgrind: instructions in user space, and different lines of
# 64 bytes of code that at least every second of them executes. Written by `cargo xtask bench instructions --write
# REASON`; a commit that raises a figure says why.
#
# `cargo xtask bench instructions` fails if instructions are over 10 % above their figure, and warns above 3 % and below
# -10 %; code lines are only reported. The bound is that wide because a count also depends on the machine: on the
# features of its processor, by which memchr, simdutf8 and libc select their code, on the version of valgrind, which
# reports these features, and on the version of libc. `--against COMMIT` counts another commit on the same machine, and
# fails at 3 %. `--planted` shows that one more copy of the body is above 10 %.

";

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(instructions: u64, code_lines: u64) -> Costs {
        let count = Count {
            instructions,
            code_lines,
        };
        [count; 4]
    }

    #[test]
    fn ten_percent_more_instructions_are_allowed_and_not_eleven() {
        let figures = Figures::of(&counted(1_000, 500), "the first");
        let excesses =
            |instructions, code_lines| figures.excesses(&counted(instructions, code_lines), 10);
        assert_eq!(excesses(1_100, 1_000), [""; 0]);
        assert_eq!(excesses(1, 1), [""; 0]);
        assert_eq!(
            excesses(1_110, 500)[0],
            "instructions of a relayed request: 1110, committed 1000 (+11.0 %), allowed are +10 %"
        );
        assert_eq!(held(&[]), Ok(()));
        assert!(held(&excesses(1_110, 500)).is_err());
    }

    #[test]
    fn growth_over_3_percent_and_stale_counts_are_warnings() {
        assert_eq!(Change(1_000, 1_030).remark(), "");
        assert_eq!(Change(1_000, 1_031).remark(), "; warning: it has risen");
        assert_eq!(Change(1_000, 900).remark(), "");
        assert_eq!(
            Change(1_000, 899).remark(),
            "; warning: the committed figure is stale, write it again"
        );
    }

    #[test]
    fn a_planted_cost_has_to_be_reported_for_the_conversation() {
        let figures = Figures::of(&counted(1_000, 500), "the first");
        let [fine, dear] = [1_000, 1_200].map(|instructions| counted(instructions, 500)[0]);
        let caught = |gateway: Costs| caught(&figures.excesses(&gateway, 10));
        assert_eq!(caught([fine, fine, dear, fine]), Ok(()));
        assert!(caught([dear, dear, fine, dear]).is_err());
    }

    #[test]
    fn the_file_is_read_as_it_is_written() {
        let figures = Figures::of(&counted(1_000, 500), "a 'first' figure");
        assert_eq!(toml::from_str::<Figures>(&figures.page()), Ok(figures));
    }
}
