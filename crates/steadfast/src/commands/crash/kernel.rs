//! A run on the kernel's own file system, on a recorded device of ours; and its recovery.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use steadfast_crash::program::{NoTree, ProgramRun, Tree, WatchedFs};
use steadfast_fuse::Options;
use steadfast_peers::{KernelFs, Peer, PeerError};
use steadfast_vfs::options::choose;
use steadfast_vfs::{FileSystem, HostFs};

use super::control::{ControlPlace, RunControl};
use super::devices::Disk;
use super::own::OwnRun;
use super::prepare::run_setup;
use super::printed::AckLines;
use super::program;
use super::served::ServedFolder;
use super::setup::Setup;
use super::stacks::RunStacks;
use super::watch::Watch;
use crate::{Unsupported, Usage, terminal};

/// Mount options of the kernel's file systems that change how data get to the disk, and what is
/// kept of it; nothing that names another file or device, gives rights, or ends the machine. What
/// follows '=' is a word or a number.
const OPTIONS: &str = "\
    acl allocsize async atime auto_da_alloc autodefrag barrier commit compress compress-force \
    data data_err datacow datasum defaults delalloc diratime dioread_lock dioread_nolock dirsync \
    discard flushoncommit inode64 journal_async_commit journal_checksum largeio lazytime logbsize \
    logbufs max_batch_time max_inline min_batch_time noacl noatime noauto_da_alloc nobarrier \
    nodatacow nodatasum nodelalloc nodev nodiratime nodiscard noexec noflushoncommit \
    nojournal_checksum nolazytime norelatime nossd nostrictatime nosuid notreelog nouser_xattr \
    relatime rw ssd strictatime stripe swalloc sync thread_pool treelog user_xattr wsync";

/// Refuses what is not in [`OPTIONS`], by name: a recording may be anybody's, and the kernel is
/// given its options by root.
fn allowed(options: &str) -> Result<(), Usage> {
    let plain = |value: &str| value.chars().all(|c| c.is_ascii_alphanumeric() || "_:-".contains(c));
    for option in options.split(',').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        if !OPTIONS.split(' ').any(|known| known == name) || !plain(value) {
            let what = "not among those that the kernel's file systems are given here";
            usage!("mount option {option:?}: {what} ({})", OPTIONS.replace(' ', ", "));
        }
    }
    Ok(())
}

/// The kernel's file system, as a peer.
pub fn peer(setup: &Setup, fs: KernelFs) -> Result<Peer, Usage> {
    allowed(&setup.options)?;
    let disk = setup.disk.params(setup.size);
    if !disk.takes_time() {
        let timed = Disk::all().filter(|disk| disk.params(disk.least_bytes()).takes_time());
        let (name, others) = (setup.disk.name(), choose(timed.map(Disk::name)));
        let what = "is for Steadfast's own file systems";
        usage!("--device {name} {what}: {others}");
    }
    let devices = std::iter::once(disk).chain(setup.journal.params()).collect();
    Ok(Peer::on_models(fs, ("", &setup.options), devices))
}

/// What a person has to provide or to ask otherwise is a wrong use.
fn to_anyhow(e: PeerError) -> anyhow::Error {
    match e {
        PeerError::NotRoot
        | PeerError::NoProgram { .. }
        | PeerError::TooSmall { .. }
        | PeerError::NoExternalJournal { .. } => Usage(e.to_string()).into(),
        PeerError::NoKernel { .. } => Unsupported(e.to_string()).into(),
        other => anyhow!(other),
    }
}

/// Runs the program and records it.
pub fn record(
    setup: &Setup,
    fs: KernelFs,
    prepare: Option<&str>,
    watch: &mut Watch<'_>,
) -> Result<OwnRun> {
    let running = peer(setup, fs)?.start(None).map_err(to_anyhow)?;
    if let Some(command) = prepare {
        run_setup(command, running.path(), watch.stops)?;
    }
    let bases = running.begin().map_err(to_anyhow)?;
    // The program works in a mount over the kernel's, where its calls are seen.
    let under = HostFs::open(running.path()).context("the mounted folder")?;
    let stacks = RunStacks::begin(watch.stacks);
    let watched = WatchedFs::new(Arc::new(under), running.log());
    let watched = Arc::new(watched.observed_by(stacks.observer()));
    let served = Arc::clone(&watched) as Arc<dyn FileSystem>;
    let served = ServedFolder::new(served, Options::default())?;
    let lines = AckLines::new(running.log());
    let control = RunControl::new(running.log(), &lines, &watched, served.path());
    let control = ControlPlace::open(control)?;
    let ended = program::run(served.path(), &lines, Some(&control), watch)?;
    let stacks = stacks.end();
    let never_came = control.close();
    let tree = tree_of(running.path());
    let calls = watched.calls();
    drop(watched);
    served.end("the program")?;
    let (recording, taken_away) = running.end();
    if let Err(e) = taken_away {
        // What it is in use by lives on; nothing waits for that, and the recording is whole.
        let user = prepare.map_or("the program", |_| "the set-up or the program");
        let busy = format!("note: something that {user} has started still uses the mount");
        terminal::note(&if e.is_busy() { busy } else { format!("note: {e}") });
    }
    let run = ProgramRun {
        stacks,
        ..ProgramRun::new(setup.about(), bases, recording, lines.lines(), calls)
    };
    Ok(OwnRun { run, tree, ended, never_came })
}

fn tree_of(folder: &Path) -> Result<Tree, NoTree> {
    let fs = HostFs::open(folder);
    let fs = fs.map_err(|e| NoTree::Refused(format!("the mounted folder: {e}")))?;
    Ok(Tree::read(&fs)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_not_given_every_option() {
        for good in ["", "noauto_da_alloc", "data=writeback,commit=1,barrier=0", "compress=zstd:3"]
        {
            assert!(allowed(good).is_ok(), "{good}");
        }
        let bad = ["suid", "errors=panic", "journal_path=/dev/sda", "usrjquota=a", "data=a b"];
        for bad in bad.into_iter().chain(["loop", "commit=1,dev", "X-mount.mkdir", "uid=0"]) {
            let refused = allowed(bad).unwrap_err().to_string();
            assert!(refused.contains(bad.split(',').next_back().unwrap()), "{refused}");
        }
    }
}
