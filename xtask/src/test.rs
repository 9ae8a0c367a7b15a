//! `cargo xtask test`: everything that must hold, in the order in which it is cheap to know.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::binaries::{self, TestSelection, TestTime, Times};
use crate::step::{self, step};
use crate::tally::Tally;
use crate::uring::FuseUring;
use crate::{layers, metrics, packages, publish, tables, targets, tidy, tools, unused, value};

/// Bugs that tests can switch on. They are built into what is tested, so that nothing is built or
/// run twice; without the feature, as in a release, all that asks for one is compiled away.
pub const PLANTED: &str = "steadfast-selftest/planted-bugs,steadfast-devices/planted-bugs,\
    steadfast-volume/planted-bugs,steadfast-lab/planted-bugs";

/// What is run once more with the kernel's switch for FUSE io_uring on: it is off by default.
const MOUNTED: [&str; 7] = [
    "crates/steadfast/tests/mount.rs",
    "crates/steadfast/tests/crash.rs",
    "crates/suite/tests/conformance.rs",
    "crates/suite/tests/stress.rs",
    "crates/fuse/tests/served.rs",
    "crates/fuse/tests/nameless.rs",
    "crates/fuse/tests/promises.rs",
];

/// So many of the slowest tests are named.
const SLOWEST: usize = 10;

/// The steps that were done.
#[derive(Default)]
struct Steps {
    took: Vec<TestTime>,
    failed: u64,
}

impl Steps {
    /// Does a step whose failure is one of the run.
    fn check(&mut self, name: &str, body: impl FnOnce() -> anyhow::Result<bool>) {
        self.failed += u64::from(!self.timed(name, body));
    }

    /// Does a step; whether it went well.
    fn timed(&mut self, name: &str, body: impl FnOnce() -> anyhow::Result<bool>) -> bool {
        let begun = Instant::now();
        let good = step(name, body);
        self.took.push(TestTime { name: name.to_owned(), time: begun.elapsed() });
        good
    }
}

/// Runs all checks and tests, also after one has failed; whether all is well.
pub fn run(root: &Path, args: &[String]) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let mut filter = None;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--filter" => filter = Some(value("--filter", &mut args)?),
            _ => anyhow::bail!("unexpected argument '{arg}'; see cargo xtask help"),
        }
    }
    let mut steps = Steps::default();
    // Not a failure by itself: the tests that lack something say so.
    steps.timed("packages", || packages::install(&[]));
    if filter.is_none() {
        checks(root, &mut steps);
    }
    let asked = TestSelection { features: PLANTED, filter, ..TestSelection::default() };
    let mut built = None;
    steps.check("building the tests", || {
        built = binaries::build(root, &asked)?;
        Ok(built.is_some())
    });
    let (mut tally, mut times) = (Tally::default(), Times::default());
    if let Some(built) = &built {
        // What fails here is in the tally.
        steps.timed("tests", || binaries::run(root, built, &asked, &mut tally, &mut times));
        match FuseUring::on() {
            Ok(_switched) => {
                let asked = TestSelection { only: Some(&MOUNTED), ..asked };
                let name = "mounts again, over FUSE io_uring";
                steps.timed(name, || binaries::run(root, built, &asked, &mut tally, &mut times));
            }
            Err(why) => println!("==> SKIPPED: mounts over FUSE io_uring: {why}"),
        }
        if filter.is_none() {
            steps.check("tables are what the program prints", || tables::check_quick(root));
        }
    }
    print_times(&steps.took, &times, begun.elapsed());
    Ok(summary(&tally, steps.failed))
}

/// What is checked without running anything.
fn checks(root: &Path, steps: &mut Steps) {
    steps.check("cargo fmt", || step::run(&mut step::cargo(root, &["fmt", "--all", "--check"])));
    steps.check("layers", || none_of(&layers::check(root)?));
    steps.check("tidy", || {
        let findings = tidy::check(root)?;
        for warning in &findings.warnings {
            println!("    warning: {warning}");
        }
        none_of(&findings.faults)
    });
    steps.check("spelling", || tools::spelling(root));
    steps.check("dependencies", || tools::dependencies(root));
    steps.check("public items have users", || none_of(&unused::check(root)?));
    steps.check("metrics", || none_of(&metrics::check(root)?));
    steps.check("packages can be published", || none_of(&publish::check(root)?));
    steps.check("cargo package", || publish::package(root));
    steps.check("cargo clippy", || {
        let args = ["clippy", "--workspace", "--all-targets", "--quiet", "--features", PLANTED];
        step::run(step::cargo(root, &args).args(["--", "-D", "warnings"]))
    });
    steps.check("the library without the command line", || {
        let args = ["clippy", "--package", "steadfast", "--lib", "--no-default-features"];
        step::run(step::cargo(root, &args).args(["--quiet", "--", "-D", "warnings"]))
    });
    steps.check("the library for other targets", || targets::check(root));
    steps.check("cargo doc", || {
        let args = ["doc", "--workspace", "--no-deps", "--quiet", "--features", PLANTED];
        step::run(step::cargo(root, &args).env("RUSTDOCFLAGS", "-Dwarnings"))
    });
}

/// What the run has taken: each step, and what is worth to be made faster.
pub fn print_times(steps: &[TestTime], times: &Times, all: Duration) {
    println!("==> times");
    let print = |took: &TestTime| println!("    {:8.1} s  {}", took.time.as_secs_f64(), took.name);
    steps.iter().for_each(print);
    println!("    {:8.1} s  in all", all.as_secs_f64());
    println!("the {SLOWEST} slowest tests:");
    binaries::longest(&times.tests, SLOWEST).into_iter().for_each(print);
    println!("the {SLOWEST} test binaries that take most of the processor's time:");
    binaries::longest(&times.binaries, SLOWEST).into_iter().for_each(print);
    let sum: Duration = times.binaries.iter().map(|took| took.time).sum();
    println!("    {:8.1} s  all {} binaries", sum.as_secs_f64(), times.binaries.len());
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
