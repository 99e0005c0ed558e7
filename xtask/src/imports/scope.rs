//! Resolves paths to the modules of a crate.

use std::collections::BTreeMap;

use super::paths::{Imported, Paths};
use crate::source::{ModulePath, Modules};

/// The modules of a crate with the paths in them.
pub(super) struct Scope<'a> {
    modules: &'a Modules,
    paths: BTreeMap<&'a [String], Paths>,
}

impl<'a> Scope<'a> {
    pub(super) fn of(modules: &'a Modules) -> Self {
        Self {
            modules,
            paths: modules
                .iter()
                .map(|(path, module)| (&path[..], Paths::of(&module.tokens)))
                .collect(),
        }
    }

    /// For each path of each module, the modules that it reaches, and its line.
    pub(super) fn imports(&self) -> impl Iterator<Item = (&'a [String], Vec<ModulePath>, usize)> {
        self.paths
            .iter()
            .flat_map(|(at, Paths { imported, inline })| {
                let paths = imported.iter().map(|imported| &imported.path).chain(inline);
                paths.map(|path| (*at, self.reached(at, &path.names, MOST_STEPS).0, path.line))
            })
    }

    /// The modules that a path in the module `at` reaches: the one that has the named item, and if
    /// that is imported there, those that it comes from. Also the module that the whole path names,
    /// if it does.
    fn reached(
        &self,
        at: &[String],
        names: &[String],
        steps: usize,
    ) -> (Vec<ModulePath>, Option<ModulePath>) {
        let mut module = at.to_vec();
        let mut reached = Vec::new();
        for name in names {
            let child = [&module, std::slice::from_ref(name)].concat();
            if name == "crate" {
                module.clear();
            } else if name == "super" {
                module.pop();
            } else if self.modules.get(&child).is_some() {
                module = child;
            } else if let Some(imported) = self.imported(&module, name, names).filter(|_| steps > 0)
            {
                let (through, whole) = self.reached(&module, &imported.path.names, steps - 1);
                reached.push(module);
                reached.extend(through);
                let Some(whole) = whole else {
                    return (reached, None);
                };
                module = whole;
            } else if name != "self" {
                reached.push(module);
                return (reached, None);
            }
        }
        reached.push(module.clone());
        (reached, Some(module))
    }

    /// The import of this name in a module; `names` is the path that is resolved, which does not
    /// lead to itself.
    fn imported(&self, module: &[String], name: &str, names: &[String]) -> Option<&Imported> {
        let is_it = |imported: &&Imported| imported.name == name && imported.path.names != names;
        self.paths.get(module)?.imported.iter().find(is_it)
    }
}

/// The most re-exports that are followed for one path.
const MOST_STEPS: usize = 4;
