//! `cargo xtask soak`: the same tests, for much longer.
//!
//! A test that explores (random operations, sampled power cuts, flipped bits) multiplies its
//! number of cases by the whole number in the environment variable `STEADFAST_SOAK`, where that is
//! set. `PROPTEST_CASES` is set too, for property tests that leave their number to proptest.
//!
//! Afterwards the kernel must read our sector namespaces and we its, and what the tests install
//! must not be too much.
//!
//! What can be cut into cases that do not depend on each other is a sweep beside that, for a night
//! or for many machines: the program `soak` of the crate `selftest`, which is built here.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::arguments::target;
use crate::binaries::{self, TestSelection, Times};
use crate::step::{self, step};
use crate::tally::Tally;
use crate::{btt, fresh, packages, test, value};

/// As long as it takes: a night, not a year.
const LIMIT: Duration = Duration::from_secs(24 * 3600);
/// Some binaries run for half an hour; who waits must see that something goes on.
const LONG_TEST: Duration = Duration::from_secs(10);
/// Proptest's own number of cases.
const PROPTEST_CASES: u64 = 256;

/// Commands of the program `soak`; `--plan FILE ...` is `run --plan FILE ...`.
const SWEEP: [&str; 6] = ["plan", "run", "merge", "status", "case", "help"];
const PLAN: &str = "--plan";
/// Whose program it is.
const PACKAGE: &str = "steadfast-selftest";

/// Runs all tests, or those of a name, with many more cases; or a sweep.
pub fn run(root: &Path, args: &[String]) -> anyhow::Result<bool> {
    if let Some(first) = args.first() {
        if SWEEP.contains(&first.as_str()) {
            return sweep(root, args);
        }
        if first == PLAN || first.starts_with("--plan=") {
            return sweep(root, &[&["run".to_owned()], args].concat());
        }
    }
    let (mut factor, mut filter) = (20u64, None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--factor" => {
                let text = value("--factor", &mut args)?;
                factor = text.parse().ok().filter(|f| *f > 0).ok_or_else(|| {
                    anyhow::anyhow!("--factor takes a whole number from 1 on, not '{text}'")
                })?;
            }
            "--filter" => filter = Some(value("--filter", &mut args)?),
            _ => anyhow::bail!("unexpected argument '{arg}'; see cargo xtask help"),
        }
    }
    step("packages", || packages::install(&packages::OF_SOAK));
    let environment = [
        ("STEADFAST_SOAK", factor.to_string()),
        ("PROPTEST_CASES", PROPTEST_CASES.saturating_mul(factor).to_string()),
    ];
    let asked = TestSelection {
        features: test::PLANTED,
        release: true,
        filter,
        only: None,
        environment: &environment,
        limit: LIMIT,
        long: LONG_TEST,
    };
    let begun = Instant::now();
    let (mut tally, mut times) = (Tally::default(), Times::default());
    let built = binaries::build(root, &asked)?;
    let mut failed = u64::from(built.is_none());
    if let Some(built) = built {
        step(&format!("tests, {factor} times as many cases"), || {
            binaries::run(root, &built, &asked, &mut tally, &mut times)
        });
    }
    let kernel = |filter: &&str| "btt".contains(*filter);
    let good = !filter.as_ref().is_none_or(kernel)
        || step("sector namespaces and the kernel's", || btt::run(root));
    failed += u64::from(!good);
    let small = |filter: &&str| "packages".contains(*filter);
    let good = !filter.as_ref().is_none_or(small)
        || step("what the tests install on a fresh Debian", || fresh::check(root));
    failed += u64::from(!good);
    test::print_times(&[], &times, begun.elapsed());
    Ok(test::summary(&tally, failed))
}

/// Builds the program, and becomes it.
fn sweep(root: &Path, args: &[String]) -> anyhow::Result<bool> {
    let mut build = step::cargo(root, &["build", "--release", "--quiet", "-p", PACKAGE]);
    build.args(["--bin", "soak", "--features", "planted-bugs"]);
    anyhow::ensure!(build.status()?.success(), "the program soak was not built");
    let mut soak = Command::new(target(root).join("release/soak"));
    soak.args(args);
    let is_said = args.iter().any(|arg| arg.split('=').next() == Some("--commit"));
    if let Some(commit) = commit(root).filter(|_| args[0] == "plan" && !is_said) {
        soak.args(["--commit", &commit]);
    }
    Err(soak.exec())
        .with_context(|| format!("cannot start {}", soak.get_program().to_string_lossy()))
}

/// What the sources are of, as far as git knows.
fn commit(root: &Path) -> Option<String> {
    let mut git = Command::new("git");
    git.args(["describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]).current_dir(root);
    let said = git.output().ok().filter(|said| said.status.success())?;
    Some(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}
