//! What a killed process has left: mounts and loop devices, found by the folders they are in.
//!
//! A dead mount with a loop device over one of its files keeps others from their work: mkfs.btrfs
//! looks at all that are mounted, and fails. So each [`Folder`](crate::Folder) has a file beside it
//! that its process keeps locked. The kernel lets the lock go when the process ends, however it
//! ends. The first folder that a process makes clears those that nobody keeps. A process that was
//! killed and cannot end, because its threads wait for its own mount, is helped first: see
//! [`Guard`](crate::Guard).

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::folder::{fuse_mounted, has_mounts, mounted};
use crate::loops;
use crate::program::{run, run_for};

/// How folders are named whose leftovers are looked for.
const PREFIX: &str = "steadfast-";

/// The lock of a folder's process. Its file goes with it.
#[derive(Debug)]
pub(crate) struct FolderLock {
    path: PathBuf,
    _locked: File,
}

fn beside(folder: &Path) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(".owner");
    name.into()
}

impl FolderLock {
    /// Of a folder that was just made.
    pub fn new(folder: &Path) -> io::Result<FolderLock> {
        let path = beside(folder);
        let mut file = File::create_new(&path)?;
        file.lock()?;
        let owner = FolderLock { path, _locked: file.try_clone()? };
        // Who finds it before this is written waits for no process.
        file.write_all(this_process().as_bytes())?;
        Ok(owner)
    }

    /// Of a folder of this user whose process has ended.
    fn of_ended(folder: &Path) -> Option<FolderLock> {
        let path = beside(folder);
        // No link, and no file of others: they could name any folder.
        let found = path.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
        let user = fs::metadata("/proc/self").ok()?.uid();
        let file = File::options().write(true).open(&path).ok().filter(|_| found.uid() == user)?;
        if file.try_lock().is_err() {
            let process = process_in(&fs::read_to_string(&path).ok()?)?;
            is_killed(process).then_some(())?;
            end_connections(folder);
            crate::retry(|| file.try_lock().is_ok()).then_some(())?;
        }
        Some(FolderLock { path, _locked: file })
    }
}

/// This process's namespace of process numbers, and its number there.
fn this_process() -> String {
    let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", space.display(), std::process::id())
}

/// The process that has written so, if its number is one of this namespace.
fn process_in(owner: &str) -> Option<u32> {
    let (space, process) = owner.split_once(' ')?;
    let ours = this_process();
    (ours.split_once(' ')?.0 == space).then(|| process.parse().ok()).flatten()
}

/// Whether a process that still has threads was killed: one of them has SIGKILL pending.
fn is_killed(process: u32) -> bool {
    const SIGKILL: u64 = 1 << (9 - 1);
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok()).any(
        |status| {
            let pending = status.lines().find_map(|line| line.strip_prefix("SigPnd:"));
            let pending = pending.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
            pending.is_some_and(|set| set & SIGKILL != 0)
        },
    )
}

/// Ends the connections of the FUSE mounts in a folder: who waits for them gets errors.
fn end_connections(folder: &Path) {
    for at in fuse_mounted().iter().rev().filter(|at| at.starts_with(folder)) {
        // It stays where it is if it is in use. A loop device is found by it.
        let how = ["--force", "--no-canonicalize"].map(OsStr::new);
        // OK to ignore: it is looked at later.
        let _ = run("umount", &[&how[..], &[at.as_os_str()]].concat());
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // OK to ignore: it holds nothing.
        let _ = fs::remove_file(&self.path);
    }
}

/// Clears what processes of this user have left that have ended. What cannot be cleared stays.
pub(crate) fn clear() {
    let backing = loops::all().into_iter().map(|(_, file)| file);
    let places: Vec<PathBuf> = mounted().into_iter().chain(backing).chain(in_memory()).collect();
    // One may be in another, whose process lives.
    let mut folders: Vec<&Path> = places.iter().flat_map(|place| folders_of(place)).collect();
    folders.sort();
    folders.dedup();
    let left =
        folders.into_iter().filter_map(|folder| Some((folder, FolderLock::of_ended(folder)?)));
    let left: Vec<(&Path, FolderLock)> = left.collect();
    // All before any is waited for: a device may be mounted on another folder.
    let devices: Vec<Vec<LoopAttachment>> = left.iter().map(|(folder, _)| let_go(folder)).collect();
    for ((folder, owner), devices) in left.into_iter().zip(devices) {
        if !remove(folder, &devices) {
            // For the next one to try.
            std::mem::forget(owner);
        }
    }
}

/// Folders that take memory as long as they are there.
fn in_memory() -> impl Iterator<Item = PathBuf> {
    let all = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    all.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

/// A loop device, by the kernel's number of the attachment and its path.
type LoopAttachment = (Option<u64>, PathBuf);

/// The folders that a path is in and that are ours by their names.
fn folders_of(path: &Path) -> impl Iterator<Item = &Path> {
    path.ancestors().filter(|at| {
        at.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()))
    })
}

/// Detaches and unmounts what is over files of a folder, or below it; the devices.
fn let_go(folder: &Path) -> Vec<LoopAttachment> {
    let below = |path: &Path| path.starts_with(folder);
    let found = loops::all().into_iter().filter(|(_, file)| below(file));
    let numbered = found.map(|(device, _)| (loops::sequence_of(&device), device));
    let devices: Vec<LoopAttachment> = numbered.collect();
    for (_, device) in &devices {
        // One that is mounted is detached once it is not. OK to ignore: it is looked at later.
        let _ = run("losetup", &["--detach".as_ref(), device.as_os_str()]);
    }
    // What was mounted last first.
    for at in mounted().iter().rev().filter(|at| below(at)) {
        if run("umount", &["--lazy".as_ref(), at.as_os_str()]).is_err() {
            // An ordinary user's. OK to ignore: it is looked at later.
            let _ = run("fusermount3", &["-uz".as_ref(), "--".as_ref(), at.as_os_str()]);
        }
    }
    devices
}

/// Removes the folder once nothing is mounted there; whether nothing is left.
fn remove(folder: &Path, devices: &[LoopAttachment]) -> bool {
    if has_mounts(folder) {
        return false;
    }
    // OK to ignore: what is left there keeps nobody from anything.
    let _ = fs::remove_dir_all(folder);
    crate::retry(|| !devices.iter().any(|(number, device)| loops::is_attached(device, *number)))
}

/// What to do about mounts whose process is gone and that loop devices are over, of whatever
/// program; empty if there are none.
pub fn dead_mounts() -> String {
    // Asked by a process that can be given up: it may hang.
    let is_dead = |file: &Path| {
        let look = run_for(Duration::from_secs(5), "stat", &["--".as_ref(), file.as_os_str()]);
        look.is_err_and(|e| e.said.contains("endpoint is not connected"))
    };
    let mounted = mounted();
    let mut said = String::new();
    for (device, file) in loops::all().into_iter().filter(|(_, file)| is_dead(file)) {
        let places = mounted.iter().filter(|at| file.starts_with(at));
        let place = places.max_by_key(|at| at.as_os_str().len()).unwrap_or(&file);
        said += &format!(
            "; {} is over a file of a mount whose process is gone: umount -l {}",
            device.display(),
            place.display()
        );
    }
    said
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::{Folder, LoopDevice};

    /// A process that is to be killed runs this test, and says what it has made.
    const CHILD: &str = "STEADFAST_LEAVES_SOMETHING";

    #[allow(clippy::print_stdout, reason = "its parent reads it")]
    fn make() -> Result<(), crate::ToolError> {
        let folder = Folder::new("steadfast-test-").unwrap();
        let at = folder.path().join("m");
        fs::create_dir(&at).unwrap();
        run("mount", &["-t".as_ref(), "tmpfs".as_ref(), "none".as_ref(), at.as_os_str()])?;
        let image = at.join("image");
        File::create(&image).unwrap().set_len(1 << 20).unwrap();
        let device = LoopDevice::attach(&image)?;
        println!("\nmade {} {}", folder.path().display(), device.name());
        std::thread::sleep(Duration::from_secs(60));
        Ok(())
    }

    fn start() -> (Child, PathBuf, PathBuf) {
        let name = "leftovers::tests::what_a_killed_process_has_left_is_cleared";
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([name, "--exact", "--nocapture"]).env(CHILD, "yes");
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let made = lines.map_while(Result::ok).find(|line| line.starts_with("made "));
        let made = made.expect("what it has made");
        let mut words = made.split(' ').skip(1).map(PathBuf::from);
        (child, words.next().unwrap(), words.next().unwrap())
    }

    #[test]
    #[allow(clippy::print_stdout, reason = "a test that did not run says so")]
    fn what_a_killed_process_has_left_is_cleared() {
        if std::env::var_os(CHILD).is_some() {
            return make().unwrap();
        }
        let own = Folder::new("steadfast-test-").unwrap();
        let tmpfs = ["-t".as_ref(), "tmpfs".as_ref(), "none".as_ref(), own.path().as_os_str()];
        if let Err(e) = run("mount", &tmpfs) {
            println!("SKIPPED: mounting needs root: {e}");
            return;
        }
        let (mut killed, left, device) = start();
        let (mut lives, kept, its_device) = start();
        killed.kill().unwrap();
        killed.wait().unwrap();
        clear();
        // Another process may have begun with it.
        let gone = crate::retry(|| !left.exists() && !beside(&left).exists());
        let detached = crate::retry(|| !loops::is_attached(&device, None));
        let untouched = has_mounts(&kept) && loops::is_attached(&its_device, None);
        lives.kill().unwrap();
        lives.wait().unwrap();
        clear();
        let all_gone = crate::retry(|| !kept.exists());
        let own_is_there = has_mounts(own.path());
        run("umount", &[own.path()]).unwrap();
        assert!(gone && detached, "{} {}", left.display(), device.display());
        assert!(untouched && own_is_there, "what a living process has");
        assert!(all_gone, "{}", kept.display());
        let beside = beside(own.path());
        assert!(beside.exists());
        drop(own);
        assert!(!beside.exists());
    }
}
