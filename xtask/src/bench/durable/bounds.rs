//! What our calls in memory spend their time with: samples of the processor by perf, by the names
//! of functions.
//!
//! A processor goes on while stores are under way, so waiting for them is counted where somebody
//! must wait: at the next instruction that locks, which is anywhere. What they cost at least is
//! measured by itself: the side `stores` of the example.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context;

use super::super::table;
use super::Row;

/// Calls, and how many of each: a second of them and more.
const CALLS: [(&str, &str); 3] =
    [("overwrite", "2000000"), ("append", "150000"), ("create", "60000")];
/// Groups, and what the names of their functions have in them; the first that fits counts.
const GROUPS: [(&str, &[&str]); 5] = [
    ("stores", &["steadfast_pmem"]),
    ("checksums", &["crc32c", "crc_u64"]),
    ("allocating", &["malloc", "free", "realloc", "calloc", "unlink_chunk", "raw_vec"]),
    ("copying", &["memmove", "memcpy", "memset", "memcmp"]),
    ("the clock", &["clock_gettime"]),
];

pub(super) fn run(example: &Path) -> anyhow::Result<bool> {
    let folder = Path::new("/dev/shm");
    let name = format!("steadfast-bounds-{}", std::process::id());
    let memory = folder.join(&name);
    let samples = std::env::temp_dir().join(&name);
    let mut rows = Vec::new();
    for (call, calls) in CALLS {
        eprintln!("    {call}");
        let mut perf = Command::new("perf");
        perf.args(["record", "--quiet", "--freq", "6000", "--output"]).arg(&samples).arg("--");
        perf.arg(example).arg("memory").arg(&memory);
        perf.args(["--fast", "--only", call, "--calls", calls]);
        let out = perf.stderr(Stdio::inherit()).output();
        let out = out.context("running perf (Debian: apt install linux-perf)")?;
        anyhow::ensure!(out.status.success(), "perf record failed");
        let timed: Vec<Row> = serde_json::from_slice(&out.stdout).context("what was printed")?;
        let nanos = timed.first().context("a row")?.p50_nanos;
        let mut perf = Command::new("perf");
        perf.args(["report", "--stdio", "--no-children", "--sort", "symbol", "--input"]);
        let report = perf.arg(&samples).stderr(Stdio::null()).output()?;
        std::fs::remove_file(&samples)?;
        anyhow::ensure!(report.status.success(), "perf report failed");
        let mut cells = vec![call.to_owned(), format!("{:.2}", nanos as f64 / 1e3)];
        let shares = shares(&String::from_utf8_lossy(&report.stdout));
        cells.extend(shares.iter().map(|share| format!("{share:.0} %")));
        rows.push(cells);
    }
    let mut head: Vec<String> = ["call", "us"].map(str::to_owned).into();
    head.extend(GROUPS.iter().map(|(name, _)| (*name).to_owned()));
    head.push("the rest".to_owned());
    println!("Median of one task, and shares of the time outside of the kernel.\n");
    table(&head, &rows);
    let out = Command::new(example).arg("stores").arg(&memory).stderr(Stdio::inherit()).output()?;
    anyhow::ensure!(out.status.success(), "the example 'durable' failed");
    print!("\n{}", String::from_utf8_lossy(&out.stdout));
    Ok(true)
}

/// Percent of each group, and of the rest, of all that is not the kernel's.
fn shares(report: &str) -> Vec<f64> {
    let mut shares = vec![0.0; GROUPS.len() + 1];
    for line in report.lines() {
        let Some((percent, symbol)) = line.trim_start().split_once('%') else { continue };
        let Ok(percent) = percent.parse::<f64>() else { continue };
        let Some(symbol) = symbol.trim_start().strip_prefix("[.]") else { continue };
        let fits = |(_, names): &(&str, &[&str])| names.iter().any(|name| symbol.contains(name));
        shares[GROUPS.iter().position(fits).unwrap_or(GROUPS.len())] += percent;
    }
    let all: f64 = shares.iter().sum();
    shares.iter().map(|share| share * 100.0 / all.max(f64::MIN_POSITIVE)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_what_is_not_the_kernels() {
        let report = "# Overhead  Symbol\n\
                      \n    50.00%  [k] clear_page_erms\n    20.00%  [.] steadfast_pmem_stream\n\
                      \n    20.00%  [.] crc32c::hw\n    10.00%  [.] some::function\n";
        assert_eq!(shares(report), [40.0, 40.0, 0.0, 0.0, 0.0, 20.0]);
    }
}
