//! What an input says: pieces of bytes for several places; words; a file.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, memfd_create};

/// Pieces: the number of a place, how many bytes (two, little-endian), the bytes. The last one may
/// be cut.
pub fn pieces(input: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut rest = input;
    std::iter::from_fn(move || {
        let [place, low, high, tail @ ..] = rest else { return None };
        let len = usize::from(u16::from_le_bytes([*low, *high])).min(tail.len());
        let (bytes, after) = tail.split_at(len);
        rest = after;
        Some((usize::from(*place), bytes))
    })
}

/// The input that changes places to these bytes.
pub fn of_pieces<'a>(pieces: impl IntoIterator<Item = (u8, &'a [u8])>) -> Vec<u8> {
    let mut input = Vec::new();
    for (place, bytes) in pieces {
        // OK to cast: places are shorter.
        input.extend([place, bytes.len() as u8, (bytes.len() >> 8) as u8]);
        input.extend_from_slice(bytes);
    }
    input
}

/// The words of a command line: lines of the input, in text.
pub fn words(input: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(input);
    text.split_terminator('\n').map(str::to_owned).collect()
}

/// A file in memory, for what reads files only.
pub struct InMemory(std::fs::File);

impl InMemory {
    /// One with these contents.
    pub fn new(contents: &[u8]) -> InMemory {
        let made = memfd_create("input", MemfdFlags::CLOEXEC).expect("a file in memory");
        let mut file = std::fs::File::from(made);
        file.write_all(contents).expect("room in memory");
        InMemory(file)
    }

    /// The file.
    pub fn handle(&self) -> &std::fs::File {
        &self.0
    }

    /// Its name.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }

    /// What it holds.
    pub fn contents(&self) -> Vec<u8> {
        std::fs::read(self.path()).expect("it is in memory")
    }
}
