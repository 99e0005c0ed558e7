//! Finds circles of imports between the root modules of a crate.
//!
//! A root module imports another if its code, outside of tests, has a path `crate::NAME` to it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cargo_metadata::Metadata;

use crate::outcome::Outcome;
use crate::workspace;

/// The imports of a crate: each root module with the modules that it imports, and where.
type Arrows<'a> = BTreeMap<&'a str, BTreeMap<&'a str, String>>;

/// The circles of all crates, each in a line.
pub(crate) fn problems(metadata: &Metadata) -> Outcome<Vec<String>> {
    let sources = workspace::texts(|name| name.ends_with(".rs"))?;
    let crates = metadata.packages.iter().filter_map(workspace::crate_folder);
    let crates = crates.map(|folder| format!("crates/{folder}/src/"));
    let mut found = Vec::new();
    for folder in crates.chain(["xtask/src/".to_owned()]) {
        let sources = sources.iter();
        let within =
            sources.filter_map(|(name, text)| Some((name.strip_prefix(&folder)?, &**text)));
        let circle = circle(&within.collect::<Vec<_>>());
        found.extend(circle.map(|circle| format!("{folder}: {circle}")));
    }
    Ok(found)
}

/// A circle of imports between the root modules of these files, with the places of its imports.
fn circle(files: &[(&str, &str)]) -> Option<String> {
    let arrows = arrows(files);
    for start in arrows.keys() {
        let mut ways = vec![vec![*start]];
        let mut seen = BTreeSet::new();
        while let Some(way) = ways.pop() {
            let last = way.last()?;
            for next in arrows.get(last).into_iter().flat_map(BTreeMap::keys) {
                let way = [&way[..], &[*next]].concat();
                if next == start {
                    return Some(shown(&way, &arrows));
                }
                if seen.insert(*next) {
                    ways.insert(0, way);
                }
            }
        }
    }
    None
}

fn shown(way: &[&str], arrows: &Arrows<'_>) -> String {
    let pairs = way.iter().zip(&way[1..]);
    let imports = pairs.map(|(from, to)| format!("{from} imports {to} ({})", arrows[from][to]));
    imports.collect::<Vec<_>>().join(", ")
}

fn arrows<'a>(files: &[(&'a str, &'a str)]) -> Arrows<'a> {
    let modules: BTreeSet<_> = files.iter().map(|(name, _)| module(name)).collect();
    let mut arrows = Arrows::new();
    for (name, text) in files.iter().filter(|(name, _)| !is_tests(name)) {
        let own = module(name);
        for (line, path) in paths(text) {
            let path = grouped(path);
            if path != own && modules.contains(path) {
                let of = arrows.entry(own).or_default();
                of.entry(path).or_insert_with(|| format!("{name}:{line}"));
            }
        }
    }
    // The root may name every module.
    for root in ["lib", "main"] {
        arrows.remove(root);
    }
    arrows
}

/// The root module of a file: `limit` for `limit.rs` and for `limit/permit.rs`.
fn module(name: &str) -> &str {
    let first = name.split('/').next().unwrap_or(name);
    grouped(first.trim_end_matches(".rs"))
}

/// The module that stands for those that count as one.
fn grouped(module: &str) -> &str {
    match TOGETHER.contains(&module) {
        true => TOGETHER[0],
        false => module,
    }
}

fn is_tests(name: &str) -> bool {
    let mut parts = Path::new(name).iter();
    parts.any(|part| part == "tests" || part == "tests.rs" || part == "testing.rs")
}

/// The names behind `crate::` outside of comments and tests, with their lines; of a group, each
/// name in it.
fn paths(text: &str) -> Vec<(usize, &str)> {
    let code = text.split("\n#[cfg(test)]").next().unwrap_or(text);
    let mut found = Vec::new();
    for (at, root) in code.match_indices("crate::") {
        let before = code[..at].rsplit('\n').next().unwrap_or_default();
        if before.ends_with(is_of_name) || before.ends_with('$') || before.contains("//") {
            continue;
        }
        let line = code[..at].lines().count().max(1);
        let rest = &code[at + root.len()..];
        match rest.strip_prefix('{') {
            Some(group) => found.extend(members(group).map(|name| (line, name))),
            None => found.push((line, first(rest))),
        }
    }
    found
}

/// The first name of each member of a group, which begins behind its brace.
fn members(group: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let mut starts = vec![0];
    for (at, letter) in group.char_indices() {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        match (depth, letter) {
            (..0, _) => break,
            (0, ',') => starts.push(at + 1),
            _ => {}
        }
    }
    let starts = starts.into_iter();
    starts.map(|start| first(group[start..].trim_start()))
}

fn first(path: &str) -> &str {
    let end = path.find(|letter| !is_of_name(letter));
    &path[..end.unwrap_or(path.len())]
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Modules of the server that are one layer, and are to become one folder: a response, its body, its
/// record and its refusal.
const TOGETHER: [&str; 4] = ["answer", "body", "record", "refusal"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_that_import_each_other_are_a_circle() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "//! A.\n\nuse crate::b::B;\n"),
            ("b.rs", "use crate::{\n    other,\n    c::{d, e},\n};\n"),
            ("c/d.rs", "fn f() -> u8 { crate::a::f(1) }"),
        ];
        assert_eq!(
            circle(&files).as_deref(),
            Some("a imports b (a.rs:3), b imports c (b.rs:1), c imports a (c/d.rs:1)")
        );
        assert_eq!(circle(&files[..3]), None);
    }

    #[test]
    fn imports_of_tests_comments_and_the_root_do_not_count() {
        let files = [
            ("lib.rs", "mod a; mod b; use crate::a::A;"),
            (
                "a.rs",
                "//! [`B`](crate::b::B)\n\n#[cfg(test)]\nmod tests { use crate::b::B; }",
            ),
            ("a/tests.rs", "use crate::b::B;"),
            ("b.rs", "use crate::a::A;"),
        ];
        assert_eq!(circle(&files), None);
    }
}
