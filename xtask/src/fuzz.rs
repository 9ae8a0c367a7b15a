//! `cargo xtask fuzz`: libFuzzer over the targets in `fuzz/fuzz_targets`.
//!
//! The targets are those of `cargo fuzz`, but neither it nor a nightly compiler is needed: the
//! coverage that guides libFuzzer comes from a stable compiler's code-generation options, and
//! the sanitizers that need a nightly one find little where unsafe code is in few files, which no
//! target reaches with bytes of its own. A C++ compiler builds libFuzzer itself.
//!
//! Besides panics, an input that takes longer than ten seconds, or for which more than 512 MiB are
//! allocated, is a failure. Inputs to begin with are kept in `fuzz/seeds/TARGET`. The failing input
//! stays in `fuzz/artifacts/TARGET`; to reproduce it, give its path to the target's binary in
//! `target/fuzz`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;

use crate::step::{self, step};
use crate::{packages, value};

/// Has the compiler count edges and comparisons, as libFuzzer expects.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cdebug-assertions -Ccodegen-units=1";

/// Runs one target or all of them.
pub fn run(root: &Path, args: &[String]) -> anyhow::Result<bool> {
    let (mut seconds, mut wanted, mut only_list) = (60u64, None, false);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seconds" => {
                let text = value("--seconds", &mut args)?;
                seconds = text.parse().ok().filter(|s| *s > 0).ok_or_else(|| {
                    anyhow::anyhow!("--seconds takes a whole number from 1 on, not '{text}'")
                })?;
            }
            "--list" => only_list = true,
            name if !name.starts_with('-') && wanted.is_none() => wanted = Some(name),
            _ => anyhow::bail!("unexpected argument '{arg}'; see cargo xtask help"),
        }
    }
    let mut targets = targets(root)?;
    if only_list {
        targets.iter().for_each(|t| println!("{t}"));
        return Ok(true);
    }
    if let Some(name) = wanted {
        let all = targets.join(", ");
        targets.retain(|t| t == name);
        anyhow::ensure!(!targets.is_empty(), "there is no fuzz target '{name}'; there are: {all}");
    }
    let mut all_well = step("packages", || packages::install(&[("c++", "g++")]));
    for target in targets {
        all_well &= step(&format!("fuzz {target}, {seconds} s"), || fuzz(root, &target, seconds));
    }
    Ok(all_well)
}

/// Names of the targets, in order.
fn targets(root: &Path) -> anyhow::Result<Vec<String>> {
    let folder = root.join("fuzz/fuzz_targets");
    let mut targets = Vec::new();
    for entry in folder.read_dir().with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "rs")
            && let Some(name) = path.file_stem()
        {
            targets.push(name.to_string_lossy().into_owned());
        }
    }
    targets.sort();
    Ok(targets)
}

/// What the compiler calls this machine. Named in the build, so that the coverage options apply to
/// the target alone and not to build scripts.
fn host() -> anyhow::Result<String> {
    let out = Command::new("rustc").arg("-vV").output().context("asking rustc")?;
    let text = String::from_utf8_lossy(&out.stdout);
    let host = text.lines().find_map(|l| l.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}

fn fuzz(root: &Path, target: &str, seconds: u64) -> anyhow::Result<bool> {
    let host = host()?;
    let mut build = step::cargo(root, &["build", "--release", "--quiet"]);
    build.args(["--package", "steadfast-fuzz", "--features", "libfuzzer"]);
    build.args(["--target-dir", "target/fuzz", "--target", &host, "--bin", target]);
    build.env("RUSTFLAGS", COVERAGE);
    if !step::run(&mut build)? {
        return Ok(false);
    }
    let fuzz = root.join("fuzz");
    let (corpus, artifacts) =
        (fuzz.join("corpus").join(target), fuzz.join("artifacts").join(target));
    std::fs::create_dir_all(&corpus)?;
    std::fs::create_dir_all(&artifacts)?;
    let mut command =
        Command::new(root.join("target/fuzz").join(&host).join("release").join(target));
    command
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args(["-timeout=10", "-rss_limit_mb=2048", "-max_len=65536"])
        .args(["-print_final_stats=1", "-verbosity=0"])
        .arg(corpus);
    // Inputs to begin with: those that are kept.
    let seeds = fuzz.join("seeds").join(target);
    if seeds.is_dir() {
        command.arg(seeds);
    }
    // It ends by itself; the limit is for when it does not.
    let limit = Duration::from_secs(seconds.saturating_add(120));
    step::run_within(limit, command.current_dir(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_program() {
        let root = crate::root();
        let manifest = std::fs::read_to_string(root.join("fuzz/Cargo.toml")).unwrap();
        let mut listed: Vec<String> = Vec::new();
        let (_, programs) = manifest.split_once("[[bin]]").unwrap();
        for program in programs.split("[[bin]]") {
            let value = |key: &str| {
                let line = program.lines().find_map(|line| line.strip_prefix(key)).unwrap();
                line.trim_matches(['=', ' ', '"']).to_owned()
            };
            assert_eq!(value("path"), format!("fuzz_targets/{}.rs", value("name")));
            listed.push(value("name"));
        }
        listed.sort();
        assert_eq!(listed, targets(&root).unwrap(), "fuzz/Cargo.toml beside fuzz/fuzz_targets");
    }
}
