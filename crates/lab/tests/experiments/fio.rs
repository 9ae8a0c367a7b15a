//! `[workload.fio]`: jobs of fio's on the variants' file systems.

use std::sync::atomic::AtomicBool;

use steadfast_lab::results::{FioRow, Results};
use steadfast_lab::scenario::Scenario;
use steadfast_lab::{LabError, RunOptions, Watch, run_seeds};

use crate::schema::assert_described;

const GOOD: &str = r#"
version = 2
name = "jobs"
title = "Jobs"

[workload]
cuts = 0

[workload.fio]
jobs = """
[global]
size=4m
[db]
rw=randwrite
fdatasync=1
number_ios=100
[scan]
stonewall
rw=read
bs=64k
"""
quick_sections = ["db"]

[device.ssd]
kind = "ssd"
sectors = 262144
write_cache = "volatile"

[device.ram]
kind = "ram"
size = "128m"

[[variant]]
name = "ssd"
label = "On the drive"
disk = "ssd"

[[variant]]
name = "ram"
label = "In memory"
disk = "ram"
"#;

fn run(scenario: &Scenario, full: bool) -> Results {
    let watch = Watch { progress: &|_, _| {}, stop: &AtomicBool::new(false) };
    run_seeds(scenario, &RunOptions { full, ..RunOptions::default() }, &[1], &watch).unwrap()
}

#[test]
fn jobs_are_measured_on_every_variant() {
    let scenario = Scenario::parse(GOOD, "my.toml").unwrap();
    let results = run(&scenario, true);
    let rows: Vec<&FioRow> = results.only().of::<FioRow>().collect();
    let of = |variant: &str, test: &str| {
        *rows.iter().find(|row| row.variant == variant && row.test == test).unwrap()
    };
    let (slow, fast) = (of("ssd", "db write"), of("ram", "db write"));
    // As with fio, none follows the last write.
    assert_eq!((slow.requests, slow.fsyncs, fast.fsyncs), (100, 99, 99));
    assert!(fast.requests_per_s > 3.0 * slow.requests_per_s, "{fast:?} {slow:?}");
    // What was laid out is read from the drive, not from the cache.
    let (slow, fast) = (of("ssd", "scan read"), of("ram", "scan read"));
    assert_eq!((slow.requests, fast.requests), (64, 64));
    assert!(fast.kb_per_s > 2.0 * slow.kb_per_s, "{fast:?} {slow:?}");
    assert_described(&results);
    let quick = run(&scenario, false);
    assert_eq!(quick.only().of::<FioRow>().count(), 2);
}

#[test]
fn mistakes_of_jobs_are_found_at_reading() {
    let with = |from: &str, to: &str| {
        assert!(GOOD.contains(from), "{from}");
        match Scenario::parse(&GOOD.replace(from, to), "my.toml") {
            Err(LabError::File(wrong)) => wrong.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let wrong = with("bs=64k", "flow=2\nsize=${SIZE}");
    assert!(wrong.contains("jobs:11: option 'size': ${SIZE}: the jobs of a scenario have no"));
    assert!(with("bs=64k", "flow=2").contains("jobs:10: option 'flow' of fio is not supported"));
    assert!(with("jobs = \"\"\"", "file = \"x.fio\"\njobs = \"\"\"").contains("both `file` and"));
    let files = GOOD.replace("cuts = 0", "cuts = 0\niozone = \"-t1\"");
    let both = Scenario::parse(&files, "my.toml").unwrap_err().to_string();
    assert!(both.contains("both `iozone` and `fio`"), "{both}");
}
