//! The modules of a crate and the files that define them.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use cargo_metadata::Package;
use proc_macro2::{Group, TokenTree};

use super::{Source, is_braced, is_punct, trees};
use crate::outcome::{At as _, Outcome};
use crate::workspace;

/// The modules of a crate by their paths, except those that only tests have.
pub(crate) type Modules = BTreeMap<ModulePath, Module>;

/// The names from the root of the crate down to a module; none for the root.
pub(crate) type ModulePath = Vec<String>;

pub(crate) struct Module {
    /// The file that contains it.
    pub(crate) file: PathBuf,
    /// Its tokens, without those of the modules in it.
    pub(crate) tokens: Vec<TokenTree>,
}

/// Reads each library and program of a package.
pub(crate) fn of(package: &Package) -> Outcome<Vec<Modules>> {
    let root = workspace::root();
    let targets = package
        .targets
        .iter()
        .filter(|target| target.is_lib() || target.is_bin());
    let files = targets.map(|target| {
        target
            .src_path
            .strip_prefix(&root)
            .unwrap_or(&target.src_path)
    });
    files
        .map(|file| read(file.as_std_path(), &|file| workspace::read(file)))
        .collect()
}

/// Reads the crate with this root file.
pub(crate) fn read(root: &Path, read: &dyn Fn(&Path) -> Outcome<String>) -> Outcome<Modules> {
    let mut reader = Reader {
        read,
        all: Modules::new(),
    };
    reader.file(ModulePath::new(), root, &folder_of(root))?;
    Ok(reader.all)
}

/// The modules that were read so far.
struct Reader<'a> {
    read: &'a dyn Fn(&Path) -> Outcome<String>,
    all: Modules,
}

impl Reader<'_> {
    /// Reads a module from its file; the files of its children are in `folder`.
    fn file(&mut self, path: ModulePath, file: &Path, folder: &Path) -> Outcome {
        let source = Source::parse(&(self.read)(file)?).at(file)?;
        self.module(path, file, folder, &source.tokens)
    }

    fn module(
        &mut self,
        path: ModulePath,
        file: &Path,
        folder: &Path,
        mut tokens: &[TokenTree],
    ) -> Outcome {
        let mut own = Vec::new();
        let mut named = None;
        loop {
            tokens = match tokens {
                [hash, TokenTree::Group(attribute), rest @ ..] if is_punct(hash, '#') => {
                    named = path_attribute(attribute).or(named);
                    own.extend_from_slice(&tokens[..2]);
                    rest
                }
                [
                    TokenTree::Ident(word),
                    TokenTree::Ident(name),
                    body,
                    rest @ ..,
                ] if word == "mod" => {
                    let path = path.iter().cloned().chain([name.to_string()]).collect();
                    self.child(
                        path,
                        file,
                        &folder.join(name.to_string()),
                        body,
                        named.take(),
                    )?;
                    rest
                }
                [token, rest @ ..] => {
                    if is_punct(token, ';') || is_braced(token) {
                        named = None;
                    }
                    own.push(token.clone());
                    rest
                }
                [] => break,
            };
        }
        self.all.insert(
            path,
            Module {
                file: file.to_owned(),
                tokens: own,
            },
        );
        Ok(())
    }

    /// Reads a module that is declared in `file`; the files of its own children are in `folder`,
    /// unless an attribute has `named` its file. Its `body` is its content, or a semicolon.
    fn child(
        &mut self,
        path: ModulePath,
        file: &Path,
        folder: &Path,
        body: &TokenTree,
        named: Option<String>,
    ) -> Outcome {
        match (body, named) {
            (TokenTree::Group(group), _) => self.module(path, file, folder, &trees(group.stream())),
            (_, Some(named)) => {
                let file = normalized(&file.with_file_name(named));
                self.file(path, &file, &folder_of(&file))
            }
            (_, None) => self.file(path, &folder.with_extension("rs"), folder),
        }
    }
}

fn folder_of(file: &Path) -> PathBuf {
    file.parent().map_or_else(PathBuf::new, Path::to_owned)
}

/// A path without `..` after a folder.
fn normalized(path: &Path) -> PathBuf {
    path.components()
        .fold(PathBuf::new(), |mut path, component| {
            if component == Component::ParentDir && path.file_name().is_some() {
                path.pop();
            } else {
                path.push(component);
            }
            path
        })
}

/// The file that an attribute such as `path = "a.rs"` names.
fn path_attribute(attribute: &Group) -> Option<String> {
    match &trees(attribute.stream())[..] {
        [TokenTree::Ident(name), _, TokenTree::Literal(file)] if name == "path" => {
            Some(file.to_string().trim_matches('"').to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_have_the_files_that_the_compiler_looks_for() {
        let files = BTreeMap::from([
            (
                "src/lib.rs",
                "mod a; mod b { pub mod c; } #[path = \"../other/d.rs\"] mod d; #[cfg(test)] mod tests;",
            ),
            ("src/a.rs", "mod inner;"),
            ("src/a/inner.rs", "fn f() {}"),
            ("src/b/c.rs", ""),
            ("other/d.rs", "mod e;"),
            ("other/e.rs", ""),
        ]);
        let text_of = |file: &Path| {
            let text = files.get(&*file.to_string_lossy());
            text.map(ToString::to_string)
                .ok_or_else(|| format!("{} is missing", file.display()))
        };
        let modules = read(Path::new("src/lib.rs"), &text_of).unwrap();
        let places: Vec<_> = modules
            .iter()
            .map(|(path, module)| format!("{} {}", path.join("::"), module.file.display()))
            .collect();
        assert_eq!(
            places,
            [
                " src/lib.rs",
                "a src/a.rs",
                "a::inner src/a/inner.rs",
                "b src/lib.rs",
                "b::c src/b/c.rs",
                "d other/d.rs",
                "d::e other/e.rs",
            ]
        );
        assert_eq!(
            read(Path::new("src/main.rs"), &text_of).err().unwrap(),
            "src/main.rs is missing"
        );
    }
}
