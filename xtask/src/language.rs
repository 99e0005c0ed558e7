//! `cargo xtask language`: measures the language and the shape of the code, crate by crate.
//!
//! The figures of a crate are those of its libraries and programs without tests: words of
//! `language/dialect.txt` in a thousand lines, paragraphs of documentation that begin with an
//! unclear word, the lines of functions (percentiles), declarations of several variables as a tuple
//! of values, and lines of more than a hundred characters.

use std::collections::BTreeMap;
use std::iter;
use std::ops::AddAssign;
use std::path::Path;

use proc_macro2::TokenTree;

use crate::outcome::{At as _, Outcome};
use crate::source::{Modules, Source, is_braced, is_punct, modules, trees};
use crate::workspace;

/// Prints a table with a row for each crate.
pub(crate) fn run() -> Outcome {
    let crates = measures()?;
    let mut total = Measure::default();
    println!("{HEAD}");
    for (name, measure) in crates {
        println!("{}", measure.row(&name));
        total += measure;
    }
    println!("{}", total.row("total"));
    Ok(())
}

/// The measures of each crate of the product and of xtask, by its folder, without those of its
/// tests.
pub(crate) fn measures() -> Outcome<BTreeMap<String, Measure>> {
    let root = workspace::root();
    let files = workspace::texts(|name| name.ends_with(".rs"))?;
    let mut crates = BTreeMap::new();
    for package in workspace::metadata()?.packages {
        let folder = package
            .manifest_path
            .parent()
            .and_then(|folder| folder.strip_prefix(&root).ok());
        let Some(folder) =
            folder.filter(|folder| folder.starts_with("crates") || *folder == "xtask")
        else {
            continue;
        };
        let targets = modules::of(&package)?;
        let sources: Vec<_> = targets
            .iter()
            .flat_map(Modules::values)
            .map(|module| module.file.as_path())
            .collect();
        let mut measure = Measure::default();
        for (file, text) in files
            .iter()
            .filter(|(file, _)| Path::new(file).starts_with(folder))
        {
            if sources.contains(&Path::new(file)) {
                measure += Measure::of(text).at(file)?;
            } else {
                measure.tests += text.lines().count();
            }
        }
        crates.insert(folder.file_name().unwrap_or_default().to_owned(), measure);
    }
    Ok(crates)
}

/// Figures of source text outside of tests.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Measure {
    pub(crate) lines: usize,
    /// The lines of tests, for which there are no other figures.
    pub(crate) tests: usize,
    /// Words of [`DIALECT`].
    pub(crate) dialect: usize,
    /// Paragraphs of documentation.
    pub(crate) docs: usize,
    /// Those of them that begin with a word such as "What" or "Whether".
    pub(crate) unclear: usize,
    /// The lines of each function.
    pub(crate) functions: Vec<usize>,
    /// Declarations of several variables as a tuple of their values.
    pub(crate) tuples: usize,
    /// Lines of more than a hundred characters.
    pub(crate) wide: usize,
}

impl Measure {
    /// Measures one file.
    fn of(text: &str) -> Outcome<Self> {
        let source = Source::parse(text)?;
        let is_test = |number: usize| source.tests.iter().any(|lines| lines.contains(&number));
        let (tests, lines): (Vec<_>, Vec<_>) = (1..)
            .zip(text.lines())
            .partition(|(number, _)| is_test(*number));
        let openings: Vec<_> = openings(text)
            .filter(|(number, _)| !is_test(*number))
            .map(|(_, word)| word)
            .collect();
        let mut measure = Self {
            lines: lines.len(),
            tests: tests.len(),
            dialect: lines
                .iter()
                .flat_map(|(_, line)| words(line))
                .filter(|word| is_dialect(word))
                .count(),
            docs: openings.len(),
            unclear: openings
                .iter()
                .filter(|word| UNCLEAR.contains(word))
                .count(),
            wide: lines
                .iter()
                .filter(|(_, line)| line.chars().count() > WIDE)
                .count(),
            ..Self::default()
        };
        measure.walk(&source.tokens);
        Ok(measure)
    }

    /// Measures functions and declarations.
    fn walk(&mut self, tokens: &[TokenTree]) {
        for (at, token) in tokens.iter().enumerate() {
            match &tokens[at..] {
                [TokenTree::Ident(word), TokenTree::Ident(_), rest @ ..] if word == "fn" => {
                    let body = rest
                        .iter()
                        .take_while(|token| !is_punct(token, ';'))
                        .find(|token| is_braced(token));
                    let lines =
                        |body: &TokenTree| body.span().end().line + 1 - word.span().start().line;
                    self.functions.extend(body.map(lines));
                }
                [
                    TokenTree::Ident(word),
                    TokenTree::Group(_),
                    equals,
                    TokenTree::Group(_),
                    end,
                    ..,
                ] if word == "let" && is_punct(equals, '=') && is_punct(end, ';') => {
                    self.tuples += 1;
                }
                _ => {}
            }
            if let TokenTree::Group(group) = token {
                self.walk(&trees(group.stream()));
            }
        }
    }

    /// Words of the dialect in a thousand lines.
    pub(crate) fn dialect_rate(&self) -> f64 {
        rate(self.dialect, self.lines, 1000.0)
    }

    /// Of a hundred paragraphs of documentation, those with an unclear first word.
    pub(crate) fn unclear_rate(&self) -> f64 {
        rate(self.unclear, self.docs, 100.0)
    }

    fn row(&self, name: &str) -> String {
        let mut functions = self.functions.clone();
        functions.sort_unstable();
        let [half, most, nearly_all, all] = [50, 90, 99, 100].map(|percent| {
            let at = (functions.len() * percent).div_ceil(100).max(1) - 1;
            functions.get(at).copied().unwrap_or_default()
        });
        format!(
            "{name:<14}{:>7}{:>8}{:>15.1}{:>11.1} %{:>5} /{:>3} /{:>3} /{:>3}{:>8}{:>7.1} %",
            self.lines,
            self.tests,
            self.dialect_rate(),
            self.unclear_rate(),
            half,
            most,
            nearly_all,
            all,
            self.tuples,
            rate(self.wide, self.lines, 100.0),
        )
    }
}

impl AddAssign for Measure {
    fn add_assign(&mut self, other: Self) {
        self.lines += other.lines;
        self.tests += other.tests;
        self.dialect += other.dialect;
        self.docs += other.docs;
        self.unclear += other.unclear;
        self.functions.extend(other.functions);
        self.tuples += other.tuples;
        self.wide += other.wide;
    }
}

fn rate(count: usize, of: usize, scale: f64) -> f64 {
    if of == 0 {
        0.0
    } else {
        count as f64 / of as f64 * scale
    }
}

/// Returns true for a word of [`DIALECT`].
fn is_dialect(word: &str) -> bool {
    DIALECT
        .split_whitespace()
        .any(|other| other.eq_ignore_ascii_case(word))
}

/// The first word of each paragraph of documentation, with its line.
pub(crate) fn openings(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut before = "";
    (1..)
        .zip(text.lines().map(str::trim_start))
        .filter_map(move |(number, line)| {
            let marker = MARKERS
                .into_iter()
                .find(|marker| line.starts_with(marker))
                .unwrap_or_default();
            let is_opening = !marker.is_empty() && marker != before;
            before = marker;
            is_opening.then(|| Some((number, line[marker.len()..].split_whitespace().next()?)))?
        })
}

/// The words of a line; names are split at underscores and capitals.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|letter: char| !letter.is_alphabetic())
        .flat_map(|name| {
            let is_constant = !name.contains(char::is_lowercase);
            let mut rest = name;
            iter::from_fn(move || {
                let next = rest
                    .char_indices()
                    .skip(1)
                    .find(|(_, letter)| letter.is_uppercase() && !is_constant);
                let (word, after) = rest.split_at(next.map_or(rest.len(), |(at, _)| at));
                rest = after;
                (!word.is_empty()).then_some(word)
            })
        })
}

const HEAD: &str = "crate           lines   tests        dialect  unclear docs  functions 50/90/99/100  tuples    wide";
const MARKERS: [&str; 2] = ["//! ", "/// "];
const WIDE: usize = 100;
/// Words that begin documentation without naming the item or its action.
const UNCLEAR: [&str; 10] = [
    "What", "Whether", "Who", "Whom", "Whose", "How", "Which", "So", "As", "Of",
];
/// Words that stand where the field has clearer names. In a file of their own, so that they are not
/// counted here.
const DIALECT: &str = include_str!("language/dialect.txt");

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: [&str; 23] = [
        "//! What a file is.",
        "",
        "/// Says it: `Told` and `TELL_NOBODY`.",
        "///",
        "/// How it is done.",
        "pub fn is_told(a: &str) -> bool {",
        "    let (one, two) = (1, 2);",
        "    let (three, four) = f();",
        "    fn inner() {}",
        "    \"heard, foretold, listener\" == a",
        "}",
        "",
        "/// A trait.",
        "trait A {",
        "    fn without_body();",
        "}",
        "",
        "#[cfg(test)]",
        "mod tests {",
        "    /// Whether it is said.",
        "    fn say() {}",
        "}",
        "// A line of one hundred and one characters ............................................................",
    ];

    #[test]
    fn tests_are_left_out_of_the_figures() {
        let measure = Measure::of(&TEXT.join("\n")).unwrap();
        let expected = Measure {
            lines: 18,
            tests: 5,
            dialect: 5,
            docs: 4,
            unclear: 2,
            functions: vec![6, 1],
            tuples: 1,
            wide: 1,
        };
        assert_eq!(measure, expected);
        assert_eq!(measure.dialect_rate(), 5.0 / 18.0 * 1000.0);
    }

    #[test]
    fn a_row_has_the_percentiles_of_all_functions() {
        let mut measure = Measure {
            lines: 2000,
            dialect: 3,
            docs: 4,
            unclear: 1,
            wide: 10,
            ..Measure::default()
        };
        (1..=200).for_each(|lines| {
            measure += Measure {
                functions: vec![lines],
                ..Measure::default()
            }
        });
        assert_eq!(
            measure.row("sse"),
            "sse              2000       0            1.5       25.0 %  100 /180 /198 /200       0    0.5 %"
        );
        assert!(Measure::default().row("sse").contains("0 /  0 /  0 /  0"));
    }

    #[test]
    fn names_are_split_into_words() {
        let words = |line| words(line).collect::<Vec<_>>();
        assert_eq!(
            words("let is_toldTwice = TellerOf::SAID_2;"),
            ["let", "is", "told", "Twice", "Teller", "Of", "SAID"]
        );
    }
}
