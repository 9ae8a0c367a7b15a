//! Where running mounts answer: a socket each, whose name says which mount it is.
//!
//! The folder depends on who mounted, and from where: a session, cron, sudo. So whoever looks for
//! a mount goes by its device number, which the socket's name holds, not by his own environment.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::geteuid;
use steadfast_stack::listener::check_path;

use crate::Usage;

/// How long a folder may take to be listed.
const LISTING: Duration = Duration::from_secs(1);

/// A variable of the environment, if it says something.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// A user's folder where there is no other.
fn temporary(user: u32) -> PathBuf {
    std::env::temp_dir().join(format!("steadfast-{user}"))
}

/// Where the folder for this user's mounts belongs, and whether he said so: it may be shared then.
fn runtime_path() -> (PathBuf, bool) {
    let user = geteuid();
    let session = PathBuf::from(format!("/run/user/{}", user.as_raw()));
    if let Some(given) = variable("STEADFAST_RUNTIME_DIR") {
        (given, true)
    } else if user.is_root() {
        (PathBuf::from("/run/steadfast"), false)
    } else if let Some(xdg) = variable("XDG_RUNTIME_DIR").filter(|d| d.is_dir()) {
        (xdg.join("steadfast"), false)
    } else if session.is_dir() {
        (session.join("steadfast"), false)
    } else {
        (temporary(user.as_raw()), false)
    }
}

/// Where a stack host answers if nobody says otherwise: STEADFAST_SOCKET, or `host.socket` in the
/// folder for sockets. Not named as the sockets of mounts are.
pub fn host_socket() -> PathBuf {
    variable("STEADFAST_SOCKET").unwrap_or_else(|| runtime_path().0.join("host.socket"))
}

/// Whether this is a folder, no link to one, in which nobody but us makes files.
fn is_ours_alone(folder: &Path) -> io::Result<bool> {
    let found = folder.symlink_metadata()?;
    Ok(found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o022 == 0)
}

/// The folder for sockets and logs of this user's mounts, made if it is not there.
///
/// # Errors
/// It cannot be made, or it is not ours alone: others could answer in our name.
pub fn runtime_folder() -> io::Result<PathBuf> {
    let (folder, is_shared) = runtime_path();
    if is_shared {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|e| named(&folder, e))?;
    } else {
        make_own(&folder)?;
    }
    Ok(folder)
}

/// Makes a folder of this user alone, if it is not there.
///
/// # Errors
/// It cannot be made; what is there is a link, or others may make files in it.
pub fn make_own(folder: &Path) -> io::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|e| named(folder, e))?;
    if is_ours_alone(folder).map_err(|e| named(folder, e))? {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "{}: is not a folder of this user alone: remove it, or set STEADFAST_RUNTIME_DIR",
        folder.display()
    )))
}

/// Opens a file of a folder for sockets and logs, which may be shared, to be appended to; it is
/// made if it is not there. No link is followed, and nothing is waited for.
///
/// # Errors
/// What is there is another user's, no file, or has a second name elsewhere.
pub fn own_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW;
    // A FIFO would make the open wait for its reader.
    let flags = flags | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let others = || io::Error::other("what is there is not a file of this user alone: remove it");
    let file = match rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
        // A link; a FIFO without a reader.
        Err(Errno::LOOP | Errno::NXIO) => return Err(others()),
        opened => File::from(opened?),
    };
    let found = file.metadata()?;
    if !found.is_file() || found.uid() != geteuid().as_raw() || found.nlink() != 1 {
        return Err(others());
    }
    rustix::fs::fcntl_setfl(&file, rustix::fs::fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

fn named(path: &Path, e: io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("{}: {e}", path.display()))
}

/// Whether the control socket of a mount, whose device number is not known yet, can be bound in a
/// folder: afterwards it would be too late.
///
/// # Errors
/// The path would be too long.
pub fn check_room(folder: &Path) -> Result<(), Usage> {
    // The largest number that a file system without a device has.
    let path = folder.join(socket_name(std::process::id(), Some("0:1048575")));
    check_path(&path).map_err(|e| {
        Usage(format!("control socket {}: {e}: set STEADFAST_RUNTIME_DIR", path.display()))
    })
}

/// Where sockets of `user`'s mounts may be.
fn folders(user: u32) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = variable("STEADFAST_RUNTIME_DIR").into_iter().collect();
    if user == 0 {
        folders.push(PathBuf::from("/run/steadfast"));
    }
    if user == geteuid().as_raw() {
        folders.extend(variable("XDG_RUNTIME_DIR").map(|d| d.join("steadfast")));
    }
    folders.push(PathBuf::from(format!("/run/user/{user}/steadfast")));
    folders.push(temporary(user));
    folders
}

/// The name of a socket: process and, if it is known, device number of the mount.
pub fn socket_name(process: u32, device: Option<&str>) -> String {
    match device {
        Some(device) => format!("{process}-{}.sock", device.replace(':', ".")),
        None => format!("{process}.sock"),
    }
}

/// Does `work` on a path that may lie on anybody's file system, until then: whoever serves that
/// need not answer. `None` if he has not.
pub fn with_deadline<T: Send + 'static>(
    until: Instant,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = channel();
    let thread = std::thread::Builder::new().name("path".into());
    // A thread that is stuck ends with the process.
    let started = thread.spawn(move || {
        // OK to ignore: nobody waits any more.
        let _ = sender.send(work());
    });
    started.ok()?;
    receiver.recv_timeout(until.saturating_duration_since(Instant::now())).ok()
}

/// Sockets that may be those of the mount with this device number, which `user` has mounted.
pub fn sockets_of(device: &str, user: u32) -> Vec<PathBuf> {
    let ending = socket_name(0, Some(device)).split_off(1);
    let mut found: Vec<PathBuf> = folders(user).iter().flat_map(|f| sockets_in(f)).collect();
    found.extend(bound_sockets());
    found.retain(|path| path.as_os_str().to_string_lossy().ends_with(&ending));
    let mut seen = Vec::new();
    found.retain(|path| !seen.contains(path) && (seen.push(path.clone()), true).1);
    found
}

/// Whether anybody has bound a socket for the mount with this device number, as far as this network
/// namespace shows it.
pub fn is_bound(device: &str) -> bool {
    let ending = socket_name(0, Some(device)).split_off(1);
    bound_sockets().iter().any(|path| path.as_os_str().to_string_lossy().ends_with(&ending))
}

/// Sockets of this user's mounts, as far as its folders show them.
pub fn own_sockets() -> BTreeSet<PathBuf> {
    folders(geteuid().as_raw()).iter().flat_map(|f| sockets_in(f)).collect()
}

/// The same, and those that are bound anywhere.
pub fn all_sockets() -> BTreeSet<PathBuf> {
    let bound = bound_sockets().into_iter();
    let bound = bound.filter(|p| p.extension().is_some_and(|e| e == "sock"));
    own_sockets().into_iter().chain(bound).collect()
}

/// Whether there is a socket at the path, no link to one, that one of these users has made. Anybody
/// can bind one named like ours, so this is looked at before anything else is done with it.
pub fn is_socket_of(path: &Path, users: &[u32]) -> bool {
    let found = path.symlink_metadata();
    found.is_ok_and(|m| m.file_type().is_socket() && users.contains(&m.uid()))
}

/// Removes a socket of ours that nobody listens at, from our own folder. In another folder it
/// stays: another user may have chosen what is at the path.
pub fn remove_dead(socket: &Path) {
    let (folder, _) = runtime_path();
    remove_dead_from(&folder, socket);
}

fn remove_dead_from(folder: &Path, socket: &Path) {
    let is_there = socket.parent() == Some(folder) && is_ours_alone(folder).unwrap_or(false);
    if is_there && is_socket_of(socket, &[geteuid().as_raw()]) {
        // OK to ignore: it is looked at again next time.
        let _ = std::fs::remove_file(socket);
    }
}

fn sockets_in(folder: &Path) -> Vec<PathBuf> {
    let folder = folder.to_path_buf();
    let listed = with_deadline(Instant::now() + LISTING, move || {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "sock")).collect()
    });
    listed.unwrap_or_default()
}

/// Paths of all sockets that are bound to one (unix(7), `/proc/net/unix`).
fn bound_sockets() -> Vec<PathBuf> {
    let table = std::fs::read("/proc/self/net/unix").unwrap_or_default();
    let table = String::from_utf8_lossy(&table);
    let paths = table.lines().filter_map(|l| l.find(" /").map(|at| &l[at + 1..]));
    paths.map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_says_whose_it_is() {
        assert_eq!(socket_name(7, Some("0:57")), "7-0.57.sock");
        assert_eq!(socket_name(7, None), "7.sock");
    }

    #[test]
    fn a_socket_is_found_wherever_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(socket_name(7, Some("0:987654")));
        let _listening = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert_eq!(sockets_of("0:987654", 12345), [path]);
        assert!(sockets_of("0:98765", 12345).is_empty());
    }

    #[test]
    fn a_path_that_does_not_answer_is_left_alone() {
        let soon = || Instant::now() + Duration::from_millis(50);
        let (_hold, held) = channel::<()>();
        assert_eq!(with_deadline(soon(), move || held.recv().is_ok()), None);
        assert_eq!(with_deadline(Instant::now() + LISTING, || 7), Some(7));
    }

    #[test]
    fn a_path_is_ours_only_as_a_socket_of_a_known_user() {
        let folder = tempfile::tempdir().unwrap();
        let (socket, link, file) =
            (folder.path().join("s"), folder.path().join("l"), folder.path().join("f"));
        let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        std::os::unix::fs::symlink(&socket, &link).unwrap();
        std::fs::write(&file, "").unwrap();
        let us = geteuid().as_raw();
        assert!(is_socket_of(&socket, &[us]));
        assert!(!is_socket_of(&socket, &[us + 1]));
        assert!(!is_socket_of(&link, &[us]) && !is_socket_of(&file, &[us]));
    }

    #[test]
    fn only_dead_sockets_in_our_own_folder_are_removed() {
        let ours = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let (dead, file) = (ours.path().join("1.sock"), ours.path().join("2.sock"));
        let other_folders = other.path().join("1.sock");
        for path in [&dead, &other_folders] {
            drop(std::os::unix::net::UnixListener::bind(path).unwrap());
        }
        std::fs::write(&file, "precious").unwrap();
        for path in [&dead, &other_folders, &file] {
            remove_dead_from(ours.path(), path);
        }
        assert!(!dead.exists() && file.exists() && other_folders.exists());
    }
}
