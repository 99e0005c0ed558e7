//! The examples of the documentation: each configuration passes `sluicegate check`, each request with
//! curl is answered, and the first steps lead to a limit. The programs beside this file build the book,
//! check its links and draw its plots.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

mod configurations;
mod requests;
mod start;
mod vendors;

use std::fs;
use std::path::{Path, PathBuf};

const GATEWAY: testkit::Binary = testkit::binary!();

/// The names and texts of the README and of all pages in `docs`.
fn pages() -> Vec<(String, String)> {
    let docs = fs::read_dir(path("docs")).unwrap();
    let docs = docs.map(|entry| entry.unwrap().path());
    let files = docs.chain([path("README.md")]);
    let mut files: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|end| end == "md"))
        .collect();
    files.sort();
    let page = |file: &PathBuf| {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(file).unwrap())
    };
    files.iter().map(page).collect()
}

/// The text of a page, named from the root of the repository.
fn page(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap()
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}
