//! The kernel's table of mounts (`/proc/PID/mountinfo`, proc_pid_mountinfo(5)), and what lies at a
//! path. Nothing here asks anything of whoever serves a mount: it may be dead or stuck.
//!
//! A path may have several mounts on top of each other, and a mount may be seen at several paths
//! and in several mount namespaces. What stays the same is its *device number*.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// How the table calls our mounts: of files, and of block devices.
const KINDS: [&str; 2] = ["fuse.steadfast", "fuseblk.steadfast"];

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The kernel's number of it.
    pub id: u64,
    /// Device number, `major:minor`; all mounts of one file system have the same.
    pub device: String,
    /// Where it is mounted.
    pub at: PathBuf,
    /// Options of this mount, separated by commas: `ro`, `nosuid` and the like.
    pub flags: String,
    /// Type, with subtype.
    pub kind: String,
    /// What is mounted.
    pub source: String,
    /// Options of the file system, separated by commas.
    pub options: String,
}

impl Mount {
    /// Whether it is one of Steadfast's.
    pub fn is_ours(&self) -> bool {
        KINDS.contains(&self.kind.as_str())
    }

    /// The user who mounted it, of a FUSE mount.
    pub fn user(&self) -> Option<u32> {
        let word = self.options.split(',').find_map(|o| o.strip_prefix("user_id="));
        word.and_then(|number| number.parse().ok())
    }

    /// Those of a table.
    pub fn all_of(table: &[u8]) -> impl Iterator<Item = Mount> {
        table.split(|byte| *byte == b'\n').filter_map(Mount::parse)
    }

    /// A line of the table. It is no text: paths and sources are any bytes.
    fn parse(line: &[u8]) -> Option<Mount> {
        let mut words = line.split(|byte| *byte == b' ');
        let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
        let id = text(words.next()?).parse().ok()?;
        let (device, at, flags) = (words.nth(1)?, words.nth(1)?, words.next()?);
        // Optional fields end with a hyphen.
        let mut words = words.skip_while(|word| *word != b"-").skip(1);
        let (kind, source) = (words.next()?, words.next()?);
        Some(Mount {
            id,
            device: text(device),
            at: PathBuf::from(unescaped(at)),
            flags: text(flags),
            kind: text(kind),
            source: unescaped(source).to_string_lossy().into_owned(),
            options: text(words.next().unwrap_or(b"")),
        })
    }
}

/// What lies at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountPath {
    /// Absolute, without symbolic links.
    pub path: PathBuf,
    /// The mount that the path lies on: the uppermost, where there are several.
    pub mount: Mount,
}

impl MountPath {
    /// What is mounted at this very path.
    pub fn mounted(&self) -> Option<&Mount> {
        (self.mount.at == self.path).then_some(&self.mount)
    }
}

/// The mounts that a process sees (`self`: those that we see).
///
/// # Errors
/// No such process, or no right to ask.
pub fn seen_by(process: &str) -> io::Result<Vec<Mount>> {
    Ok(Mount::all_of(&std::fs::read(format!("/proc/{process}/mountinfo"))?).collect())
}

/// Looks at a path.
///
/// # Errors
/// There is nothing, or no right to go there; /proc is not there.
pub fn at(path: &Path) -> io::Result<MountPath> {
    // O_PATH: it is named, not opened.
    let named = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let number = named.as_raw_fd();
    let path = std::fs::read_link(format!("/proc/self/fd/{number}"))?;
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}"))?;
    let id = info.lines().find_map(|l| l.strip_prefix("mnt_id:")).map(str::trim);
    let id = id.and_then(|id| id.parse::<u64>().ok());
    let mount = seen_by("self")?.into_iter().find(|m| Some(m.id) == id);
    let lost = || io::Error::new(io::ErrorKind::NotFound, "not in the table of mounts");
    Ok(MountPath { path, mount: mount.ok_or_else(lost)? })
}

/// A field of the table: blanks and the like are there as \ and three octal digits.
fn unescaped(bytes: &[u8]) -> OsString {
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let code = bytes.get(at + 1..at + 4).and_then(|d| std::str::from_utf8(d).ok());
        let code = code.and_then(|d| u8::from_str_radix(d, 8).ok());
        match (bytes[at], code) {
            (b'\\', Some(code)) => {
                out.push(code);
                at += 4;
            }
            (b, _) => {
                out.push(b);
                at += 1;
            }
        }
    }
    OsString::from_vec(out)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn blanks_in_paths_are_understood() {
        assert_eq!(unescaped(b"/mnt/a\\040b\\134c"), "/mnt/a b\\c");
        assert_eq!(unescaped(b"/plain\\9\\04"), "/plain\\9\\04");
    }

    #[test]
    fn a_line_of_the_table() {
        let line = "129 29 0:57 / /mnt/a\\040b rw,nosuid shared:7 - fuse.steadfast /x\\040y.img \
                    rw,user_id=1000,group_id=7,default_permissions";
        let mount = Mount::parse(line.as_bytes()).unwrap();
        assert_eq!((mount.id, mount.device.as_str()), (129, "0:57"));
        assert_eq!(mount.at, Path::new("/mnt/a b"));
        assert_eq!((mount.source.as_str(), mount.flags.as_str()), ("/x y.img", "rw,nosuid"));
        assert!(mount.is_ours() && mount.user() == Some(1000));
        let other = Mount::parse(b"29 1 8:1 / / rw - ext4 /dev/sda1 rw").unwrap();
        assert!(!other.is_ours() && other.user().is_none());
        assert_eq!(Mount::parse(b"29 1 8:1 / /"), None);
        // No text.
        let other = Mount::parse(b"29 1 8:1 / /m\xe9 rw - ext4 \xff rw").unwrap();
        assert_eq!((other.at.as_os_str().as_bytes(), &*other.source), (&b"/m\xe9"[..], "\u{fffd}"));
    }

    #[test]
    fn a_path_is_found_in_the_table() {
        let folder = tempfile::tempdir().unwrap();
        let place = at(folder.path()).unwrap();
        assert_eq!(place.path, folder.path().canonicalize().unwrap());
        assert!(place.mounted().is_none());
        assert!(at(Path::new("/")).unwrap().mounted().is_some());
        assert!(at(&folder.path().join("nothing")).is_err());
    }
}
