//! How far the kernel reads ahead on a mount: a value of its *backing device*, in `/sys`.
//!
//! The protocol can only make it smaller. Only root may write it, and nothing depends on it.

use std::io::{Error, ErrorKind, Result};
use std::path::Path;

use rustix::fd::AsRawFd;
use rustix::fs::{Mode, OFlags};

/// Sets the read-ahead of what is mounted at `mountpoint`, in KiB. Asks nothing of whoever serves
/// the mount, who may not have begun yet.
pub(crate) fn set(mountpoint: &Path, kib: u32) -> Result<()> {
    // O_PATH: the mount's root is named, not opened.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(mountpoint, flags, Mode::empty())?;
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", root.as_raw_fd()))?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
    let device = mount_id(&info).and_then(|id| device_of(&mounts, id));
    let device = device.ok_or_else(|| Error::new(ErrorKind::NotFound, "not among the mounts"))?;
    std::fs::write(format!("/sys/class/bdi/{device}/read_ahead_kb"), kib.to_string())
}

/// The mount that a file descriptor lies on.
fn mount_id(fdinfo: &str) -> Option<&str> {
    fdinfo.lines().find_map(|line| line.strip_prefix("mnt_id:")).map(str::trim)
}

/// `major:minor` of a mount: the third word of its line.
fn device_of<'m>(mounts: &'m str, id: &str) -> Option<&'m str> {
    let line = mounts.lines().find(|line| line.split(' ').next() == Some(id))?;
    line.split(' ').nth(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_of_a_mount() {
        let mounts = "29 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                      129 29 0:57 / /mnt/a\\040b rw - fuse.steadfast disk.img rw\n";
        assert_eq!(device_of(mounts, "129"), Some("0:57"));
        assert_eq!(device_of(mounts, "9"), None);
        assert_eq!(mount_id("pos:\t0\nflags:\t012\nmnt_id:\t129\n"), Some("129"));
    }
}
