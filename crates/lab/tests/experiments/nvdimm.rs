//! The scenario of the NVDIMM: what it says of speed and of power cuts, and what is wrong with a
//! file that names a namespace.

use steadfast_lab::results::{Results, RiskRow, SpeedRow};
use steadfast_lab::scenario::{RunKind, Scenario};
use steadfast_lab::{LabError, RunOptions, run};

use crate::golden::assert_tables;

/// The scenario with shorter copies.
fn scenario() -> Scenario {
    let mut scenario = Scenario::find("nvdimm-dax").unwrap();
    for copy in &mut scenario.workload.dd {
        copy.quick = Some(copy.operands.replace("count=1048576", "count=8192"));
    }
    scenario
}

fn of(scenario: &Scenario, cuts: u64) -> Results {
    let options = RunOptions { cuts: Some(cuts), seed: 1, ..RunOptions::default() };
    run(scenario, &options, &|_, _| ()).unwrap()
}

#[test]
fn dax_and_the_disk_are_as_far_apart_as_published() {
    let mut scenario = scenario();
    scenario.variants.retain(|v| v.run == RunKind::Speed);
    let results = of(&scenario, 0);
    let speed = |variant: &str| {
        let row = results.only().of::<SpeedRow>().find(|row| row.variant == variant).unwrap();
        row.kb_per_s * 1024.0 / 1e6
    };
    // Published: 942 MB/s, and about 50.
    let ratio = speed("dax") / speed("disk") / (942.0 / 50.0);
    assert!((0.75..1.25).contains(&ratio), "{} : {}", speed("dax"), speed("disk"));
    assert!(speed("dax") > 2.0 * speed("block"), "{}", speed("block"));
    assert!(speed("block") > speed("sector") && speed("sector") > 2.0 * speed("ssd"));
    // The same seed, the same bytes.
    let json = |results: &Results| serde_json::to_string(results).unwrap();
    assert_eq!(json(&results), json(&of(&scenario, 0)));
    assert_tables("nvdimm-dax-speed", &results);
}

#[test]
fn a_cut_takes_words_of_memory_and_nothing_that_was_promised() {
    let mut scenario = scenario();
    let names = ["cut-sector", "cut-block", "cut-dax", "cut-eadr"];
    scenario.variants.retain(|v| names.contains(&v.name.as_str()));
    scenario.workload.lying_cuts_per_4 = 2;
    // Few cuts fall into a write in place: of fewer, none may.
    let results = of(&scenario, 32);
    assert_tables("nvdimm-dax-cuts", &results);
    let row = |name: &str| -> &RiskRow {
        results.only().of::<RiskRow>().find(|row| row.variant == name).unwrap()
    };
    for name in names {
        let row = row(name);
        assert_eq!((row.broken_promises, row.damage.events, row.stale_bytes), (0, 0, 0), "{row:?}");
        let omitted = row.control_flushes_omitted.as_ref().unwrap();
        // With the caches saved nothing hangs on a fence.
        let needs_fences = name != "cut-eadr";
        assert_eq!(omitted.must_break, needs_fences, "{name}");
        assert_eq!(omitted.broken_promises > 0, needs_fences, "{name}: {omitted:?}");
    }
    assert_eq!(row("cut-sector").torn_units, 0);
    // Of blocks in memory hardly any cut falls into the few writes of data.
    assert!(row("cut-dax").torn_units > 0 && row("cut-block").torn_units > 0);
}

const GOOD: &str = r#"
version = 2
name = "mine"
title = "Mine"

[workload]
files = {}
cuts = 4

[device.pmem]
kind = "nvdimm"
size_mib = 64
namespace = "fsdax"

[[variant]]
name = "plain"
label = "Plain"
disk = "pmem"
mkfs = "-b 4096"
mount = "dax=always"
"#;

fn mistakes(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    match Scenario::parse(&GOOD.replace(from, to), "my.toml") {
        Err(LabError::File(wrong)) => wrong.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_wrong_with_a_namespace_is_reported() {
    Scenario::parse(GOOD, "my.toml").unwrap();
    for (from, to, message) in [
        ("\"fsdax\"", "\"sectr\"", "did you mean `sector`?"),
        ("kind = \"nvdimm\"\nsize_mib = 64", "kind = \"ssd\"", "it is not memory"),
        ("namespace =", "driver_us = 2.0\nnamespace =", "no driver is asked for a load"),
        ("size_mib = 64", "size_mib = 0", "size_mib = 0: must be between"),
        ("dax=always", "dax=allways", "dax=allways"),
        ("mount =", "kernel = \"ext4\"\nmount =", "not a namespace"),
        ("size_mib", "energy_source = \"flat\"\nsize_mib", "`flat` is unknown: choose good"),
    ] {
        let said = mistakes(from, to);
        assert!(said.contains(message), "no {message:?} in:\n{said}");
    }
}

#[test]
fn dax_needs_a_namespace_that_has_it() {
    let tried = |text: &str| {
        let scenario = Scenario::parse(text, "my.toml").unwrap();
        scenario.setup_of(&scenario.variants[0]).try_out()
    };
    tried(GOOD).unwrap();
    for namespace in ["\"raw\"", "\"sector\""] {
        let text = GOOD.replace("\"fsdax\"", namespace);
        let said = tried(&text).unwrap_err().to_string();
        assert!(said.contains("dax=always") && said.contains("not memory"), "{said}");
        tried(&text.replace("dax=always", "data=ordered")).unwrap();
    }
}
