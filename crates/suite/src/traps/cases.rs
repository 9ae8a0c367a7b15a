//! The traps themselves.

use super::Trap;
use super::report::TrapRun;
use super::stage::{Loop, Stage, TrapMount, count_files, write_files};
use crate::{Result, SuiteError};

/// Files of an earlier mount that ended well, and of the one that the power cut ended.
const KEPT: (&str, usize) = ("kept", 20);
const LATE: (&str, usize) = ("late", 20);
/// Files written after the file system has gone on without its journal.
const NEW: (&str, usize) = ("new", 50);

pub(super) const TRAPS: [Trap; 7] = [
    Trap {
        name: "journal device renumbered",
        prepare: clean,
        stock: renumbered_stock,
        ours: renumbered_ours,
    },
    Trap {
        name: "wrong device given (two journals swapped)",
        prepare: two,
        stock: swapped_stock,
        ours: swapped_ours,
    },
    Trap {
        name: "missing, file system clean",
        prepare: clean,
        stock: missing_clean_stock,
        ours: missing_clean_ours,
    },
    Trap {
        name: "missing, file system dirty",
        prepare: dirty,
        stock: missing_dirty_stock,
        ours: missing_dirty_ours,
    },
    Trap {
        name: "stale journal comes back",
        prepare: dirty,
        stock: comes_back_stock,
        ours: comes_back_ours,
    },
    Trap {
        name: "second mkfs on a journal in use",
        prepare: clean,
        stock: second_mkfs_stock,
        ours: second_mkfs_ours,
    },
    Trap {
        name: "older image of the journal put back",
        prepare: older,
        stock: older_stock,
        ours: older_ours,
    },
];

fn journal_path(journal: &Loop) -> String {
    format!("journal_path={}", journal.path())
}

/// A mount on which everything else depends.
fn needed(mounted: Option<TrapMount>) -> Result<TrapMount> {
    mounted
        .ok_or_else(|| SuiteError::Target("the kernel does not mount what mke2fs has made".into()))
}

/// A file system with its journal, files in it, unmounted.
fn make(stage: &Stage, disk: &str, journal: &str) -> Result<()> {
    stage.make_journal(journal)?;
    let device = stage.attach(journal)?;
    stage.make(disk, &device)?;
    let mounted = needed(stage.kernel_mount(disk, &journal_path(&device))?)?;
    write_files(&mounted, KEPT.0, KEPT.1)?;
    mounted.unmount()
}

fn clean(stage: &Stage) -> Result<()> {
    make(stage, "disk", "journal")
}

fn two(stage: &Stage) -> Result<()> {
    make(stage, "disk", "journal")?;
    make(stage, "disk2", "journal2")
}

/// Mounts without a commit but those of fsync, so that both images are of one moment.
fn mount_quietly(stage: &Stage, journal: &Loop) -> Result<TrapMount> {
    needed(stage.kernel_mount("disk", &format!("{},commit=300", journal_path(journal)))?)
}

/// The power is cut when files have been fsynced that only the journal holds.
fn dirty(stage: &Stage) -> Result<()> {
    clean(stage)?;
    let journal = stage.attach("journal")?;
    let mounted = mount_quietly(stage, &journal)?;
    write_files(&mounted, LATE.0, LATE.1)?;
    stage.cut("disk", "disk-cut")?;
    stage.cut("journal", "journal-cut")?;
    mounted.unmount()?;
    drop(journal);
    stage.rename("disk-cut", "disk")?;
    stage.rename("journal-cut", "journal")
}

fn renumbered_stock(stage: &Stage) -> Result<TrapRun> {
    let (journal, _others) = renumbered_journal(stage)?;
    let mounted = match stage.kernel_mount("disk", "")? {
        Some(mounted) => Some(mounted),
        None => stage.kernel_mount("disk", &journal_path(&journal))?,
    };
    stage.judge("disk", Some(&journal), mounted, &[KEPT], false)
}

/// The journal on a device that has another number than the file system remembers.
fn renumbered_journal(stage: &Stage) -> Result<(Loop, Vec<Loop>)> {
    let listing = stage.must("dumpe2fs -h disk")?;
    let remembered = listing.lines().find_map(|l| l.strip_prefix("Journal device:"));
    let remembered = remembered.map(|n| n.trim().trim_start_matches("0x"));
    let remembered = remembered.and_then(|n| u64::from_str_radix(n, 16).ok());
    // As likely as not, the first takes the remembered number.
    stage.make_journal("other")?;
    let mut others = vec![stage.attach("other")?];
    loop {
        let journal = stage.attach("journal")?;
        let number = journal.number()?;
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let encoded = u64::from(minor & 0xff | major << 8 | (minor & !0xff) << 12);
        if Some(encoded) != remembered {
            return Ok((journal, others));
        }
        drop(journal);
        others.push(stage.attach("other")?);
    }
}

fn renumbered_ours(stage: &Stage) -> Result<TrapRun> {
    let (journal, _others) = renumbered_journal(stage)?;
    if let Some(mounted) = stage.our_mount("disk", "")? {
        mounted.unmount()?;
    }
    // The superblock has the number now: the kernel finds it too.
    let mounted = stage.kernel_mount("disk", "")?;
    stage.judge("disk", Some(&journal), mounted, &[KEPT], false)
}

fn swapped_stock(stage: &Stage) -> Result<TrapRun> {
    let (journal, journal2) = (stage.attach("journal")?, stage.attach("journal2")?);
    let mounted = match stage.kernel_mount("disk", &journal_path(&journal2))? {
        Some(mounted) => Some(mounted),
        None => stage.kernel_mount("disk", &journal_path(&journal))?,
    };
    stage.judge("disk", Some(&journal), mounted, &[KEPT], false)
}

fn swapped_ours(stage: &Stage) -> Result<TrapRun> {
    let mounted = match stage.our_mount("disk", "journal=journal2")? {
        Some(mounted) => Some(mounted),
        None => stage.our_mount("disk", "journal=journal")?,
    };
    let journal = stage.attach("journal")?;
    stage.judge("disk", Some(&journal), mounted, &[KEPT], false)
}

fn missing_clean_stock(stage: &Stage) -> Result<TrapRun> {
    stage.remove("journal")?;
    let mounted = match stage.kernel_mount("disk", "")? {
        Some(mounted) => Some(mounted),
        None => {
            stage.tool("tune2fs -f -O ^has_journal disk")?;
            stage.kernel_mount("disk", "")?
        }
    };
    stage.judge("disk", None, mounted, &[KEPT], false)
}

fn missing_clean_ours(stage: &Stage) -> Result<TrapRun> {
    stage.remove("journal")?;
    let mounted = match stage.our_mount("disk", "")? {
        Some(mounted) => Some(mounted),
        None => {
            stage.ours("journal detach disk")?;
            stage.our_mount("disk", "")?
        }
    };
    stage.judge("disk", None, mounted, &[KEPT], false)
}

fn missing_dirty_stock(stage: &Stage) -> Result<TrapRun> {
    stage.remove("journal")?;
    let mut mounted = stage.kernel_mount("disk", "")?;
    if mounted.is_none() {
        stage.tool("e2fsck -fy disk")?;
        stage.tool("tune2fs -f -O ^has_journal disk")?;
        mounted = stage.kernel_mount("disk", "")?;
    }
    stage.judge("disk", None, mounted, &[KEPT, LATE], false)
}

/// Goes on without the journal; whether the loss was said.
fn go_on_without(stage: &Stage) -> Result<bool> {
    stage.ours("journal detach disk")?;
    let (exit, said) = stage.ours("journal detach disk --discard-unreplayed")?;
    stage.tool("e2fsck -fy disk")?;
    Ok(exit == 1 && said.contains("lost:"))
}

fn missing_dirty_ours(stage: &Stage) -> Result<TrapRun> {
    stage.remove("journal")?;
    let mut said = false;
    let mut mounted = stage.our_mount("disk", "")?;
    if mounted.is_none() {
        said = go_on_without(stage)?;
        mounted = stage.our_mount("disk", "")?;
    }
    stage.judge("disk", None, mounted, &[KEPT, LATE], said)
}

fn comes_back_stock(stage: &Stage) -> Result<TrapRun> {
    stage.rename("journal", "lost")?;
    // The way out that people find.
    std::fs::write(stage.path("clear"), "feature -needs_recovery\n")
        .map_err(SuiteError::host(stage.path("clear")))?;
    stage.must("debugfs -w -f clear disk")?;
    stage.must("tune2fs -f -O ^has_journal disk")?;
    stage.tool("e2fsck -fy disk")?;
    let mounted = needed(stage.kernel_mount("disk", "")?)?;
    write_files(&mounted, NEW.0, NEW.1)?;
    mounted.unmount()?;
    stage.forget_steps();
    stage.rename("lost", "journal")?;
    let journal = stage.attach("journal")?;
    stage.tool(&format!("tune2fs -J device={} disk", journal.path()))?;
    stage.tool(&format!("e2fsck -fy -j {} disk", journal.path()))?;
    let mounted = stage.kernel_mount("disk", &journal_path(&journal))?;
    stage.judge("disk", Some(&journal), mounted, &[KEPT, NEW], false)
}

fn comes_back_ours(stage: &Stage) -> Result<TrapRun> {
    stage.rename("journal", "lost")?;
    go_on_without(stage)?;
    let mounted = needed(stage.our_mount("disk", "")?)?;
    write_files(&mounted, NEW.0, NEW.1)?;
    mounted.unmount()?;
    stage.forget_steps();
    stage.rename("lost", "journal")?;
    if let Some(mounted) = stage.our_mount("disk", "journal=journal")? {
        mounted.unmount()?;
    }
    stage.ours("journal attach disk --device journal")?;
    let journal = stage.attach("journal")?;
    stage.tool(&format!("e2fsck -fy -j {} disk", journal.path()))?;
    drop(journal);
    let mounted = stage.our_mount("disk", "journal=journal")?;
    let journal = stage.attach("journal")?;
    stage.judge("disk", Some(&journal), mounted, &[KEPT, NEW], false)
}

/// What mke2fs does to the first file system.
fn theft(stage: &Stage) -> Result<()> {
    let journal = stage.attach("journal")?;
    stage.must("truncate -s 48M second")?;
    stage.tool(&format!("mke2fs -q -F -t ext4 -b 4096 -J device={} second", journal.path()))?;
    journal.flush()
}

fn second_mkfs_stock(stage: &Stage) -> Result<TrapRun> {
    theft(stage)?;
    let journal = stage.attach("journal")?;
    let mut mounted = stage.kernel_mount("disk", &journal_path(&journal))?;
    if mounted.is_none() {
        stage.tool(&format!("e2fsck -fy -j {} disk", journal.path()))?;
        stage.tool("tune2fs -f -O ^has_journal second")?;
        mounted = stage.kernel_mount("disk", &journal_path(&journal))?;
    }
    stage.judge("disk", Some(&journal), mounted, &[KEPT], false)
}

fn second_mkfs_ours(stage: &Stage) -> Result<TrapRun> {
    stage.ours("mkfs -b 4096 -J device=journal --size 48m third")?;
    stage.ours("mkfs -O journal_dev journal")?;
    // Somebody uses mke2fs.
    theft(stage)?;
    let mut mounted = stage.our_mount("disk", "journal=journal")?;
    if mounted.is_none() {
        stage.ours("journal detach second --journal journal")?;
        mounted = stage.our_mount("disk", "journal=journal")?;
    }
    let journal = stage.attach("journal")?;
    stage.judge("disk", Some(&journal), mounted, &[KEPT], false)
}

/// A journal as it was before the last mount; files of that time have been deleted since.
fn older(stage: &Stage) -> Result<()> {
    clean(stage)?;
    let journal = stage.attach("journal")?;
    let mounted = mount_quietly(stage, &journal)?;
    write_files(&mounted, LATE.0, LATE.1)?;
    stage.cut("journal", "journal-old")?;
    mounted.unmount()?;
    // The times of mounts and commits are in seconds.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let mounted = mount_quietly(stage, &journal)?;
    for i in 0..LATE.1 {
        let path = mounted.at().join(format!("{}{i}", LATE.0));
        std::fs::remove_file(&path).map_err(SuiteError::host(path))?;
    }
    write_files(&mounted, NEW.0, NEW.1)?;
    // Checkpointed, as after half a minute.
    stage.must(&format!("blockdev --flushbufs {}", mounted.device().unwrap_or_default()))?;
    stage.cut("disk", "disk-cut")?;
    stage.cut("journal", "journal-right")?;
    mounted.unmount()?;
    drop(journal);
    stage.rename("disk-cut", "disk")?;
    stage.rename("journal-old", "journal")
}

fn older_stock(stage: &Stage) -> Result<TrapRun> {
    let journal = stage.attach("journal")?;
    let mut mounted = stage.kernel_mount("disk", &journal_path(&journal))?;
    if mounted.is_none() {
        let right = stage.attach("journal-right")?;
        mounted = stage.kernel_mount("disk", &journal_path(&right))?;
    }
    let back = mounted.as_ref().map_or(0, |m| count_files(m, LATE.0, LATE.1));
    let seen = stage.judge("disk", Some(&journal), mounted, &[KEPT, NEW], false)?;
    Ok(with_ghosts(seen, back))
}

fn older_ours(stage: &Stage) -> Result<TrapRun> {
    let mut mounted = stage.our_mount("disk", "journal=journal")?;
    if mounted.is_none() {
        mounted = stage.our_mount("disk", "journal=journal-right")?;
    }
    let back = mounted.as_ref().map_or(0, |m| count_files(m, LATE.0, LATE.1));
    let journal = stage.attach("journal-right")?;
    let seen = stage.judge("disk", Some(&journal), mounted, &[KEPT, NEW], false)?;
    Ok(with_ghosts(seen, back))
}

/// Deleted files that are there again.
fn with_ghosts(mut seen: TrapRun, back: usize) -> TrapRun {
    if back > 0 {
        seen.outcome = super::TrapVerdict::DataLost;
        if let Some(step) = seen.steps.last_mut() {
            step.said = format!("{back} deleted files are back");
        }
    }
    seen
}
