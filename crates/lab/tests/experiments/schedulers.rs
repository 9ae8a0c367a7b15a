//! The request scheduler as a key: how it is read, and power cuts with one in the path.

use std::time::Duration;

use steadfast_devices::filter::schedule::Policy;
use steadfast_lab::LabError;
use steadfast_lab::results::RiskRow;
use steadfast_lab::scenario::Scenario;
use steadfast_lab::{RunOptions, run};

const TEXT: &str = r#"
version = 2
name = "mine"
title = "Mine"

[machine]
memory_mb = 16
bdflush = "40 0 0 0 60 300 60 0 0"

[workload]
files = { seconds = 1.5, pause_ms = 2 }
cuts = 24
lying_cuts_per_4 = 4

[device.disk]
kind = "hdd"
sectors = 1048576
write_cache = "on"

[scheduler.old]
policy = "fifo"
depth = 1
queue_kb = 30720

[scheduler.new]
policy = "deadline"
read_expire_ms = 100
anticipation_ms = 6
wbt_lat_ms = 75

[[variant]]
name = "old"
label = "first come"
disk = "disk"
scheduler = "old"
mkfs = "-t ext3 -J size=4"
mount = "data=journal"

[[variant]]
name = "new"
label = "with a deadline"
disk = "disk"
scheduler = "new"
mount = "data=ordered"
machine = { memory_mb = 8, bdflush = "" }
"#;

fn mistakes(text: &str) -> String {
    match Scenario::parse(text, "my.toml") {
        Err(LabError::File(wrong)) => wrong.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_scheduler_is_read_with_its_parameters() {
    let scenario = Scenario::parse(TEXT, "my.toml").unwrap();
    let [old, new] = &scenario.variants[..] else { panic!("two variants") };
    let settings = scenario.setup_of(old).scheduler.unwrap();
    assert_eq!((settings.depth, settings.queue_bytes), (1, 30 << 20));
    assert!(settings.policy == Policy::Fifo && settings.throttle.is_none());
    let settings = scenario.setup_of(new).scheduler.unwrap();
    let Policy::Deadline(deadline) = &settings.policy else { panic!("{settings:?}") };
    assert_eq!(deadline.read_expire, Duration::from_millis(100));
    assert_eq!(deadline.anticipation, Duration::from_millis(6));
    assert_eq!((deadline.writes_starved, deadline.fifo_batch), (2, 16));
    let throttle = settings.throttle.as_ref().unwrap();
    assert_eq!(throttle.target, Duration::from_millis(75));
    // What a variant's machine does not say is the scenario's.
    let (base, own) = (scenario.setup_of(old).machine, scenario.setup_of(new).machine);
    assert_eq!((base.memory_mb, own.memory_mb, own.cpus), (Some(16), Some(8), base.cpus));
    assert_eq!((base.bdflush.0.map(|b| b[0]), own.bdflush.0), (Some(40), None));
}

#[test]
fn mistakes_in_a_scheduler_are_reported() {
    let with = |from: &str, to: &str| {
        assert!(TEXT.contains(from), "{from}");
        mistakes(&TEXT.replace(from, to))
    };
    let messages = [
        (with("\"deadline\"", "\"dedline\""), "did you mean `deadline`?"),
        (with("scheduler = \"old\"", "scheduler = \"odl\""), "there is no [scheduler.odl]"),
        (with("policy = \"deadline\"", ""), "belongs to the policy `deadline`"),
        (with("wbt_lat_ms = 75", "wbt_window_ms = 9"), "add wbt_lat_ms"),
        (with("wbt_lat_ms = 75", "wbt_lat_ms = 0"), "from 0.1 to"),
        (with("wbt_lat_ms = 75", "wbt_lat_ms = -1"), "from 0.1 to"),
        (with("wbt_lat_ms = 75", "wbt_lat_ms = 75\nwbt_window_ms = -1.0"), "from 0.1 to"),
        (with("read_expire_ms = 100", "read_expire_ms = -5.0"), "from 0 to"),
        (with("read_expire_ms = 100", "write_expire_ms = inf"), "from 0 to"),
        (with("read_expire_ms = 100", "read_expire_ms = nan"), "from 0 to"),
        (with("depth = 1", "depth = 0"), "from 1 to"),
        (with("queue_kb", "queue_bytes"), "did you mean `queue_kb`?"),
        (with("60 0 0\"", "60 0\""), "nine numbers, not 8"),
        (with("memory_mb = 8", "memory_gb = 8"), "did you mean `memory_mb`?"),
        (with("memory_mb = 8", "page_cache_per_data = 1.0, memory_mb = 8"), "instead of"),
        (with("memory_mb = 8", "request_kb = 5, memory_mb = 8"), "a multiple of 4"),
        (with("memory_mb = 8", "checkpoint_to_percent = 90.0"), "begin at 50 % and end at 90 %"),
        (
            with("disk = \"disk\"\nscheduler = \"new\"", "disk = \"disk\"\ncut = \"rest\""),
            "`reset`",
        ),
    ];
    for (said, part) in messages {
        assert!(said.contains(part), "no {part:?} in:\n{said}");
    }
}

/// What waits in a scheduler when the power goes has not reached the disk, and nothing that was
/// promised is among it.
#[test]
fn power_cuts_over_a_scheduler_take_nothing_that_was_promised() {
    let scenario = Scenario::parse(TEXT, "my.toml").unwrap();
    let options = RunOptions { seed: 5, ..RunOptions::default() };
    let results = run(&scenario, &options, &|_, _| ()).unwrap();
    for risk in results.only().of::<RiskRow>() {
        assert_eq!((risk.broken_promises, risk.damage.events), (0, 0), "{risk:#?}");
        let control = risk.control_flush_ignored.as_ref().unwrap();
        assert!(control.must_break && control.broken_promises > 0, "{risk:#?}");
        assert!(risk.exposure_bytes.max() > 0.0, "{risk:#?}");
    }
}
