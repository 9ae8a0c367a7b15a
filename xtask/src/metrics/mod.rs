//! What the sources are like, in numbers that may not become worse: product lines, cycles of files,
//! names of types that mean several, functions of a type; and who opens a stack beside `setup`.
//!
//! Only what is compiled into products counts: libraries and programs below `src`, without tests.
//! Nothing is built: the files are parsed, which takes seconds. `cargo xtask metrics` prints all,
//! the worst first; [`check`] compares with [`limits`].

mod attributes;
mod cycles;
mod limits;
mod methods;
mod names;
mod openers;
mod print;
mod reader;
mod resolve;
mod source;
mod tokens;

use std::collections::BTreeMap;
use std::path::Path;

use crate::{layers, publish};

use cycles::Edges;
use limits::OneLock;
use source::Crate;

const LIMITS: &str = "xtask/src/metrics/limits.rs";

/// Prints everything; whether it keeps the limits.
pub fn run(root: &Path) -> anyhow::Result<bool> {
    let crates = crates(root)?;
    let metrics = SourceMetrics::of(&crates);
    print::all(&crates, &metrics);
    let mut faults = metrics.faults();
    faults.extend(openers::faults(&crates));
    faults.iter().for_each(|fault| println!("{fault}"));
    Ok(faults.is_empty())
}

/// Prints a line for each metric; gives what became worse, and entries of limits that are too high.
pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let crates = crates(root)?;
    let metrics = SourceMetrics::of(&crates);
    print::summary(&crates, &metrics);
    Ok(metrics.faults().into_iter().chain(openers::faults(&crates)).collect())
}

/// The crates of the workspace, in the order of their names.
fn crates(root: &Path) -> anyhow::Result<Vec<Crate>> {
    let metadata = publish::metadata(root)?;
    let text = |path: &Path| std::fs::read_to_string(root.join(path)).ok();
    let mut crates = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let mut one = Crate::new(&layers::layer_of(name), publish::is_published(package));
        for target in package["targets"].as_array().into_iter().flatten() {
            let path = Path::new(target["src_path"].as_str().unwrap_or_default());
            let is_product = target["kind"][0] == "lib" || target["kind"][0] == "bin";
            if is_product && path.components().any(|part| part.as_os_str() == "src") {
                one.read(path.strip_prefix(root).unwrap_or(path), &text)?;
            }
        }
        crates.push(one);
    }
    crates.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(crates)
}

/// The metrics but the lines, for which there is no limit.
struct SourceMetrics<'a> {
    /// For each crate the edges between its files, without cycles that stay.
    edges: Vec<(&'a Crate, Edges)>,
    /// Each type name with the places where it is declared.
    declared: BTreeMap<&'a str, Vec<String>>,
    /// Types, and how many functions each has.
    functions: BTreeMap<String, usize>,
    /// Faults of the list of cycles that stay.
    one_lock: Vec<String>,
}

impl<'a> SourceMetrics<'a> {
    fn of(crates: &'a [Crate]) -> SourceMetrics<'a> {
        let mut one_lock = Vec::new();
        let edges_of = |one: &'a Crate| (one, without(one, limits::ONE_LOCK, &mut one_lock));
        SourceMetrics {
            edges: crates.iter().map(edges_of).collect(),
            declared: names::declared(crates),
            functions: crates.iter().flat_map(methods::counts).collect(),
            one_lock,
        }
    }

    /// How many types are called by a name that names nothing.
    fn names_nothing(&self) -> usize {
        let bad = self.declared.iter().filter(|(name, _)| names::names_nothing(name));
        bad.map(|(_, places)| places.len()).sum()
    }

    fn faults(&self) -> Vec<String> {
        let cycles: BTreeMap<String, usize> =
            self.edges.iter().map(|(one, edges)| (one.name.clone(), cycles::size(edges))).collect();
        let of_names = |value| BTreeMap::from([("type names".to_owned(), value)]);
        let shared = of_names(names::shared_per_mille(&self.declared));
        let nothing = of_names(self.names_nothing());
        let mut faults = self.one_lock.clone();
        for (unit, values, goal, entries, slack) in [
            ("files in a cycle", &cycles, limits::CYCLE, limits::CYCLES, 0),
            ("functions", &self.functions, limits::FUNCTIONS, limits::FUNCTIONS_TODAY, 0),
            (
                "per mille that mean several types",
                &shared,
                limits::SHARED_PER_MILLE,
                limits::SHARED,
                limits::SHARED_SLACK,
            ),
            (
                "that are a participle or pronoun",
                &nothing,
                limits::NAMES_NOTHING,
                limits::NAMES_NOTHING_TODAY,
                0,
            ),
        ] {
            faults.extend(compared(unit, values, goal, entries, slack));
        }
        faults
    }
}

/// Values beside the goal and the entries of those that do not keep it yet. An entry may be above
/// its value by less than `slack`.
fn compared(
    unit: &str,
    values: &BTreeMap<String, usize>,
    goal: usize,
    entries: &[(&str, usize)],
    slack: usize,
) -> Vec<String> {
    let mut faults = Vec::new();
    for (what, value) in values {
        let entry = entries.iter().find(|(name, _)| name == what).map(|(_, entry)| *entry);
        let limit = entry.unwrap_or(goal);
        if *value > limit {
            faults.push(format!("{what}: {value} {unit}, more than {limit}"));
        } else if entry.is_some() && *value <= goal {
            faults.push(format!("{LIMITS}: {what} has {value} {unit} now: remove its entry"));
        } else if entry.is_some() && *value + slack.max(1) <= limit {
            faults.push(format!("{LIMITS}: {what} has {value} {unit} now, not {limit}"));
        }
    }
    let gone = entries.iter().filter(|(name, _)| !values.contains_key(*name));
    faults.extend(gone.map(|(name, _)| format!("{LIMITS}: there is no {name}: remove its entry")));
    faults
}

/// The edges of a crate, less those of cycles that stay as they are. A cycle that has a file which
/// is not listed is none of them, and a list without a cycle is a fault.
fn without(of: &Crate, stay: &[OneLock], faults: &mut Vec<String>) -> Edges {
    let mut edges = cycles::edges(of);
    for one in stay.iter().filter(|one| one.of == of.name) {
        let is_listed = |file: &usize| one.files.contains(&of.short(*file).as_str());
        let mut listed = cycles::cycles(&edges);
        listed.retain(|cycle| cycle.iter().all(is_listed));
        let largest = listed.first().map_or(1, Vec::len);
        if largest <= limits::CYCLE || largest < one.files.len() {
            let (of, why) = (one.of, one.why);
            faults.push(format!("{LIMITS}: of {of} ({why}) only {largest} files are a cycle"));
        }
        edges.retain(|(from, to), _| {
            !listed.iter().any(|cycle| cycle.contains(from) && cycle.contains(to))
        });
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_keeps_its_limits() {
        let crates = crates(&crate::root()).unwrap();
        assert_eq!(SourceMetrics::of(&crates).faults(), Vec::<String>::new());
    }

    #[test]
    fn worse_values_and_entries_that_are_too_high_are_faults() {
        let values = [("a", 5), ("b", 6), ("c", 9), ("d", 7), ("e", 4)];
        let values = values.map(|(name, value)| (name.to_owned(), value));
        let entries = [("c", 8), ("d", 8), ("e", 8), ("f", 8)];
        let values = BTreeMap::from(values);
        let faults = compared("files", &values, 5, &entries, 0);
        let expected = [
            "b: 6 files, more than 5",
            "c: 9 files, more than 8",
            "xtask/src/metrics/limits.rs: d has 7 files now, not 8",
            "xtask/src/metrics/limits.rs: e has 4 files now: remove its entry",
            "xtask/src/metrics/limits.rs: there is no f: remove its entry",
        ];
        assert_eq!(faults, expected);
        // `d` may be a little better than its entry.
        assert_eq!(compared("files", &values, 5, &entries, 2).len(), 4);
        assert_eq!(compared("files", &values, 5, &entries, 1).len(), 5);
    }

    /// A crate whose files `a` to `f` are a cycle, with `more` in `f`.
    fn cycle_of_six(more: &str) -> Crate {
        let root = "mod a; mod b; mod c; mod d; mod e; mod f; mod g;";
        let text = |next: &str| format!("use crate::{next}::X as Y; pub struct X;");
        let last = text("a") + more;
        let [a, b, c, d, e] = &["b", "c", "d", "e", "f"].map(text);
        let files = [("lib.rs", root), ("a.rs", a), ("b.rs", b), ("c.rs", c), ("d.rs", d)];
        let rest = [
            ("e.rs", e.as_str()),
            ("f.rs", &last),
            ("g.rs", "use crate::f::X as Y; pub struct Z;"),
        ];
        Crate::of_texts("one", &[files.as_slice(), &rest].concat())
    }

    #[test]
    fn a_cycle_that_stays_takes_no_further_file() {
        const FILES: &[&str] = &["a.rs", "b.rs", "c.rs", "d.rs", "e.rs", "f.rs"];
        let judged = |of: &Crate, files| {
            let mut faults = Vec::new();
            let listed = [OneLock { of: "one", files, why: "one lock" }];
            (cycles::size(&without(of, &listed, &mut faults)), faults.len())
        };
        let six = cycle_of_six("");
        assert_eq!(cycles::size(&cycles::edges(&six)), 6);
        assert_eq!(judged(&six, FILES), (1, 0));
        assert_eq!(judged(&six, &FILES[1..]), (6, 1));
        let seven = cycle_of_six("type W = crate::g::Z;");
        assert_eq!(judged(&seven, FILES), (7, 1));
    }
}
