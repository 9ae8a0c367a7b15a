//! IOzone's single and auto mode in scenarios: every cell in the results, the power cut in the
//! middle, sentences checked.

use steadfast_lab::results::summary::json;
use steadfast_lab::results::{GridRow, Results, RiskRow, SpeedRow, Verdict};
use steadfast_lab::scenario::Scenario;
use steadfast_lab::table::{Layout, csv, markdown, text};
use steadfast_lab::{LabError, RunOptions, run};

const HEAD: &str = r#"
version = 2
name = "small"
title = "A small matrix"

[source]
title = "A page"
author = "A. N. Author"
year = 2011
address = "somewhere"

[medium]
read_mb_per_s = 1.0
write_mb_per_s = 1.0

[device.disk]
kind = "ssd"
sectors = 131072
write_cache = "volatile"
"#;

const WORKLOAD: &str = r#"
[workload]
iozone = "-Raze -+w 40 -q 64k -g 4m"
quick_iozone = "-Raze -+w 40 -s 64k -s 256k -r 4k -r 64k"
risk_iozone = "-Raze -+w 40 -s 64k -s 256k -r 4k -r 64k -o"
cuts = 40
"#;

const VARIANTS: &str = r#"
[[variant]]
name = "ordered"
label = "ext4"
disk = "disk"
mount = "data=ordered"

[[variant]]
name = "transact"
label = "transaction points"
disk = "disk"
mount = "data=transact,transact=default"

[[sentence]]
name = "reads are alike"
said = "They are comparable."
check = "comparable"
variants = ["ordered", "transact"]
tests = ["read", "reread"]
factor = 1.5
share = 0.9
reason = "a test"

[[sentence]]
name = "nothing is slow"
said = "All are slower than the medium."
check = "below"
variants = ["ordered", "transact"]
tests = ["reread"]
file_max = "64k"
factor = 1.0
share = 0.9
reason = "a test"
explained = "they are in the cache"
"#;

fn scenario() -> Scenario {
    Scenario::parse(&format!("{HEAD}{WORKLOAD}{VARIANTS}"), "small").unwrap()
}

fn ran(scenario: &Scenario) -> Results {
    run(scenario, &RunOptions { seed: 4, ..RunOptions::default() }, &|_, _| ()).unwrap()
}

#[test]
fn every_cell_is_printed_and_what_was_promised_is_kept() {
    let results = ran(&scenario());
    let only = results.only();
    // Thirteen tests, each on 64k/4k, 64k/64k, 256k/4k, 256k/64k.
    assert_eq!(only.of::<GridRow>().count(), 2 * 13);
    for grid in only.of::<GridRow>() {
        let sizes: Vec<_> = grid.cells.iter().map(|c| (c.file_kb, c.record_kb)).collect();
        assert_eq!(sizes, [(64, 4), (64, 64), (256, 4), (256, 64)], "{grid:?}");
        assert!(grid.cells.iter().all(|c| c.kb_per_s > 0.0), "{grid:?}");
    }
    // -e: what is written is on the device within the time; what is read is in the cache.
    let only_the_cache = |test: &str| {
        let grid = only.of::<GridRow>().find(|g| g.test == test).unwrap();
        grid.cells.iter().all(|c| c.only_the_cache)
    };
    assert!(only_the_cache("read") && !only_the_cache("write"));
    // The mean of a test is a row, so that ratios and charts have it.
    let row = only.of::<SpeedRow>().find(|r| r.test == "write" && r.variant == "transact").unwrap();
    let grid = only.of::<GridRow>().find(|g| g.test == "write" && g.variant == "transact").unwrap();
    assert!((row.kb_per_s - grid.mean_kb_per_s()).abs() < 1e-6);

    for r in only.of::<RiskRow>() {
        assert_eq!((r.cuts, r.broken_promises, r.damage.events, r.stale_bytes), (40, 0, 0, 0));
        for control in [&r.control_flush_ignored, &r.control_flushes_omitted] {
            assert!(control.as_ref().unwrap().broken_promises > 0, "{r:#?}");
        }
    }
    let verdicts: Vec<_> = results.sentences.iter().map(|s| s.verdict).collect();
    assert_eq!(verdicts, [Verdict::Agrees, Verdict::Disagrees], "{:#?}", results.sentences);
    assert_eq!(results.sentences[1].explained.as_deref(), Some("they are in the cache"));

    tables(&results);
    let shown = text(&results, Layout::default());
    let written = json(&results).unwrap();
    // (A figure's last bit may be lost on the way through decimals.)
    assert_eq!(text(&Results::read(&written).unwrap(), Layout::default()), shown);
    assert_eq!(json(&ran(&scenario())).unwrap(), written, "the same seed, the same bytes");
}

/// What people see of it.
fn tables(results: &Results) {
    let shown = text(results, Layout::default());
    for part in [
        "REDUCED SIZE (--full runs the published one): iozone -Raze -+w 40 -s 64k",
        "nothing is slow: DISAGREES",
        "Said: \"All are slower than the medium.\"",
        "Why: they are in the cache",
        "64 KiB",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let table = markdown(results, false, &steadfast_lab::table::Choice::default());
    assert!(table.contains("| \"They are comparable.\" | holds in 8 of 8 cells"), "{table}");
    // Tests that a source does not speak of are in the wide tables and for programs.
    let name = "\"stride read, MiB/s by file size\",64 KiB,ordered";
    assert!(!shown.contains("stride read, MiB/s"), "{shown}");
    assert!(csv(results, &steadfast_lab::table::Choice::default()).contains(name));
}

/// Repeating data would hide which write a sector is from: a judge would find promises broken.
#[test]
fn data_that_repeat_are_stamped_where_they_are_judged() {
    let workload = r#"
[workload]
iozone = "-t2 -+w 50 -s 1m -r 64k -i0 -o"
quick_size = "256k"
risk_size = "256k"
cuts = 12
lying_cuts_per_4 = 0
"#;
    let scenario = Scenario::parse(
        &format!("{HEAD}{workload}{}", VARIANTS.split("[[sentence]]").next().unwrap()),
        "small",
    );
    for r in ran(&scenario.unwrap()).only().of::<RiskRow>() {
        assert_eq!((r.broken_promises, r.stale_bytes), (0, 0), "{r:#?}");
    }
}

#[test]
fn what_is_wrong_with_a_matrix_is_reported() {
    let refused = |workload: &str, variants: &str| -> String {
        let text = format!("{HEAD}\n[workload]\ncuts = 1\n{workload}\n{variants}");
        match Scenario::parse(&text, "small") {
            Err(LabError::File(wrong)) => wrong.shown(),
            other => panic!("{other:?}"),
        }
    };
    let line = "iozone = \"-az -g 1m\"\n";
    for (workload, part) in [
        (line.into(), "`quick_iozone` is missing"),
        (format!("{line}quick_size = \"1m\"\nrisk_size = \"1m\""), "a matrix of sizes"),
        ("iozone = \"-t1 -s 1m\"\nquick_iozone = \"-az\"".into(), "`iozone` has -t"),
        (format!("{line}quick_iozone = \"-t 2\"\nrisk_iozone = \"-az\""), "throughput mode"),
        ("iozone = \"-az -B\"".into(), "-B, -D is not for a scenario"),
        ("iozone = \"-az -H 4\"".into(), "-H, -k is not for a scenario"),
        ("iozone = \"-az --drop-caches\"".into(), "--drop-caches is not for a scenario"),
        ("iozone = \"-s 1m -r 4k -X f\"".into(), "-X is not for a scenario"),
        (format!("{line}[workload.configuration.a]\nlabel = \"a\""), "both `iozone` and"),
    ] {
        let shown = refused(&workload, VARIANTS);
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    // Beside a line that is none, what else it would need is not reported.
    let shown = refused("iozone = \"-a -t 2\"", VARIANTS);
    assert_eq!(shown.matches("error:").count(), 1, "{shown}");
    let configured = "[workload.configuration.a]\nlabel = \"a\"\niozone = \"-az -g 1m\"\n\
        quick_iozone = \"-s 64k\"\nrisk_iozone = \"-s 64k\"";
    assert!(refused(configured, VARIANTS).contains("`configuration` is missing in [[variant]]"));
    let other = VARIANTS.replace("mount =", "configuration = \"b\"\nmount =");
    assert!(refused(configured, &other).contains("there is no configuration `b`"));

    let whole = "iozone = \"-az -g 1m\"\nquick_iozone = \"-s 64k\"\nrisk_iozone = \"-s 64k\"";
    for (from, to, part) in [
        ("\"comparable\"", "\"comparabel\"", "is unknown: choose comparable"),
        ("tests = [\"reread\"]", "tests = [\"re-read\"]", "`re-read` is unknown"),
        ("share = 0.9", "share = 90.0", "at most 1"),
        ("factor = 1.5", "factor = 0.5", "a factor of 1 or more"),
        ("variants = [\"ordered\", \"transact\"]", "variants = [\"ordered\"]", "with nothing"),
        ("variants = [\"ordered\", \"transact\"]", "variants = []", "`variants` is empty"),
        ("tests = [\"reread\"]", "tests = [\"reread\", \"reread\"]", "is there twice"),
        ("name = \"nothing is slow\"", "name = \"reads are alike\"", "two sentences are called"),
        ("file_max = \"64k\"", "file_max = \"64k\"\nfile_min = \"1m\"", "below `file_min`"),
        (
            "check = \"below\"",
            "check = \"ahead\"\nover = [\"ordered\"]",
            "`ordered` cannot be ahead of itself",
        ),
        ("check = \"below\"", "check = \"ahead\"", "`ahead` needs `over`"),
        ("file_max = \"64k\"", "file_max = \"64 horses\"", "64 horses"),
    ] {
        let shown = refused(whole, &VARIANTS.replacen(from, to, 1));
        assert!(shown.contains(part), "{part}\n{shown}");
    }
}
