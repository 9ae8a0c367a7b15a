//! What a path leads to within its crate: the module that declares the item, through whatever
//! re-exports and imports.
//!
//! Visibility is not looked at, and a name stands for all that it may mean: `run` for the module
//! and the function. Names of other crates, local variables and parameters lead nowhere.

use std::collections::{BTreeSet, HashSet};

use super::source::Crate;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum PathTarget {
    Module(usize),
    /// An item of a module. What follows it in a path, a variant or a function, is not looked up.
    Item(usize, String),
}

impl PathTarget {
    fn item(self) -> Option<(usize, String)> {
        match self {
            PathTarget::Item(module, name) => Some((module, name)),
            PathTarget::Module(_) => None,
        }
    }
}

/// The modules and names of the items to which a path leads from a module.
pub fn items(of: &Crate, from: usize, path: &[String]) -> Vec<(usize, String)> {
    let targets = resolve(of, from, path, &mut HashSet::new());
    targets.into_iter().filter_map(PathTarget::item).collect()
}

/// The same of an import. Of a name that a module has too there are none: what is taken from the
/// one or is the other is seen where it is used.
pub fn imported(of: &Crate, from: usize, path: &[String]) -> Vec<(usize, String)> {
    let targets = resolve(of, from, path, &mut HashSet::new());
    let items: Option<Vec<_>> = targets.into_iter().map(PathTarget::item).collect();
    items.unwrap_or_default()
}

/// `seen` holds the names of modules that are looked up already, further out.
fn resolve(
    of: &Crate,
    from: usize,
    path: &[String],
    seen: &mut HashSet<(usize, String)>,
) -> BTreeSet<PathTarget> {
    let mut targets = BTreeSet::from([PathTarget::Module(from)]);
    for word in path {
        let mut next = BTreeSet::new();
        for target in targets {
            match target {
                PathTarget::Module(module) => next.extend(member(of, module, word, seen)),
                PathTarget::Item(module, name) if of.modules[module].items[&name] => {
                    next.insert(PathTarget::Item(module, name));
                }
                // A function: what has its name in front of `::` is another thing.
                PathTarget::Item(..) => {}
            }
        }
        targets = next;
    }
    targets
}

/// What a word means in a module.
fn member(
    of: &Crate,
    number: usize,
    word: &str,
    seen: &mut HashSet<(usize, String)>,
) -> BTreeSet<PathTarget> {
    let module = &of.modules[number];
    match word {
        "crate" => {
            let mut root = number;
            while let Some(parent) = of.modules[root].parent {
                root = parent;
            }
            return BTreeSet::from([PathTarget::Module(root)]);
        }
        "self" => return BTreeSet::from([PathTarget::Module(number)]),
        "super" => return module.parent.map(PathTarget::Module).into_iter().collect(),
        _ => {}
    }
    let mut found: BTreeSet<PathTarget> =
        module.children.get(word).map(|child| PathTarget::Module(*child)).into_iter().collect();
    if module.items.contains_key(word) {
        found.insert(PathTarget::Item(number, word.to_owned()));
    }
    if !seen.insert((number, word.to_owned())) {
        return found;
    }
    for import in module.imports.iter().filter(|import| import.name == word) {
        found.extend(resolve(of, number, &import.path, seen));
    }
    if found.is_empty() {
        for glob in &module.globs {
            for target in resolve(of, number, glob, seen) {
                if let PathTarget::Module(below) = target {
                    found.extend(member(of, below, word, seen));
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_through_imports_and_re_exports() {
        let one = Crate::of_texts(
            "one",
            &[
                (
                    "lib.rs",
                    "mod a; mod run; fn io() {} pub use a::{b::B, Renamed as R}; pub use run::run;",
                ),
                ("a.rs", "pub mod b; pub use b::*; use super::*; pub struct Renamed;"),
                ("a/b.rs", "pub struct B; pub struct C; mod inner { pub fn f() {} }"),
                ("run.rs", "pub fn run() {}"),
            ],
        );
        let a = one.modules[0].children["a"];
        let of = |from: usize, path: &str| -> Vec<String> {
            let words: Vec<String> = path.split("::").map(str::to_owned).collect();
            let named = |(module, name): (usize, String)| {
                [one.modules[module].path.as_slice(), &[name]].concat().join("::")
            };
            items(&one, from, &words).into_iter().map(named).collect()
        };
        assert_eq!(of(0, "B"), ["a::b::B"]);
        assert_eq!(of(0, "R::new"), ["a::Renamed"]);
        assert_eq!(of(a, "super::B::VARIANT"), ["a::b::B"]);
        assert_eq!(of(a, "C"), ["a::b::C"]);
        assert_eq!(of(a, "crate::a::b::inner::f"), ["a::b::inner::f"]);
        assert_eq!(of(a, "self::b::inner::f"), ["a::b::inner::f"]);
        assert_eq!(of(a, "run"), ["run::run"]);
        assert_eq!(of(0, "run::run"), ["run::run"]);
        assert_eq!(of(0, "run::missing"), Vec::<String>::new());
        assert_eq!(of(0, "io::Error"), Vec::<String>::new());
        assert_eq!(of(0, "std::fs"), Vec::<String>::new());
    }
}
