//! Power cuts under programs that know only folders: they run on a mount, and are judged in process
//! or on a copy of what was recovered.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use steadfast::crash::{AtFolder, Failure, NextBoot, PowerCut};

use super::mounted::has_fuse;

fn test() -> PowerCut {
    let test = PowerCut::new().cuts(40).states(12).linger(Duration::ZERO);
    // A rename over a file writes nothing out by itself: what is wrong is seen.
    test.mount_options(|o| o.auto_da_alloc = false)
}

/// Replaces a file by a shell's commands; with all syncs that this takes, or without them.
fn by_shell(syncs: bool) -> Result<(), Failure> {
    let script = match syncs {
        true => "printf new > c.new && sync c.new && mv c.new config && sync . && echo replaced",
        false => "printf new > c.new && mv c.new config && echo replaced",
    };
    let program = move |at: &AtFolder| at.command(Command::new("sh").args(["-c", script]));
    let judge = |left: &NextBoot| {
        let config = left.read_to_string("/config").map_err(|e| e.to_string())?;
        match (config.as_str(), left.acknowledged("replaced")) {
            ("new", _) | ("old", false) => Ok(()),
            (other, _) => Err(format!("config is {other:?}")),
        }
    };
    let prepared = test().prepare(|fs| fs.write("/config", "old"));
    prepared.run_at_folder(program).judge(judge).map(drop)
}

#[test]
fn a_program_that_syncs_passes_and_one_that_does_not_is_found() {
    if !has_fuse() {
        return;
    }
    by_shell(true).unwrap();
    let failure = by_shell(false).unwrap_err();
    let story = failure.to_string();
    assert!(failure.is_finding() && story.contains("config is"), "{story}");
    // What came before, what was in doubt, and what the fewest writes are that matter.
    for part in ["The last that happened before:", "rename", "config"] {
        assert!(story.contains(part), "{part}: {story}");
    }
}

#[test]
fn a_log_that_is_synced_keeps_what_was_acknowledged() {
    if !has_fuse() {
        return;
    }
    let test = |synced: bool| {
        let program = move |at: &AtFolder| {
            let mut file = File::create(at.path().join("log"))?;
            for record in 0..8_u8 {
                file.write_all(&[record + 1; 4096])?;
                if synced {
                    file.sync_data()?;
                    File::open(at.path())?.sync_all()?;
                }
                at.acknowledge(format!("{record}"));
            }
            std::io::Result::Ok(())
        };
        // A judge that knows nothing of the library but folders.
        let judge = |folder: &Path, left: &NextBoot| {
            let log = std::fs::read(folder.join("log")).unwrap_or_default();
            let promised = left.acknowledgements().len();
            for record in 0..promised {
                let part = log.get(record * 4096..(record + 1) * 4096);
                if part != Some(&[u8::try_from(record).unwrap() + 1; 4096][..]) {
                    return Err(format!("record {record} of {promised} is lost"));
                }
            }
            Ok(())
        };
        self::test().run_at_folder(program).judge_copy(judge)
    };
    let report = test(true).unwrap();
    assert!(report.states > 20 && report.trees > 3, "{report:?}");
    let story = test(false).unwrap_err().to_string();
    assert!(story.contains("is lost"), "{story}");
}

#[test]
fn what_cannot_be_run_is_no_finding() {
    if !has_fuse() {
        return;
    }
    for (program, why) in [("exit 3", "exit status: 3"), ("exec /no/program", "exit status: 127")] {
        let run = move |at: &AtFolder| at.command(Command::new("sh").args(["-c", program]));
        let failure = test().run_at_folder(run).check().unwrap_err();
        assert!(!failure.is_finding() && failure.to_string().contains(why), "{failure}");
    }
    let run = |at: &AtFolder| at.command(&mut Command::new("/no/program"));
    let failure = test().run_at_folder(run).check().unwrap_err();
    assert!(failure.to_string().contains("/no/program: No such file"), "{failure}");
}
