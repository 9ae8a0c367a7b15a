//! Volumes in scenarios: what is wrong with a file, and what the scenario of the RAM disk shows.

use std::sync::atomic::AtomicBool;

use steadfast_lab::results::{LegRow, RandomReadRow, Ratio, Results, RiskRow};
use steadfast_lab::scenario::Scenario;
use steadfast_lab::{LabError, RunOptions, Watch, run_seeds};

use crate::golden::assert_tables;

const GOOD: &str = r#"
version = 2
name = "mine"
title = "Mine"

[workload]
files = { seconds = 0.5 }
cuts = 4

[device.a]
kind = "ssd"
sectors = 262144
write_cache = "volatile"

[device.b]
kind = "ssd"
sectors = 262144
write_cache = "volatile"

[device.ram]
kind = "ram"
size = "128m"
driver_us = 2.0

[volume.both]
kind = "mirror"
members = ["a", "ram"]
read = "preferred:ram"

[volume.rows]
kind = "concat"
members = ["both", "b"]

[[variant]]
name = "plain"
label = "Plain"
disk = "rows"
"#;

fn mistakes(text: &str) -> String {
    match Scenario::parse(text, "my.toml") {
        Err(LabError::File(wrong)) => wrong.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_mistakes_of_volumes_are_reported_at_once_each_with_its_line() {
    let text = GOOD
        .replace("members = [\"a\", \"ram\"]", "members = [\"a\", \"rum\"]\nvolatil = [\"a\"]")
        .replace("kind = \"concat\"", "kind = \"concat\"\nread = \"first\"")
        .replace("disk = \"rows\"", "disk = \"rows\"\njournal = \"row\"");
    let said = mistakes(&text);
    for part in [
        "my.toml cannot be used",
        "there is no device `rum`",
        "did you mean `ram`?",
        "[volume.both] has no key `volatil`",
        "did you mean `volatile`?",
        "`read` is for mirrors",
        "my.toml:27:18",
        "there is no [device.row] or [volume.row]",
    ] {
        assert!(said.contains(part), "no {part:?} in:\n{said}");
    }
    assert!(said.lines().all(|l| l.chars().count() <= 80), "{said}");
}

#[test]
fn mistakes_between_volumes_are_found_at_reading() {
    let with = |from: &str, to: &str| {
        assert!(GOOD.contains(from), "{from}");
        mistakes(&GOOD.replace(from, to))
    };
    assert!(with("[\"a\", \"ram\"]", "[\"rows\", \"ram\"]").contains("is made of itself"));
    assert!(
        with("[\"both\", \"b\"]", "[\"both\", \"a\"]").contains("`a` is in [volume.rows] twice")
    );
    assert!(with("[\"a\", \"ram\"]", "[\"a\", \"a\"]").contains("a member twice"));
    assert!(with("[\"a\", \"ram\"]", "[]").contains("has 1 to 4 members"));
    assert!(with("preferred:ram", "preferred:b").contains("`b` is none of the members"));
    assert!(with("preferred:ram", "nearest").contains("no read policy `nearest`"));
    assert!(with("volume.rows", "volume.a").contains("a device is called `a` too"));
    assert!(with("disk = \"rows\"", "disk = \"row\"").contains("or [volume.row]"));
    let journal = with("disk = \"rows\"", "disk = \"rows\"\njournal = \"ram\"");
    assert!(journal.contains("device `ram` is in the disk too"), "{journal}");
    let kernel = with("disk = \"rows\"", "disk = \"rows\"\nkernel = \"ext4\"");
    assert!(kernel.contains("stands on a device, not on a volume"), "{kernel}");
    assert!(with("read = \"pre", "model = \"svn\"\nread = \"pre").contains("did you mean `svm`?"));
    let mirror = "read = \"pre";
    let partial = |names: &str| with(mirror, &format!("partial = {names}\n{mirror}"));
    assert!(partial("[\"rum\"]").contains("`rum` is none of the members"));
    assert!(partial("[\"a\", \"ram\"]").contains("one partial leg at most"));
    assert!(partial("[\"a\", \"ram\"]").contains("no leg counts as durable"));
    assert!(with(mirror, &format!("size = \"many\"\n{mirror}")).contains("many"));
    let reads = |distribution: &str| {
        let test = "[[workload.random_read]]\ntest = \"r\"\nreads = 100\n";
        let test = format!("{test}distribution = \"{distribution}\"\n");
        with("[device.a]", &format!("{test}\n[device.a]"))
    };
    assert!(reads("zipg:1.1").contains("there is no distribution"));
    assert!(reads("zoned:80/20").contains("zones that are 100 % of both"));
    assert!(with("driver_us = 2.0", "driver_us = -1").contains("`driver_us` must be from 0"));
}

/// A mirror in a concat, under the workload of files, whose power is cut: the RAM disk is blank
/// after it, and nothing that was promised is missing.
#[test]
fn a_volume_of_volumes_keeps_its_promises_under_a_file_system() {
    let scenario = Scenario::parse(GOOD, "my.toml").unwrap();
    let results = run(&scenario, &[1]);
    let risk = results.only().of::<RiskRow>().next().unwrap();
    assert_eq!((risk.cuts, risk.broken_promises, risk.damage.events), (4, 0, 0), "{risk:?}");
    let devices = &results.variants[0].devices;
    assert!(devices.iter().any(|d| d.starts_with("rows: concat of both, b")), "{devices:?}");
}

fn run(scenario: &Scenario, seeds: &[u64]) -> Results {
    let watch = Watch { progress: &|_, _| {}, stop: &AtomicBool::new(false) };
    run_seeds(scenario, &RunOptions::default(), seeds, &watch).unwrap()
}

/// A quarter of the memory, and most reads in a fifth: most are answered from memory.
#[test]
fn a_partial_leg_answers_most_of_skewed_reads() {
    let mut scenario = Scenario::find("ramdisk-mirror").unwrap();
    scenario.variants.retain(|v| v.name.starts_with("q-"));
    scenario.workload.legs = None;
    scenario.workload.dd.clear();
    for spec in &mut scenario.workload.random_reads {
        spec.quick_reads = Some(8000);
    }
    let results = run(&scenario, &[1]);
    let rows: Vec<&RandomReadRow> = results.only().of().collect();
    let per_s = |test: &str, variant: &str| {
        let is = |r: &&&RandomReadRow| r.test.starts_with(test) && r.variant == variant;
        rows.iter().find(is).unwrap().reads_per_s
    };
    assert_eq!(rows.len(), 6);
    let (two, quarter, all) =
        (per_s("80", "q-two"), per_s("80", "q-quarter"), per_s("80", "q-ram"));
    assert!(quarter > 2.0 * two && quarter < 5.0 * two && all > 5.0 * quarter, "{rows:?}");
}

/// The published ratios of the reads, at a small size.
#[test]
fn reads_from_the_ram_disk_are_as_much_faster_as_published() {
    let mut scenario = Scenario::find("ramdisk-mirror").unwrap();
    scenario.variants.retain(|v| v.run.speed() && !v.name.ends_with("ours"));
    scenario.workload.legs = None;
    scenario.workload.dd.retain(|spec| spec.test.starts_with("whole volume"));
    for spec in &mut scenario.workload.dd {
        spec.quick = spec.quick.take().map(|line| line.replace("count=40000", "count=1000"));
        spec.variants.retain(|name| !name.ends_with("ours"));
    }
    let results = run(&scenario, &[1, 2]);
    assert_tables("ramdisk-mirror-reads", &results);
    let ratios = |n: usize| -> Vec<(String, f64, f64)> {
        let published = results.runs[n].of::<Ratio>().filter(|r| r.published_ratio.is_some());
        published.map(|r| (r.variant.clone(), r.ratio, r.difference_percent.unwrap())).collect()
    };
    for n in 0..2 {
        assert_eq!(ratios(n).len(), 4);
        for (variant, ratio, difference) in ratios(n) {
            assert!(difference.abs() < 25.0, "{variant}: {ratio}, {difference} %");
        }
    }
    assert_eq!(run(&scenario, &[1]).runs[0], results.runs[0], "the same seed");
}

/// What cuts take of ours is nothing; of the controls, and of others, it is something.
#[test]
fn cuts_of_volumes_find_what_is_wrong_with_the_others() {
    let mut scenario = Scenario::find("ramdisk-mirror").unwrap();
    scenario.variants.retain(|v| v.run.risk());
    scenario.workload.dd.clear();
    scenario.workload.cuts = 8;
    let legs = scenario.workload.legs.as_mut().unwrap();
    (legs.seconds, legs.area_kb) = (4.0, 1024);
    let results = run(&scenario, &[1]);
    let of = |variant: &str, found: fn(&LegRow) -> u64| -> u64 {
        results.runs[0].of::<LegRow>().filter(|r| r.variant == variant).map(found).sum()
    };
    for v in ["two-disks", "ram-parallel", "ram-serial", "ram-behind", "ram-partial", "plain"] {
        assert_eq!(of(v, |r| r.lost_flushed.events + r.copies_differ.events), 0, "{v}");
    }
    for v in ["svm-recreated", "md-behind", "ram-cache", "control-source"] {
        assert!(of(v, |r| r.lost_flushed.events) > 0, "{v}");
    }
    assert!(of("svm", |r| r.by_hand.events) > 0);
    assert_tables("ramdisk-mirror-cuts", &results);
    assert!(!results.notes.iter().any(|n| n.text.starts_with("PROMISES BROKEN")));
}
