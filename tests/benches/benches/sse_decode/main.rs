//! Decoding speed compared with other crates, over the same bytes: `cargo xtask bench decode`.
//!
//! The others are adapters of async streams. They are driven over a stream that is always ready, so
//! that only decoding is measured. They return events that own their data, as a `String` or as a
//! slice of shared bytes. This crate is measured three times: lending bytes, for a JSON parser that
//! validates their UTF-8 itself; lending validated text; and returning validated text that is owned.

mod decoders;

use std::fmt::Write as _;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use benches::page;
use bytes::Bytes;
use clap::Parser;

use crate::decoders::{COLUMNS, LENT_TEXT, OWNED_TEXT, PEERS};

/// Measures decoders of server-sent events.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    page: page::Options,
    /// An argument that cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A row of the table: a stream that is decoded.
struct Row {
    /// The text of events, repeated.
    corpus: &'static str,
    text: &'static str,
    /// The length of an event, and its name.
    event: (usize, &'static str),
    events: usize,
    /// The length of a piece, and its name.
    piece: (usize, &'static str),
    /// The least ratios of lent and of owned text to the best other crate.
    goals: [f64; 2],
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let rounds = if arguments.page.quick { 3 } else { ROUNDS };
    let mut table = head();
    for row in ROWS {
        table += &row.measured(rounds);
    }
    benches::exit(arguments.page.publish("decode", &table))
}

impl Row {
    /// Measures every decoder. They take turns, so that a slow moment affects all of them. Each runs
    /// untimed first: otherwise it would also pay for the state of caches and allocator in which the
    /// one before it left them.
    fn measured(&self, rounds: usize) -> String {
        let text = self.stream();
        let pieces: Vec<Bytes> = (0..text.len())
            .step_by(self.piece.0)
            .map(|at| text.slice(at..text.len().min(at + self.piece.0)))
            .collect();
        let expected = self.events * self.data().len();
        for column in &COLUMNS[..=PEERS[3]] {
            let found = (column.decode)(&pieces);
            assert_eq!(found, expected, "{} finds other data", column.name);
        }
        let mut times = COLUMNS.map(|_| Vec::with_capacity(rounds));
        for _ in 0..rounds {
            for (column, times) in COLUMNS.iter().zip(&mut times) {
                black_box((column.decode)(&pieces));
                times.push(timed(|| (column.decode)(&pieces)));
            }
        }
        self.line(text.len(), &times)
    }

    /// The line of the table.
    fn line(&self, length: usize, times: &[Vec<Duration>; 8]) -> String {
        let medians = times
            .each_ref()
            .map(|times| median(times.iter().map(Duration::as_secs_f64)));
        let mut best = PEERS[0];
        for peer in PEERS {
            if medians[peer] < medians[best] {
                best = peer;
            }
        }
        let mut line = format!("| {}, {}, in {} ", self.event.1, self.corpus, self.piece.1);
        for median in medians {
            let _ = write!(line, "| {:.2} ", length as f64 / median / 1e9);
        }
        for (own, goal) in [LENT_TEXT, OWNED_TEXT].into_iter().zip(self.goals) {
            let pairs = times[best].iter().zip(&times[own]);
            let ratio = median(pairs.map(|(best, own)| best.as_secs_f64() / own.as_secs_f64()));
            let verdict = if ratio >= goal { "met" } else { "missed" };
            let _ = write!(line, "| {ratio:.2} (≥ {goal}: {verdict}) ");
        }
        line + "|\n"
    }

    /// The data of an event as a model streams it.
    fn data(&self) -> String {
        let mut data = format!("{DATA}{}", self.text);
        while NAME.len() + data.len() + END.len() < self.event.0 {
            let left = self.event.0 - NAME.len() - data.len() - END.len();
            data += if self.text.len() <= left {
                self.text
            } else {
                "."
            };
        }
        data + "\"}"
    }

    fn stream(&self) -> Bytes {
        let event = format!("{NAME}{}\n\n", self.data());
        assert_eq!(event.len(), self.event.0);
        event.repeat(self.events).into()
    }
}

fn head() -> String {
    let names = COLUMNS.map(|column| column.name).join(" | ");
    let rule = "---:|".repeat(COLUMNS.len() + 2);
    format!("| events | {names} | lent text / best | owned text / best |\n|---|{rule}\n")
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The duration of `work`.
#[allow(clippy::disallowed_methods)] // A bench reads the clock: time is what it measures.
fn timed(work: impl FnOnce() -> usize) -> Duration {
    let begin = Instant::now();
    black_box(work());
    begin.elapsed()
}

const fn row(
    [corpus, text]: [&'static str; 2],
    event: (usize, &'static str),
    events: usize,
    piece: (usize, &'static str),
    goals: [f64; 2],
) -> Row {
    Row {
        corpus,
        text,
        event,
        events,
        piece,
        goals,
    }
}

const ROWS: [Row; 9] = [
    row(ASCII, TOKEN, 10_000, LARGE, [3.0, 1.5]),
    row(ASCII, TOKEN, 10_000, SMALL, [2.0, 1.0]),
    row(ASCII, TOKEN, 10_000, TINY, [1.0, 1.0]),
    row(MIXED, TOKEN, 10_000, LARGE, [3.0, 1.5]),
    row(MIXED, TOKEN, 10_000, SMALL, [2.0, 1.0]),
    row(MIXED, TOKEN, 10_000, TINY, [1.0, 1.0]),
    row(ASCII, (40_000, "40 kB"), 50, (1460, "1460 B"), [1.0, 1.0]),
    row(ASCII, (40_000, "40 kB"), 50, LARGE, [1.0, 1.0]),
    row(ASCII, (2_000_000, "2 MB"), 2, LARGE, [1.0, 1.0]),
];
const ASCII: [&str; 2] = ["ASCII", "The quick brown fox j"];
const MIXED: [&str; 2] = ["mixed scripts", "Le café, 東京 ✓"];
const TOKEN: (usize, &str) = (210, "210 B");
const LARGE: (usize, &str) = (16 << 10, "16 KiB");
const SMALL: (usize, &str) = (256, "256 B");
const TINY: (usize, &str) = (16, "16 B");
const NAME: &str = "event: response.output_text.delta\ndata: ";
const DATA: &str = "{\"type\":\"response.output_text.delta\",\"sequence_number\":1234,\"item_id\":\"msg_0123456789abcdef\",\
                    \"output_index\":0,\"content_index\":0,\"delta\":\"";
const END: &str = "\"}\n\n";
const ROUNDS: usize = 31;
