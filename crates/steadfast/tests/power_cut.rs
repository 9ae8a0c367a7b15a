//! `steadfast::crash` as a test of somebody's program uses it: what is right passes in every mode,
//! what is wrong is found and reported, and the control fails.

use std::fmt::Display;
use std::io::Write;
use std::time::Duration;

use steadfast::crash::{Failure, NextBoot, PowerCut, ProgramFs, Report};
use steadfast::{DataMode, TransactPolicy, runtime};

/// Replaces a file; with all syncs that this takes, or without one of them.
fn replace(fs: &ProgramFs, syncs: (bool, bool)) -> std::io::Result<()> {
    let mut file = fs.create("/config.new")?;
    file.write_all(&[b'n'; 10_000])?;
    if syncs.0 {
        file.sync_all()?;
    }
    drop(file);
    fs.rename("/config.new", "/config")?;
    if syncs.1 {
        fs.open("/")?.sync_all()?;
    }
    fs.acknowledge("replaced");
    Ok(())
}

/// All of the old one or all of the new one, and the new one once that was acknowledged.
fn judge(left: &NextBoot) -> Result<(), String> {
    let config = left.read("/config").map_err(|e| e.to_string())?;
    match config.as_slice() {
        b"old" if !left.acknowledged("replaced") => Ok(()),
        b"old" => Err("the acknowledged config is lost".into()),
        new if new == [b'n'; 10_000] => Ok(()),
        _ => Err(format!("config is torn: {} bytes", config.len())),
    }
}

fn test(cut: PowerCut, syncs: (bool, bool)) -> Result<Report, Failure> {
    let cut = cut.cuts(60).states(12).prepare(|fs| fs.write("/config", "old"));
    cut.run(move |fs| replace(fs, syncs)).judge(judge)
}

#[test]
fn a_correct_replacement_passes_in_every_mode() {
    for data in [DataMode::Writeback, DataMode::Ordered, DataMode::Journal, DataMode::Transact] {
        for external in [false, true] {
            let cut = PowerCut::new().data(data).external_journal(external);
            let report = test(cut, (true, true));
            let report = report.unwrap_or_else(|e| panic!("{data:?} external={external}: {e}"));
            assert!(report.states > 20 && report.trees > 1, "{data:?}: {report:?}");
        }
    }
}

#[test]
fn each_sync_that_is_left_out_is_found_and_reported() {
    let failure = test(PowerCut::new(), (true, false)).unwrap_err();
    assert!(failure.to_string().contains("the acknowledged config is lost"), "{failure}");
    let strict = || PowerCut::new().mount_options(|o| o.auto_da_alloc = false);
    let failure = test(strict(), (false, true)).unwrap_err();
    let story = failure.to_string();
    assert!(failure.is_finding() && story.contains("config is torn: "), "{story}");
    for part in ["rename config.new", "In doubt: ", "The next boot finds:", "config  "] {
        assert!(story.contains(part), "no {part:?} in {story}");
    }
    assert_eq!(format!("{failure:?}"), story);
    // The same once more: it goes by the seed alone.
    assert_eq!(test(strict(), (false, true)).unwrap_err().to_string(), story);
    assert!(test(strict().seed(2), (false, true)).is_err());
}

#[test]
fn the_lying_disk_fails_whatever_is_synced() {
    let failure = test(PowerCut::new().lying_disk(true), (true, true)).unwrap_err();
    let story = failure.to_string();
    assert!(story.contains("Shrunk: it is enough that "), "{story}");
}

#[test]
fn a_panic_of_the_judge_is_its_verdict() {
    let program = |fs: &ProgramFs| fs.write("/file", "text");
    let judge = |left: &NextBoot| -> Result<(), String> {
        assert!(left.exists("/file").unwrap(), "where is it?");
        Ok(())
    };
    let failure = PowerCut::new().cuts(10).run(program).judge(judge).unwrap_err();
    assert!(failure.to_string().starts_with("the judge says: where is it?"), "{failure}");
}

#[test]
fn what_cannot_be_run_is_no_finding() {
    fn not_run<E: Display + 'static>(
        cut: PowerCut,
        work: fn(&ProgramFs) -> Result<(), E>,
        why: &str,
    ) {
        let failure = cut.run(work).check().unwrap_err();
        assert!(!failure.is_finding() && failure.to_string().contains(why), "{failure}");
    }
    not_run(PowerCut::new(), |fs| fs.remove_dir("/none"), "remove_dir /none: no such file");
    not_run(PowerCut::new().prepare(|fs| fs.remove_dir("/none")), |fs| fs.sync(), "/none");
    let contradiction = PowerCut::new().mount_options(|o| o.journal.async_commit = true);
    not_run(contradiction, |fs| fs.sync(), "async_commit");
}

#[test]
fn a_program_may_wait_and_have_threads() {
    let program = |fs: &ProgramFs| {
        runtime::sleep(Duration::from_secs(3600));
        let other = (**fs).clone();
        let task = runtime::spawn("other", move || other.write("/other", "x"));
        fs.write("/file", "x")?;
        task.join().expect("it does not panic")?;
        fs.sync()?;
        fs.acknowledge("both");
        Ok::<(), steadfast::Error>(())
    };
    let judge = |left: &NextBoot| match left.acknowledgements() {
        [] => Ok(()),
        _ => left.read("/other").and(left.read("/file")).map(drop),
    };
    let report = PowerCut::new().cuts(30).run(program).judge(judge).unwrap();
    assert!(report.cuts > 5, "{report:?}");
}

#[test]
fn transaction_points_are_all_or_nothing() {
    let program = |fs: &ProgramFs| {
        for n in 0..5 {
            fs.write("/a", n.to_string())?;
            fs.write("/b", n.to_string())?;
            fs.transaction_point()?;
            fs.acknowledge(n.to_string());
        }
        steadfast::Result::Ok(())
    };
    let judge = |left: &NextBoot| -> Result<(), String> {
        let of = |path| {
            left.exists(path).and_then(|there| match there {
                true => left.read_to_string(path),
                false => Ok(String::new()),
            })
        };
        let (a, b) = (of("/a").map_err(|e| e.to_string())?, of("/b").map_err(|e| e.to_string())?);
        let last = left.acknowledgements().last().cloned().unwrap_or_default();
        if a == b && a >= last { Ok(()) } else { Err(format!("{a:?} {b:?} after {last:?}")) }
    };
    let cut = |data| {
        let cut = PowerCut::new().data(data).cuts(60).states(12);
        cut.mount_options(|o| o.transact = TransactPolicy::MANUAL)
    };
    cut(DataMode::Transact).run(program).judge(judge).unwrap();
}
