//! Public items of library crates that nobody outside of their crate uses.
//!
//! An item is public if a path of public modules leads to it, or a `pub use` in such a module names
//! it; a function of a type if the type is. It is used if its name occurs as a word in code outside
//! of its library: in another crate, a program, a test, an example, or an example in documentation.
//! A type is also used if the signature of another public item names it.
//!
//! This goes by names and not by meaning. So a name that somebody else has too (`new`, `len`)
//! hides an item that nobody uses; what is reported has no user.
//!
//! What had no user when this check was made stands in `xtask/public-without-user.txt`. That list
//! may only become shorter: an entry whose item has a user, or is gone, is a fault.

mod source;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::Context;

use source::{Item, Source};

/// The list of what has no user and is allowed to be.
const LIST: &str = "xtask/public-without-user.txt";
/// As many as it has entries. This number is only ever made smaller.
const LISTED: usize = 12;

/// Says which public items have no user, and which entries of the list are out of date.
pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let list = root.join(LIST);
    let list = std::fs::read_to_string(&list).with_context(|| list.display().to_string())?;
    let listed: Vec<&str> = list.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
    let mut faults = compared(&without_user(root)?, &listed);
    if listed.len() != LISTED {
        let file = file!();
        faults.push(format!("{LIST}: {} entries, {file} says {LISTED}", listed.len()));
    }
    Ok(faults)
}

/// What was found beside what is listed. An entry is `path: kind name`.
fn compared(found: &[Item], listed: &[&str]) -> Vec<String> {
    let entry = |item: &Item| format!("{}: {} {}", item.file.display(), item.kind, item.name);
    let entries: HashSet<String> = found.iter().map(entry).collect();
    let stale = listed.iter().filter(|listed| !entries.contains(**listed));
    let mut faults: Vec<String> =
        stale.map(|entry| format!("{LIST}: '{entry}' has a user or is gone: remove it")).collect();
    for item in found.iter().filter(|item| !listed.contains(&entry(item).as_str())) {
        let Item { file, line, kind, name, .. } = item;
        let what = "has no user outside of its crate: make it pub(crate), or remove it";
        faults.push(format!("{}:{line}: {kind} {name} {what}", file.display()));
    }
    faults
}

/// The public items of all libraries that have no user.
fn without_user(root: &Path) -> anyhow::Result<Vec<Item>> {
    let mut sources = BTreeMap::new();
    for folder in ["crates", "xtask", "fuzz"] {
        let folder = root.join(folder);
        if folder.is_dir() {
            read(root, &folder, &mut sources)?;
        }
    }
    let is_root = |path: &&PathBuf| path.ends_with("src/lib.rs") && path.starts_with("crates");
    let libraries: Vec<&PathBuf> = sources.keys().filter(is_root).collect();
    Ok(libraries.into_iter().flat_map(|root| of_library(root, &sources)).collect())
}

fn read(root: &Path, folder: &Path, sources: &mut BTreeMap<PathBuf, Source>) -> anyhow::Result<()> {
    for entry in folder.read_dir().with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() {
            if name != "target" {
                read(root, &path, sources)?;
            }
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path)?;
            sources.insert(path.strip_prefix(root).unwrap_or(&path).into(), Source::new(&text));
        }
    }
    Ok(())
}

/// A module that is a file.
struct Module<'a> {
    name: String,
    is_public: bool,
    source: &'a Source,
}

fn of_library(root: &Path, sources: &BTreeMap<PathBuf, Source>) -> Vec<Item> {
    let mut modules = BTreeMap::new();
    let folder = root.parent().unwrap_or(root);
    let globs: HashSet<&str> = sources[root].globs.iter().map(String::as_str).collect();
    modules_of(root, folder, true, &globs, sources, &mut modules);
    let mut used: HashSet<&str> = HashSet::new();
    for (path, source) in sources {
        let words = if modules.contains_key(path) { &source.in_examples } else { &source.words };
        used.extend(words.iter().map(String::as_str));
    }
    for (name, new_name) in modules.values().flat_map(|module| &module.source.renamed) {
        if used.contains(new_name.as_str()) {
            used.insert(name);
        }
    }
    let public = || modules.values().filter(|module| module.is_public);
    let named: HashSet<&str> =
        public().flat_map(|m| &m.source.exported).map(String::as_str).collect();
    let mut in_signatures: HashMap<&str, HashSet<&str>> = HashMap::new();
    for (word, of) in modules.values().flat_map(|module| &module.source.in_signatures) {
        in_signatures.entry(word).or_default().insert(of);
    }
    let is_exported = |module: &Module, name: &str| module.is_public || named.contains(name);
    let types: HashSet<&str> = modules
        .values()
        .flat_map(|module| module.source.items.iter().map(move |item| (module, item)))
        .filter(|(module, item)| item.of.is_none() && is_exported(module, &item.name))
        .map(|(_, item)| item.name.as_str())
        .collect();
    let mut found = Vec::new();
    for (path, module) in &modules {
        if module.is_public && path != root && !used.contains(module.name.as_str()) {
            let name = module.name.clone();
            found.push(Item { file: path.clone(), line: 1, kind: "mod", name, of: None });
        }
        for item in &module.source.items {
            let is_public = match &item.of {
                Some(of) => types.contains(of.as_str()),
                None => is_exported(module, &item.name),
            };
            let others = in_signatures.get(item.name.as_str());
            let in_others = item.kind != "fn"
                && others.is_some_and(|of| of.iter().any(|other| *other != item.name));
            if is_public && !used.contains(item.name.as_str()) && !in_others {
                found.push(Item { file: path.clone(), ..item.clone() });
            }
        }
    }
    found
}

/// The files of a library, from its root down.
fn modules_of<'a>(
    path: &Path,
    folder: &Path,
    is_public: bool,
    globs: &HashSet<&str>,
    sources: &'a BTreeMap<PathBuf, Source>,
    found: &mut BTreeMap<PathBuf, Module<'a>>,
) {
    let Some(source) = sources.get(path) else { return };
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    found.insert(path.to_owned(), Module { name, is_public, source });
    for (child, is_pub) in &source.modules {
        let below = folder.join(child);
        let is_public = (is_public && *is_pub) || globs.contains(child.as_str());
        for file in [below.with_extension("rs"), below.join("mod.rs")] {
            if sources.contains_key(&file) && !found.contains_key(&file) {
                modules_of(&file, &below, is_public, globs, sources, found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_items_of_this_workspace_have_users() {
        assert_eq!(check(&crate::root()).unwrap(), Vec::<String>::new());
    }

    /// A workspace of two crates.
    fn workspace() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "crates/low/src/lib.rs",
            "pub mod open;\nmod hidden;\npub use hidden::{Shown, Other};\n\
             //! ```\n//! low::open::in_an_example();\n//! ```\n",
        );
        write(
            "crates/low/src/open.rs",
            "pub fn used() -> InSignature {}\npub fn unused() {}\npub(crate) fn own() {}\n\
             pub fn in_an_example() {}\n// pub fn in_a_comment() {}\n\
             pub struct InSignature;\nimpl InSignature {\n    pub const fn method(&self) {}\n}\n\
             #[cfg(test)]\nmod tests {\n    pub fn of_a_test() { unused() }\n}\n",
        );
        write(
            "crates/low/src/hidden.rs",
            "pub struct Shown;\npub struct Other;\npub fn not_exported() {}\n",
        );
        write(
            "crates/high/src/lib.rs",
            "// unused\nfn f() { low::open::used(); low::Shown; let open = 1; }\n",
        );
        root
    }

    #[test]
    fn what_has_no_user_is_found_and_what_has_one_is_not() {
        let root = workspace();
        let found = without_user(root.path()).unwrap();
        let named: Vec<String> = found
            .iter()
            .map(|i| format!("{}:{} {} {}", i.file.display(), i.line, i.kind, i.name))
            .collect();
        assert_eq!(
            named,
            [
                "crates/low/src/hidden.rs:2 struct Other",
                "crates/low/src/open.rs:2 fn unused",
                "crates/low/src/open.rs:8 fn method",
            ]
        );
        // Somebody uses one of them.
        let test = root.path().join("crates/low/tests/a.rs");
        std::fs::create_dir_all(test.parent().unwrap()).unwrap();
        std::fs::write(test, "#[test]\nfn t() { low::open::unused() }\n").unwrap();
        assert_eq!(without_user(root.path()).unwrap().len(), 2);
    }

    #[test]
    fn entries_of_the_list_must_be_there_still() {
        let found = without_user(workspace().path()).unwrap();
        let listed = ["crates/low/src/hidden.rs: struct Other", "crates/low/src/open.rs: fn gone"];
        let faults = compared(&found, &listed);
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert!(faults[0].contains("fn gone' has a user or is gone"));
        assert!(faults[1].starts_with("crates/low/src/open.rs:2: fn unused has no user"));
    }
}
