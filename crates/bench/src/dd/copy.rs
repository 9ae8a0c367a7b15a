//! The loop: reads, converts, writes, counts, and says what went wrong as dd says it.

use std::time::Duration;

use steadfast_runtime::{Nanos, now};

use super::convert::Converter;
use super::ends::{Sink, SkipResult, Source};
use super::errno::{Errno, always_quoted, quoted_if_needed};
use super::operands::Operands;
use super::output::Output;
use super::tally::Tally;
use super::words::{Conv, Flags, StatusLevel};

/// Memory for direct I/O begins on a page.
const ALIGN: usize = 4096;

/// How often `status=progress` shows where it is.
const PROGRESS: Duration = Duration::from_secs(1);

/// What takes what dd writes to its standard error.
pub trait Reporter {
    /// A line: an error, a warning (to be shown behind the program's name).
    fn says(&self, message: &str);
    /// A line of the counts, as it is.
    fn line(&self, line: &str);
    /// Where it is, over the last such line.
    fn progress(&self, _line: &str) {}
}

/// A run that failed, or whose output is not all that it should be. The reporter knows why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DdFailure;

/// What to do, with files that are open.
pub struct Job<'a> {
    /// The command line.
    pub operands: &'a Operands,
    /// `if=`.
    pub source: &'a mut dyn Source,
    /// `of=`.
    pub sink: &'a mut dyn Sink,
    /// Counts, for others to look at.
    pub tally: &'a Tally,
    /// Takes its messages.
    pub reporter: &'a dyn Reporter,
    /// Something has failed already, and was reported.
    pub failed: bool,
}

/// Copies, and reports the counts.
///
/// # Errors
/// dd's exit status is 1; the reporter knows why.
pub fn run(job: Job<'_>) -> Result<(), DdFailure> {
    let operands = job.operands;
    let mut copy = Copy {
        operands,
        input: name(operands.input.as_deref(), "standard input"),
        output_name: name(operands.output.as_deref(), "standard output"),
        source: job.source,
        output: Output::new(job.sink, operands),
        tally: job.tally,
        reporter: job.reporter,
        failed: job.failed,
        read_before: 0,
        part_before: 0,
        warns_of_parts: warns_of_parts(operands),
        start: now(),
        reported_at: Duration::ZERO,
    };
    let ended = copy.all();
    if let Err(End::WithoutCounts) = ended {
        return Err(DdFailure);
    }
    if ended.is_ok() {
        copy.make_durable();
        copy.forget();
    }
    copy.clock();
    if copy.tally.takes_last_word() {
        copy.tally.counts().lines(operands.status).iter().for_each(|l| copy.reporter.line(l));
    }
    if ended.is_err() || copy.failed { Err(DdFailure) } else { Ok(()) }
}

fn name(given: Option<&std::ffi::OsStr>, standard: &str) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    given.map_or(standard.as_bytes().to_vec(), |n| n.as_bytes().to_vec())
}

/// Short reads are only worth a word where blocks are counted, or must be whole.
fn warns_of_parts(o: &Operands) -> bool {
    let counts = o.skip_blocks > 0 || o.count_blocks.is_some_and(|n| n > 0);
    !o.conv.contains(Conv::TWO_BUFFERS)
        && !o.iflags.contains(Flags::FULLBLOCK)
        && (counts || (o.iflags | o.oflags).contains(Flags::DIRECT))
}

/// Why copying stopped before its end.
enum End {
    /// The counts are printed.
    Failed,
    /// Nothing more is printed.
    WithoutCounts,
}

struct Copy<'a> {
    operands: &'a Operands,
    input: Vec<u8>,
    output_name: Vec<u8>,
    source: &'a mut dyn Source,
    output: Output<'a>,
    tally: &'a Tally,
    reporter: &'a dyn Reporter,
    failed: bool,
    /// Bytes of the read before.
    read_before: usize,
    /// Bytes of the block before, if it was a part of one.
    part_before: usize,
    warns_of_parts: bool,
    start: Nanos,
    reported_at: Duration,
}

/// A block in memory, where direct I/O wants it.
struct AlignedBlock {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBlock {
    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

impl Copy<'_> {
    fn all(&mut self) -> Result<(), End> {
        self.skip()?;
        self.seek()?;
        let o = self.operands;
        if o.count_blocks == Some(0) && o.count_bytes == 0 {
            return Ok(());
        }
        let mut input = self.block("input", o.ibs)?;
        if o.conv.contains(Conv::TWO_BUFFERS) {
            self.converted(&mut input)?;
        } else {
            self.direct(&mut input)?;
        }
        if self.output.leapt
            && let Err((len, e)) = self.output.sink.extend()
        {
            let file = always_quoted(&self.output_name);
            self.fails(&format!("failed to truncate to {len} bytes in output file {file}: {e}"));
        }
        Ok(())
    }

    fn says(&self, message: &str) {
        self.reporter.says(message);
    }

    /// What ends the copy.
    fn end(&self, message: &str) -> End {
        self.says(message);
        End::Failed
    }

    /// What does not end it.
    fn fails(&mut self, message: &str) {
        self.says(message);
        self.failed = true;
    }

    fn block(&self, which: &str, len: usize) -> Result<AlignedBlock, End> {
        let mut room: Vec<u8> = Vec::new();
        if room.try_reserve_exact(len + ALIGN).is_err() {
            let size = super::tally::size(len as u64, 1024);
            self.says(&format!("memory exhausted by {which} buffer of size {len} bytes ({size})"));
            return Err(End::WithoutCounts);
        }
        drop(room);
        // Zeros by the page, when they are touched.
        let memory = vec![0; len + ALIGN];
        let start = memory.as_ptr().align_offset(ALIGN).min(ALIGN);
        Ok(AlignedBlock { memory, start, len })
    }

    /// `skip=`.
    fn skip(&mut self) -> Result<(), End> {
        let o = self.operands;
        if o.skip_blocks == 0 && o.skip_bytes == 0 {
            return Ok(());
        }
        let wanted = o.skip_blocks.checked_mul(o.ibs as u64);
        let wanted = wanted.and_then(|w| w.checked_add(o.skip_bytes));
        let wanted = wanted.filter(|w| i64::try_from(*w).is_ok());
        let name = quoted_if_needed(&self.input);
        let skipped = match wanted {
            Some(bytes) => self.source.skip(bytes),
            // No file is so long; a pipe is read to its end.
            None => match self.source.skip(0) {
                Ok(SkipResult::By(_)) => Err(Errno::OVERFLOW),
                other => other,
            },
        };
        let missing = match skipped {
            Ok(SkipResult::By(bytes)) => wanted.is_some_and(|w| bytes < w),
            Ok(SkipResult::MustRead) => self.read_over(wanted)?,
            Err(e) => return Err(self.end(&format!("{name}: cannot skip: {e}"))),
        };
        if missing && o.status != StatusLevel::None {
            self.says(&format!("{name}: cannot skip to specified offset"));
        }
        Ok(())
    }

    /// Reads what is to be skipped; whether there was less. A short read counts as a block.
    fn read_over(&mut self, wanted: Option<u64>) -> Result<bool, End> {
        let o = self.operands;
        let mut block = self.block("input", o.ibs)?;
        let (mut blocks, mut bytes, mut done) = (o.skip_blocks, o.skip_bytes, 0);
        while blocks > 0 || bytes > 0 {
            let len = if blocks > 0 { o.ibs } else { bytes as usize };
            match self.read(&mut block.bytes()[..len]) {
                Ok(0) => break,
                Ok(n) => done += n as u64,
                Err(e) => return Err(self.end(&self.cannot_read(e))),
            }
            if blocks > 0 { blocks -= 1 } else { bytes = 0 }
        }
        Ok(blocks > 0 || wanted.is_some_and(|w| done < w))
    }

    /// `seek=`.
    fn seek(&mut self) -> Result<(), End> {
        let o = self.operands;
        if !o.seeks() {
            return Ok(());
        }
        let sought = match o.seek_offset() {
            Some(bytes) => self.output.sink.seek(bytes),
            None => Err(Errno::OVERFLOW),
        };
        sought.map_err(|e| {
            self.end(&format!("{}: cannot seek: {e}", quoted_if_needed(&self.output_name)))
        })
    }

    /// Bytes to ask for next; `None`: all that was asked for has been read.
    fn next_len(&self) -> Option<usize> {
        let o = self.operands;
        let read = self.tally.count(|c| c.whole_in + c.part_in);
        match o.count_blocks {
            Some(blocks) if read >= blocks => {
                // OK to cast: less than a block.
                (read == blocks && o.count_bytes > 0).then_some(o.count_bytes as usize)
            }
            _ => Some(o.ibs),
        }
    }

    fn read(&mut self, buf: &mut [u8]) -> Result<usize, Errno> {
        let mut done = 0;
        loop {
            let n = match self.source.read(&mut buf[done..]) {
                // What follows a part of a block cannot be read past the cache: it is the end.
                Err(Errno::INVAL)
                    if (1..buf.len()).contains(&self.read_before)
                        && self.operands.iflags.contains(Flags::DIRECT) =>
                {
                    0
                }
                other => other?,
            };
            if n > 0 && self.warns_of_parts {
                let before = self.read_before;
                if (1..buf.len()).contains(&before) {
                    self.warns_of_parts = false;
                    if self.operands.status != StatusLevel::None {
                        let noun = if before == 1 { "byte" } else { "bytes" };
                        self.says(&format!(
                            "warning: partial read ({before} {noun}); suggest iflag=fullblock"
                        ));
                    }
                }
            }
            self.read_before = n;
            done += n;
            let goes_on = self.operands.iflags.contains(Flags::FULLBLOCK);
            if n == 0 || done == buf.len() || !goes_on {
                return Ok(done);
            }
        }
    }

    /// Reads the next block and counts it: its length, `None` at the end.
    fn next(&mut self, block: &mut AlignedBlock) -> Result<Option<usize>, End> {
        let conv = self.operands.conv;
        let filling = match conv.intersects(Conv::BLOCK | Conv::UNBLOCK) {
            true => b' ',
            false => 0,
        };
        loop {
            self.progress();
            if self.tally.is_stopped() {
                return Ok(None);
            }
            let Some(len) = self.next_len() else { return Ok(None) };
            if conv.contains(Conv::SYNC | Conv::NOERROR) {
                block.bytes().fill(filling);
            }
            let read = match self.read(&mut block.bytes()[..len]) {
                Ok(0) => return Ok(None),
                Ok(read) => read,
                // What cannot be read counts as a part of no bytes, if it is to be filled up.
                Err(e) if !self.goes_on_after(e) => return Ok(None),
                Err(_) if self.part_before == 0 && conv.contains(Conv::SYNC) => 0,
                Err(_) => continue,
            };
            if self.operands.iflags.contains(Flags::NOCACHE) {
                // OK to ignore: pages that cannot be dropped stay in the cache.
                let _ = self.source.forget(false);
            }
            let is_part = read < self.operands.ibs;
            self.part_before = if is_part { read } else { 0 };
            self.tally.count(|c| *(if is_part { &mut c.part_in } else { &mut c.whole_in }) += 1);
            let mut filled = read;
            if is_part && conv.contains(Conv::SYNC) {
                if !conv.contains(Conv::NOERROR) {
                    block.bytes()[read..].fill(filling);
                }
                filled = self.operands.ibs;
            }
            return Ok(Some(filled));
        }
    }

    /// Whether reading goes on after an error: past what could not be read.
    fn goes_on_after(&mut self, e: Errno) -> bool {
        let goes_on = self.operands.conv.contains(Conv::NOERROR);
        if !goes_on || self.operands.status != StatusLevel::None {
            self.says(&self.cannot_read(e));
        }
        // Of a directory nothing can ever be read.
        if !goes_on || e == Errno::ISDIR && self.operands.count_blocks.is_none() {
            self.failed = true;
            return false;
        }
        self.clock();
        let lines = self.tally.counts().lines(self.operands.status);
        lines.iter().for_each(|l| self.reporter.line(l));
        let bad = self.operands.ibs.saturating_sub(self.part_before) as u64;
        // Beyond the end there is nothing to be read.
        let moved = matches!(self.source.skip(bad), Ok(SkipResult::By(1..) | SkipResult::MustRead));
        self.failed |= !moved;
        moved
    }

    /// Blocks go out as they come in.
    fn direct(&mut self, block: &mut AlignedBlock) -> Result<(), End> {
        while let Some(len) = self.next(block)? {
            let (done, error) = self.output.write(&block.bytes()[..len]);
            self.tally.count(|c| c.bytes += done as u64);
            if let Some(e) = error {
                return Err(self.cannot_write(e));
            }
            let whole = len == self.operands.ibs;
            self.tally.count(|c| *(if whole { &mut c.whole_out } else { &mut c.part_out }) += 1);
        }
        Ok(())
    }

    /// Blocks are converted, and gathered into output blocks.
    fn converted(&mut self, input: &mut AlignedBlock) -> Result<(), End> {
        let obs = self.operands.obs;
        let mut converter = Converter::new(self.operands);
        let mut output = self.block("output", obs)?;
        let mut filled = 0;
        while let Some(len) = self.next(input)? {
            let data = converter.block(&mut input.bytes()[..len]);
            self.tally.count(|c| c.truncated = converter.truncated);
            self.gather(&data, &mut output, &mut filled)?;
        }
        let rest = converter.end();
        // The byte that swab has held back may be the one too many.
        self.tally.count(|c| c.truncated = converter.truncated);
        self.gather(&rest, &mut output, &mut filled)?;
        if filled > 0 {
            let (done, error) = self.output.write(&output.bytes()[..filled]);
            self.tally.count(|c| c.bytes += done as u64);
            self.tally.count(|c| c.part_out += u64::from(done > 0));
            if let Some(e) = error {
                return Err(self.cannot_write(e));
            }
        }
        Ok(())
    }

    fn gather(
        &mut self,
        data: &[u8],
        block: &mut AlignedBlock,
        filled: &mut usize,
    ) -> Result<(), End> {
        let mut rest = data;
        while !rest.is_empty() {
            let len = rest.len().min(block.len - *filled);
            block.bytes()[*filled..*filled + len].copy_from_slice(&rest[..len]);
            (*filled, rest) = (*filled + len, &rest[len..]);
            if *filled < block.len {
                break;
            }
            *filled = 0;
            let (done, error) = self.output.write(block.bytes());
            self.tally.count(|c| c.bytes += done as u64);
            if let Some(e) = error {
                self.tally.count(|c| c.part_out += u64::from(done > 0));
                // In other words than everywhere else.
                let file = always_quoted(&self.output_name);
                return Err(self.end(&format!("writing to {file}: {e}")));
            }
            self.tally.count(|c| c.whole_out += 1);
        }
        Ok(())
    }

    fn cannot_read(&self, e: Errno) -> String {
        format!("error reading {}: {e}", always_quoted(&self.input))
    }

    fn cannot_write(&self, e: Errno) -> End {
        self.end(&format!("error writing {}: {e}", always_quoted(&self.output_name)))
    }

    /// `conv=fsync` and `fdatasync`.
    fn make_durable(&mut self) {
        let file = always_quoted(&self.output_name);
        if self.operands.conv.contains(Conv::FDATASYNC)
            && let Err(e) = self.output.sink.sync(true)
        {
            if !matches!(e, Errno::NOSYS | Errno::INVAL) {
                self.fails(&format!("fdatasync failed for {file}: {e}"));
            }
            self.output.must_sync = true;
        }
        if self.output.must_sync
            && let Err(e) = self.output.sink.sync(false)
        {
            self.fails(&format!("fsync failed for {file}: {e}"));
        }
    }

    /// `nocache`: what went through; with `count=0` the whole file.
    fn forget(&mut self) {
        let o = self.operands;
        let all = o.count_blocks == Some(0) && o.count_bytes == 0;
        let input = o.iflags.contains(Flags::NOCACHE).then(|| self.source.forget(all));
        let output = o.oflags.contains(Flags::NOCACHE).then(|| self.output.sink.forget(all));
        for (failed, name) in [(input, &self.input), (output, &self.output_name)] {
            if let (Some(Err(e)), true) = (failed, all) {
                let file = always_quoted(name);
                self.reporter.says(&format!("failed to discard cache for: {file}: {e}"));
                self.failed = true;
            }
        }
    }

    fn clock(&self) -> Duration {
        let elapsed = now().since(self.start);
        self.tally.count(|c| c.elapsed = elapsed);
        elapsed
    }

    fn progress(&mut self) {
        let elapsed = self.clock();
        if self.operands.status == StatusLevel::Progress && elapsed >= self.reported_at + PROGRESS {
            // At whole seconds, however long a block takes.
            self.reported_at = Duration::from_secs(elapsed.as_secs());
            self.reporter.progress(&self.tally.counts().progress());
        }
    }
}
