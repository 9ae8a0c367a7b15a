//! What is known of the kernel's file systems shows in the data-at-risk figures. In real time, so
//! nothing here depends on how fast the machine is. Needs root, FUSE and loop devices, as CI has
//! them.

use steadfast_devices::model::ModelParams;
use steadfast_lab::results::{ClockKind, FailureRow, FilesRow, Note, Path, Results, RiskRow};
use steadfast_lab::scenario::{Scenario, TraceSpec};
use steadfast_lab::{LabError, RunOptions, run};
use steadfast_trace::import::{ImportOptions, TextInput, import};

use crate::schema::assert_described;
use steadfast_setup::DeviceSpec;

/// A soak makes so many times as many cuts.
fn soak() -> u64 {
    std::env::var("STEADFAST_SOAK").ok().and_then(|f| f.parse().ok()).unwrap_or(1)
}

/// The scenario's variants of the kernel, on a smaller disk, for a shorter time.
fn small(names: &[&str]) -> Scenario {
    let mut scenario = Scenario::find("data-at-risk").unwrap();
    scenario.variants.retain(|v| names.contains(&v.name.as_str()));
    assert_eq!(scenario.variants.len(), names.len());
    scenario.workload.lying_cuts_per_4 = 2;
    (scenario.workload.speed_runs, scenario.workload.speed_seconds) = (1, 0.2);
    let files = scenario.workload.files.as_mut().unwrap();
    // By rounds, not by time: on a slow machine it takes longer.
    (files.seconds, files.rounds_least, files.pause_ms) = (1.5, 40, 4.0);
    (files.log_kb, files.table_kb) = (64, 256);
    let ssd = scenario.topology.devices.values_mut().filter_map(DeviceSpec::model_mut).find_map(
        |model| match model {
            ModelParams::Ssd(disk) => Some(disk),
            _ => None,
        },
    );
    let disk = ssd.expect("the scenario's disk is an SSD");
    // XFS does not take less.
    disk.sectors = (320 << 20) / 512;
    scenario
}

fn results(names: &[&str], cuts: u64) -> Results {
    let options = RunOptions { cuts: Some(cuts * soak()), seed: 7, ..RunOptions::default() };
    let results = run(&small(names), &options, &|_, _| ()).unwrap();
    assert_described(&results);
    assert_eq!(
        results.only().of::<RiskRow>().count(),
        names.len(),
        "left out: {:?}",
        results.notes
    );
    for r in results.only().of::<RiskRow>() {
        let lying = r.control_flush_ignored.as_ref().unwrap();
        assert!(lying.broken_promises > 0, "a lying cache breaks promises everywhere: {r:#?}");
    }
    results
}

fn row<'r>(results: &'r Results, name: &str) -> &'r RiskRow {
    results.only().of::<RiskRow>().find(|r| r.variant == name).unwrap()
}

#[test]
fn the_modes_of_ext4_and_ext2_show_what_is_known_of_them() {
    let names = ["kernel-ext2", "kernel-writeback", "kernel-ordered", "kernel-journal"];
    let results = results(&names, 8);
    let ext2 = row(&results, "kernel-ext2");
    assert!(ext2.damage.events > 0, "{ext2:#?}");
    let writeback = row(&results, "kernel-writeback");
    assert!(writeback.empty_after_replace + writeback.stale_bytes > 0, "{writeback:#?}");
    assert_eq!((writeback.damage.events, writeback.manual_repair.events), (0, 0), "{writeback:#?}");
    let journal = row(&results, "kernel-journal");
    assert_eq!(journal.torn_units, 0, "{journal:#?}");
    // Of what is allocated ahead the kernel zeroes short pieces by a write that is not in the
    // journal, and data that the journal still holds of a file deleted before come over them at
    // its replay (docs/risk.md has the script that shows it). Downloads alone allocate.
    let stale = journal.findings.iter().filter(|f| f.contains("never written there"));
    assert!(stale.clone().all(|f| f.contains("download/")), "{journal:#?}");
    assert!(journal.stale_bytes == 0 || stale.count() > 0, "{journal:#?}");
    assert_eq!((journal.damage.events, journal.broken_promises), (0, 0), "{journal:#?}");
}

#[test]
fn xfs_and_btrfs_are_cut_and_judged_too() {
    // What they are found to break is theirs: nothing of it is asserted.
    let results = results(&["ordered", "kernel-xfs", "kernel-btrfs"], 6);
    for r in results.only().of::<RiskRow>() {
        assert_eq!((r.cuts, r.recovery_ms.p50() > 0.0), (6 * soak(), true), "{r:#?}");
        assert!(r.exposure_operations.max() > 0.0, "{r:#?}");
    }
    assert!(
        results.only().of::<FilesRow>().all(|f| f.fsyncs > 0 && f.operations_per_s.median() > 0.0)
    );
    // Ours beside them by both paths, for as many runs, all by the wall clock.
    let paths = |name: &str| -> Vec<Path> {
        results.only().of::<FilesRow>().filter(|f| f.variant == name).map(|f| f.path).collect()
    };
    assert_eq!(paths("ordered"), [Path::InProcess, Path::Fuse]);
    assert_eq!(paths("kernel-xfs"), [Path::Kernel]);
    assert!(results.only().of::<FilesRow>().all(|f| f.clock == ClockKind::Wall));
    assert!(results.only().of::<FilesRow>().all(|f| f.operations_per_s.runs() == 1));
    assert!(results.notes.iter().any(|n| n.text.contains("load")), "{:?}", results.notes);
}

/// A mount of ours is cut as it ran, in real time, and recovers in virtual time.
#[test]
fn a_mount_by_fuse_is_cut_as_it_ran() {
    let results = results(&["mounted", "mounted-writeback"], 10);
    assert!(results.failures.is_empty(), "{:?}", results.failures);
    for name in ["mounted", "mounted-writeback"] {
        let risk = row(&results, name);
        assert_eq!((risk.broken_promises, risk.damage.events), (0, 0), "{risk:#?}");
        let clocks = (risk.run_clock, risk.recovery_clock);
        assert_eq!(clocks, (ClockKind::Wall, ClockKind::Virtual), "{risk:#?}");
        assert!(risk.exposure_operations.max() > 0.0, "{risk:#?}");
        let paths: Vec<Path> =
            results.only().of::<FilesRow>().filter(|f| f.variant == name).map(|f| f.path).collect();
        assert_eq!(paths, [Path::Fuse]);
    }
}

/// A recorded program is made again on the kernel's file system, in real time, and cut there.
#[test]
fn a_recorded_program_runs_beside_the_kernels_file_systems() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log.trace");
    let line = |n: u32| format!("f write {} 4096\nf sync 0 0\n", n * 4096);
    let log: String = (0..40).map(line).collect();
    let log = format!("fio version 2 iolog\nf add\nf open\n{log}f close\n");
    let input = TextInput {
        name: "log".into(),
        text: Box::new(std::io::Cursor::new(log)),
        written_seconds: None,
    };
    let out = std::fs::File::create(&file).unwrap();
    import(vec![input], &ImportOptions::default(), out).unwrap();

    let mut scenario = small(&["ordered", "kernel-ordered"]);
    scenario.workload.files = None;
    let file = file.display().to_string();
    scenario.workload.trace = Some(TraceSpec { file, flat_out: false, partial: false });
    let options = RunOptions { cuts: Some(6 * soak()), seed: 7, ..RunOptions::default() };
    let results = run(&scenario, &options, &|_, _| ()).unwrap();
    assert_described(&results);
    let paths: Vec<(String, Path, u64)> =
        results.only().of::<FilesRow>().map(|f| (f.variant.clone(), f.path, f.fsyncs)).collect();
    let ours = |path| ("ordered".to_owned(), path, 40);
    let kernels = ("kernel-ordered".to_owned(), Path::Kernel, 40);
    assert_eq!(paths, [ours(Path::InProcess), ours(Path::Fuse), kernels]);
    for name in ["ordered", "kernel-ordered"] {
        let risk = row(&results, name);
        assert_eq!((risk.cuts, risk.broken_promises), (6 * soak(), 0), "{risk:#?}");
        let lying = risk.control_flush_ignored.as_ref().unwrap();
        assert!(lying.broken_promises > 0, "a lying cache breaks promises everywhere: {risk:#?}");
    }
    assert!(
        results.notes.iter().all(|n| !n.text.contains("something else")),
        "{:?}",
        results.notes
    );

    // Without them in virtual time, with its timeline and what of it is judged.
    scenario.variants.retain(|v| v.kernel.is_none());
    let results = run(&scenario, &options, &|_, _| ()).unwrap();
    assert_described(&results);
    let calls: Vec<_> = results.only().of::<FilesRow>().map(|f| f.calls_at_s.last()).collect();
    assert!(matches!(calls[..], [Some((82, at))] if *at > 0.0), "{calls:?}");
    let scope = row(&results, "ordered").scope.unwrap();
    // It was there before: its name is no promise of the run.
    assert_eq!((scope.promises, scope.files_left_out, scope.files_without_name), (40, 0, 0));
}

/// One that cannot be mounted takes nothing from those that were measured.
#[test]
fn a_variant_that_fails_leaves_the_results_of_the_others() {
    let names = ["ordered", "kernel-ordered", "kernel-journal"];
    let mut scenario = small(&names);
    scenario.variants[2].stack.mount = "data=journal,no_such_option".into();
    let options = RunOptions { cuts: Some(2), seed: 7, ..RunOptions::default() };
    let results = run(&scenario, &options, &|_, _| ()).unwrap();
    assert_described(&results);
    let failures: &[FailureRow] = &results.failures;
    let is_its = |f: &FailureRow| f.variant == names[2] && f.what.contains("mount");
    assert!(!failures.is_empty() && failures.iter().all(is_its), "{failures:?}");
    let risk: Vec<&str> = results.only().of::<RiskRow>().map(|r| r.variant.as_str()).collect();
    assert_eq!(risk, names[..2], "{failures:?}");
    let measured =
        |name: &str| results.only().of::<FilesRow>().filter(|f| f.variant == name).count();
    assert_eq!(names.map(measured), [2, 1, 0]);
    let said = |n: &Note| n.alarm && n.text.contains("FAILED: 'kernel-journal'");
    assert!(results.notes.iter().any(said), "{:?}", results.notes);

    // Alone it is the run that fails.
    scenario.variants.remove(0);
    scenario.variants.remove(0);
    assert!(matches!(run(&scenario, &options, &|_, _| ()), Err(LabError::Variant { .. })));
}
