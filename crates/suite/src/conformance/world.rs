//! What a case has to do with while it runs: a folder, open files, maps, what it remembers.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Child;

use rustix::fs::{Mode, RawMode, Stat};
use rustix::io::Errno;
use rustix::process::umask;

use crate::raw::MappedFile;
use crate::{Result, SuiteError};

/// Longest path that the calls take, with the byte of 0 at its end.
const PATH_MAX: usize = 4096;

/// Why a step gave no value.
pub(super) enum Fault {
    /// The call's error.
    Errno(Errno),
    /// The step is not in the language.
    Script(String),
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Fault {
        Fault::Errno(errno)
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Fault {
        Fault::Errno(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

/// What a step gave.
pub(super) type StepResult = std::result::Result<String, Fault>;

/// The value of a call that has none.
pub(super) fn ok(result: std::result::Result<(), Errno>) -> StepResult {
    result.map_err(Fault::Errno)?;
    Ok("ok".to_owned())
}

/// A case's environment.
pub(super) struct World {
    pub(super) folder: PathBuf,
    pub(super) handles: BTreeMap<String, OwnedFd>,
    pub(super) maps: BTreeMap<String, MappedFile>,
    /// Places in folders, by name (`dirtell`).
    pub(super) places: BTreeMap<String, u64>,
    pub(super) remembered: BTreeMap<String, Stat>,
    pub(super) children: Vec<Child>,
}

impl World {
    /// Makes the case's folder, which belongs to root with mode 0755.
    pub(super) fn new(root: &Path, case: &str) -> Result<World> {
        let folder = root.join(case.replace('/', "."));
        umask(Mode::from_raw_mode(0o022));
        std::fs::create_dir(&folder).map_err(SuiteError::host(&folder))?;
        Ok(World {
            folder,
            handles: BTreeMap::new(),
            maps: BTreeMap::new(),
            places: BTreeMap::new(),
            remembered: BTreeMap::new(),
            children: Vec::new(),
        })
    }

    /// Removes what the case has left.
    pub(super) fn clean_up(mut self) {
        for child in &mut self.children {
            // Gone already, perhaps.
            let _ = child.kill();
            let _ = child.wait();
        }
        self.maps.clear();
        self.handles.clear();
        // What cannot be removed does not disturb the next case; e2fsck judges it at the end.
        let _ = std::fs::remove_dir_all(&self.folder);
    }

    /// A path of the case, with the language's abbreviations written out.
    pub(super) fn path(&self, word: &str) -> PathBuf {
        if word == "\"\"" {
            return PathBuf::new();
        }
        if let Some(len) = word.strip_prefix("@path").and_then(|l| l.parse().ok()) {
            return self.path_of_length(len);
        }
        let expanded = expand_path(word);
        if expanded.starts_with('/') {
            return PathBuf::from(expanded);
        }
        // Not `join`: "a/" and "a" are different paths to a call.
        let mut path = self.folder.clone().into_os_string();
        path.push("/");
        path.push(expanded);
        PathBuf::from(path)
    }

    fn path_of_length(&self, len: usize) -> PathBuf {
        let mut path = self.folder.to_string_lossy().into_owned();
        let len = len.min(PATH_MAX * 2);
        while path.len() + 4 <= len {
            path.push_str("/.");
        }
        path.push_str(if (len - path.len()) % 2 == 1 { "//a" } else { "/a" });
        PathBuf::from(path)
    }

    /// An open file.
    pub(super) fn handle(&self, name: &str) -> std::result::Result<&OwnedFd, Fault> {
        // A file that could not be opened is as a closed one.
        self.handles.get(name).ok_or(Fault::Errno(Errno::BADF))
    }
}

/// Writes `n*255` out as 255 letters, in each component.
pub(super) fn expand_path(word: &str) -> String {
    word.split('/').map(expand).collect::<Vec<_>>().join("/")
}

/// Writes `n*255` out as 255 letters; `""` is empty.
pub(super) fn expand(word: &str) -> String {
    if word == "\"\"" {
        return String::new();
    }
    let repeated = word.rsplit_once('*').and_then(|(text, n)| Some((text, n.parse().ok()?)));
    repeated.map_or_else(|| word.to_owned(), |(text, n)| text.repeat(n))
}

/// A number: decimal, octal with a leading 0, or with `k`, `m`, `g`, `t` behind it.
pub(super) fn number(word: &str) -> std::result::Result<u64, Fault> {
    let fault = || Fault::Script(format!("'{word}' is no number"));
    let (digits, factor) = match word.as_bytes().last() {
        Some(b'k') => (&word[..word.len() - 1], 1 << 10),
        Some(b'm') => (&word[..word.len() - 1], 1 << 20),
        Some(b'g') => (&word[..word.len() - 1], 1 << 30),
        Some(b't') => (&word[..word.len() - 1], 1 << 40),
        _ => (word, 1),
    };
    let radix = if digits.len() > 1 && digits.starts_with('0') { 8 } else { 10 };
    let value = u64::from_str_radix(digits, radix).map_err(|_| fault())?;
    value.checked_mul(factor).ok_or_else(fault)
}

/// Permission bits.
pub(super) fn mode(word: &str) -> std::result::Result<Mode, Fault> {
    let bits = number(word)?;
    let bits = RawMode::try_from(bits).map_err(|_| Fault::Script(format!("mode '{word}'")))?;
    Ok(Mode::from_bits_retain(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abbreviations() {
        assert_eq!(expand_path("a/n*3/b"), "a/nnn/b");
        assert_eq!(expand("xy*2"), "xyxy");
        assert!(matches!(number("0644"), Ok(0o644)));
        assert!(matches!(number("4k"), Ok(4096)));
        assert!(matches!(number("x"), Err(Fault::Script(_))));
    }

    #[test]
    fn paths_have_the_length_that_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), "c/x").unwrap();
        for len in [4094, 4095, 4096] {
            assert_eq!(world.path(&format!("@path{len}")).as_os_str().len(), len);
        }
        assert!(world.path("a/").as_os_str().to_string_lossy().ends_with("c.x/a/"));
    }
}
