//! A zero means something only where its control is none: what the power cuts of nvram-journal can
//! see of a flush that is missing, and what they cannot.

use steadfast_devices::model::ModelParams;
use steadfast_lab::results::{ControlRow, Rate, RiskRow};
use steadfast_lab::run::{Control, reproduce_state};
use steadfast_lab::scenario::Scenario;
use steadfast_lab::{RunOptions, run};
use steadfast_setup::DeviceSpec;

/// The named variants, on a smaller disk, with smaller files.
fn small(names: &[&str]) -> Scenario {
    let mut scenario = Scenario::find("nvram-journal").unwrap();
    scenario.variants.retain(|v| names.contains(&v.name.as_str()));
    assert_eq!(scenario.variants.len(), names.len());
    for v in &mut scenario.variants {
        v.run = steadfast_lab::scenario::RunKind::Risk;
    }
    scenario.workload.risk_size = Some("1m".into());
    scenario.workload.lying_cuts_per_4 = 2;
    for device in scenario.topology.devices.values_mut().filter_map(DeviceSpec::model_mut) {
        if let ModelParams::Hdd(disk) = device {
            disk.sectors = 6_000_000;
        }
    }
    scenario
}

fn options() -> RunOptions {
    RunOptions { cuts: Some(24), seed: 3, ..RunOptions::default() }
}

#[test]
fn only_a_volatile_cache_shows_that_flushes_are_missing() {
    let names = ["internal", "volatile-cache", "volatile-external", "lying-cache"];
    let results = run(&small(&names), &options(), &|_, _| ()).unwrap();
    let row = |name: &str| -> &RiskRow {
        results.only().of::<RiskRow>().find(|r| r.variant == name).unwrap()
    };
    let omitted = |name: &str| row(name).control_flushes_omitted.as_ref().unwrap();
    // The disk keeps what it acknowledges: without any flush the zeros stay, and are reported to be
    // blind to it.
    let internal = omitted("internal");
    assert_eq!((internal.broken_promises, internal.must_break), (0, false), "{internal:?}");
    assert!(row("internal").control_flush_ignored.is_none());
    assert!(
        results.notes.iter().any(|n| n.text.starts_with("internal: no device")),
        "{results:#?}"
    );
    for name in ["volatile-cache", "volatile-external"] {
        let r = row(name);
        assert_eq!((r.broken_promises, r.damage.events, r.e2fsck_damage), (0, 0, 0), "{r:#?}");
        assert!(omitted(name).must_break && omitted(name).broken_promises > 0, "{r:#?}");
        assert!(r.control_flush_ignored.as_ref().unwrap().broken_promises > 0, "{r:#?}");
    }
    assert!(row("lying-cache").broken_promises > 0);
    assert!(!results.notes.iter().any(|n| n.text.contains("DID NOT FAIL")), "{:?}", results.notes);
}

#[test]
fn a_control_that_does_not_fail_is_reported() {
    let mut scenario = small(&["volatile-cache"]);
    // One cut, before anything was promised.
    scenario.workload.lying_cuts_per_4 = 1;
    let options = RunOptions { cuts: Some(1), ..options() };
    let results = run(&scenario, &options, &|_, _| ()).unwrap();
    let control = results.only().of::<RiskRow>().next().unwrap();
    let control = control.control_flushes_omitted.as_ref().unwrap();
    let is_reported = results.notes.iter().any(|n| n.text.contains("CONTROL DID NOT FAIL"));
    assert_eq!(is_reported, control.is_blind(), "{control:?} {:?}", results.notes);
    let blind = ControlRow {
        cuts: 9,
        broken_promises: 0,
        cuts_with_broken_promises: Rate::new(0, 9),
        must_break: true,
    };
    assert!(blind.is_blind());
    assert!(!ControlRow { must_break: false, ..blind.clone() }.is_blind());
    assert!(!ControlRow { broken_promises: 1, ..blind }.is_blind());
}

#[test]
fn a_cut_of_a_control_is_made_again() {
    let scenario = small(&["internal", "volatile-cache"]);
    let results = run(&scenario, &options(), &|_, _| ()).unwrap();
    let r = results.only().of::<RiskRow>().find(|r| r.variant == "volatile-cache").unwrap();
    let want = r.control_flushes_omitted.as_ref().unwrap().broken_promises;
    let again = |variant: &str, number, control| {
        reproduce_state(&scenario, &options(), variant, number, Some(control))
    };
    let cut = |n| again("volatile-cache", n, Control::FlushesOmitted).unwrap().cut;
    assert_eq!((0..12).map(|n| cut(n).broken_promises).sum::<u64>(), want);
    let refused = again("internal", 0, Control::FlushIgnored).err().unwrap().to_string();
    assert!(refused.contains("volatile cache"), "{refused}");
}
