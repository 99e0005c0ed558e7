//! The paths in the tokens of a module: those of `use` declarations, and those in its code.

use proc_macro2::TokenTree;

use crate::source::{is_punct, trees};

/// The paths of a module.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Paths {
    /// The paths that `use` declarations import, one for each name.
    pub(super) imported: Vec<Imported>,
    /// The paths of two names or more in other code.
    pub(super) inline: Vec<Path>,
}

/// A path without the names of generic arguments, such as `crate::a::B`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Path {
    pub(super) names: Vec<String>,
    pub(super) line: usize,
}

/// A path that a `use` declaration imports.
#[derive(Debug, PartialEq)]
pub(super) struct Imported {
    pub(super) path: Path,
    /// The name that it has in the module; `*` for a glob.
    pub(super) name: String,
}

impl Paths {
    pub(super) fn of(tokens: &[TokenTree]) -> Self {
        let mut paths = Self::default();
        paths.walk(tokens);
        paths
    }

    fn walk(&mut self, mut tokens: &[TokenTree]) {
        while let Some((first, rest)) = tokens.split_first() {
            tokens = match first {
                TokenTree::Ident(word)
                    if word == "use" && !rest.first().is_some_and(|next| is_punct(next, '<')) =>
                {
                    let end = rest
                        .iter()
                        .position(|token| is_punct(token, ';'))
                        .unwrap_or(rest.len());
                    self.import(&rest[..end], &[]);
                    &rest[end..]
                }
                // The path of `pub(in crate::a)` is no import.
                TokenTree::Ident(word)
                    if word == "pub" && matches!(rest.first(), Some(TokenTree::Group(_))) =>
                {
                    &rest[1..]
                }
                TokenTree::Ident(word) => {
                    let (names, rest) = names(tokens);
                    if names.len() > 1 {
                        self.inline.push(Path {
                            names,
                            line: word.span().start().line,
                        });
                    }
                    rest
                }
                // The rest of a path with generic arguments, and a path in a macro: it is resolved
                // by who uses that.
                TokenTree::Punct(punct) if matches!(punct.as_char(), ':' | '$') => {
                    let is_path = punct.as_char() == '$'
                        || rest.first().is_some_and(|next| is_punct(next, ':'));
                    let start = usize::from(punct.as_char() == ':');
                    if is_path {
                        names(&rest[start..]).1
                    } else {
                        rest
                    }
                }
                TokenTree::Group(group) => {
                    self.walk(&trees(group.stream()));
                    rest
                }
                _ => rest,
            };
        }
    }

    /// Adds the paths of one tree of a `use` declaration, such as `a::{b, c as d}`, below `prefix`.
    fn import(&mut self, tree: &[TokenTree], prefix: &[String]) {
        if tree.is_empty() || is_punct(&tree[0], ':') {
            return;
        }
        let mut names = prefix.to_vec();
        let mut name = None;
        let mut tokens = tree.iter();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(word) if word == "as" => {
                    name = tokens.next().map(ToString::to_string);
                }
                TokenTree::Ident(word) => names.push(word.to_string()),
                TokenTree::Group(group) => {
                    let inner = trees(group.stream());
                    inner
                        .split(|token| is_punct(token, ','))
                        .for_each(|tree| self.import(tree, &names));
                    return;
                }
                token if is_punct(token, '*') => name = Some("*".to_owned()),
                _ => {}
            }
        }
        // `a::{self}` is `a`.
        names.pop_if(|last| !prefix.is_empty() && last == "self");
        let name = name.or_else(|| names.last().cloned()).unwrap_or_default();
        self.imported.push(Imported {
            path: Path {
                names,
                line: tree[0].span().start().line,
            },
            name,
        });
    }
}

/// The names of the path at the beginning of `tokens`, and the tokens after it.
fn names(tokens: &[TokenTree]) -> (Vec<String>, &[TokenTree]) {
    let mut names = Vec::new();
    let mut rest = tokens;
    while let [TokenTree::Ident(name), after @ ..] = rest {
        names.push(name.to_string());
        rest = after;
        match after {
            [one, two, next @ ..]
                if is_punct(one, ':')
                    && is_punct(two, ':')
                    && matches!(next.first(), Some(TokenTree::Ident(_))) =>
            {
                rest = next;
            }
            _ => break,
        }
    }
    (names, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn paths(text: &str) -> (Vec<String>, Vec<String>) {
        let Paths { imported, inline } = Paths::of(&Source::parse(text).unwrap().tokens);
        let shown = |path: Path| format!("{} {}", path.line, path.names.join("::"));
        (
            imported
                .into_iter()
                .map(|Imported { path, name }| format!("{} = {name}", shown(path)))
                .collect(),
            inline.into_iter().map(shown).collect(),
        )
    }

    #[test]
    fn every_tree_of_a_use_declaration_is_read() {
        let text = "use crate::a;\npub(in crate::x) use super::{\n    b::{self, C as D},\n    e::*,\n};\nuse ::f::g;";
        let expected = [
            "1 crate::a = a",
            "3 super::b = b",
            "3 super::b::C = D",
            "4 super::e = *",
        ];
        assert_eq!(
            paths(text),
            (expected.map(str::to_owned).to_vec(), Vec::new())
        );
    }

    #[test]
    fn paths_in_code_are_found_without_comments_and_strings() {
        let text = "\
// crate::comment::a
/// [`crate::comment::b`]
fn f(a: crate::a::A<super::b::B>) -> impl Iterator<Item = u8> + use<> {
    let text = \"crate::text::c\";
    format!(\"{}\", c::d(text).iter().map(u8::from).sum::<u8>())
}
macro_rules! m { () => { $crate::e::f() }; }
";
        let expected = ["3 crate::a::A", "3 super::b::B", "5 c::d", "5 u8::from"];
        assert_eq!(
            paths(text),
            (Vec::new(), expected.map(str::to_owned).to_vec())
        );
    }
}
