//! `cargo xtask soak`: the same tests, for much longer.
//!
//! A test that explores (random operations, sampled power cuts, flipped bits) multiplies its
//! number of cases by the whole number in the environment variable `STEADFAST_SOAK`, where that is
//! set. `PROPTEST_CASES` is set too, for property tests that leave their number to proptest.
//!
//! Afterwards the crash explorer must find the bugs that only a build with the feature
//! `planted-bugs` has, and the kernel must read our sector namespaces and we its.

use std::path::Path;
use std::time::Duration;

use crate::step::{self, step};
use crate::tally::Tally;
use crate::{btt, packages, test, value};

/// As long as it takes: a night, not a year.
const LIMIT: Duration = Duration::from_secs(24 * 3600);
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
    step("packages", || packages::install(&[]));
    let mut tally = Tally::default();
    step(&format!("cargo test, {factor} times as many cases"), || {
        let mut args = vec!["test", "--release", "--workspace", "--no-fail-fast"];
        args.extend(filter);
        args.extend(["--", "--show-output"]);
        let mut command = step::cargo(root, &args);
        command.env("STEADFAST_SOAK", factor.to_string());
        command.env("PROPTEST_CASES", PROPTEST_CASES.saturating_mul(factor).to_string());
        test::cargo_test(LIMIT, command, &mut tally)
    });
    step("planted bugs are found", || {
        let more: Vec<&str> = ["--release"].into_iter().chain(filter).collect();
        test::planted_bugs(LIMIT, root, &more, &mut tally)
    });
    let kernel = |filter: &&str| "btt".contains(*filter);
    let good = !filter.as_ref().is_none_or(kernel)
        || step("sector namespaces and the kernel's", || btt::run(root));
    Ok(test::summary(&tally, u64::from(!good)))
}
