//! The kernel's file systems on our devices. Needs root, FUSE and loop devices, as CI has them.

use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::process::Pid;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::{DeviceId, Durability};
use steadfast_devices::model::hdd::WriteCacheMode;
use steadfast_devices::model::ssd::SsdCache;
use steadfast_devices::model::{HddParams, ModelParams, SsdParams};
use steadfast_devices::store::Store;
use steadfast_peers::{Build, KernelFs, LoopExport, Peer, PeerError};
use steadfast_suite::OtherNamespace;

fn disk(bytes: u64) -> Build {
    let ssd =
        SsdParams { sectors: bytes / 512, write_cache: SsdCache::Volatile, ..SsdParams::default() };
    let params = ModelParams::Ssd(ssd);
    Arc::new(move || Ok(vec![params.build("disk")?]))
}

fn peer(fs: KernelFs) -> Peer {
    let bytes = fs.least_bytes().max(64 << 20);
    Peer {
        fs,
        mount_options: String::new(),
        mkfs_words: Vec::new(),
        build: disk(bytes),
        lying_caches: Vec::new(),
    }
}

/// Nothing waits for who has a file open, maybe for ever; what was recorded is not lost for it.
#[test]
fn a_mount_in_use_is_left_and_its_recording_kept() {
    let running = peer(KernelFs::Ext4).start(None).unwrap();
    let folder = running.path().to_path_buf();
    running.begin().unwrap();
    let file = std::fs::File::create(folder.join("open")).unwrap();
    file.write_all_at(&[7; 10_000], 0).unwrap();
    file.sync_all().unwrap();
    let (recording, taken_away) = running.end();
    assert!(!recording.events().is_empty());
    let busy = taken_away.unwrap_err();
    assert!(busy.is_busy(), "{busy}");
    assert!(!folder.exists());
    // It is there for who has it open.
    file.write_all_at(&[8; 10_000], 0).unwrap();
    file.sync_all().unwrap();
}

/// Another mount namespace (a container, a service with a /tmp of its own) that was made meanwhile
/// has copies of the mounts that devices of ours are behind.
#[test]
fn a_copy_in_another_mount_namespace_is_not_waited_for() {
    let device = disk(64 << 20)().unwrap().remove(0);
    let exported = LoopExport::new(device).unwrap();
    let other = OtherNamespace::new().unwrap();
    let (done, is_done) = channel();
    std::thread::spawn(move || done.send(exported.take_away().map_err(|e| e.to_string())));
    let taken_away = is_done.recv_timeout(Duration::from_secs(60));
    drop(other);
    taken_away.expect("it waits for another mount namespace").unwrap();
}

/// What is fsynced is there after a cut that takes everything that was not promised; what was
/// there before is there; and the file system's own check is content (but for ext2).
fn what_was_promised_is_there(fs: KernelFs) {
    keeps_its_promises(&peer(fs));
}

fn keeps_its_promises(peer: &Peer) {
    let fs = peer.fs;
    let running = peer.start(None).unwrap();
    let path = running.path().to_path_buf();
    std::fs::write(path.join("before"), b"before the recording").unwrap();
    let bases = running.begin().unwrap();
    let file = std::fs::File::create(path.join("kept")).unwrap();
    file.write_all_at(&[7; 10_000], 0).unwrap();
    file.sync_all().unwrap();
    std::fs::File::open(&path).unwrap().sync_all().unwrap();
    drop(file);
    std::fs::write(path.join("lost"), vec![9; 10_000]).unwrap();
    let (recording, taken_away) = running.end();
    taken_away.unwrap();
    assert!(!recording.events().is_empty());

    let cut = recording.last_crash_point();
    let nothing_in_doubt = |(base, device): (&Store, u32)| {
        recording.at(DeviceId(device), cut).contents(base, 0, 0, &mut Rng::new(1))
    };
    let contents = bases.iter().zip(0..).map(nothing_in_doubt).collect();
    let mut seen = None;
    let mut look = |at: &Path| {
        let read = |name: &str| std::fs::read(at.join(name)).ok();
        seen = Some((read("before"), read("kept"), read("lost")));
    };
    let recovery = peer.recover(contents, &mut look, None).unwrap();
    assert_eq!(recovery.refused, None);
    let (before, kept, lost) = seen.unwrap();
    assert_eq!(before.unwrap(), b"before the recording");
    assert_eq!(kept.unwrap(), [7; 10_000]);
    assert!(lost.is_none_or(|bytes| bytes.len() <= 10_000));
    if fs.recovers_itself() {
        assert_eq!(recovery.damage, Vec::<String>::new());
        assert!(!recovery.manual_repair);
    }
}

#[test]
fn ext2_keeps_what_was_promised() {
    what_was_promised_is_there(KernelFs::Ext2);
}

#[test]
fn ext3_keeps_what_was_promised() {
    what_was_promised_is_there(KernelFs::Ext3);
}

#[test]
fn ext4_keeps_what_was_promised() {
    what_was_promised_is_there(KernelFs::Ext4);
}

#[test]
fn xfs_keeps_what_was_promised() {
    what_was_promised_is_there(KernelFs::Xfs);
}

#[test]
fn btrfs_keeps_what_was_promised() {
    what_was_promised_is_there(KernelFs::Btrfs);
}

#[test]
fn ext4_with_its_journal_on_another_device_keeps_what_was_promised() {
    let two: Build = Arc::new(|| {
        let one = disk(64 << 20);
        Ok([one()?, one()?].concat())
    });
    keeps_its_promises(&Peer { build: two, ..peer(KernelFs::Ext4) });
}

#[test]
fn a_disk_of_zeros_is_refused_and_needs_a_person() {
    let peer = peer(KernelFs::Ext4);
    let recovery =
        peer.recover(vec![Store::new(64 << 20)], &mut |_| panic!("it was mounted"), None).unwrap();
    assert!(recovery.manual_repair);
    assert!(recovery.refused.unwrap().contains("mount"));
}

#[test]
fn what_cannot_be_is_named() {
    let small = Peer { build: disk(16 << 20), ..peer(KernelFs::Xfs) };
    match small.start(None) {
        Err(PeerError::TooSmall { kind: "xfs", .. }) => {}
        other => panic!("{:?}", other.map(drop)),
    }
    let two: Build = Arc::new(|| {
        let one = disk(128 << 20);
        Ok([one()?, one()?].concat())
    });
    match (Peer { build: two, ..peer(KernelFs::Btrfs) }).start(None) {
        Err(PeerError::NoExternalJournal { kind: "btrfs" }) => {}
        other => panic!("{:?}", other.map(drop)),
    }
}

/// What a process of the test below does.
const ROLE: &str = "STEADFAST_ROLE";

/// The test below in another process: its command line.
fn as_role(role: &str, by: &[&str]) -> Command {
    let name = "what_a_killed_process_has_left_keeps_no_other_from_its_work";
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "120"]).args(by).arg(program);
    command.args([name, "--exact", "--nocapture"]).env(ROLE, role);
    command
}

/// The processes that a process has started.
fn children_of(parent: Pid) -> Vec<Pid> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |number: &i32| {
        // proc_pid_stat(5): the name in parentheses, the state, the parent.
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        let parent_of = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1));
        parent_of == Some(&parent.as_raw_nonzero().to_string())
    };
    numbers.filter(is_child).filter_map(Pid::from_raw).collect()
}

/// Leaves a dead mount with a loop device over its file, which is mounted.
fn leave() {
    let out = as_role("leave", &[]).output().unwrap();
    assert_eq!(out.status.signal().or(out.status.code()), Some(9), "{out:?}");
}

/// mkfs.btrfs looks at all loop devices that are mounted, and fails for one over a file of a dead
/// mount. Here in a mount namespace with temporary files of its own, where no other test sees it.
#[test]
fn what_a_killed_process_has_left_keeps_no_other_from_its_work() {
    match std::env::var(ROLE).unwrap_or_default().as_str() {
        "" => {
            let script = "mount -t tmpfs none /tmp && exec \"$0\" \"$@\"";
            let mut whole = as_role("whole", &["unshare", "--mount", "sh", "-c", script]);
            let out = whole.env("TMPDIR", "/tmp").output().unwrap();
            assert!(out.status.success(), "{out:?}");
        }
        "whole" => {
            leave();
            // By the first folder of another process.
            let worked = as_role("work", &[]).output().unwrap();
            assert!(worked.status.success(), "{worked:?}");
            // In one that has begun before.
            peer(KernelFs::Btrfs).formatted().unwrap();
            leave();
            let error = peer(KernelFs::Btrfs).formatted().unwrap_err().to_string();
            let said = "is over a file of a mount whose process is gone: umount -l /tmp/steadfast-";
            assert!(error.contains(said), "{error}");
            let worked = as_role("work", &[]).output().unwrap();
            assert!(worked.status.success(), "{worked:?}");
        }
        "leave" => {
            let _left = peer(KernelFs::Ext4).start(None).unwrap();
            let own = rustix::process::getpid();
            // First who would take it away when this process is killed.
            let guards = children_of(own);
            assert!(!guards.is_empty(), "nobody guards the mount");
            for process in guards.into_iter().chain([own]) {
                rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
            }
        }
        _ => drop(peer(KernelFs::Btrfs).formatted().unwrap()),
    }
}

/// Its cuts are those of a disk that lies: with an honest one's no promise would break.
#[test]
fn a_disk_that_ignores_flushes_is_recorded_as_one() {
    let disk = HddParams { write_cache: WriteCacheMode::Lying, ..HddParams::default() };
    let disk = ModelParams::Hdd(disk).scaled(1, 64);
    let size = disk.build("disk").unwrap().info().size;
    let peer = Peer::on_models(KernelFs::Ext4, ("", ""), vec![disk]);
    let (ran, gone) = peer.record(Store::new(size), |_, _, begin| begin()).unwrap();
    gone.unwrap();
    let durability = ran.1.devices()[0].durability;
    assert!(matches!(durability, Durability::Lying { .. }), "{durability:?}");
}
