//! Extended attributes, access control lists, inode flags, locks.

use std::os::fd::AsFd;

use rustix::fs::{FlockOperation, IFlags, Mode, OFlags, XattrFlags};
use rustix::io::Errno;

use super::super::acl;
use super::super::world::{Fault, StepResult, World, expand, number, ok};
use super::open::runs;
use crate::raw::record_lock;

/// No value is larger.
const VALUE_MAX: usize = 65536;

pub(super) fn call(w: &mut World, words: &[&str]) -> Option<StepResult> {
    let acl_name = |word: &str| match word {
        "access" => "system.posix_acl_access",
        _ => "system.posix_acl_default",
    };
    Some(match words {
        ["setxattr", path, name, value] => set(w, path, name, value, XattrFlags::empty()),
        ["setxattr", path, name, value, "create"] => set(w, path, name, value, XattrFlags::CREATE),
        ["setxattr", path, name, value, "replace"] => {
            set(w, path, name, value, XattrFlags::REPLACE)
        }
        ["getxattr", path, name] => get(w, path, &expand(name)).map(|v| runs(&v)),
        ["getxattr-into", path, name, len] => get_into(w, path, &expand(name), len),
        ["listxattr", path] => list(w, path),
        ["removexattr", path, name] => ok(rustix::fs::removexattr(w.path(path), expand(name))),
        ["lsetxattr", path, name, value] => {
            let (name, value) = (expand(name), expand(value));
            let none = XattrFlags::empty();
            ok(rustix::fs::lsetxattr(w.path(path), name, value.as_bytes(), none))
        }
        ["setfacl", path, kind @ ("access" | "default"), text] => match acl::to_bytes(text) {
            Some(bytes) => {
                let none = XattrFlags::empty();
                ok(rustix::fs::setxattr(w.path(path), acl_name(kind), &bytes, none))
            }
            None => Err(Fault::Script(format!("no list: '{text}'"))),
        },
        ["getfacl", path, kind @ ("access" | "default")] => {
            get(w, path, acl_name(kind)).map(|v| acl::to_text(&v))
        }
        ["chattr", path, change] => chattr(w, path, change),
        ["lsattr", path] => inode_flags(w, path).map(|(_, flags)| letters(flags)),
        ["ioctl", path, number] => ioctl(w, path, number, "0"),
        ["ioctl", path, number, word] => ioctl(w, path, number, word),
        ["flock", handle, what] => flock(w, handle, what),
        ["lock", handle, what, at, len] => lock(w, handle, what, at, len),
        _ => return None,
    })
}

fn set(w: &World, path: &str, name: &str, value: &str, flags: XattrFlags) -> StepResult {
    let (name, value) = (expand(name), expand(value));
    ok(rustix::fs::setxattr(w.path(path), name, value.as_bytes(), flags))
}

fn get(w: &World, path: &str, name: &str) -> Result<Vec<u8>, Fault> {
    let mut value = vec![0; VALUE_MAX];
    let n = rustix::fs::getxattr(w.path(path), name, &mut value[..])?;
    value.truncate(n);
    Ok(value)
}

fn get_into(w: &World, path: &str, name: &str, len: &str) -> StepResult {
    let mut value = vec![0; number(len)? as usize];
    Ok(rustix::fs::getxattr(w.path(path), name, &mut value[..])?.to_string())
}

/// The names in alphabetical order: the file system's own order means nothing.
fn list(w: &World, path: &str) -> StepResult {
    let mut names = vec![0u8; VALUE_MAX];
    let n = rustix::fs::listxattr(w.path(path), &mut names[..])?;
    let parts = names[..n].split(|b| *b == 0).filter(|p| !p.is_empty());
    let mut parts: Vec<String> = parts.map(|p| String::from_utf8_lossy(p).into_owned()).collect();
    parts.sort();
    Ok(format!("{} in {n} bytes: {}", parts.len(), parts.join(" ")))
}

/// Flags and their letters (chattr(1)).
const LETTERS: [(char, IFlags); 6] = [
    ('a', IFlags::APPEND),
    ('i', IFlags::IMMUTABLE),
    ('d', IFlags::NODUMP),
    ('A', IFlags::NOATIME),
    ('S', IFlags::SYNC),
    ('D', IFlags::DIRSYNC),
];

fn inode_flags(w: &World, path: &str) -> Result<(std::os::fd::OwnedFd, IFlags), Fault> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(w.path(path), flags, Mode::empty())?;
    let found = rustix::fs::ioctl_getflags(&file)?;
    Ok((file, found))
}

fn letters(flags: IFlags) -> String {
    let set = LETTERS.iter().filter(|(_, flag)| flags.contains(*flag));
    set.map(|(letter, _)| letter).collect()
}

/// `chattr(1)`: `+ai` sets flags, `-ai` takes them away.
fn chattr(w: &World, path: &str, change: &str) -> StepResult {
    let named = |letter| LETTERS.iter().find(|(l, _)| *l == letter).map(|(_, flag)| *flag);
    let mut letters = change.chars();
    let sign = letters.next();
    let flags: Option<Vec<IFlags>> = letters.map(named).collect();
    let flags = flags.map(IFlags::from_iter);
    let (file, now) = inode_flags(w, path)?;
    let wanted = match (sign, flags) {
        (Some('+'), Some(flags)) => now | flags,
        (Some('-'), Some(flags)) => now - flags,
        _ => return Err(Fault::Script(format!("chattr '{change}'"))),
    };
    ok(rustix::fs::ioctl_setflags(&file, wanted))
}

/// An ioctl by its number, with an argument that begins with a word; only whether it was done: the
/// file is opened for reading.
fn ioctl(w: &World, path: &str, digits: &str, word: &str) -> StepResult {
    let no = || Fault::Script(format!("ioctl '{digits}'"));
    let command = u32::from_str_radix(digits, 16).map_err(|_| no())?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(w.path(path), flags, Mode::empty())?;
    let mut argument = [0; 1 << 14];
    argument[..8].copy_from_slice(&number(word)?.to_le_bytes());
    ok(crate::raw::ioctl(file.as_fd(), command, &mut argument))
}

fn flock(w: &World, handle: &str, what: &str) -> StepResult {
    let operation = match what {
        "shared" => FlockOperation::NonBlockingLockShared,
        "exclusive" => FlockOperation::NonBlockingLockExclusive,
        "unlock" => FlockOperation::NonBlockingUnlock,
        _ => return Err(Fault::Script(format!("flock '{what}'"))),
    };
    ok(rustix::fs::flock(w.handle(handle)?, operation))
}

fn lock(w: &World, handle: &str, what: &str, at: &str, len: &str) -> StepResult {
    let kind = match what {
        "read" => libc::F_RDLCK,
        "write" => libc::F_WRLCK,
        "unlock" => libc::F_UNLCK,
        _ => return Err(Fault::Script(format!("lock '{what}'"))),
    };
    let part = |word| i64::try_from(number(word)?).map_err(|_| Fault::Errno(Errno::INVAL));
    let (at, len) = (part(at)?, part(len)?);
    w.handle(handle).and_then(|f| ok(record_lock(f.as_fd(), kind, at, len)))
}
