//! Who keeps a mount alive that was taken away: other mount namespaces with a copy of it (a
//! container, a service with a file system of its own), further places, open files. As far as
//! /proc shows this user.

use std::collections::BTreeSet;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use steadfast_vfs::path::shown;

use rustix::fs::{AtFlags, CWD, StatxFlags};
use steadfast_host::mounts::{self, Mount};

use super::{control, place};

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
                let at = shown(at.as_os_str().as_bytes());
                write!(f, "it is mounted at {at} too (umount {at})")
            }
            Holder::Namespace { process, name, at } => {
                let at = shown(at.as_os_str().as_bytes());
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

/// Who keeps the mount of `source` with this device number, beside the place `at` where it is to
/// be taken away. One process of each mount namespace is named.
///
/// The kernel gives the number away again as soon as the file system is gone, while our process
/// still writes: nobody is named then, lest a stranger's mount be taken away on our advice.
pub fn of(device: &str, at: &Path, source: &str) -> BTreeSet<Holder> {
    let copies = |process: &str| {
        let mut table = mounts::seen_by(process).unwrap_or_default();
        table.retain(|m| m.device == device);
        table
    };
    let here = copies("self");
    let namespace_of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let ours = namespace_of("self");
    let (mut known, mut other_namespaces, mut open) = (BTreeSet::new(), Vec::new(), Vec::new());
    for process in processes() {
        let text = process.to_string();
        if let Some(namespace) = namespace_of(&text)
            && Some(&namespace) != ours.as_ref()
            && known.insert(namespace)
        {
            let all = copies(&text).into_iter();
            other_namespaces.extend(all.map(|mount| (process, name_of(process), mount)));
        }
        if process != std::process::id() && has_open(process, device) {
            open.push(Holder::Process { process, name: name_of(process) });
        }
    }
    let all: Vec<&Mount> = here.iter().chain(other_namespaces.iter().map(|(_, _, m)| m)).collect();
    if !are_all_of(&all, source) || is_served_twice(device) {
        return BTreeSet::new();
    }
    let mut found: BTreeSet<Holder> = open.into_iter().collect();
    let at_other_places = here.into_iter().filter(|mount| mount.at != at);
    found.extend(at_other_places.map(|mount| Holder::Here(mount.at)));
    found.extend(other_namespaces.into_iter().map(|(process, name, mount)| Holder::Namespace {
        process,
        name,
        at: mount.at,
    }));
    // One that has ended meanwhile keeps nothing.
    found.retain(|holder| match holder {
        Holder::Namespace { name, .. } | Holder::Process { name, .. } => !name.is_empty(),
        Holder::Here(_) => true,
    });
    found
}

/// An error with the processes that have files of the mount at `at` open, a line each, where the
/// error says `because`.
pub fn named(e: anyhow::Error, because: &str, at: &Path) -> anyhow::Error {
    if !e.to_string().contains(because) {
        return e;
    }
    let Ok((at, Some(running))) = control::at(at) else { return e };
    let text = |field: &str| running.status[field].as_str().unwrap_or_default();
    let holders = of(text("device"), &at, text("source"));
    let processes = holders.iter().filter(|holder| matches!(holder, Holder::Process { .. }));
    let lines: Vec<String> = processes.map(ToString::to_string).collect();
    if lines.is_empty() { e } else { anyhow::anyhow!("{e}\n{}", lines.join("\n")) }
}

/// Whether mounts with one device number are all ours, and of this source.
fn are_all_of(mounts: &[&Mount], source: &str) -> bool {
    mounts.iter().all(|m| m.is_ours() && m.source == source)
}

/// Whether a second process of ours has been given the number while the first still writes.
/// Anybody can bind a socket of such a name: who listens at it is asked of the kernel.
fn is_served_twice(device: &str) -> bool {
    let user = rustix::process::geteuid().as_raw();
    let sockets = place::sockets_of(device, user).into_iter();
    sockets.filter_map(|socket| control::listener(socket, user)).collect::<BTreeSet<_>>().len() > 1
}

/// All processes, ascending.
fn processes() -> BTreeSet<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

/// Its program's name; empty if it has ended.
fn name_of(process: u32) -> String {
    // Any process can give itself any name, with ends of lines and escape sequences too.
    let name = std::fs::read(format!("/proc/{process}/comm")).unwrap_or_default();
    shown(name.trim_ascii_end())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_given_away_again_names_nobody() {
        let mount = |kind: &str, source: &str| Mount {
            id: 1,
            device: "0:57".into(),
            at: "/m".into(),
            flags: "rw".into(),
            kind: kind.into(),
            source: source.into(),
            options: String::new(),
        };
        let (first, copy) = (mount("fuse.steadfast", "a.img"), mount("fuse.steadfast", "a.img"));
        assert!(are_all_of(&[], "a.img") && are_all_of(&[&first, &copy], "a.img"));
        assert!(!are_all_of(&[&first], "b.img"));
        assert!(!are_all_of(&[&mount("tmpfs", "a.img")], "a.img"));
        assert!(!are_all_of(&[&first, &mount("fuse.steadfast", "b.img")], "a.img"));
        assert!(!are_all_of(&[&first, &mount("tmpfs", "none")], "a.img"));
    }

    #[test]
    fn a_number_served_twice_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |process: u32| folder.path().join(place::socket_name(process, Some("0:987653")));
        let listen = |process: u32| std::os::unix::net::UnixListener::bind(path(process)).unwrap();
        let _first = listen(std::process::id());
        assert!(!is_served_twice("0:987653"));
        // By its name it is another process's, which does not listen there.
        let _named_after_another = listen(1);
        assert!(!is_served_twice("0:987653"));
        let script = "use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0); \
                      bind(S, pack_sockaddr_un(\"$ARGV[0]/$$-0.987653.sock\")) or die; \
                      listen(S, 1); $| = 1; print qq(here\\n); sleep 60";
        let mut other = std::process::Command::new("perl")
            .args(["-e", script])
            .arg(folder.path())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = [0; 5];
        std::io::Read::read_exact(other.stdout.as_mut().unwrap(), &mut said).unwrap();
        let noticed = is_served_twice("0:987653");
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(noticed);
    }

    #[test]
    fn a_process_is_named_on_one_line_without_escapes() {
        let named = std::thread::spawn(|| {
            rustix::thread::set_name(c"\x1b[31mE\nx").unwrap();
            name_of(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs())
        });
        assert_eq!(named.join().unwrap(), "\\033[31mE\\012x");
        let at = Holder::Here(PathBuf::from("/a\x1bb")).to_string();
        assert_eq!(at, "it is mounted at /a\\033b too (umount /a\\033b)");
    }
}
