//! The end of a mount's connection to the kernel, asked for here.
//!
//! An unmount ends it only if nobody holds the mount any more. Another mount namespace with a copy
//! of the mount (a container, a service with a /tmp of its own) holds it for as long as it lives.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Where fusectl is mounted, if it is.
const CONTROL: &str = "/sys/fs/fuse/connections";

/// Ends the connection that `open` is a descriptor of; `device` is the mount's device number,
/// `major:minor`. Whoever still uses the mount gets errors from then on.
pub(crate) fn end(open: impl AsFd, device: &str) -> io::Result<()> {
    // As soon as it has ended, the kernel may give its number to another mount.
    if has_ended(&open)? {
        return Ok(());
    }
    let number = number(device).ok_or(Errno::INVAL)?;
    let file = match switch(CWD, &format!("{CONTROL}/{number}/abort")) {
        // A system without fusectl at its place: root sees it without mounting it anywhere.
        Err(Errno::NOENT) => switch(&control()?, &format!("{number}/abort"))?,
        opened => opened?,
    };
    rustix::io::write(&file, b"1")?;
    Ok(())
}

/// Whether the kernel has let go of it: nobody holds the mount any more.
pub(crate) fn has_ended(open: impl AsFd) -> io::Result<bool> {
    let mut polled = [PollFd::from_borrowed_fd(open.as_fd(), PollFlags::empty())];
    poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
    Ok(polled[0].revents().contains(PollFlags::ERR))
}

/// The device number, `major:minor`, of the mount that `open` is the connection of. Not asked of
/// its mount point, where another mount may lie over it. `None`: the kernel does not say (before
/// Linux 6.17).
pub(crate) fn device(open: impl AsFd) -> Option<String> {
    let descriptor = open.as_fd().as_raw_fd();
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).ok()?;
    let number = info.lines().find_map(|line| line.strip_prefix("fuse_connection:"))?;
    let number: u32 = number.trim().parse().ok()?;
    Some(format!("{}:{}", number >> 20, number & ((1 << 20) - 1)))
}

/// The name of a connection in fusectl: the kernel's form of a device number.
fn number(device: &str) -> Option<u32> {
    let (major, minor) = device.split_once(':')?;
    let (major, minor) = (major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?);
    (major < 1 << 12 && minor < 1 << 20).then_some(major << 20 | minor)
}

fn switch(folder: impl AsFd, path: &str) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(folder, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
}

/// fusectl, mounted for this descriptor alone.
fn control() -> Result<OwnedFd, Errno> {
    let made = fsopen("fusectl", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&made)?;
    fsmount(&made, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_kernels() {
        assert_eq!(number("0:57"), Some(57));
        assert_eq!(number("7:3"), Some(0x0070_0003));
        assert_eq!((number("7"), number("a:b"), number("0:1048576")), (None, None, None));
    }
}
