//! `cargo xtask test`: everything that must hold, in the order in which it is cheap to know.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::step::{self, step};
use crate::tally::Tally;
use crate::{layers, packages, tables, tidy};

/// Runs all checks and tests, also after one has failed; whether all is well.
pub fn run(root: &Path) -> anyhow::Result<bool> {
    let begun = Instant::now();
    // Not a failure by itself: the tests that lack something say so.
    step("packages", || packages::install(&[]));
    let mut failed_checks = 0;
    let mut check = |name: &str, body: &dyn Fn() -> anyhow::Result<bool>| {
        failed_checks += u64::from(!step(name, body));
    };
    check("cargo fmt", &|| step::run(&mut step::cargo(root, &["fmt", "--all", "--check"])));
    check("layers", &|| none_of(&layers::check(root)?));
    check("tidy", &|| {
        let findings = tidy::check(root)?;
        for warning in &findings.warnings {
            println!("    warning: {warning}");
        }
        none_of(&findings.faults)
    });
    check("cargo clippy", &|| {
        let args = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
        step::run(&mut step::cargo(root, &args))
    });
    check("the library without the command line", &|| {
        let args = ["clippy", "--package", "steadfast", "--lib", "--no-default-features"];
        step::run(step::cargo(root, &args).args(["--quiet", "--", "-D", "warnings"]))
    });
    check("cargo doc", &|| {
        let args = ["doc", "--workspace", "--no-deps", "--quiet"];
        step::run(step::cargo(root, &args).env("RUSTDOCFLAGS", "-Dwarnings"))
    });
    let mut tally = Tally::default();
    step("cargo test", || {
        let args = ["test", "--workspace", "--no-fail-fast", "--", "--show-output"];
        cargo_test(step::LIMIT, step::cargo(root, &args), &mut tally)
    });
    let tables = step("tables are what the program prints", || tables::check_quick(root));
    step("planted bugs are found", || planted_bugs(step::LIMIT, root, &[], &mut tally));
    println!("    {:.0} s in all", begun.elapsed().as_secs_f64());
    Ok(summary(&tally, failed_checks + u64::from(!tables)))
}

/// Builds journal, ext4, devices, volumes and the crash explorer once more, with the feature
/// `planted-bugs`, and lets the explorers and the campaign against mirrors find each of them.
/// Further arguments of cargo: `more`.
pub fn planted_bugs(
    limit: Duration,
    root: &Path,
    more: &[&str],
    tally: &mut Tally,
) -> anyhow::Result<bool> {
    let mut good = true;
    for package in ["steadfast-crash", "steadfast-devices", "steadfast-volume"] {
        let mut args = vec!["test", "--package", package, "--features", "planted-bugs"];
        args.extend(["--test", "planted"]);
        args.extend(more);
        args.extend(["--", "--show-output"]);
        good &= cargo_test(limit, step::cargo(root, &args), tally)?;
    }
    // Of the journal by itself: what only its own cuts of fast commits see.
    let journal = ["test", "--package", "steadfast-journal", "--features", "planted-bugs"];
    let mut journal = step::cargo(root, &journal);
    journal.args(["--test", "journal"]).args(more).args(["--", "--show-output", "planted"]);
    Ok(good & cargo_test(limit, journal, tally)?)
}

/// Runs `cargo test` and counts.
pub fn cargo_test(
    limit: Duration,
    mut command: Command,
    tally: &mut Tally,
) -> anyhow::Result<bool> {
    command.env("CARGO_TERM_COLOR", "never");
    let outcome = step::run_lines(limit, &mut command, |line| {
        if tally.line(line) {
            println!("{line}");
        }
    });
    tally.finish(*outcome.as_ref().unwrap_or(&false));
    Ok(outcome? && tally.failed() == 0)
}

/// Prints the closing line; whether all is well.
pub fn summary(tally: &Tally, failed_checks: u64) -> bool {
    for remark in tally.remarks() {
        println!("{remark}");
    }
    let (passed, skipped) = (tally.passed(), tally.skipped());
    let mut failed = tally.failed() + failed_checks;
    if skipped > 0 && rustix::process::geteuid().is_root() {
        println!("as root nothing may be skipped");
        failed += 1;
    }
    if passed == 0 && failed == 0 {
        println!("no test was run");
        failed += 1;
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    failed == 0
}

fn none_of(faults: &[String]) -> anyhow::Result<bool> {
    for fault in faults {
        println!("    {fault}");
    }
    Ok(faults.is_empty())
}
