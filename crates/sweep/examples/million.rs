//! How long plan, shards and merge of many cases take, and their memory: the figures of
//! docs/many-machines.md.
//!
//! `cargo run --release -p steadfast-sweep --example million [CASES] [SHARDS]`

#![allow(clippy::print_stdout, reason = "figures are for people")]

use std::error::Error;
use std::fs::{self, File};
use std::time::Instant;

use steadfast_sweep::{
    CaseOutcome, PlanFile, PlanHead, PlanProgram, ShardRun, SweepCase, merge, write_plan,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let count: u64 = words.next().map_or(Ok(1_000_000), |word| word.parse())?;
    let shards: u32 = words.next().map_or(Ok(16), |word| word.parse())?;
    let folder = tempfile::tempdir()?;
    let (path, results) = (folder.path().join("plan.json"), folder.path().join("results"));
    fs::create_dir(&results)?;

    let begun = Instant::now();
    let program = PlanProgram { version: "1.0".into(), sha256: "a".repeat(64) };
    let head = PlanHead::new("squares", program, shards);
    let cases = || (0..count).map(|n| SweepCase { name: format!("n-{n}"), input: n.into() });
    write_plan(&head, cases, None, &mut File::create(&path)?)?;
    println!("{count} cases in {shards} shards: planned in {:.1?}", begun.elapsed());

    let begun = Instant::now();
    let plan = PlanFile::open(&path)?;
    println!("read in {:.1?}", begun.elapsed());
    let begun = Instant::now();
    for shard in 0..shards {
        let square = |case: &SweepCase| {
            let n = case.input.as_u64().unwrap_or_default();
            CaseOutcome::Done((n * n).into())
        };
        ShardRun::new(&plan, shard, &results).run(square)?;
    }
    println!("all shards run, one after the other, in {:.1?}", begun.elapsed());

    let begun = Instant::now();
    let merged = merge(&plan, &[results], &mut |_, _| Ok(()))?;
    println!("{} cases merged in {:.1?}", merged.cases, begun.elapsed());
    let status = fs::read_to_string("/proc/self/status")?;
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default());
    Ok(())
}
