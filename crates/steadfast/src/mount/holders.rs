//! Who keeps a mount alive that was taken away: other mount namespaces with a copy of it (a
//! container, a service with a file system of its own), further places, open files. As far as
//! /proc tells this user.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, CWD, StatxFlags};
use steadfast_fuse::mounts;

/// What keeps it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    /// It can be seen here too.
    Here(PathBuf),
    /// Another mount namespace, with one of its processes.
    Namespace { process: u32, name: String, at: PathBuf },
    /// A process with a file of it, or in a folder of it.
    Process { process: u32, name: String },
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Here(at) => {
                let at = at.display();
                write!(f, "it is mounted at {at} too (umount {at})")
            }
            Holder::Namespace { process, name, at } => {
                let at = at.display();
                write!(
                    f,
                    "process {process} ({name}) has a copy in its mount namespace, at {at}\n  \
                     (nsenter -t {process} -m umount {at})"
                )
            }
            Holder::Process { process, name } => {
                write!(f, "process {process} ({name}) has a file or folder of it open")
            }
        }
    }
}

/// Who keeps the mount with this device number. One process of each mount namespace is named.
pub fn of(device: &str) -> BTreeSet<Holder> {
    let mut found = BTreeSet::new();
    for mount in mounts::seen_by("self").unwrap_or_default() {
        if mount.device == device {
            found.insert(Holder::Here(mount.at));
        }
    }
    let namespace_of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let ours = namespace_of("self");
    let mut known = BTreeSet::new();
    for process in processes() {
        let text = process.to_string();
        if let Some(namespace) = namespace_of(&text)
            && Some(&namespace) != ours.as_ref()
            && known.insert(namespace)
        {
            let there = mounts::seen_by(&text).unwrap_or_default();
            for mount in there.into_iter().filter(|m| m.device == device) {
                let name = name_of(process);
                found.insert(Holder::Namespace { process, name, at: mount.at });
            }
        }
        if process != std::process::id() && has_open(process, device) {
            found.insert(Holder::Process { process, name: name_of(process) });
        }
    }
    found
}

/// All processes, ascending.
fn processes() -> BTreeSet<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

fn name_of(process: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

/// Whether a process has something of it open, or stands in it.
fn has_open(process: u32, device: &str) -> bool {
    let folder = PathBuf::from(format!("/proc/{process}"));
    let open = std::fs::read_dir(folder.join("fd")).into_iter().flatten().flatten();
    let places = ["cwd", "root"].map(|name| folder.join(name));
    places.into_iter().chain(open.map(|e| e.path())).any(|path| {
        // Who serves the mount is not asked: it may be stuck.
        let flags = AtFlags::from_bits_retain(AT_STATX_DONT_SYNC);
        let found = rustix::fs::statx(CWD, &path, flags, StatxFlags::empty());
        found.is_ok_and(|s| format!("{}:{}", s.stx_dev_major, s.stx_dev_minor) == device)
    })
}

/// statx(2): what is known, without asking.
const AT_STATX_DONT_SYNC: u32 = 0x4000;
