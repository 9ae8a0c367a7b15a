//! Processes that have a file or a device in use, as far as /proc shows them to this user.

use std::fmt;
use std::os::fd::AsFd;
use std::path::PathBuf;

use rustix::fs::{FileType, fstat, major, minor};
use steadfast_host::mounts::seen_by;

/// A process that keeps something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its number.
    pub process: u32,
    /// Its program's name, as the kernel has it: at most 15 bytes, which may be anybody's. Empty:
    /// it has ended, and a process that it had started keeps what it had open.
    pub name: String,
}

impl Holder {
    fn of(process: u32) -> Holder {
        let name = std::fs::read(format!("/proc/{process}/comm")).unwrap_or_default();
        Holder { process, name: String::from_utf8_lossy(name.trim_ascii_end()).into_owned() }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.process == std::process::id() {
            return write!(f, "this process");
        }
        match self.name.as_str() {
            "" => write!(f, "a process that {} has started, which has ended", self.process),
            name => write!(f, "process {} ({name})", self.process),
        }
    }
}

/// Who has locked a file with flock(2); `None` if that is nobody, or out of sight.
pub fn locked_by(file: impl AsFd) -> Option<Holder> {
    let stat = fstat(file).ok()?;
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let place = format!("{:02x}:{:02x}:{}", major(stat.st_dev), minor(stat.st_dev), stat.st_ino);
    holder_in(&locks, &place).map(Holder::of)
}

/// The process of a lock in the kernel's list of them. One of another namespace is 0 there, and
/// who waits for a lock is marked by an arrow.
fn holder_in(locks: &str, place: &str) -> Option<u32> {
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, process, at, ..] = words[..] else { return None };
        process.parse().ok().filter(|process| at == place && *process > 0)
    })
}

/// Where a block device is mounted, in this mount namespace.
pub fn mounted_at(device: u64) -> Option<PathBuf> {
    let number = format!("{}:{}", major(device), minor(device));
    let mounts = seen_by("self").unwrap_or_default();
    mounts.into_iter().find_map(|mount| (mount.device == number).then_some(mount.at))
}

/// A process that has a block device open.
pub fn opened_by(device: u64) -> Option<Holder> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut all: Vec<u32> = entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
    all.sort_unstable();
    all.into_iter().find(|process| has_open(*process, device)).map(Holder::of)
}

fn has_open(process: u32, device: u64) -> bool {
    let open = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    // Its target is identified by its name: a stat(2) could wait for a file system that hangs.
    open.map(|e| e.path()).any(|path| {
        let leads_to_a_device = std::fs::read_link(&path)
            .is_ok_and(|to| to.as_os_str().len() > 5 && to.starts_with("/dev/"));
        leads_to_a_device
            && rustix::fs::stat(&path).is_ok_and(|stat| {
                FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice
                    && stat.st_rdev == device
            })
    })
}

#[cfg(test)]
mod tests {
    use rustix::fs::{FlockOperation, flock};

    use super::*;

    #[test]
    fn the_one_who_locked_a_file_is_named() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(locked_by(&file), None);
        flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        let holder = locked_by(&file).unwrap();
        assert_eq!(holder.process, std::process::id());
        assert_eq!(holder.to_string(), "this process");
        let other = Holder { process: 1, name: "init".into() };
        assert_eq!(other.to_string(), "process 1 (init)");
        let ended = Holder::of(u32::MAX).to_string();
        assert_eq!(ended, "a process that 4294967295 has started, which has ended");
    }

    #[test]
    fn the_kernels_list_of_locks_is_read() {
        let list = "1: POSIX  ADVISORY  WRITE 9 fe:00:77 0 EOF\n\
                    2: FLOCK  ADVISORY  WRITE 0 fe:00:77 0 EOF\n\
                    2: -> FLOCK  ADVISORY  WRITE 8 fe:00:77 0 EOF\n\
                    3: FLOCK  ADVISORY  READ  12 fe:00:77 0 EOF\n\
                    4: FLOCK  ADVISORY  WRITE 13 fe:00:78 0 EOF\n";
        assert_eq!(holder_in(list, "fe:00:77"), Some(12));
        assert_eq!(holder_in(list, "fe:00:78"), Some(13));
        assert_eq!(holder_in(list, "fe:00:79"), None);
    }
}
