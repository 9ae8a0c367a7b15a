//! Publishing: what every package of the workspace must say of itself, whether all of them can be
//! packaged in order, and whether the oldest compiler that is named builds them.
//!
//! The members of the workspace are asked of Cargo, so a new crate is looked at as soon as it is
//! there.

use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use crate::step;

/// Members that are for this workspace only.
const NOT_PUBLISHED: [&str; 4] =
    ["steadfast-fuzz", "steadfast-selftest", "steadfast-suite", "xtask"];

/// The categories of crates.io that are used here.
const CATEGORIES: [&str; 13] = [
    "caching",
    "command-line-interface",
    "command-line-utilities",
    "concurrency",
    "data-structures",
    "development-tools::profiling",
    "development-tools::testing",
    "emulators",
    "encoding",
    "filesystem",
    "hardware-support",
    "os::linux-apis",
    "simulation",
];

/// Limits of crates.io for keywords.
const KEYWORDS_MAX: usize = 5;
const KEYWORD_LENGTH_MAX: usize = 20;

/// The workspace as Cargo describes it.
pub fn metadata(root: &Path) -> anyhow::Result<Value> {
    let out = step::cargo(root, &["metadata", "--no-deps", "--format-version", "1"]).output()?;
    let said = String::from_utf8_lossy(&out.stderr);
    anyhow::ensure!(out.status.success(), "cargo metadata failed: {said}");
    serde_json::from_slice(&out.stdout).context("reading cargo's metadata")
}

/// What keeps a package from being published as it should be.
pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    Ok(faults(&metadata(root)?))
}

fn faults(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut found = Vec::new();
    for package in packages {
        let name = text(&package["name"]);
        let mut fault = |what: &str| found.push(format!("{name}: {what}"));
        match (is_published(package), NOT_PUBLISHED.contains(&name)) {
            (true, true) => fault("is for this workspace only: it needs publish = false"),
            (false, false) => fault("is not to be published: is that meant? See NOT_PUBLISHED"),
            (false, true) => {}
            (true, false) => {
                package_faults(package, &mut fault);
                dependency_faults(package, packages, &mut fault);
                readme_faults(package, &mut fault);
            }
        }
    }
    found
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Cargo says `null` for every registry, a list for those that are named.
pub fn is_published(package: &Value) -> bool {
    package["publish"].as_array().is_none_or(|registries| !registries.is_empty())
}

fn package_faults(package: &Value, fault: &mut dyn FnMut(&str)) {
    for field in ["description", "license", "repository", "rust_version"] {
        if text(&package[field]).is_empty() {
            fault(&format!("has no {field}"));
        }
    }
    let list = |field: &str| -> Vec<String> {
        let list = package[field].as_array().into_iter().flatten();
        list.map(|word| text(word).to_owned()).collect()
    };
    let (keywords, categories) = (list("keywords"), list("categories"));
    if keywords.is_empty() || keywords.len() > KEYWORDS_MAX {
        fault(&format!("has {} keywords: 1 to {KEYWORDS_MAX} are needed", keywords.len()));
    }
    for word in keywords.iter().filter(|word| !is_keyword(word)) {
        fault(&format!("keyword {word:?}: crates.io takes at most {KEYWORD_LENGTH_MAX} letters"));
    }
    if categories.is_empty() {
        fault("has no categories");
    }
    for word in categories.iter().filter(|word| !CATEGORIES.contains(&word.as_str())) {
        fault(&format!("category {word:?} is not in CATEGORIES: is it one of crates.io?"));
    }
}

/// What crates.io takes for a keyword.
fn is_keyword(word: &str) -> bool {
    let first = word.starts_with(|c: char| c.is_ascii_alphanumeric());
    let rest = word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+'));
    first && rest && word.len() <= KEYWORD_LENGTH_MAX
}

/// What is published may only need what is published too, by version. Dependencies of tests that
/// have no version are left out of the package by Cargo.
fn dependency_faults(package: &Value, packages: &[Value], fault: &mut dyn FnMut(&str)) {
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let name = text(&dependency["name"]);
        let Some(member) = packages.iter().find(|p| text(&p["name"]) == name) else { continue };
        let has_version = text(&dependency["req"]) != "*";
        let for_tests = dependency["kind"] == "dev";
        match (is_published(member), has_version) {
            (true, true) => {}
            (true, false) => fault(&format!("needs {name} without a version")),
            (false, true) => fault(&format!("needs {name}, which is not published, by version")),
            (false, false) if for_tests => {}
            (false, false) => fault(&format!("needs {name}, which is not published")),
        }
    }
}

fn readme_faults(package: &Value, fault: &mut dyn FnMut(&str)) {
    let name = text(&package["name"]);
    let folder = Path::new(text(&package["manifest_path"])).parent().unwrap_or(Path::new("."));
    let readme = folder.join(text(&package["readme"]));
    let Ok(readme) = std::fs::read_to_string(readme) else {
        return fault("has no README.md");
    };
    if readme.lines().next() != Some(&format!("# {name}")) {
        fault("its README.md does not begin with its name");
    }
    if !readme.contains("```rust") {
        fault("its README.md has no example");
    }
    let tested = std::fs::read_to_string(folder.join("src/lib.rs"));
    if !tested.is_ok_and(|lib| lib.contains("include_str!(\"../README.md\")")) {
        fault("the example of its README.md is not tested: see the end of another crate's lib.rs");
    }
}

/// Packages everything that is published, in the order in which it would be, without building it.
pub fn package(root: &Path) -> anyhow::Result<bool> {
    step::run(&mut package_command(root, "package", &["--no-verify", "--quiet"]))
}

/// `cargo package` or `cargo publish` of all that is published.
fn package_command(root: &Path, command: &str, more: &[&str]) -> std::process::Command {
    // What is not committed yet is packaged as it is.
    let mut cargo = step::cargo(root, &[command, "--workspace", "--allow-dirty"]);
    for name in NOT_PUBLISHED {
        cargo.args(["--exclude", name]);
    }
    cargo.args(more);
    cargo
}

/// `cargo xtask publish-check`: the checks above, and with `--verify` each package built from what
/// would be uploaded, against the others' packages.
pub fn run(root: &Path, args: &[String]) -> anyhow::Result<bool> {
    let verify = match args {
        [] => false,
        [verify] if verify == "--verify" => true,
        [arg, ..] => anyhow::bail!("unexpected argument '{arg}'; see cargo xtask help"),
    };
    let found = check(root)?;
    found.iter().for_each(|fault| println!("    {fault}"));
    let packaged = match verify {
        false => package(root)?,
        true => step::run(&mut package_command(root, "publish", &["--dry-run"]))?,
    };
    Ok(found.is_empty() && packaged)
}

/// `cargo xtask msrv`: the oldest compiler that the workspace names (`rust-version`) takes all of
/// it. rustup fetches that compiler.
pub fn msrv(root: &Path) -> anyhow::Result<bool> {
    let metadata = metadata(root)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let versions: Vec<&str> = packages.map(|p| text(&p["rust_version"])).collect();
    let oldest = versions.first().copied().unwrap_or_default();
    anyhow::ensure!(!oldest.is_empty(), "the workspace names no rust-version");
    anyhow::ensure!(versions.iter().all(|v| *v == oldest), "members name different versions");
    // Cargo as rustup calls it; the one that runs us is of another toolchain.
    let mut install = std::process::Command::new("rustup");
    install.args(["toolchain", "install", oldest, "--profile", "minimal", "--no-self-update"]);
    if !step::run(install.current_dir(root))? {
        return Ok(false);
    }
    let mut check = std::process::Command::new("rustup");
    check.args(["run", oldest, "cargo", "check", "--workspace", "--all-targets", "--locked"]);
    check.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTC");
    // Beside what the other compiler has built.
    check.env("CARGO_TARGET_DIR", root.join("target/msrv"));
    step::run(check.current_dir(root))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn this_workspace_can_be_published() {
        assert_eq!(check(&crate::root()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn what_is_missing_is_named() {
        let package = |name: &str, publish: Value, dependencies: Value| {
            json!({ "name": name, "publish": publish, "dependencies": dependencies,
                "manifest_path": "/no/where/Cargo.toml", "readme": "README.md",
                "keywords": ["a b", "fine"], "categories": ["filesystem", "no-such"] })
        };
        let needs =
            |name: &str, req: &str, kind: Value| json!({ "name": name, "req": req, "kind": kind });
        let new = package(
            "new",
            Value::Null,
            json!([
                needs("other", "*", Value::Null),
                needs("xtask", "*", Value::Null),
                needs("xtask", "*", json!("dev")),
                needs("serde", "^1", Value::Null),
            ]),
        );
        let packages = json!({ "packages": [
            new,
            package("other", json!([]), json!([])),
            package("xtask", json!([]), json!([])),
        ]});
        let found = faults(&packages);
        for wanted in [
            "new: has no description",
            "new: has no repository",
            "new: keyword \"a b\"",
            "new: category \"no-such\"",
            "new: needs other, which is not published",
            "new: needs xtask, which is not published",
            "new: has no README.md",
            "other: is not to be published",
        ] {
            assert!(found.iter().any(|f| f.starts_with(wanted)), "{wanted}: {found:#?}");
        }
        assert_eq!(found.iter().filter(|f| f.contains("needs xtask")).count(), 1);
        assert!(!found.iter().any(|f| f.starts_with("xtask:") || f.contains("serde")));
    }
}
