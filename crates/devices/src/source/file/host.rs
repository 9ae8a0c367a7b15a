//! The host's description of its devices, in `/sys`. It is only advice: without it the usual case
//! is assumed.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, Dev, FileType, Mode, OFlags, StatFs, Statx, StatxFlags, fstatfs, major, makedev,
    minor, statfs, statx,
};
use steadfast_block::Persistence;
use steadfast_host::mounts::{Mount, seen_by};

use crate::source::pmem::of_block_device;

/// `f_type` of tmpfs and ramfs (linux/magic.h).
const MEMORY_FILE_SYSTEMS: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// The folder of a block device; that of the whole disk, for a partition.
fn disk(dev: Dev) -> PathBuf {
    let folder = PathBuf::from(format!("/sys/dev/block/{}:{}", major(dev), minor(dev)));
    if folder.join("partition").exists() { folder.join("..") } else { folder }
}

fn line(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Whether seeks cost time on the device.
pub(super) fn rotational(dev: Dev) -> bool {
    line(disk(dev).join("queue/rotational")).as_deref() == Some("1")
}

/// Whether the block device takes no writes (`blockdev --setro`).
pub(super) fn is_read_only(dev: Dev) -> bool {
    let of = format!("/sys/dev/block/{}:{}/ro", major(dev), minor(dev));
    line(of).as_deref() == Some("1")
}

/// Manufacturer's name of the disk.
pub(super) fn model(dev: Dev) -> Option<String> {
    let folder = disk(dev);
    let model = line(folder.join("device/model"))?;
    match line(folder.join("device/vendor")) {
        // Virtio and PCI show a number here.
        Some(vendor) if !vendor.starts_with("0x") => Some(format!("{vendor} {model}")),
        _ => Some(model),
    }
}

/// Whether a block device keeps its contents: RAM disks, memory that was set aside (memmap=) and
/// loop devices over memory do not.
pub(in crate::source) fn device_persistence(dev: Dev) -> Persistence {
    let folder = disk(dev);
    let name = folder.canonicalize().ok();
    let name = name.as_deref().and_then(Path::file_name).and_then(|n| n.to_str()).unwrap_or("");
    let numbered = |prefix| {
        name.strip_prefix(prefix)
            .is_some_and(|n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    if numbered("ram") || numbered("zram") {
        return volatile("a RAM disk loses its contents when power is lost");
    }
    if let Some(reason) = of_block_device(dev) {
        return volatile(&reason);
    }
    match line(folder.join("loop/backing_file")).map(statfs) {
        Some(Ok(under)) => of_file_system(&under),
        _ => Persistence::Persistent,
    }
}

/// Whether a file keeps its contents: not on a file system that is memory.
pub(super) fn file_persistence(file: impl AsFd) -> Persistence {
    fstatfs(file).map_or(Persistence::Persistent, |on| of_file_system(&on))
}

/// Whether a file lies in a file system that is memory.
pub(super) fn in_memory(file: impl AsFd) -> bool {
    fstatfs(file).is_ok_and(|on| is_memory(&on))
}

fn is_memory(on: &StatFs) -> bool {
    MEMORY_FILE_SYSTEMS.contains(&(on.f_type as u64))
}

fn of_file_system(on: &StatFs) -> Persistence {
    match is_memory(on) {
        true => volatile("it lies in a file system that is memory (tmpfs)"),
        false => Persistence::Persistent,
    }
}

fn volatile(reason: &str) -> Persistence {
    Persistence::Volatile { reason: reason.into() }
}

/// Whether a loop device detaches itself and is mounted nowhere that we see: the kernel does that
/// some time after umount(2) has returned.
pub(super) fn loop_device_is_going(device: &str) -> bool {
    let name = device.trim_start_matches("/dev/");
    let folder = Path::new("/sys/block").join(name);
    let Some(number) = line(folder.join("dev")) else { return true };
    let mounted = mounts().iter().any(|mount| mount.device == number);
    line(folder.join("loop/autoclear")).as_deref() == Some("1") && !mounted
}

/// The file that a loop device is over, by its folder in /sys.
fn backing_file(folder: &Path) -> Option<PathBuf> {
    let mut name = fs::read(folder.join("loop/backing_file")).ok()?;
    name.pop_if(|last| *last == b'\n');
    Some(PathBuf::from(OsString::from_vec(name)))
}

/// The file under a loop device, opened to be locked. `None`: it is no loop device, or a process
/// serves the file, which may never answer.
pub(super) fn open_backing_file(dev: Dev) -> Option<OwnedFd> {
    let path = backing_file(&disk(dev))?;
    if served_device(&mounts(), &path).is_some() {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(&path, flags, Mode::empty()).ok()
}

/// The loop device that is attached to a file.
pub(super) fn loop_device_over(dev: Dev, inode: u64) -> Option<String> {
    loop_device(Some(dev), |over| {
        makedev(over.stx_dev_major, over.stx_dev_minor) == dev && over.stx_ino == inode
    })
}

/// The loop device that is attached to a block device, to the whole of which it is a partition, or
/// to a partition of it. The kernel lets others open what is below one.
pub(super) fn loop_device_over_device(number: Dev) -> Option<String> {
    loop_device(None, |over| {
        let is_device = FileType::from_raw_mode(over.stx_mode.into()) == FileType::BlockDevice;
        let other = makedev(over.stx_rdev_major, over.stx_rdev_minor);
        is_device && (other == number || whole(other) == number || whole(number) == other)
    })
}

/// The number of the whole disk, for a partition.
fn whole(number: Dev) -> Dev {
    let text = line(disk(number).join("dev")).unwrap_or_default();
    let parts = text.split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    parts.map_or(number, |(major, minor)| makedev(major, minor))
}

/// The first loop device that is attached to what is looked for; `dev`: where that is, if it is
/// where somebody may serve it.
fn loop_device(dev: Option<Dev>, is_it: impl Fn(&Statx) -> bool) -> Option<String> {
    let mounts = mounts();
    let shown = dev.map(|dev| format!("{}:{}", major(dev), minor(dev)));
    let mut found: Vec<String> = fs::read_dir("/sys/block")
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let backing = backing_file(&entry.path())?;
            // Not asked: who serves the file may never answer.
            let served = served_device(&mounts, &backing);
            if served.is_some_and(|number| Some(number) != shown.as_deref()) {
                return None;
            }
            let wanted = StatxFlags::INO | StatxFlags::TYPE;
            let over = statx(CWD, backing, AtFlags::STATX_DONT_SYNC, wanted).ok()?;
            is_it(&over).then(|| format!("/dev/{}", entry.file_name().to_string_lossy()))
        })
        .collect();
    found.sort();
    found.into_iter().next()
}

/// The mounts that we see.
fn mounts() -> Vec<Mount> {
    seen_by("self").unwrap_or_default()
}

/// The device number, `major:minor`, of the FUSE mount that a path is in: the last of the deepest
/// mounts above it.
fn served_device<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a str> {
    let above = mounts.iter().filter(|mount| path.starts_with(&mount.at));
    let mount = above.max_by_key(|mount| mount.at.as_os_str().len())?;
    mount.kind.starts_with("fuse").then_some(&mount.device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_that_serves_a_path_is_the_deepest() {
        let mounts = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
            2 1 0:40 / /tmp/a rw shared:1 - tmpfs none rw\n\
            3 1 0:41 / /tmp/a rw - fuse.steadfast disk rw\n\
            4 3 0:42 / /tmp/a/b\\040c rw - ext4 /dev/loop1 rw\n";
        let mounts: Vec<Mount> = Mount::all_of(mounts.as_bytes()).collect();
        let of = |path: &str| served_device(&mounts, path.as_ref());
        assert_eq!(
            (of("/tmp/a/disk"), of("/tmp/ab"), of("/tmp/a/b c/d")),
            (Some("0:41"), None, None)
        );
    }
}
