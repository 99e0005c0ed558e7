//! Finds circles of imports between the root modules of a crate, and imports that go up, if `lib.rs`
//! declares the modules in the order of their layers, lowest first.
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
        let within: Vec<_> = within.collect();
        let problems = circle(&within).into_iter().chain(upward(&within));
        found.extend(problems.map(|problem| format!("{folder}: {problem}")));
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

/// The imports of modules that `lib.rs` declares later. Modules in alphabetical order have no layers.
fn upward(files: &[(&str, &str)]) -> Vec<String> {
    let lib = files.iter().find(|(name, _)| *name == "lib.rs");
    let lines = lib.into_iter().flat_map(|(_, text)| text.lines());
    let words = lines.filter_map(|line| line.split("mod ").nth(1)?.strip_suffix(';'));
    let order: Vec<_> = words.collect();
    let place = |module: &str| order.iter().position(|name| *name == module);
    let mut found = Vec::new();
    for (from, to) in arrows(files).iter().filter(|_| !order.is_sorted()) {
        let later = to.iter().filter(|(to, _)| place(from) < place(to));
        found.extend(later.map(|(to, at)| format!("{from} imports {to} above it ({at})")));
    }
    found
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
    first.trim_end_matches(".rs")
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
    fn imports_of_modules_that_are_declared_later_go_up() {
        let files = |lib| [("lib.rs", lib), ("a.rs", "use crate::b;"), ("b.rs", "")];
        assert_eq!(upward(&files("mod b;\n\npub mod a;")), Vec::<String>::new());
        // In alphabetical order there are no layers.
        assert_eq!(upward(&files("mod a;\nmod b;")), Vec::<String>::new());
        let up = upward(&files("mod a;\n\nmod c;\n\npub(crate) mod b;"));
        assert_eq!(up, ["a imports b above it (a.rs:1)"]);
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
