//! Public items of library crates that nobody outside of their crate uses.
//!
//! An item is public if a path of public modules leads to it, or a `pub use` in such a module names
//! it; a function of a type if the type is. It is used if its name occurs as a word in code outside
//! of its library:
//!
//! * in another published crate or in the program, but not in their tests and examples;
//! * in a crate that is not published, its tests and examples included: what they test must be
//!   within their reach.
//!
//! The users of the library `steadfast`, and of the libraries that it passes on whole (`pub use
//! steadfast_devices as devices`), are strangers: of these, and of libraries that are not
//! published, tests, examples and examples in documentation are users too. A type is also used if
//! the signature of another public item names it.
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
/// The library for strangers.
const FOR_STRANGERS: &str = "crates/steadfast/src/lib.rs";
/// As many as it has entries. This number is only ever made smaller.
const LISTED: usize = 7;

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
    let packages: HashSet<PathBuf> = sources.keys().filter_map(|path| package(path)).collect();
    let mut published = HashSet::new();
    for package in packages {
        let manifest = root.join(&package).join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest);
        let text = text.with_context(|| manifest.display().to_string())?;
        if !text.lines().any(|line| line == "publish = false") {
            published.insert(package);
        }
    }
    let workspace = Workspace { sources, published };
    let is_root = |path: &&PathBuf| path.ends_with("src/lib.rs") && path.starts_with("crates");
    let libraries = workspace.sources.keys().filter(is_root);
    Ok(libraries.flat_map(|root| of_library(root, &workspace)).collect())
}

/// All files, and which packages are published.
struct Workspace {
    sources: BTreeMap<PathBuf, Source>,
    published: HashSet<PathBuf>,
}

/// The folder of the package that a file belongs to.
fn package(path: &Path) -> Option<PathBuf> {
    let depth = if path.starts_with("crates") { 2 } else { 1 };
    let folder: PathBuf = path.iter().take(depth).collect();
    (folder != path).then_some(folder)
}

/// Tests and examples, as files.
fn is_test(path: &Path) -> bool {
    path.iter().any(|part| ["tests", "tests.rs", "examples", "benches"].iter().any(|t| part == *t))
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

fn of_library(root: &Path, workspace: &Workspace) -> Vec<Item> {
    let Workspace { sources, published } = workspace;
    let is_published = |path: &Path| package(path).is_some_and(|p| published.contains(&p));
    let tests_use = !is_published(root) || is_for_strangers(root, sources);
    let mut modules = BTreeMap::new();
    let folder = root.parent().unwrap_or(root);
    let globs: HashSet<&str> = sources[root].globs.iter().map(String::as_str).collect();
    modules_of(root, folder, true, &globs, sources, &mut modules);
    let mut used: HashSet<&str> = HashSet::new();
    for (path, source) in sources {
        let words = match (modules.contains_key(path), tests_use) {
            (true, true) => &source.in_examples,
            (true, false) => continue,
            (false, true) => &source.words,
            (false, false) if !is_published(path) => &source.words,
            (false, false) if is_test(path) => continue,
            (false, false) => &source.without_tests,
        };
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

/// Whether a library is the one for strangers, or passed on by it.
fn is_for_strangers(root: &Path, sources: &BTreeMap<PathBuf, Source>) -> bool {
    let passed_on = sources.get(Path::new(FOR_STRANGERS)).into_iter().flat_map(|lib| &lib.renamed);
    let names = passed_on.filter_map(|(name, _)| name.strip_prefix("steadfast_"));
    let mut folders = names.map(|name| Path::new("crates").join(name.replace('_', "-")));
    root == Path::new(FOR_STRANGERS) || folders.any(|folder| root.starts_with(folder))
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

    fn write(root: &tempfile::TempDir, path: &str, text: &str) {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A workspace of two crates that are published, and one that is not.
    fn workspace() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| write(&root, path, text);
        write("crates/low/Cargo.toml", "[package]\n");
        write("crates/high/Cargo.toml", "[package]\n");
        write("crates/own/Cargo.toml", "[package]\npublish = false\n");
        write("crates/own/src/lib.rs", "fn f() { low::open::of_own() }\npub fn tested() {}\n");
        write("crates/own/tests/a.rs", "#[test]\nfn t() { own::tested() }\n");
        // Passed on whole: its tests are users.
        write("crates/steadfast/Cargo.toml", "[package]\n");
        write("crates/steadfast/src/lib.rs", "pub use steadfast_given as given;\n");
        write("crates/given/Cargo.toml", "[package]\n");
        write("crates/given/src/lib.rs", "pub fn of_a_stranger() {}\n");
        write("crates/given/tests/a.rs", "#[test]\nfn t() { given::of_a_stranger() }\n");
        write(
            "crates/low/src/lib.rs",
            "pub mod open;\nmod hidden;\npub use hidden::{Shown, Other};\n\
             //! ```\n//! low::open::in_an_example();\n//! ```\n",
        );
        write(
            "crates/low/src/open.rs",
            "pub fn used() -> InSignature {}\npub fn unused() {}\npub(crate) fn own() {}\n\
             pub fn in_an_example() {}\n// pub fn in_a_comment() {}\npub fn of_own() {}\n\
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
                "crates/low/src/open.rs:4 fn in_an_example",
                "crates/low/src/open.rs:9 fn method",
            ]
        );
        // A test of what is published is no user of it.
        let test = "#[test]\nfn t() { low::open::unused() }\n";
        write(&root, "crates/high/tests/a.rs", test);
        write(&root, "crates/high/src/more.rs", &format!("#[cfg(test)]\nmod tests {{\n{test}}}\n"));
        assert_eq!(without_user(root.path()).unwrap().len(), 4);
        // That of another crate is, and so is the product.
        write(&root, "crates/own/tests/b.rs", test);
        write(&root, "crates/high/src/main.rs", "fn main() { low::Other.method() }\n");
        assert_eq!(without_user(root.path()).unwrap().len(), 1);
    }

    #[test]
    fn entries_of_the_list_must_be_there_still() {
        let found = without_user(workspace().path()).unwrap();
        let listed = ["crates/low/src/hidden.rs: struct Other", "crates/low/src/open.rs: fn gone"];
        let faults = compared(&found, &listed);
        assert_eq!(faults.len(), 4, "{faults:?}");
        assert!(faults[0].contains("fn gone' has a user or is gone"));
        assert!(faults[1].starts_with("crates/low/src/open.rs:2: fn unused has no user"));
    }
}
