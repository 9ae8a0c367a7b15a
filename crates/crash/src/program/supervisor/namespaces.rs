//! Namespaces for a judge: pid, network, ipc and mount.
//!
//! Root stays in its user namespace: owners of files are seen as they are, and a judge may become
//! any other user, as for a server that does not run as root. Another user gets a user namespace,
//! the only way for it to get the others, in which its own user and group are itself. There other
//! owners are seen as nobody, and set-id programs have no effect.

use std::fs;
use std::io;
use std::path::Path;

use nix::sched::{CloneFlags, unshare};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, sendto, socket};
use rustix::process::{getegid, geteuid};
use steadfast_host::mounts::{Mount, seen_by};

/// Enters new ones. The next child of this process is the first one of the pid namespace: with it
/// the namespace ends, and it is to call [`mount_proc`].
pub fn enter() -> io::Result<()> {
    let (user, group) = (geteuid(), getegid());
    let mut wanted = CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWNS;
    if !user.is_root() {
        wanted |= CloneFlags::CLONE_NEWUSER;
    }
    unshare(wanted).map_err(|e| with("unshare", e.into()))?;
    if !user.is_root() {
        let (user, group) = (user.as_raw(), group.as_raw());
        // The kernel wants it in this order (user_namespaces(7)).
        for (file, text) in [
            ("setgroups", "deny".to_owned()),
            ("uid_map", format!("{user} {user} 1")),
            ("gid_map", format!("{group} {group} 1")),
        ] {
            fs::write(format!("/proc/self/{file}"), text).map_err(|e| with(file, e))?;
        }
    }
    loopback_up().map_err(|e| with("the loopback interface", e))
}

/// In the first process of the pid namespace: /proc shows that namespace, to the judge alone, who
/// works in this folder.
pub fn mount_proc(folder: &Path) -> io::Result<()> {
    // What is mounted here is not seen outside; what is unmounted outside is not kept by this copy.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
        .map_err(|e| with("mounts of its own", e.into()))?;
    leave_tests(folder);
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None).map_err(|e| with("mounting /proc", e.into()))?;
    Ok(())
}

/// Lets go of the mounts of tests that go on meanwhile: a copy would keep them after their end,
/// where a machine does not tell copies (mount_namespaces(7)).
///
/// But for the one that the judge works in.
fn leave_tests(folder: &Path) {
    // As MountFolder names them.
    let of_test = |mount: &Mount| {
        let mut names = mount.at.iter().filter_map(|name| name.to_str());
        names.any(|name| name.starts_with("steadfast-mount-")) && !folder.starts_with(&mount.at)
    };
    let mounts = seen_by("self").unwrap_or_default();
    for mount in mounts.iter().rev().filter(|mount| of_test(mount)) {
        // OK to ignore: it may have gone; in a user namespace it cannot be let go.
        let _ = unmount(&mount.at, UnmountFlags::DETACH);
    }
}

/// Sets the only interface of a new network namespace up, as `ip link set lo up` does
/// (rtnetlink(7)).
fn loopback_up() -> io::Result<()> {
    const LENGTH: u32 = 32;
    /// In every namespace (LOOPBACK_IFINDEX).
    const LOOPBACK: i32 = 1;
    let socket = socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
    let mut request = Vec::new();
    // struct nlmsghdr: length, type, flags, sequence number, sender.
    request.extend(LENGTH.to_ne_bytes());
    request.extend(libc::RTM_NEWLINK.to_ne_bytes());
    request.extend(((libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16).to_ne_bytes());
    request.extend([0; 8]);
    // struct ifinfomsg: family, type, index, flags, which of the flags.
    request.extend([0; 4]);
    request.extend(LOOPBACK.to_ne_bytes());
    request.extend((libc::IFF_UP as u32).to_ne_bytes());
    request.extend((libc::IFF_UP as u32).to_ne_bytes());
    sendto(&socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = [0; 256];
    let (length, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    // struct nlmsgerr: 0, or an errno with its sign changed.
    let error = answer[..length].get(16..20).and_then(|error| error.try_into().ok());
    match error.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn with(what: &str, e: io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("{what}: {e}"))
}
