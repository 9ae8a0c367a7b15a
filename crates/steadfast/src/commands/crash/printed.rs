//! What the program under test prints or marks: recorded with the device's writes; what it prints
//! is shown.
//!
//! # Invariants
//!
//! 1. Memory is bounded, however much is printed: after [`BYTES_MAX`] lines are counted only.
//! 2. Lines are in the order in which they were said: a mark comes behind what was printed before.
//! 3. Showing never waits for the reader: who does not read would make a signal wait, too.

use std::io::Write;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use steadfast_crash::program::{LINE, Line};
use steadfast_devices::filter::record::RecordLog;

use super::output::OutputPipe;
use crate::Usage;

/// What fails where nobody reads what is shown, or its disk is full.
const SHOWING: &str = "showing what the program prints";
/// So much is kept of what is printed, in bytes.
const BYTES_MAX: usize = 64 << 20;
/// What a line takes beside its bytes: itself, and its place in the recording.
const LINE_BYTES: usize = 128;
/// So much is written at once: a pipe that takes anything takes as much.
const PIECE: usize = 4096;

/// The lines that were printed.
#[derive(Clone)]
pub struct AckLines {
    log: RecordLog,
    printed: Arc<Mutex<PrintedLines>>,
    /// Where they come from.
    pipe: Arc<OnceLock<Weak<OutputPipe>>>,
}

#[derive(Default)]
struct PrintedLines {
    lines: Vec<Line>,
    bytes: usize,
    /// Lines for which there was no room.
    left_out: u64,
    /// The run is over: nothing more is taken.
    is_over: bool,
}

/// Where lines are shown.
pub struct LineOutput<'a> {
    out: &'a mut dyn Write,
    /// What is behind it, which may be full for now; `None`: it takes everything.
    behind: Option<BorrowedFd<'a>>,
    lines: usize,
    /// Of the next line.
    bytes: usize,
}

impl<'a> LineOutput<'a> {
    /// None yet.
    pub fn new(out: &'a mut dyn Write, behind: Option<BorrowedFd<'a>>) -> Self {
        LineOutput { out, behind, lines: 0, bytes: 0 }
    }

    /// Whether a piece can be written without waiting, or fails at once.
    fn takes_more(&self) -> bool {
        let Some(behind) = &self.behind else { return true };
        let mut polled = [PollFd::new(behind, PollFlags::OUT)];
        // OK to ignore an error: the write says what is wrong.
        poll(&mut polled, Some(&Timespec::default())).map_or(true, |ready| ready > 0)
    }

    /// Writes a line from where it was left, as far as it is taken: a piece at least.
    fn line(&mut self, text: &[u8]) -> std::io::Result<()> {
        loop {
            let rest = &text[self.bytes..];
            let piece = &rest[..piece_of(rest)];
            self.out.write_all(piece)?;
            self.bytes += piece.len();
            if self.bytes == text.len() {
                self.out.write_all(b"\n")?;
                (self.lines, self.bytes) = (self.lines + 1, 0);
                return Ok(());
            }
            if !self.takes_more() {
                return Ok(());
            }
        }
    }
}

/// How much of a text is written at once: whole characters, where it has characters.
fn piece_of(text: &[u8]) -> usize {
    if text.len() < PIECE {
        return text.len();
    }
    let continues = |at: &usize| text[*at] & 0xc0 == 0x80;
    // The line's end is to have room, too.
    let last = PIECE - 1;
    (last - 3..=last).rev().find(|at| !continues(at)).unwrap_or(last)
}

impl AckLines {
    /// None yet.
    pub fn new(log: &RecordLog) -> Self {
        AckLines { log: log.clone(), printed: Arc::default(), pipe: Arc::default() }
    }

    /// Those that are kept so far.
    pub fn lines(&self) -> Vec<Line> {
        self.lock().lines.clone()
    }

    /// How many more there were.
    pub fn left_out(&self) -> u64 {
        self.lock().left_out
    }

    /// Takes no more: what has left the program's group may go on printing.
    pub fn end(&self) {
        self.lock().is_over = true;
    }

    /// Where what is printed comes from; it is let go by who reads it.
    pub fn come_from(&self, pipe: &Arc<OutputPipe>) {
        // OK to ignore: there is one program.
        let _ = self.pipe.set(Arc::downgrade(pipe));
    }

    /// Takes what has been printed so far.
    pub fn catch_up(&self) {
        if let Some(pipe) = self.pipe.get().and_then(Weak::upgrade) {
            pipe.take(self);
        }
    }

    /// Takes a mark, behind all that was printed before it.
    ///
    /// # Errors
    /// The run is over; there is no room.
    pub fn mark(&self, text: &[u8]) -> Result<(), Usage> {
        self.catch_up();
        let mut printed = self.lock();
        if !self.add_to(&mut printed, text, true) {
            usage!("the run is over");
        }
        match printed.left_out {
            0 => Ok(()),
            _ => usage!("too much was printed and marked: this is not recorded"),
        }
    }

    /// Takes a line; whether there may be more.
    pub fn add(&self, text: &[u8]) -> bool {
        self.add_to(&mut self.lock(), text, false)
    }

    /// Whether nothing more is taken.
    pub fn is_over(&self) -> bool {
        self.lock().is_over
    }

    fn add_to(&self, printed: &mut PrintedLines, text: &[u8], marked: bool) -> bool {
        if printed.is_over {
            return false;
        }
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let bytes = printed.bytes + text.len() + LINE_BYTES;
        // Once one is left out all are: what is kept is the beginning.
        if bytes > BYTES_MAX || printed.left_out > 0 {
            printed.left_out += 1;
            return true;
        }
        let at = self.log.note(LINE, [printed.lines.len() as u64, 0, 0]);
        printed.lines.push(Line { printed: at, text: text.to_vec(), marked });
        printed.bytes = bytes;
        true
    }

    /// Shows the lines that were not shown yet, as far as somebody reads them; how many are left.
    ///
    /// # Errors
    /// Nobody reads any more, or the disk is full.
    pub fn show(&self, shown: &mut LineOutput<'_>) -> Result<usize> {
        let mut any = false;
        while shown.takes_more() {
            let next = self.lock().lines.get(shown.lines).cloned();
            match next {
                None => break,
                // It was not printed.
                Some(Line { marked: true, .. }) => shown.lines += 1,
                Some(Line { text, .. }) => {
                    shown.line(&text).context(SHOWING)?;
                    any = true;
                }
            }
        }
        if any && shown.takes_more() {
            shown.out.flush().context(SHOWING)?;
        }
        Ok(self.lock().lines.len() - shown.lines)
    }

    fn lock(&self) -> MutexGuard<'_, PrintedLines> {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn what_has_no_room_is_counted() {
        let lines = AckLines::new(&RecordLog::new());
        let line = vec![b'x'; 1 << 20];
        for _ in 0..70 {
            assert!(lines.add(&line));
        }
        // It would have room.
        assert!(lines.add(b"y\n"));
        let (kept, left_out) = (lines.lines().len(), lines.left_out());
        assert!((60..64).contains(&kept) && kept as u64 + left_out == 71, "{kept} {left_out}");
        let empty = AckLines::new(&RecordLog::new());
        while empty.left_out() == 0 {
            assert!(empty.add(b"\n"));
        }
        assert_eq!(empty.lines().len(), BYTES_MAX / LINE_BYTES);
        empty.end();
        assert!(!empty.add(b"\n") && empty.left_out() == 1);
    }

    /// Nobody reads for a while; then all is there, in order.
    #[test]
    fn a_full_pipe_is_not_waited_for() {
        let lines = AckLines::new(&RecordLog::new());
        let mut text: Vec<u8> = Vec::new();
        for i in 0..2000 {
            let line = format!("{i} {}\n", "gr\u{fc}n ".repeat(i));
            text.extend(line.as_bytes());
            lines.add(line.as_bytes());
        }
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        let behind = writer.try_clone().unwrap();
        let mut shown = LineOutput::new(&mut writer, Some(behind.as_fd()));
        let left = lines.show(&mut shown).unwrap();
        assert!((1..2000).contains(&left), "{left}");
        assert_eq!(lines.show(&mut shown).unwrap(), left);
        let mut read = vec![0; text.len()];
        let done = std::thread::scope(|scope| {
            let reading = scope.spawn(|| reader.read_exact(&mut read));
            while lines.show(&mut shown).unwrap() > 0 {
                std::thread::yield_now();
            }
            reading.join().unwrap()
        });
        done.unwrap();
        assert!(read == text);
        drop(reader);
        lines.add(b"more\n");
        let closed = lines.show(&mut shown).unwrap_err();
        assert!(format!("{closed:#}").contains("showing what the program prints"), "{closed:#}");
    }

    #[test]
    fn characters_stay_whole() {
        let text = "\u{fc}".repeat(PIECE);
        let piece = piece_of(text.as_bytes());
        assert!(piece < PIECE && text.is_char_boundary(piece));
        assert_eq!((piece_of(b""), piece_of(&[0x80; 2 * PIECE])), (0, PIECE - 1));
    }
}
