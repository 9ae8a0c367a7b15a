//! The file that keeps a recorded run.
//!
//! ```text
//! "steadfast crash\n"  version: u32
//! the run              in the form of the crate `postcard` (`file/kept.rs`)
//! stacks of its calls  the same (`stacks.rs`); not in version 6
//! CRC-32C              of all before it: u32
//! ```
//!
//! The two numbers are little-endian. A file of a version that is not known is refused. Reading
//! believes nothing: what is there is checked before it is used, and no more is allocated than the
//! file has bytes, times a constant, and a few tens of mebibytes. (Contents are kept in tables, of
//! 1 MiB of a device each. A file that touches more of them than its bytes can fill is refused; so
//! is one whose discards and persists, which have a length and no bytes, have more pieces.)

mod kept;

use std::io::{self, Read, Write};
use std::path::Path;

use kept::SavedRun;
use steadfast_vfs::bounded;

use super::{CallStacks, ProgramRun};
use crate::error::{CrashError, Result};

const MAGIC: &[u8; 16] = b"steadfast crash\n";
/// 7: the stacks of calls follow the run.
const VERSION: u32 = 7;
/// The oldest that is read: calls say whether they were made to fail, lines whether they were
/// marked, notes what the program wants to be cut.
const OLDEST: u32 = 6;
/// Bytes of the magic and the version.
const HEAD: usize = MAGIC.len() + 4;
/// Largest device in a file, in bytes: as large as modelled disks are.
const DEVICE_BYTES_MAX: u64 = 4 << 40;

/// Bytes of a file that are read, at most: they are all in memory, as the run was that made them.
const FILE_MAX: u64 = 8 << 30;

/// Writes a run to a file, which is made or replaced.
///
/// # Errors
/// What the host reports.
pub fn save(run: &ProgramRun, path: &Path) -> io::Result<()> {
    write(run, io::BufWriter::new(std::fs::File::create(path)?))
}

fn write(run: &ProgramRun, out: impl Write) -> io::Result<()> {
    let mut out = ChecksumWriter { out, sum: 0, failed: None };
    let written = write_summed(run, &mut out);
    // Postcard says only that its writer has failed.
    out.failed.map_or(written, Err)
}

fn write_summed(run: &ProgramRun, out: &mut ChecksumWriter<impl Write>) -> io::Result<()> {
    out.write_all(MAGIC)?;
    out.write_all(&VERSION.to_le_bytes())?;
    postcard::to_io(&SavedRun::of(run), &mut *out).map_err(io::Error::other)?;
    postcard::to_io(&run.stacks, &mut *out).map_err(io::Error::other)?;
    let sum = out.sum;
    out.write_all(&sum.to_le_bytes())?;
    out.flush()
}

/// Reads a run from a file.
///
/// # Errors
/// What the host reports; what is wrong with the file, in words.
pub fn load(path: &Path) -> Result<ProgramRun> {
    read(path).and_then(|all| parse(&all)).map_err(CrashError::Recording)
}

/// The bytes of a file that begins as a recording does: of another one no more is read.
fn read(path: &Path) -> std::result::Result<Vec<u8>, String> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(path)?;
        let mut all = bounded::read_from((&mut file).take(HEAD as u64), HEAD as u64)?;
        if all.starts_with(MAGIC) {
            all.extend(bounded::read_from(file, FILE_MAX)?);
        }
        Ok(all)
    };
    read().map_err(|e| e.to_string())
}

/// Reads a run from the bytes of a file; or what is wrong with them, in words.
fn parse(all: &[u8]) -> std::result::Result<ProgramRun, String> {
    let version = all.strip_prefix(MAGIC).and_then(|rest| rest.first_chunk());
    let version = version.ok_or("it is no recording of steadfast crash run")?;
    let version = u32::from_le_bytes(*version);
    if !(OLDEST..=VERSION).contains(&version) {
        return Err(format!(
            "it is a recording of version {version}; this program reads versions {OLDEST} to \
             {VERSION}: record the run again, or read it with the program that wrote it"
        ));
    }
    let (summed, sum) = all.split_last_chunk().ok_or("it ends too early")?;
    if crc32c::crc32c(summed) != u32::from_le_bytes(*sum) {
        return Err("its checksum does not match: the file is damaged".into());
    }
    let payload = summed.get(HEAD..).ok_or("it ends too early")?;
    let run = || {
        let (kept, rest) = postcard::take_from_bytes::<SavedRun<'_>>(payload)?;
        Ok(match version {
            OLDEST => (kept, CallStacks::default(), rest),
            _ => {
                let (stacks, rest) = postcard::take_from_bytes(rest)?;
                (kept, stacks, rest)
            }
        })
    };
    let run = match run().map_err(|e: postcard::Error| e.to_string()) {
        Ok((kept, stacks, [])) => kept.run(stacks, all.len() as u64),
        Ok((.., rest)) => Err(format!("{} bytes too many", rest.len())),
        Err(e) => Err(e),
    };
    run.map_err(|why| {
        format!("it is damaged or made by hand, although its checksum matches: {why}")
    })
}

/// Sums up what is written, and keeps the first error: who writes through it may lose it.
struct ChecksumWriter<W> {
    out: W,
    sum: u32,
    failed: Option<io::Error>,
}

impl<W> ChecksumWriter<W> {
    /// Keeps an error, and returns one of its kind.
    fn failed(&mut self, e: io::Error) -> io::Error {
        let kind = e.kind();
        // After an interruption the write is made again.
        if kind != io::ErrorKind::Interrupted {
            self.failed.get_or_insert(e);
        }
        kind.into()
    }
}

impl<W: Write> Write for ChecksumWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes).map_err(|e| self.failed(e))?;
        self.sum = crc32c::crc32c_append(self.sum, &bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().map_err(|e| self.failed(e))
    }
}

#[cfg(test)]
mod tests;
