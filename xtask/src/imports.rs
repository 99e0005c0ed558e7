//! Finds circles of imports between the files of a crate.
//!
//! A file imports another if it names a module or an item in it, in a `use` declaration or by a
//! path in its code, also by way of a re-export. A module and the modules in it may import each
//! other.

mod circles;
mod paths;
mod scope;

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::Metadata;

use self::circles::Graph;
use self::scope::Scope;
use crate::outcome::Outcome;
use crate::source::{ModulePath, Modules, modules};

/// The circles of all libraries and programs, each in a line.
pub(crate) fn problems(metadata: &Metadata) -> Outcome<Vec<String>> {
    let mut found = Vec::new();
    for package in &metadata.packages {
        let name = package.name.trim_start_matches("sluicegate-");
        let circles: BTreeSet<_> = modules::of(package)?.iter().flat_map(circles).collect();
        found.extend(circles.iter().map(|circle| format!("{name}: {circle}")));
    }
    Ok(found)
}

/// The circles of imports in a crate, each in a line.
fn circles(modules: &Modules) -> Vec<String> {
    let paths = paths(modules);
    let is_in = |file: &str, outer: &str| paths[file].starts_with(paths[outer]);
    let mut found = BTreeSet::new();
    let mut graphs = vec![graph(modules)];
    while let Some(graph) = graphs.pop() {
        for circle in graph.circles() {
            if let [file] = Vec::from_iter(&circle)[..] {
                found.insert(format!("{file} imports itself"));
            } else if let Some(outer) = circle
                .iter()
                .find(|outer| circle.iter().all(|file| is_in(file, outer)))
            {
                // A circle through a module that all others are in is allowed; there may be one
                // without it.
                graphs.push(graph.among(&circle, outer));
            } else {
                let way = graph.among(&circle, "").shortest_circle(is_in);
                found.insert(format!(
                    "{} files import each other: {}",
                    circle.len(),
                    way.unwrap_or_default()
                ));
            }
        }
    }
    found.into_iter().collect()
}

/// The imports between the files of a crate.
fn graph(modules: &Modules) -> Graph {
    let mut graph = Graph::default();
    let file = |path: &[String]| {
        modules
            .get(path)
            .map(|module| module.file.to_string_lossy())
    };
    for (at, reached, line) in Scope::of(modules).imports() {
        let Some(from) = file(at) else { continue };
        let mut through = false;
        for to in reached.iter().filter_map(|path| file(path)) {
            // A file that names its own item by way of another file imports itself.
            if from != to || through {
                graph.add(&from, &to, line);
            }
            through |= from != to;
        }
    }
    graph
}

/// The outermost module of each file.
fn paths(modules: &Modules) -> BTreeMap<String, &ModulePath> {
    let mut paths = BTreeMap::new();
    for (path, module) in modules {
        paths
            .entry(module.file.to_string_lossy().into_owned())
            .or_insert(path);
    }
    paths
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The circles of a crate with these files.
    fn planted(files: &[(&str, &str)]) -> Vec<String> {
        let read = |path: &Path| {
            let file = files.iter().find(|(name, _)| Path::new(name) == path);
            file.map(|(_, text)| (*text).to_owned())
                .ok_or_else(|| format!("{} is missing", path.display()))
        };
        circles(&modules::read(Path::new("lib.rs"), &read).unwrap())
    }

    #[test]
    fn two_files_that_import_each_other_are_a_circle() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "//! A.\n\nuse crate::b::B;\n"),
            ("b.rs", "use super::a::A;\n"),
            ("c.rs", "use crate::a::A;"),
        ];
        assert_eq!(
            planted(&files),
            ["2 files import each other: a.rs:3 → b.rs:1 → a.rs"]
        );
    }

    #[test]
    fn a_circle_of_three_is_found_in_nested_and_renamed_imports() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c { pub mod d; }"),
            ("a.rs", "use crate::{\n    b::{self as bee, B},\n    e,\n};"),
            ("b.rs", "use crate::{other, c::{d::*}};"),
            ("c/d.rs", "\nfn f() -> u8 { crate::a::f(1) }"),
        ];
        assert_eq!(
            planted(&files),
            ["3 files import each other: a.rs:2 → b.rs:1 → c/d.rs:2 → a.rs"]
        );
    }

    #[test]
    fn a_path_in_code_leads_through_imported_modules() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b as bee;\nfn f() { bee::c::g() }"),
            ("b.rs", "pub mod c;"),
            ("b/c.rs", "use crate::a;\npub fn g() { a::f() }"),
        ];
        assert_eq!(
            planted(&files),
            ["2 files import each other: a.rs:2 → b/c.rs:1 → a.rs"]
        );
    }

    #[test]
    fn a_re_export_hides_no_circle() {
        let mut files = [
            (
                "lib.rs",
                "mod a; mod b; pub use a::A; pub use b::{B, B2 as C};",
            ),
            ("a.rs", "use crate::C;"),
            ("b.rs", "use crate::A;"),
        ];
        assert_eq!(
            planted(&files),
            ["2 files import each other: a.rs:1 → b.rs:1 → a.rs"]
        );
        files[2].1 = "use crate::B as Own;";
        assert_eq!(planted(&files), ["b.rs imports itself"]);
    }

    #[test]
    fn a_module_and_those_in_it_may_import_each_other() {
        let files = [
            ("lib.rs", "mod a; pub use a::A; pub struct Root;"),
            ("a.rs", "mod b; mod c; use self::{b::B, c::C};"),
            ("a/b.rs", "use super::A; use super::c::C; use crate::Root;"),
            ("a/c.rs", "use crate::a::A;"),
        ];
        assert_eq!(planted(&files), Vec::<String>::new());
    }

    #[test]
    fn a_circle_over_a_module_and_one_in_it_is_a_circle() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "mod c;\nuse self::c::C;\nuse crate::b::B;"),
            ("a/c.rs", "use super::A;"),
            ("b.rs", "use crate::a::c::C;"),
        ];
        assert_eq!(
            planted(&files),
            ["3 files import each other: a.rs:3 → b.rs:1 → a/c.rs:1 → a.rs"]
        );
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "mod c;\nmod d;\nuse self::c::C;"),
            ("a/c.rs", "use crate::b::B;"),
            ("a/d.rs", "use super::A;"),
            ("b.rs", "use crate::a::d::D;"),
        ];
        let way = "a/c.rs:1 → b.rs:1 → a/d.rs:1 → a.rs:3 → a/c.rs";
        assert_eq!(
            planted(&files),
            [format!("4 files import each other: {way}")]
        );
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "mod c;\nuse self::c::C;"),
            ("a/c.rs", "use crate::b::B;"),
            ("b.rs", "use crate::a::A;"),
        ];
        assert_eq!(
            planted(&files),
            ["3 files import each other: a/c.rs:1 → b.rs:1 → a.rs:2 → a/c.rs"]
        );
    }

    #[test]
    fn imports_of_tests_and_other_crates_do_not_count() {
        let files = [
            ("lib.rs", "mod a; mod b; #[cfg(test)] mod tests;"),
            (
                "a.rs",
                "use other::b::B;\n#[cfg(test)]\nuse crate::b::B;\n#[cfg(test)]\nmod tests { use crate::b::B; }",
            ),
            ("b.rs", "use crate::a::A;"),
        ];
        assert_eq!(planted(&files), Vec::<String>::new());
    }
}
