//! hdparm's two timings: reads from memory (`-T`) and from the device (`-t`).
//!
//! Both read 2 MiB at a time. `-T` reads the first 2 MiB again and again for at least two seconds,
//! and takes off what moving the position back costs by itself. `-t` reads in order for at least
//! three seconds or to the end of what there is. 1 MB is 2^20 bytes, as hdparm has it.

pub mod line;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use steadfast_block::{BlockDevice, Completion, Request};
use steadfast_runtime::{Nanos, cpu, now};
use steadfast_vfs::{Fh, FileSystem};

use crate::dd::Errno;

/// Bytes of a read.
pub const BUFFER: u64 = 2 << 20;

/// The least time of `-T`.
const CACHED: Duration = Duration::from_secs(2);

/// The least time of `-t`.
const DISK: Duration = Duration::from_secs(3);

/// Processor time of a system call that has nothing to do; declared in the simulation.
const SYSCALL: Duration = Duration::from_micros(1);

/// What is timed.
pub trait Readable {
    /// Bytes.
    fn size(&self) -> u64;

    /// Reads [`BUFFER`] bytes at `offset`, or up to the end; returns how many.
    ///
    /// # Errors
    /// As read(2).
    fn read(&mut self, offset: u64) -> Result<u64, Errno>;

    /// Lets caches forget what they hold of it, as far as that can be.
    ///
    /// # Errors
    /// As fsync(2).
    fn forget(&mut self) -> Result<(), Errno> {
        Ok(())
    }
}

/// What a timing found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// Bytes that were read.
    pub bytes: u64,
    /// In this time.
    pub took: Duration,
}

/// Why there is no timing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoTiming {
    /// Reading failed.
    #[error("read() failed: {0}")]
    Read(Errno),
    /// There is less than a buffer.
    #[error("read({BUFFER}) returned {0} bytes")]
    TooSmall(u64),
    /// The place where it was to begin is beyond the end.
    #[error("lseek() failed: {0}")]
    Seek(Errno),
    /// What was kept could not be forgotten.
    #[error("flush failed: {0}")]
    Flush(Errno),
}

impl Timing {
    /// `256 MB in  0.87 seconds = 294.25 MB/sec`.
    pub fn line(&self) -> String {
        let mb = self.bytes >> 20;
        let seconds = self.took.as_secs_f64();
        let rate = mb as f64 / seconds.max(1e-9);
        let (rate, unit) = if rate > 1.0 { (rate, "MB") } else { (rate * 1024.0, "kB") };
        format!("{mb:3} MB in {seconds:5.2} seconds = {rate:6.2} {unit}/sec")
    }
}

/// `-T`.
///
/// # Errors
/// [`NoTiming`].
pub fn cached(from: &mut dyn Readable) -> Result<Timing, NoTiming> {
    let whole = |n: u64| if n < BUFFER { Err(NoTiming::TooSmall(n)) } else { Ok(()) };
    // What is timed is not the first read.
    whole(from.read(0).map_err(NoTiming::Read)?)?;
    let begun = now();
    let mut reads = 0_u64;
    while now().since(begun) < CACHED {
        cpu(SYSCALL);
        whole(from.read(0).map_err(NoTiming::Read)?)?;
        reads += 1;
    }
    let all = now().since(begun);
    Ok(Timing { bytes: reads * BUFFER, took: all.saturating_sub(seeks(reads)) })
}

/// What so many moves of the position cost: in a simulation what is declared for them; in real
/// time a read of the clock, which a move is hardly more than.
fn seeks(count: u64) -> Duration {
    let begun = now();
    for _ in 0..count {
        cpu(SYSCALL);
        std::hint::black_box(now());
    }
    now().since(begun)
}

/// `-t`, from `offset` (bytes) on.
///
/// # Errors
/// [`NoTiming`].
pub fn disk(from: &mut dyn Readable, offset: u64) -> Result<Timing, NoTiming> {
    let size = from.size();
    if offset >= size && offset > 0 {
        return Err(NoTiming::Seek(Errno::INVAL));
    }
    if size - offset < BUFFER {
        return Err(NoTiming::TooSmall(size - offset));
    }
    from.forget().map_err(NoTiming::Flush)?;
    let begun: Nanos = now();
    let (mut at, mut bytes) = (offset, 0);
    while at + BUFFER <= size {
        cpu(SYSCALL);
        let read = from.read(at).map_err(NoTiming::Read)?;
        if read < BUFFER {
            break;
        }
        (at, bytes) = (at + read, bytes + read);
        if now().since(begun) >= DISK {
            break;
        }
    }
    Ok(Timing { bytes, took: now().since(begun) })
}

/// Bytes that the kernel reads ahead at once (`read_ahead_kb`).
const READ_AHEAD: u64 = 128 << 10;

/// What copying from a page cache costs a simulated processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyCost {
    /// Nanoseconds for each KiB.
    pub ns_per_kib: u64,
    /// Nanoseconds for each page of 4 KiB.
    pub ns_per_page: u64,
}

/// A device as the kernel shows it: through its page cache, which reads ahead, or past it.
pub struct DeviceReader {
    device: Arc<dyn BlockDevice>,
    direct: bool,
    cost: CopyCost,
    /// Reads ahead that are under way: where they begin.
    ahead: VecDeque<(u64, Completion)>,
    /// The end of what was asked of the device.
    asked: u64,
    /// The beginning is kept.
    kept: bool,
}

impl DeviceReader {
    /// A device; `direct` is `--direct`.
    pub fn new(device: Arc<dyn BlockDevice>, direct: bool, cost: CopyCost) -> DeviceReader {
        DeviceReader { device, direct, cost, ahead: VecDeque::new(), asked: 0, kept: false }
    }

    fn copy(&self) {
        let kib = BUFFER >> 10;
        cpu(Duration::from_nanos(kib * self.cost.ns_per_kib + kib / 4 * self.cost.ns_per_page));
    }

    /// Two windows are under way, so that the device has always something to do.
    fn fill(&mut self, size: u64) {
        while self.ahead.len() < 2 && self.asked < size {
            let len = READ_AHEAD.min(size - self.asked);
            let request = Request::Read { offset: self.asked, len };
            self.ahead.push_back((self.asked, self.device.submit(request)));
            self.asked += len;
        }
    }

    fn through_cache(&mut self, offset: u64, len: u64) -> Result<(), Errno> {
        let size = self.size();
        if self.ahead.front().is_none_or(|(at, _)| *at != offset) {
            self.ahead.clear();
            self.asked = offset;
        }
        let mut at = offset;
        while at < offset + len {
            self.fill(size);
            let Some((_, completion)) = self.ahead.pop_front() else { break };
            at += completion.wait()?.len() as u64;
        }
        Ok(())
    }
}

impl Readable for DeviceReader {
    fn size(&self) -> u64 {
        self.device.info().size
    }

    fn read(&mut self, offset: u64) -> Result<u64, Errno> {
        let len = BUFFER.min(self.size().saturating_sub(offset));
        if self.direct {
            return Ok(self.device.read(offset, len)?.len() as u64);
        }
        if !(offset == 0 && self.kept) {
            self.through_cache(offset, len)?;
            self.kept |= offset == 0;
        }
        self.copy();
        Ok(len)
    }

    fn forget(&mut self) -> Result<(), Errno> {
        self.ahead.clear();
        self.kept = false;
        Ok(self.device.flush()?)
    }
}

/// An open file of a file system. Whoever opened it has seen to it that nothing is kept of it.
pub struct FileReader {
    fs: Arc<dyn FileSystem>,
    fh: Fh,
    size: u64,
}

impl FileReader {
    /// A file of `size` bytes.
    pub fn new(fs: Arc<dyn FileSystem>, fh: Fh, size: u64) -> FileReader {
        FileReader { fs, fh, size }
    }
}

impl Readable for FileReader {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&mut self, offset: u64) -> Result<u64, Errno> {
        cpu(SYSCALL);
        let data: Bytes = self.fs.read(self.fh, offset, BUFFER as usize)?;
        Ok(data.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_to_the_letter() {
        for (mb, ms, line) in [
            (17574, 1995, "17574 MB in  2.00 seconds = 8809.02 MB/sec"),
            (256, 870, "256 MB in  0.87 seconds = 294.25 MB/sec"),
            (30, 40, " 30 MB in  0.04 seconds = 750.00 MB/sec"),
            (2, 4000, "  2 MB in  4.00 seconds = 512.00 kB/sec"),
        ] {
            let timing = Timing { bytes: mb << 20, took: Duration::from_millis(ms) };
            assert_eq!(timing.line(), line);
        }
    }
}
