//! Reads a trace, line by line, in bounded memory. Whatever the file says, nothing is believed
//! before it was looked at.

use std::collections::HashSet;
use std::io::{BufRead, Read};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::error::{Result, TraceError};
use crate::format::{
    CallOp, FORMAT, ROOT, TraceCall, TraceEnd, TraceEntry, TraceHeader, VERSION, name_bytes,
};

/// So much text is unpacked at a time, about, in bytes: a frame may be of any length.
const PIECE: usize = 1 << 20;
/// Text of a line, at most, in bytes.
const LINE_MAX: usize = 1 << 20;
/// Where bytes of a file are, at most (as ext4's files).
pub(crate) const BYTES_MAX: u64 = 1 << 44;
/// Bytes of one call, at most (the kernel's MAX_RW_COUNT is less).
const LEN_MAX: u64 = 1 << 31;
/// Bytes of a name, at most.
pub(crate) const NAME_MAX: usize = 255;
/// Bytes of a path and its end, at most: a symbolic link's target has less.
pub(crate) const PATH_MAX: usize = 4096;
/// Text of one frame, and what it refers back to, at most, in bytes.
const FRAME_MAX: u64 = 64 << 20;
/// Calls that one waits for, at most.
pub(crate) const AFTER_MAX: usize = 1024;
/// A time since the beginning, at most: a year, in ns.
pub(crate) const TIME_MAX: u64 = 365 * 24 * 3600 * 1_000_000_000;

/// A trace that is read.
pub struct TraceReader<R: BufRead> {
    source: R,
    header: TraceHeader,
    /// The frame that is unpacked.
    frame: Option<Box<FrameDecoder>>,
    /// Bytes of text that the frame has had.
    frame_text: u64,
    /// What was unpacked last.
    text: std::io::Cursor<Vec<u8>>,
    /// Of the last line read, from 1.
    line: u64,
    calls: u64,
    last_start: u64,
    threads: HashSet<u32>,
    files: HashSet<u64>,
    end: Option<TraceEnd>,
    is_partial: bool,
}

impl<R: BufRead> TraceReader<R> {
    /// Begins to read one. `partial`: one that was cut off is read as far as it goes.
    ///
    /// # Errors
    /// It is none, or of another version.
    pub fn new(source: R, partial: bool) -> Result<TraceReader<R>> {
        let header = TraceHeader {
            format: String::new(),
            version: 0,
            source: crate::format::TraceOrigin::Record,
            program: Vec::new(),
            trip: None,
            direct: false,
            names: crate::format::NameForm::Kept,
            not_seen: Vec::new(),
        };
        let mut reader = TraceReader {
            source,
            header,
            frame: None,
            frame_text: 0,
            text: std::io::Cursor::default(),
            line: 0,
            calls: 0,
            last_start: 0,
            threads: HashSet::new(),
            files: HashSet::from([ROOT]),
            end: None,
            is_partial: partial,
        };
        let not = |what: String| TraceError::NotATrace(what);
        let first = reader.next_line().map_err(|e| match e {
            e @ (TraceError::File(_) | TraceError::Damaged(_) | TraceError::NotATrace(_)) => e,
            TraceError::CutOff { .. } => not("it was cut off within its first piece".into()),
            e => not(e.to_string()),
        })?;
        let first = first.ok_or_else(|| not("it is empty".into()))?;
        let value: serde_json::Value = serde_json::from_str(&first)
            .map_err(|e| not(format!("its first line is no JSON ({e})")))?;
        if value.get("format").and_then(|f| f.as_str()) != Some(FORMAT) {
            return Err(not(format!("its first line does not say \"format\":\"{FORMAT}\"")));
        }
        match value.get("version").and_then(serde_json::Value::as_u64) {
            Some(version) if version == u64::from(VERSION) => {}
            Some(version) => {
                return Err(TraceError::Version {
                    found: u32::try_from(version).unwrap_or(u32::MAX),
                });
            }
            None => return Err(not("its first line has no version".into())),
        }
        reader.header = serde_json::from_value(value)
            .map_err(|e| TraceError::Line { line: 1, what: e.to_string() })?;
        Ok(reader)
    }

    /// The first line.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// The last line; `None`: it was not read yet, or it is not there.
    pub fn end(&self) -> Option<TraceEnd> {
        self.end
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// It is cut off, damaged, or says what cannot be.
    pub fn next_entry(&mut self) -> Result<Option<TraceEntry>> {
        if self.end.is_some() {
            return Ok(None);
        }
        let text = match self.next_line() {
            Ok(Some(text)) => text,
            Ok(None) | Err(TraceError::Damaged(_) | TraceError::CutOff { .. })
                if self.is_partial =>
            {
                return Ok(None);
            }
            Ok(None) => return Err(TraceError::CutOff { calls: self.calls }),
            Err(e) => return Err(e),
        };
        let line = self.line;
        let wrong = |what: String| TraceError::Line { line, what };
        let entry: TraceEntry = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        self.check(&entry).map_err(wrong)?;
        if let TraceEntry::End(end) = &entry {
            self.end = Some(*end);
            if self.next_line()?.is_some() {
                return Err(TraceError::Line {
                    line: self.line,
                    what: "follows the last line".into(),
                });
            }
        }
        Ok(Some(entry))
    }

    fn next_line(&mut self) -> Result<Option<String>> {
        let damaged = |line: u64, what: &str| TraceError::Damaged(format!("line {line} {what}"));
        let (mut text, number) = (Vec::new(), self.line + 1);
        loop {
            self.text.read_until(b'\n', &mut text)?;
            if text.len() > LINE_MAX {
                return Err(damaged(number, "is too long"));
            }
            if text.last() == Some(&b'\n') {
                self.line = number;
                text.pop();
                let text = String::from_utf8(text);
                return text.map(Some).map_err(|_| damaged(number, "is not UTF-8"));
            }
            if !self.unpack()? {
                return match text.is_empty() {
                    true => Ok(None),
                    false => Err(damaged(number, "is not whole")),
                };
            }
        }
    }

    /// Unpacks a piece of a frame; whether there was one.
    fn unpack(&mut self) -> Result<bool> {
        let after = format!("after line {}", self.line);
        let damaged =
            |e: &dyn std::fmt::Display| TraceError::Damaged(format!("what is {after}: {e}"));
        loop {
            if self.frame.is_none() {
                if self.source.fill_buf()?.is_empty() {
                    return Ok(false);
                }
                let mut frame = FrameDecoder::new();
                let mut head = FrameHead { source: &mut self.source, bytes: Vec::new() };
                let begun = frame.init(&mut head);
                let window = window(&head.bytes, frame.content_size());
                if let Err(e) = begun {
                    let is_end = self.source.fill_buf()?.is_empty();
                    return Err(match is_end {
                        _ if self.line == 0 => {
                            TraceError::NotATrace("it does not begin as zstd does".into())
                        }
                        true => TraceError::CutOff { calls: self.calls },
                        false => damaged(&e),
                    });
                }
                if window > FRAME_MAX {
                    return Err(damaged(&"a frame is too long (64 MiB at most)"));
                }
                (self.frame, self.frame_text) = (Some(Box::new(frame)), 0);
            }
            let Some(frame) = &mut self.frame else { return Ok(false) };
            if !frame.is_finished() {
                let piece = BlockDecodingStrategy::UptoBytes(PIECE);
                if let Err(e) = frame.decode_blocks(&mut self.source, piece) {
                    // Who wrote it was ended in the middle of a frame.
                    let is_end = self.source.fill_buf()?.is_empty();
                    let cut_off = TraceError::CutOff { calls: self.calls };
                    return Err(if is_end { cut_off } else { damaged(&e) });
                }
            }
            let mut text = std::mem::take(&mut self.text).into_inner();
            text.clear();
            frame.read_to_end(&mut text).map_err(|e| damaged(&e))?;
            self.frame_text = self.frame_text.saturating_add(text.len() as u64);
            if self.frame_text > FRAME_MAX {
                return Err(damaged(&"a frame is too long (64 MiB at most)"));
            }
            if frame.is_finished() && frame.can_collect() == 0 {
                let (said, found) =
                    (frame.get_checksum_from_data(), frame.get_calculated_checksum());
                if said.is_some() && said != found {
                    return Err(damaged(&"its checksum does not fit"));
                }
                self.frame = None;
            }
            self.text = std::io::Cursor::new(text);
            if !self.text.get_ref().is_empty() {
                return Ok(true);
            }
        }
    }

    /// Looks at an entry, before anybody believes it.
    fn check(&mut self, entry: &TraceEntry) -> Result<(), String> {
        match entry {
            TraceEntry::Thread(thread) => {
                if !self.threads.insert(thread.thread) {
                    return Err(format!("thread {} is told twice", thread.thread));
                }
                Ok(())
            }
            TraceEntry::File(file) => {
                self.files.insert(file.file);
                is_name(&file.name, file.dir.is_some())?;
                if (file.file == ROOT) != file.dir.is_none() {
                    return Err("a file has a folder, and the root has none".into());
                }
                is_target(&file.target)?;
                within(file.size, BYTES_MAX, "size")
            }
            TraceEntry::Call(call) => self.check_call(call),
            TraceEntry::End(end) if end.calls != self.calls => {
                Err(format!("it says {} calls, there are {}", end.calls, self.calls))
            }
            TraceEntry::End(end) => within(end.at, TIME_MAX, "at"),
        }
    }

    fn check_call(&mut self, call: &TraceCall) -> Result<(), String> {
        if !self.threads.contains(&call.thread) {
            return Err(format!("thread {} was not told before", call.thread));
        }
        if call.end < call.start || call.start < self.last_start {
            return Err("calls are in the order of their starts, and end later".into());
        }
        self.check_file(call)?;
        within(call.end, TIME_MAX, "end")?;
        within(call.think, TIME_MAX, "think")?;
        can_be(call)?;
        if call.zeros > 100 || call.saves > 100 {
            return Err("a share is more than 100 %".into());
        }
        if call.after.len() > AFTER_MAX {
            let n = call.after.len();
            return Err(format!("it waits for {n} calls; at most {AFTER_MAX} are read"));
        }
        // An edge to itself or to a later call would be a circle.
        if let Some(n) = call.after.iter().find(|n| **n == 0 || **n > self.calls) {
            return Err(format!("it waits for the call {n} before it, which is not one"));
        }
        (self.last_start, self.calls) = (call.start, self.calls + 1);
        Ok(())
    }

    /// A file was told, or made or found by a call, before another one is about it.
    fn check_file(&mut self, call: &TraceCall) -> Result<(), String> {
        let Some(file) = call.file else { return Ok(()) };
        if call.op.makes_or_finds() {
            self.files.insert(file);
        }
        match self.files.contains(&file) {
            true => Ok(()),
            false => Err(format!("file {file} was not told before, nor made or found by a call")),
        }
    }
}

/// What reads a frame's head, and keeps it.
struct FrameHead<'r, R> {
    source: &'r mut R,
    bytes: Vec<u8>,
}

impl<R: Read> Read for FrameHead<'_, R> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let read = self.source.read(to)?;
        self.bytes.extend_from_slice(&to[..read]);
        Ok(read)
    }
}

/// How far back a frame refers, in bytes, by its head (RFC 8878, 3.1.1.1.2).
fn window(head: &[u8], content: u64) -> u64 {
    // Of a frame of one segment it is all of it.
    let is_one_segment = head.get(4).is_some_and(|descriptor| descriptor & 0x20 != 0);
    match head.get(5) {
        Some(window) if !is_one_segment => {
            let base = 1u64 << (10 + (window >> 3));
            base + base / 8 * u64::from(window & 7)
        }
        _ => content,
    }
}

/// Whether the places and names of a call are some.
pub(crate) fn can_be(call: &TraceCall) -> Result<(), String> {
    within(call.offset, BYTES_MAX, "offset")?;
    let bytes = if matches!(call.op, CallOp::Read | CallOp::Write) { LEN_MAX } else { BYTES_MAX };
    within(call.len, bytes, "len")?;
    is_name(&call.name, call.dir.is_some())?;
    if call.op == CallOp::Symlink {
        is_target(&call.to)
    } else {
        is_name(&call.to, call.to_dir.is_some())
    }
}

/// Whether a symbolic link can lead there.
fn is_target(text: &str) -> Result<(), String> {
    let bytes = name_bytes(text).ok_or("what a symbolic link leads to is no name")?;
    match bytes.len() < PATH_MAX && !bytes.contains(&0) {
        true => Ok(()),
        false => Err("what a symbolic link leads to is longer than 4095 bytes, or has a 0".into()),
    }
}

fn within(n: u64, most: u64, what: &str) -> Result<(), String> {
    if n <= most { Ok(()) } else { Err(format!("`{what}` is {n}, more than {most}")) }
}

/// A name in a folder, or none where there is no folder.
fn is_name(text: &str, is_in_folder: bool) -> Result<(), String> {
    let bytes = name_bytes(text).ok_or_else(|| format!("`{text}` is no name"))?;
    let is_dots = matches!(&bytes[..], b"." | b"..");
    let fits = !bytes.is_empty()
        && bytes.len() <= NAME_MAX
        && !bytes.contains(&b'/')
        && !bytes.contains(&0);
    match (is_in_folder, fits && !is_dots) {
        (true, true) => Ok(()),
        (false, _) if bytes.is_empty() => Ok(()),
        (true, false) => Err(format!("`{text}` is no name in a folder")),
        (false, _) => Err(format!("`{text}` is a name without a folder")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    const HEADER: &str = r#"{"format":"steadfast-trace","version":1,"source":"synthetic",
        "program":[],"names":"kept","not_seen":[]}"#;

    fn packed(text: &str) -> Vec<u8> {
        let text = format!("{}\n{text}", HEADER.replace('\n', " "));
        compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)
    }

    /// What goes wrong, read to the end.
    fn wrong(bytes: Vec<u8>) -> Option<String> {
        let read = || {
            let mut reader = TraceReader::new(Cursor::new(bytes), false)?;
            while reader.next_entry()?.is_some() {}
            Ok(())
        };
        read().err().map(|e: TraceError| e.to_string())
    }

    #[test]
    fn members_that_are_false_may_be_left_out() {
        let end = "{\"end\":{\"calls\":0,\"at\":0}}\n";
        assert_eq!(wrong(packed(end)), None);
    }

    #[test]
    fn no_frame_is_longer_than_64_mib() {
        // A head that refers back 128 MiB, and one of a segment of 1 GiB.
        let back = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 17 << 3];
        let segment = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x40];
        let call = r#"{"call":{"op":"sync","thread":1,"start":1,"end":1}}"#.to_owned() + "\n";
        let thread = r#"{"thread":{"thread":1,"process":1}}"#.to_owned() + "\n";
        let calls = (65 << 20) / call.len();
        for frame in [back, segment, packed(&(thread + &call.repeat(calls)))] {
            let found = wrong(frame).unwrap();
            assert!(found.contains("a frame is too long (64 MiB at most)"), "{found}");
        }
    }

    #[test]
    fn a_link_leads_somewhere_short() {
        let link = |target: &str| {
            let thread = r#"{"thread":{"thread":1,"process":1}}"#;
            let call = r#"{"call":{"op":"symlink","thread":1,"start":1,"end":1,"dir":0,"#;
            let end = r#"{"end":{"calls":1,"at":1}}"#;
            let call = format!("{call}\"name\":\"l\",\"to\":\"{target}\"}}}}");
            wrong(packed(&format!("{thread}\n{call}\n{end}\n")))
        };
        assert_eq!(link(&"t".repeat(4095)), None);
        for target in ["t".repeat(4096), "%00".into(), "%".into()] {
            let found = link(&target).unwrap();
            assert!(found.starts_with("line 3: what a symbolic link leads to"), "{found}");
        }
    }
}
