//! A graph of imports, and its circles.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The imports between files: those of each file, with the line of the first one.
#[derive(Debug, Default)]
pub(super) struct Graph(BTreeMap<String, BTreeMap<String, usize>>);

impl Graph {
    pub(super) fn add(&mut self, from: &str, to: &str, line: usize) {
        let first = self
            .0
            .entry(from.to_owned())
            .or_default()
            .entry(to.to_owned())
            .or_insert(line);
        *first = line.min(*first);
    }

    /// The imports between the files of a circle, except one of them.
    pub(super) fn among(&self, circle: &BTreeSet<&str>, except: &str) -> Self {
        let is_kept = |file: &str| file != except && circle.contains(file);
        let mut kept = Self::default();
        for file in circle.iter().filter(|file| is_kept(file)) {
            self.imports(file)
                .filter(|(to, _)| is_kept(to))
                .for_each(|(to, line)| kept.add(file, to, line));
        }
        kept
    }

    /// The largest sets of files in which each imports every other, directly or indirectly.
    pub(super) fn circles(&self) -> BTreeSet<BTreeSet<&str>> {
        let reached: BTreeMap<_, _> = self
            .0
            .keys()
            .map(|file| (file.as_str(), self.reached(file)))
            .collect();
        let mut circles = BTreeSet::new();
        for (file, files) in &reached {
            let is_back =
                |other: &&str| reached.get(other).is_some_and(|files| files.contains(file));
            circles.insert(
                files
                    .iter()
                    .copied()
                    .filter(is_back)
                    .collect::<BTreeSet<_>>(),
            );
        }
        circles.remove(&BTreeSet::new());
        circles
    }

    /// The files that a file imports, directly or indirectly.
    fn reached(&self, file: &str) -> BTreeSet<&str> {
        let mut reached = BTreeSet::new();
        let mut next = vec![file];
        while let Some(file) = next.pop() {
            next.extend(
                self.imports(file)
                    .filter(|(to, _)| reached.insert(*to))
                    .map(|(to, _)| to),
            );
        }
        reached
    }

    fn imports(&self, file: &str) -> impl Iterator<Item = (&str, usize)> {
        self.0
            .get(file)
            .into_iter()
            .flatten()
            .map(|(to, line)| (to.as_str(), *line))
    }

    /// A shortest circle that does not lead through a module that all other files are in: `a.rs:1 →
    /// b.rs:2 → a.rs`. The function returns true if its first file is in the module of the second
    /// one.
    pub(super) fn shortest_circle(&self, is_in: impl Fn(&str, &str) -> bool) -> Option<String> {
        let mut circles = Vec::new();
        for (from, imports) in &self.0 {
            for to in imports.keys() {
                let mut circle = self
                    .way(to, from, |file| is_in(from, file) && is_in(to, file))
                    .unwrap_or_default();
                circle.insert(0, from.as_str());
                circles.push(circle);
            }
        }
        let circle = circles
            .into_iter()
            .filter(|circle| circle.len() > 1)
            .min_by_key(Vec::len)?;
        let imports = circle
            .iter()
            .zip(&circle[1..])
            .map(|(from, to)| format!("{from}:{} → ", self.0[*from][*to]));
        Some(imports.chain([circle[0].to_owned()]).collect())
    }

    /// The files of a shortest way between two files, both included, without those that are
    /// avoided.
    fn way<'a>(
        &'a self,
        from: &'a str,
        to: &str,
        is_avoided: impl Fn(&str) -> bool,
    ) -> Option<Vec<&'a str>> {
        let mut ways = VecDeque::from([vec![from]]);
        let mut seen = BTreeSet::new();
        while let Some(way) = ways.pop_front() {
            let last = *way.last()?;
            if is_avoided(last) || !seen.insert(last) {
                continue;
            }
            if last == to {
                return Some(way);
            }
            ways.extend(
                self.imports(last)
                    .map(|(next, _)| [&way[..], &[next]].concat()),
            );
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(imports: &[(&str, &str, usize)]) -> Vec<String> {
        let mut graph = Graph::default();
        imports
            .iter()
            .for_each(|(from, to, line)| graph.add(from, to, *line));
        let way = |circle: &BTreeSet<&str>| {
            graph
                .among(circle, "")
                .shortest_circle(|_, _| false)
                .unwrap()
        };
        graph
            .circles()
            .iter()
            .map(|circle| format!("{}: {}", circle.len(), way(circle)))
            .collect()
    }

    #[test]
    fn a_circle_is_shown_by_its_shortest_way() {
        assert_eq!(
            shown(&[("a", "b", 1), ("b", "c", 2), ("a", "c", 3)]),
            Vec::<String>::new()
        );
        assert_eq!(
            shown(&[("a", "b", 3), ("a", "b", 1), ("b", "a", 2), ("c", "c", 4)]),
            ["2: a:1 → b:2 → a", "1: c:4 → c"]
        );
        let two = [
            ("a", "b", 1),
            ("b", "c", 2),
            ("c", "a", 3),
            ("b", "a", 4),
            ("c", "d", 5),
            ("d", "e", 6),
            ("e", "d", 7),
        ];
        assert_eq!(shown(&two), ["3: a:1 → b:4 → a", "2: d:6 → e:7 → d"]);
    }
}
