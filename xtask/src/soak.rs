//! `cargo xtask soak`: the same tests, for much longer.
//!
//! A test that explores (random operations, sampled power cuts, flipped bits) multiplies its
//! number of cases by the whole number in the environment variable `STEADFAST_SOAK`, where that is
//! set. `PROPTEST_CASES` is set too, for property tests that leave their number to proptest.
//!
//! Afterwards the kernel must read our sector namespaces and we its, and what the tests install must
//! not be too much.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::binaries::{self, TestSelection, Times};
use crate::step::step;
use crate::tally::Tally;
use crate::{btt, fresh, packages, test, value};

/// As long as it takes: a night, not a year.
const LIMIT: Duration = Duration::from_secs(24 * 3600);
/// Some binaries run for half an hour; who waits must see that something goes on.
const LONG_TEST: Duration = Duration::from_secs(10);
/// Proptest's own number of cases.
const PROPTEST_CASES: u64 = 256;

/// Runs all tests, or those of a name, with many more cases.
pub fn run(root: &Path, args: &[String]) -> anyhow::Result<bool> {
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
