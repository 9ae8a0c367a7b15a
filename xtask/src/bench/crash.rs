//! `cargo xtask bench crash`: how fast power cuts are explored, beside what the same states cost
//! with the kernel and e2fsck, and what recording costs.

use std::path::Path;
use std::process::{Command, Stdio};

use steadfast_statistics::load::Load;

use super::print_machine;
use crate::{conformance, packages, step};

/// Builds the example `crash_speed`, which measures and prints.
pub(super) fn run(root: &Path, args: &[String]) -> anyhow::Result<bool> {
    for arg in args {
        anyhow::ensure!(
            ["--quick", "--json"].contains(&arg.as_str()),
            "unexpected argument '{arg}'; see cargo xtask help"
        );
    }
    if !packages::install(&[])? {
        return Ok(false);
    }
    let build =
        ["build", "--release", "--package", "steadfast-selftest", "--example", "crash_speed"];
    let mut build = step::cargo(root, &build);
    build.args(["--message-format", "json"]).stderr(Stdio::inherit());
    let example = conformance::executable(&build.output()?)?;
    let before = Load::now();
    let measured = Command::new(example).args(args).status()?.success();
    if !args.iter().any(|arg| arg == "--json") {
        print_machine(before);
    }
    Ok(measured)
}
