//! Where running mounts are found: a folder with a socket each, and the kernel's table.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The folder for sockets and logs of this user's mounts, made if it is not there.
pub fn runtime_folder() -> io::Result<PathBuf> {
    let user = rustix::process::geteuid();
    let folder = if let Some(given) = std::env::var_os("STEADFAST_RUNTIME_DIR") {
        PathBuf::from(given)
    } else if user.is_root() {
        PathBuf::from("/run/steadfast")
    } else if let Some(xdg) = std::env::var_os("XDG_RUNTIME_DIR") {
        PathBuf::from(xdg).join("steadfast")
    } else {
        std::env::temp_dir().join(format!("steadfast-{}", user.as_raw()))
    };
    match DirBuilder::new().recursive(true).mode(0o700).create(&folder) {
        Ok(()) => Ok(folder),
        Err(e) => Err(io::Error::new(e.kind(), format!("{}: {e}", folder.display()))),
    }
}

/// The mount point as the mount's process knows it: absolute, without symbolic links; also of a
/// mount whose process is gone.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(e) if e.raw_os_error() == Some(rustix::io::Errno::NOTCONN.raw_os_error()) => {
            let absolute = std::path::absolute(path)?;
            match (absolute.parent(), absolute.file_name()) {
                (Some(parent), Some(name)) => Ok(parent.canonicalize()?.join(name)),
                _ => Err(e),
            }
        }
        other => other,
    }
}

/// Whether the kernel's table has one of our mounts at `mountpoint`.
pub fn is_mounted(mountpoint: &Path) -> bool {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    table.lines().any(|line| {
        let mut halves = line.splitn(2, " - ");
        let (Some(head), Some(tail)) = (halves.next(), halves.next()) else { return false };
        let at = head.split(' ').nth(4).map(unescape);
        at.as_deref() == Some(mountpoint.as_os_str().as_encoded_bytes())
            && tail.starts_with("fuse.steadfast ")
    })
}

/// A field of the table: blanks and the like are there as \ and three octal digits.
fn unescape(field: &str) -> Vec<u8> {
    let bytes = field.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let code = field.get(at + 1..at + 4).and_then(|d| u8::from_str_radix(d, 8).ok());
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
    out
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn blanks_in_paths_are_understood() {
        assert_eq!(unescape("/mnt/a\\040b\\134c"), b"/mnt/a b\\c");
        assert_eq!(unescape("/plain\\9"), b"/plain\\9");
    }
}
