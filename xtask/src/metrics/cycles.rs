//! Cycles of files: files of a crate of which each needs the others, by whatever way.
//!
//! A file needs another if a path in its code, or an import, leads to an item that the other
//! declares. So these are no edges: `mod x;`, the import of a module (what is taken from it is
//! one), and a `pub use` by which a file gives on what it does not use itself. A call of a method
//! is none either: it needs the type, and who has it has named it. The root of a crate counts like
//! any other file. The measure is the largest strongly connected component.

use std::collections::{BTreeMap, BTreeSet};

use super::resolve;
use super::source::Crate;

/// So many cuts are proposed for the cycles of a crate.
const CUTS: usize = 12;

/// Who needs whom, by the numbers of the files, and the items for which.
pub type Edges = BTreeMap<(usize, usize), BTreeSet<String>>;

/// The edges between the files of a crate.
pub fn edges(of: &Crate) -> Edges {
    let mut edges = Edges::new();
    for (number, module) in of.modules.iter().enumerate() {
        let imports = module.imports.iter().filter(|import| !import.is_public);
        let imports = imports.map(|import| &import.path).chain(&module.globs);
        let imported = imports.flat_map(|path| resolve::imported(of, number, path));
        let named = module.paths.iter().flat_map(|path| resolve::items(of, number, path));
        for (declares, name) in imported.chain(named) {
            let to = of.modules[declares].file;
            if to != module.file {
                edges.entry((module.file, to)).or_default().insert(name);
            }
        }
    }
    edges
}

/// The cycles, the largest first, each with its files in order.
pub fn cycles(edges: &Edges) -> Vec<Vec<usize>> {
    let mut search = TarjanSearch::default();
    for (from, to) in edges.keys() {
        search.next.entry(*from).or_default().push(*to);
    }
    for file in search.next.keys().copied().collect::<Vec<_>>() {
        if !search.low.contains_key(&file) {
            search.visit(file);
        }
    }
    search.cycles.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
    search.cycles
}

/// Tarjan's search for strongly connected components.
#[derive(Default)]
struct TarjanSearch {
    next: BTreeMap<usize, Vec<usize>>,
    /// The lowest number that is reached from a file; numbers are given in the order of visits.
    low: BTreeMap<usize, usize>,
    /// Visited, and not in a component yet.
    path: Vec<usize>,
    cycles: Vec<Vec<usize>>,
}

impl TarjanSearch {
    fn visit(&mut self, file: usize) {
        let number = self.low.len();
        let at = self.path.len();
        self.low.insert(file, number);
        self.path.push(file);
        for to in self.next.get(&file).cloned().unwrap_or_default() {
            if !self.low.contains_key(&to) {
                self.visit(to);
            } else if !self.path.contains(&to) {
                continue;
            }
            let low = self.low[&file].min(self.low[&to]);
            self.low.insert(file, low);
        }
        if self.low[&file] == number {
            let mut component = self.path.split_off(at);
            if component.len() > 1 {
                component.sort_unstable();
                self.cycles.push(component);
            }
        }
    }
}

/// What would make cycles smaller, the most useful first, with the size of the largest after it:
/// one file no longer needs another, or an item is in a file of its own.
pub fn cuts(of: &Crate, edges: &Edges, limit: usize) -> Vec<(String, usize)> {
    let mut left = edges.clone();
    let mut found = Vec::new();
    while found.len() < CUTS && size(&left) > limit {
        let inside = within_cycles(&left);
        let mut best: Option<((usize, usize), String, Edges)> = None;
        for (cut, rest) in possible(of, &inside) {
            let value = (size(&rest), within_cycles(&rest).len());
            if best.as_ref().is_none_or(|(than, ..)| value < *than) {
                best = Some((value, cut, rest));
            }
        }
        let Some(((size, _), cut, rest)) = best else { break };
        found.push((cut, size));
        left = rest;
    }
    found
}

/// Each cut, and what edges it leaves.
fn possible(of: &Crate, edges: &Edges) -> Vec<(String, Edges)> {
    let mut all = Vec::new();
    let mut users: BTreeMap<(usize, &str), usize> = BTreeMap::new();
    for ((from, to), names) in edges {
        let mut rest = edges.clone();
        rest.remove(&(*from, *to));
        let names_of = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        all.push((format!("{} without {} ({names_of})", of.short(*from), of.short(*to)), rest));
        for name in names {
            *users.entry((*to, name)).or_default() += 1;
        }
    }
    for ((file, name), users) in users.into_iter().filter(|(_, users)| *users > 1) {
        let mut rest = edges.clone();
        for names in rest.iter_mut().filter(|((_, to), _)| *to == file).map(|(_, names)| names) {
            names.remove(name);
        }
        rest.retain(|_, names| !names.is_empty());
        all.push((format!("{name} out of {}, for {users} files", of.short(file)), rest));
    }
    all
}

/// The edges whose both ends are in one cycle.
pub fn within_cycles(edges: &Edges) -> Edges {
    let mut cycle_of = BTreeMap::new();
    for (number, cycle) in cycles(edges).into_iter().enumerate() {
        cycle_of.extend(cycle.into_iter().map(|file| (file, number)));
    }
    let is_inside = |(from, to): &(usize, usize)| {
        cycle_of.get(from).is_some_and(|cycle| cycle_of.get(to) == Some(cycle))
    };
    let inside = edges.iter().filter(|(edge, _)| is_inside(edge));
    inside.map(|(edge, names)| (*edge, names.clone())).collect()
}

/// The number of files of the largest cycle, 1 if there is none.
pub fn size(edges: &Edges) -> usize {
    cycles(edges).first().map_or(1, Vec::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files of the largest cycle.
    fn largest(files: &[(&str, &str)]) -> Vec<String> {
        let one = Crate::of_texts("one", files);
        let cycles = cycles(&edges(&one));
        cycles.first().into_iter().flatten().map(|file| one.short(*file)).collect()
    }

    #[test]
    fn a_cycle_by_way_of_a_re_export_is_found() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
            ("a.rs", "pub struct A(crate::b::B);"),
            ("b.rs", "use crate::c; pub struct B; fn f() { c::f() }"),
            ("c.rs", "pub fn f() -> Option<crate::A> { None }"),
        ];
        assert_eq!(largest(&files), ["a.rs", "b.rs", "c.rs"]);
    }

    #[test]
    fn modules_and_what_is_only_given_on_are_no_cycle() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::A; pub struct L;"),
            ("a.rs", "use crate::{b, L}; pub struct A(L);"),
            ("b.rs", "pub fn f() {}\n#[cfg(test)] mod tests { use crate::a::A; }"),
        ];
        assert_eq!(largest(&files), Vec::<String>::new());
        // Of a function and a module of one name the import takes both, and uses one.
        let files = [
            ("lib.rs", "mod a; mod run; pub use run::run; pub struct L;"),
            ("a.rs", "use crate::run; pub struct A; fn f() { run::other() }"),
            ("run.rs", "pub fn run(_: crate::a::A) {} mod b; pub use b::other;"),
            ("run/b.rs", "pub fn other() {}"),
        ];
        assert_eq!(largest(&files), Vec::<String>::new());
        // Used where it is given on, it is a cycle.
        let root = "mod a; pub use a::A; pub struct L; fn f(_: A) {}";
        let files = [("lib.rs", root), ("a.rs", "pub struct A(crate::L);")];
        assert_eq!(largest(&files), ["lib.rs", "a.rs"]);
    }

    #[test]
    fn paths_in_macros_and_impl_blocks_count() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub struct A; fn f() { println!(\"{}\", crate::b::g()) }"),
            ("b.rs", "impl super::a::A {} pub fn g() -> u8 { 1 }"),
        ];
        assert_eq!(largest(&files), ["a.rs", "b.rs"]);
    }

    #[test]
    fn the_cut_that_helps_most_comes_first() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; mod d;"),
            ("a.rs", "use crate::{b::B, c::C, d::D}; pub struct A; pub struct Leaf;"),
            ("b.rs", "pub struct B(crate::a::Leaf);"),
            ("c.rs", "pub struct C(crate::a::Leaf);"),
            ("d.rs", "pub struct D(crate::a::A);"),
        ];
        let one = Crate::of_texts("one", &files);
        let cuts = cuts(&one, &edges(&one), 1);
        let expected = [
            ("Leaf out of a.rs, for 2 files".to_owned(), 2),
            ("a.rs without d.rs (D)".to_owned(), 1),
        ];
        assert_eq!(cuts, expected);
    }
}
