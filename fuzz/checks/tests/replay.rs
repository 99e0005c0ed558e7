//! Runs every file of the committed corpus through its target, without the fuzzer.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::thread;

use sluicegate_fuzz_checks::{Check, TARGETS};

/// No file of `fuzz/corpus` makes its target panic, and neither does the empty input, with which
/// the fuzzer starts.
#[test]
fn no_input_of_the_corpus_is_a_finding() {
    let mut findings = Vec::new();
    for (target, check) in TARGETS {
        let mut inputs = inputs(target);
        assert!(!inputs.is_empty(), "fuzz/corpus/{target} has no inputs");
        inputs.push(("(empty)".to_owned(), Vec::new()));
        for (file, bytes) in inputs {
            let name = format!("{target}/{file}");
            if is_finding(name.clone(), *check, bytes) {
                findings.push(name);
            }
        }
    }
    assert!(
        findings.is_empty(),
        "findings in fuzz/corpus: {}",
        findings.join(", ")
    );
}

/// The table, the corpus and the targets of the fuzzer have the same names.
#[test]
fn every_target_has_a_corpus_and_an_entry_of_the_fuzzer() {
    let table: BTreeSet<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(
        table.len(),
        TARGETS.len(),
        "each target is in the table once"
    );
    assert_eq!(names("corpus"), table, "the folders of fuzz/corpus");
    let entries: BTreeSet<_> = table.iter().map(|name| format!("{name}.rs")).collect();
    assert_eq!(
        names("fuzz_targets"),
        entries,
        "the files of fuzz/fuzz_targets"
    );
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    for name in &table {
        let entry =
            fs::read_to_string(fuzz().join("fuzz_targets").join(format!("{name}.rs"))).unwrap();
        assert!(
            entry.contains(&format!("checks::{name}::check(bytes)")),
            "fuzz_targets/{name}.rs runs another check"
        );
        assert!(
            manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")),
            "fuzz/Cargo.toml misses {name}"
        );
    }
}

/// Runs a check on a thread with the input's name, which the message then contains even if the
/// stack overflows.
fn is_finding(name: String, check: Check, bytes: Vec<u8>) -> bool {
    let thread = thread::Builder::new()
        .name(name)
        .spawn(move || check(&bytes))
        .expect("a thread");
    thread.join().is_err()
}

/// The files of a target's corpus, each with its name.
fn inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = fuzz().join("corpus").join(target);
    let entries =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut inputs: Vec<_> = entries
        .map(|entry| {
            let entry = entry.unwrap();
            (
                entry.file_name().to_string_lossy().into_owned(),
                fs::read(entry.path()).unwrap(),
            )
        })
        .collect();
    inputs.sort();
    inputs
}

/// The names of the entries in a folder of `fuzz`.
fn names(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(fuzz().join(folder)).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}

fn fuzz() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}
