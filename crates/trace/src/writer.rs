//! Writes a trace: lines, in compressed frames.

use std::io::Write;

use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::error::Result;
use crate::format::{TraceEnd, TraceEntry, TraceHeader};

/// Text of one frame, about, in bytes.
const FRAME: usize = 1 << 20;

/// A trace that is written.
pub struct TraceWriter<W: Write> {
    out: W,
    frame: Vec<u8>,
    calls: u64,
}

impl<W: Write> TraceWriter<W> {
    /// Begins one.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(out: W, header: &TraceHeader) -> Result<TraceWriter<W>> {
        let mut writer = TraceWriter { out, frame: Vec::with_capacity(FRAME + 4096), calls: 0 };
        writer.line(header)?;
        Ok(writer)
    }

    /// Adds a line.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&mut self, entry: &TraceEntry) -> Result<()> {
        self.calls += u64::from(matches!(entry, TraceEntry::Call(_)));
        self.line(entry)
    }

    /// How many calls there are.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Writes what there is by now, if that is a call at least: it stays if the process is ended.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_through(&mut self) -> Result<()> {
        if self.calls == 0 || self.frame.is_empty() { Ok(()) } else { self.flush() }
    }

    /// Adds the last line; what it was written to.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn end(mut self, end: TraceEnd) -> Result<W> {
        self.line(&TraceEntry::End(TraceEnd { calls: self.calls, ..end }))?;
        self.flush()?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn line(&mut self, line: &impl serde::Serialize) -> Result<()> {
        serde_json::to_writer(&mut self.frame, line).map_err(std::io::Error::from)?;
        self.frame.push(b'\n');
        if self.frame.len() >= FRAME { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let packed = compress_to_vec(&*self.frame, CompressionLevel::Fastest);
        self.out.write_all(&packed)?;
        self.frame.clear();
        Ok(())
    }
}
