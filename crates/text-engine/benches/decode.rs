//! Tokens per second of the embedded model: processing a prompt, and generating an answer.

#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::time::{Duration, Instant};

use engine::{Sampling, TextEngine, TextEvent, TextRequest, Turn, Usage, UserPart};
use futures_util::StreamExt;
use sluicegate_text_engine::{EmbeddedTextEngine, Options};

fn main() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("| threads | prompt, tokens/s | answer, tokens/s |\n|---|---|---|");
    println!("| llama.cpp, Q8_0, 1 (2) | | 110 (127) |");
    println!("| candle's own product, 1 | 95 | 49 |\n| candle's own product, 2 | 150 | 70 |");
    for threads in if cores > 1 { vec![1, cores] } else { vec![1] } {
        let (read, written) = speeds(threads);
        println!("| {threads} | {read:.0} | {written:.0} |");
    }
}

/// Measures the tokens per second of a prompt and of an answer.
fn speeds(threads: usize) -> (f64, f64) {
    let engine = EmbeddedTextEngine::load(Options {
        threads,
        generations: 1,
        ..Options::default()
    });
    let engine = engine.expect("the weights exist: run `cargo xtask fetch-model`");
    let story = "The quick brown fox jumps over the lazy dog. ".repeat(40);
    let (first, _, usage) = time(&engine, &format!("{story} How many foxes are there?"), 1);
    let read = usage.input as f64 / first.as_secs_f64();
    let (first, whole, usage) = time(&engine, "Write a long story about a brave fox.", 160);
    (
        read,
        (usage.output - 1) as f64 / (whole - first).as_secs_f64(),
    )
}

/// Runs one request; returns the time to the first event, the time to the last one, and the usage.
fn time(engine: &EmbeddedTextEngine, question: &str, cap: u64) -> (Duration, Duration, Usage) {
    let request = TextRequest {
        turns: vec![Turn::User(vec![UserPart::Text(question.to_owned())])],
        max_output_tokens: Some(cap),
        sampling: Sampling {
            temperature: Some(0.0),
            ..Sampling::default()
        },
        ..TextRequest::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let start = Instant::now();
        let mut events = engine.start(request).await.expect("a generation").events;
        let mut first = None;
        loop {
            let event = events.next().await.expect("an end").expect("no failure");
            let at = *first.get_or_insert_with(|| start.elapsed());
            if let TextEvent::Finished { usage, .. } = event {
                return (at, start.elapsed(), usage.unwrap_or_default());
            }
        }
    })
}
