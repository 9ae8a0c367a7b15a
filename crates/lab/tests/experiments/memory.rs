//! The simulated machine has as much memory as its scenario says, whatever the log holds; and what
//! memory or the journal did instead of the disk is said beside the figures.

use steadfast_lab::results::{Results, SpeedRow, VariantTime, summary};
use steadfast_lab::scenario::Scenario;
use steadfast_lab::{RunOptions, run};

use crate::schema::assert_described;

fn scenario(memory_mb: u64) -> Scenario {
    let text = format!(
        r#"
version = 2
name = "mine"
title = "Mine"

[machine]
memory_mb = {memory_mb}

[workload]
iozone = "-t2 -s 16m -r 64k -i0 -i2 -o"
quick_size = "16m"
risk_size = "2m"
cuts = 0

[device.disk]
kind = "hdd"

[device.flash]
kind = "ssd"
sectors = 2097152

[[variant]]
name = "internal"
label = "journal on the disk"
disk = "disk"

[[variant]]
name = "data"
label = "data too through the journal"
disk = "disk"
journal = "flash"
mount = "data=journal"
"#
    );
    Scenario::parse(&text, "mine.toml").unwrap()
}

fn ran(memory_mb: u64) -> Results {
    let results = run(&scenario(memory_mb), &RunOptions::default(), &|_, _| ()).unwrap();
    assert_described(&results);
    results
}

fn row<'r>(results: &'r Results, test: &str, variant: &str) -> &'r SpeedRow {
    let mut rows = results.only().of::<SpeedRow>();
    rows.find(|r| r.test == test && r.variant == variant).unwrap()
}

/// 32 MiB of files in 8 MiB of memory, with a log of 1 GiB: the disk has to read them.
#[test]
fn what_the_log_holds_is_no_memory_beside_that_of_the_machine() {
    let little = ran(8);
    let speed = |test, variant| row(&little, test, variant).kb_per_s;
    let ratio = speed("random read", "data") / speed("random read", "internal");
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
    let share = row(&little, "random read", "data").read_from_disk.unwrap();
    assert!(share > 0.6, "{share}");
    // A log that is not full, and all the same most of what was written is home.
    let share = row(&little, "initial write", "data").written_to_disk.unwrap();
    assert!((0.8..1.5).contains(&share), "{share}");
    let log_used =
        little.only().of::<VariantTime>().find(|t| t.variant == "data").unwrap().log_used;
    assert!(log_used.is_some_and(|used| used < 0.5), "{log_used:?}");
    let notes = notes(&little);
    assert!(notes.contains("The log never wrapped"), "{notes}");
    assert!(!notes.contains("hardly any"), "{notes}");
}

/// The control: with memory for everything it is as before, and said.
#[test]
fn what_memory_and_the_journal_did_is_said() {
    let much = ran(1024);
    let of = |test| row(&much, test, "data");
    assert!(of("random read").read_from_disk.unwrap() < 0.01);
    assert_eq!(of("random read").written_to_disk, None);
    assert!(of("initial write").written_to_disk.unwrap() < 0.01);
    assert_eq!(of("initial write").read_from_disk, None);
    let notes = notes(&much);
    let read = "The disk has read hardly any of it: 'internal': random read (0 %); 'data': random \
        read (0 %).";
    assert!(notes.contains(read), "{notes}");
    assert!(notes.contains("The disk has written hardly any of it: 'data': initial write (0 %)"));
    // In the document too, over the seeds.
    let document = summary::json(&much).unwrap();
    assert!(document.contains("\"read_from_disk\": {") && document.contains("\"log_used\": {"));
}

fn notes(results: &Results) -> String {
    results.notes.iter().map(|n| format!("{}\n", n.text)).collect()
}
