//! Tokens per second of the embedded model: reading a prompt, and generating an answer; and of the
//! same model run by candle.

#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::process::Command;
use std::time::{Duration, Instant};

use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use engine::{Sampling, TextEngine, TextEvent, TextRequest, Turn, Usage, UserPart};
use futures_util::StreamExt;
use text_engine::{EmbeddedTextEngine, Options, weights};

fn main() {
    if std::env::args().any(|arg| arg == CANDLE) {
        let (read, written) = speeds_of_candle().expect("the weights load");
        return print!("{read:.0} | {written:.0}");
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("| threads | prompt | answer | prompt, candle | answer, candle |");
    println!("|---|---|---|---|---|");
    for threads in if cores > 1 { vec![1, cores] } else { vec![1] } {
        let (read, written) = speeds(threads);
        let candle = candle(threads);
        println!("| {threads} | {read:.0} | {written:.0} | {candle} |");
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
    let (first, whole, usage) = time(&engine, "Write a long story about a brave fox.", ANSWER);
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

/// The measurements of candle, in a process of its own: its number of threads is a setting of the
/// process.
fn candle(threads: usize) -> String {
    let program = std::env::current_exe().expect("the path of this program");
    let output = Command::new(program)
        .arg(CANDLE)
        .env("CANDLE_NUM_THREADS", threads.to_string())
        .env("RAYON_NUM_THREADS", threads.to_string())
        .output();
    String::from_utf8_lossy(&output.expect("the program starts").stdout).into_owned()
}

/// The same measurements of candle: a prompt and an answer of about as many tokens.
fn speeds_of_candle() -> candle_core::Result<(f64, f64)> {
    // The format that this engine computes in, which is a fast one in candle too.
    let quantized = |full| QMatMul::from_qtensor(QTensor::quantize(&full, GgmlDType::Q8_0)?);
    let mut model = sluicegate_candle::Model::load(&weights::default_path(), quantized)?;
    let prompt: Vec<u32> = (1000..1000 + PROMPT).collect();
    // The first product of a matrix rearranges it.
    model.forward(&prompt[..32])?;
    model.forward(&prompt[..1])?;
    model.reset();
    let start = Instant::now();
    for chunk in prompt.chunks(32) {
        model.forward(chunk)?;
    }
    let read = f64::from(PROMPT) / start.elapsed().as_secs_f64();
    model.reset();
    let mut scores = model.forward(&prompt[..32])?;
    let start = Instant::now();
    for _ in 1..ANSWER {
        let best = (0..).zip(&scores).max_by(|a, b| a.1.total_cmp(b.1));
        scores = model.forward(&[best.map_or(0, |(token, _)| token)])?;
    }
    Ok((read, (ANSWER - 1) as f64 / start.elapsed().as_secs_f64()))
}

/// The argument with which this program measures candle.
const CANDLE: &str = "--candle";

/// Number of tokens of the prompt.
const PROMPT: u32 = 440;

/// Number of tokens of the answer.
const ANSWER: u64 = 160;
