//! The modules of a crate and the files that define them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use cargo_metadata::Package;
use proc_macro2::{Delimiter, Group, TokenTree};

use super::{Source, is_punct, trees};
use crate::outcome::{At as _, Outcome};
use crate::workspace;

/// The modules of a crate, except those that only tests have.
pub(crate) struct Modules {
    all: BTreeMap<ModulePath, Module>,
}

/// The names from the root of the crate down to a module; none for the root.
pub(crate) type ModulePath = Vec<String>;

/// A module.
pub(crate) struct Module {
    /// The file that contains it.
    pub(crate) file: PathBuf,
    /// Its tokens, without those of the modules in it.
    pub(crate) tokens: Vec<TokenTree>,
}

impl Modules {
    /// Reads the crate with this root file.
    ///
    /// # Errors
    ///
    /// If a file is missing, or is not Rust.
    pub(crate) fn read(root: &Path, read: &dyn Fn(&Path) -> Outcome<String>) -> Outcome<Self> {
        let mut reader = Reader { read, all: BTreeMap::new() };
        reader.file(Vec::new(), root, &folder_of(root))?;
        Ok(Self { all: reader.all })
    }

    /// Reads each library and program of a package.
    ///
    /// # Errors
    ///
    /// As [`Modules::read`].
    pub(crate) fn of(package: &Package) -> Outcome<Vec<Self>> {
        let root = workspace::root();
        let targets = package.targets.iter().filter(|target| target.is_lib() || target.is_bin());
        let files = targets.map(|target| target.src_path.strip_prefix(&root).unwrap_or(&target.src_path));
        files.map(|file| Self::read(file.as_std_path(), &|file| workspace::read(file))).collect()
    }

    pub(crate) fn get(&self, path: &[String]) -> Option<&Module> {
        self.all.get(path)
    }

    /// The files of all modules.
    pub(crate) fn files(&self) -> BTreeSet<&Path> {
        self.all.values().map(|module| module.file.as_path()).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ModulePath, &Module)> {
        self.all.iter()
    }
}

/// The modules that were read so far.
struct Reader<'a> {
    read: &'a dyn Fn(&Path) -> Outcome<String>,
    all: BTreeMap<ModulePath, Module>,
}

impl Reader<'_> {
    /// Reads a module from its file; the files of its children are in `folder`.
    fn file(&mut self, path: ModulePath, file: &Path, folder: &Path) -> Outcome {
        let source = Source::parse(&(self.read)(file)?).at(file)?;
        self.module(path, file, folder, source.tokens)
    }

    fn module(&mut self, path: ModulePath, file: &Path, folder: &Path, tokens: Vec<TokenTree>) -> Outcome {
        let mut own = Vec::new();
        let mut at = 0;
        let mut named = None;
        while at < tokens.len() {
            match &tokens[at..] {
                [hash, TokenTree::Group(attribute), ..] if is_punct(hash, '#') => {
                    named = path_attribute(attribute).or(named);
                    own.extend_from_slice(&tokens[at..at + 2]);
                    at += 2;
                }
                [TokenTree::Ident(word), TokenTree::Ident(name), body, ..] if word == "mod" => {
                    self.child(&path, &name.to_string(), file, folder, body, named.take())?;
                    at += 3;
                }
                [token, ..] => {
                    if is_punct(token, ';') || matches!(token, TokenTree::Group(group) if is_braced(group)) {
                        named = None;
                    }
                    own.push(token.clone());
                    at += 1;
                }
                [] => break,
            }
        }
        self.all.insert(path, Module { file: file.to_owned(), tokens: own });
        Ok(())
    }

    /// Reads the module `name` in the module `parent`: `body` is its content, or a semicolon.
    fn child(
        &mut self,
        parent: &[String],
        name: &str,
        file: &Path,
        folder: &Path,
        body: &TokenTree,
        named: Option<String>,
    ) -> Outcome {
        let path = [parent, &[name.to_owned()]].concat();
        if let TokenTree::Group(group) = body {
            return self.module(path, file, &folder.join(name), trees(group.stream()));
        }
        match named {
            Some(named) => {
                let file = normalized(&folder_of(file).join(named));
                self.file(path, &file, &folder_of(&file))
            }
            None => self.file(path, &folder.join(format!("{name}.rs")), &folder.join(name)),
        }
    }
}

fn is_braced(group: &Group) -> bool {
    group.delimiter() == Delimiter::Brace
}

fn folder_of(file: &Path) -> PathBuf {
    file.parent().map_or_else(PathBuf::new, Path::to_owned)
}

/// A path without `..` after a folder.
fn normalized(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut path, component| {
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
            ("src/lib.rs", "mod a; mod b { pub mod c; } #[path = \"../other/d.rs\"] mod d; #[cfg(test)] mod tests;"),
            ("src/a.rs", "mod inner;"),
            ("src/a/inner.rs", "fn f() {}"),
            ("src/b/c.rs", ""),
            ("other/d.rs", "mod e;"),
            ("other/e.rs", ""),
        ]);
        let read = |file: &Path| {
            let text = files.get(&*file.to_string_lossy());
            text.map(ToString::to_string).ok_or_else(|| format!("{} is missing", file.display()))
        };
        let modules = Modules::read(Path::new("src/lib.rs"), &read).unwrap();
        let places: Vec<_> =
            modules.iter().map(|(path, module)| format!("{} {}", path.join("::"), module.file.display())).collect();
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
        assert_eq!(modules.files().len(), 6);
        assert_eq!(Modules::read(Path::new("src/main.rs"), &read).err().unwrap(), "src/main.rs is missing");
    }
}
