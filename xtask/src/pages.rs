//! What a program can check of the documents: how long they are, that links lead somewhere, that
//! each page is in the index, and that README's example is one that is tested.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::claims;

const README: &str = "README.md";
/// Who comes for the first time reads this much.
const README_LINES: usize = 120;
const README_WORDS: usize = 1200;
/// Words, as `wc -w` counts them, of all pages of [`COUNTED`] together.
const WORDS: usize = 45_000;
const COUNTED: [&str; 2] = ["docs", "docs/internals"];
/// The index of the pages.
const INDEX: &str = "docs/README.md";
/// Where README's example is tested: the documentation of the library.
const TESTED: &str = "crates/steadfast/src/lib.rs";
/// Other pages whose links are followed; of folders all `*.md`, and each README.md below.
const LINKED: [&str; 7] =
    ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs", "examples", "helpers"];

/// Everything that is wrong, as `path: what`.
pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    for start in LINKED {
        for path in markdown(&root.join(start))? {
            let text = std::fs::read_to_string(&path).with_context(|| shown(root, &path))?;
            pages.insert(path, text);
        }
    }
    let mut faults = too_long(root, &pages);
    for (path, text) in &pages {
        for link in links(text) {
            if let Some(what) = broken(&pages, path, link) {
                faults.push(format!("{}: {link}: {what}", shown(root, path)));
            }
        }
    }
    faults.extend(not_in_index(root, &pages));
    if let Some(readme) = pages.get(&root.join(README)) {
        let tested = std::fs::read_to_string(root.join(TESTED)).context(TESTED)?;
        faults.extend(untested(readme, &tested));
        faults.extend(claims::check(README, readme));
    }
    Ok(faults)
}

/// A page, or all those below a folder.
fn markdown(start: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if start.is_dir() {
        for entry in start.read_dir().with_context(|| format!("reading {}", start.display()))? {
            let path = entry?.path();
            if path.file_name().is_none_or(|name| name != "target") {
                found.extend(markdown(&path)?);
            }
        }
    } else if start.extension().is_some_and(|e| e == "md") && start.exists() {
        found.push(start.into());
    }
    Ok(found)
}

fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

/// Pages directly in a folder of [`COUNTED`].
fn counted<'a>(
    root: &'a Path,
    pages: &'a BTreeMap<PathBuf, String>,
) -> impl Iterator<Item = (&'a PathBuf, &'a String)> {
    let folders = COUNTED.map(|folder| root.join(folder));
    pages.iter().filter(move |(path, _)| folders.iter().any(|f| path.parent() == Some(f)))
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn too_long(root: &Path, pages: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut hold = |name: &str, count: usize, what: &str, most: usize| {
        if count > most {
            faults.push(format!("{name}: {count} {what}, more than {most}"));
        }
    };
    if let Some(readme) = pages.get(&root.join(README)) {
        hold(README, readme.lines().count(), "lines", README_LINES);
        hold(README, words(readme), "words", README_WORDS);
    }
    let all = counted(root, pages).map(|(_, text)| words(text)).sum();
    hold(&COUNTED.join(", "), all, "words", WORDS);
    faults
}

/// The targets of a page's links, but for those in code and to the web.
fn links(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code || line.starts_with("    ") {
            continue;
        }
        for rest in line.split("](").skip(1) {
            let Some((target, _)) = rest.split_once(')') else { continue };
            if !target.contains("://") && !target.starts_with("mailto:") {
                found.push(target);
            }
        }
    }
    found
}

/// Why a link leads nowhere.
fn broken(pages: &BTreeMap<PathBuf, String>, page: &Path, link: &str) -> Option<String> {
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let folder = page.parent().unwrap_or(page);
    let target = if file.is_empty() { page.to_owned() } else { normal(&folder.join(file)) };
    if !target.exists() {
        return Some("is not there".into());
    }
    let text = pages.get(&target)?;
    let there = heading.is_empty() || headings(text).any(|name| name == heading);
    (!there).then(|| "has no such heading".into())
}

/// Without `..`, so that it is found among the pages.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        if part == std::path::Component::ParentDir {
            out.pop();
        } else {
            out.push(part);
        }
    }
    out
}

/// What a page's headings are called in links: small letters, digits, `-` and `_`.
fn headings(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let letter = |c: char| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
            _ => None,
        };
        line.trim_start_matches('#').trim().chars().filter_map(letter).collect()
    })
}

/// Pages that the index does not name.
fn not_in_index(root: &Path, pages: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let path = root.join(INDEX);
    let Some(index) = pages.get(&path) else { return vec![format!("{INDEX}: is not there")] };
    let folder = root.join("docs");
    let named: Vec<PathBuf> = links(index).iter().map(|l| normal(&folder.join(l))).collect();
    counted(root, pages)
        .filter(|(page, _)| **page != path && !named.contains(*page))
        .map(|(page, _)| format!("{INDEX}: does not name {}", shown(root, page)))
        .collect()
}

/// Lines of README's first example in Rust that are not in an example that is run.
fn untested(readme: &str, tested: &str) -> Vec<String> {
    let example = readme.split("```").find_map(|part| part.strip_prefix("rust\n"));
    let runs: Vec<&str> = tested
        .lines()
        .filter_map(|line| line.strip_prefix("//!"))
        .map(|line| line.trim_start().trim_start_matches("# "))
        .collect();
    let lines = example.unwrap_or("").lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .filter(|line| !runs.contains(line))
        .map(|line| format!("{README}: {TESTED} has not this line: {line}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_links_index_and_example_are_held() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let readme = "# A name: it `is`\n[a](docs/a.md#two-words) [b](#a-name-it-is)\n\
            ```rust\nrun();\nnever();\n```\n";
        write(README, readme);
        write("docs/README.md", "[a](a.md)\n[web](https://example.org/x)\n");
        write("docs/a.md", "## Two words\n");
        write("docs/results/README.md", &"word ".repeat(WORDS));
        write(TESTED, "//!     run();\n");
        let never = format!("README.md: {TESTED} has not this line: never();");
        assert_eq!(check(root).unwrap(), std::slice::from_ref(&never));

        write("docs/internals/b.md", "[c](../c.md)\n```\n[d](d.md)\n```\n[a](../a.md#three)\n");
        write(README, &readme.replace("run();", &"run();\n".repeat(README_LINES)));
        let long = format!("README.md: {} lines, more than {README_LINES}", README_LINES + 6);
        let expected = [
            long,
            "docs/internals/b.md: ../c.md: is not there".into(),
            "docs/internals/b.md: ../a.md#three: has no such heading".into(),
            "docs/README.md: does not name docs/internals/b.md".into(),
            never,
        ];
        assert_eq!(check(root).unwrap(), expected);

        write("docs/a.md", &"word ".repeat(WORDS));
        write(README, &"a b ".repeat(README_WORDS));
        let found = check(root).unwrap();
        assert!(found.contains(&format!("README.md: {} words, more than 1200", 2 * README_WORDS)));
        assert!(found.iter().any(|f| f.starts_with("docs, docs/internals: 450")), "{found:?}");
    }
}
