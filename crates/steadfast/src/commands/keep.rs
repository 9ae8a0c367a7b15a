//! What `put` and `get` keep of a file beside its contents: attributes, access control lists,
//! times; and files that have no contents.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use rustix::buffer::spare_capacity;
use rustix::fs::{AtFlags, FileType as HostType, Mode, Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;
use steadfast_vfs::Timestamp;
use steadfast_vfs::{Attr, FileSystem, FileType, FsError, Ino, SetAttr, SetTime, SetXattr};

use crate::terminal;

/// Longest value and list of names that Linux has, in bytes.
const MAX: usize = 65_536;

/// Attributes that belong to the host rather than the file: not carried over.
const OF_THE_HOST: [&[u8]; 3] = [b"security.selinux", b"security.ima", b"security.evm"];

/// The attributes of a file of the host, by name. None where the host's file system has none.
fn of_host(host: &Path) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut names = Vec::with_capacity(MAX);
    match rustix::fs::llistxattr(host, spare_capacity(&mut names)) {
        Ok(_) => {}
        Err(Errno::NOTSUP) => return Ok(Vec::new()),
        Err(e) => return Err(e).context("listing extended attributes"),
    }
    let mut all = Vec::new();
    for name in names.split(|b| *b == 0).filter(|n| !n.is_empty() && !OF_THE_HOST.contains(n)) {
        let mut value = Vec::with_capacity(MAX);
        match rustix::fs::lgetxattr(host, name, spare_capacity(&mut value)) {
            Ok(_) => all.push((name.to_vec(), value)),
            // Gone meanwhile, or not for us to see.
            Err(Errno::NODATA | Errno::PERM | Errno::NOTSUP) => {}
            Err(e) => return Err(e).context(String::from_utf8_lossy(name).into_owned()),
        }
    }
    Ok(all)
}

/// Gives the inode the attributes and times of a file of the host.
pub fn put(fs: &dyn FileSystem, ino: Ino, host: &Path, meta: &std::fs::Metadata) -> Result<()> {
    for (name, value) in of_host(host)? {
        match fs.setxattr(ino, &name, &value, SetXattr::Any) {
            Ok(()) => {}
            Err(FsError::Unsupported { .. }) => not_kept(host, &name),
            Err(e) => return Err(e).context(String::from_utf8_lossy(&name).into_owned()),
        }
    }
    let at = |secs, nanos: i64| SetTime::At(Timestamp { secs, nanos: nanos as u32 });
    let set = SetAttr {
        atime: Some(at(meta.atime(), meta.atime_nsec())),
        mtime: Some(at(meta.mtime(), meta.mtime_nsec())),
        ..SetAttr::default()
    };
    fs.setattr(ino, set)?;
    Ok(())
}

/// Gives a file of the host the attributes and times of the inode. What the host does not take is
/// told and left out.
pub fn get(fs: &dyn FileSystem, attr: &Attr, host: &Path) -> Result<()> {
    let names = match fs.listxattr(attr.ino) {
        Err(FsError::Unsupported { .. }) => Vec::new(),
        names => names?,
    };
    for name in names {
        let value = fs.getxattr(attr.ino, &name)?;
        match rustix::fs::lsetxattr(host, name.as_slice(), &value, XattrFlags::empty()) {
            Ok(()) => {}
            Err(Errno::NOTSUP | Errno::PERM) => not_kept(host, &name),
            Err(e) => return Err(e).context(String::from_utf8_lossy(&name).into_owned()),
        }
    }
    let spec = |t: Timestamp| Timespec { tv_sec: t.secs, tv_nsec: t.nanos.into() };
    let times = Timestamps { last_access: spec(attr.atime), last_modification: spec(attr.mtime) };
    rustix::fs::utimensat(rustix::fs::CWD, host, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}

fn not_kept(host: &Path, name: &[u8]) {
    let name = String::from_utf8_lossy(name);
    terminal::note(&format!("note: {}: attribute {name} is not kept", host.display()));
}

/// The type and device number of a file of the host that has no contents: a device node, a FIFO
/// or a socket.
pub fn special(meta: &std::fs::Metadata) -> Option<(FileType, u64)> {
    let kind = match HostType::from_raw_mode(meta.mode()) {
        HostType::CharacterDevice => FileType::CharDevice,
        HostType::BlockDevice => FileType::BlockDevice,
        HostType::Fifo => FileType::Fifo,
        HostType::Socket => FileType::Socket,
        _ => return None,
    };
    let device = meta.rdev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    Some((kind, u64::from(major) << 32 | u64::from(minor)))
}

/// Makes a device node (root only), a FIFO or a socket on the host.
pub fn make_special(attr: &Attr, host: &Path) -> Result<()> {
    let kind = match attr.kind {
        FileType::CharDevice => HostType::CharacterDevice,
        FileType::BlockDevice => HostType::BlockDevice,
        FileType::Fifo => HostType::Fifo,
        FileType::Socket => HostType::Socket,
        _ => bail!("is neither a device, a FIFO nor a socket"),
    };
    // OK to cast: the two halves are the numbers.
    let device = rustix::fs::makedev((attr.rdev >> 32) as u32, attr.rdev as u32);
    let mode = Mode::from_raw_mode(u32::from(attr.mode));
    rustix::fs::mknodat(rustix::fs::CWD, host.as_os_str().as_bytes(), kind, mode, device)?;
    Ok(())
}
