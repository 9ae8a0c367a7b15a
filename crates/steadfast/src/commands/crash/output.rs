//! The pipe that the program prints into: read as it fills, and at once when somebody must know
//! what was printed before.

use std::os::fd::AsFd;
use std::process::ChildStdout;
use std::sync::{Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use super::printed::AckLines;

/// Longest line that is one acknowledgement, in bytes.
const LINE_MAX: usize = 1 << 20;
/// So much is read at once, in bytes.
const PIECE: usize = 64 << 10;
/// So much may be in a pipe (`fs.pipe-max-size` of Linux), in bytes.
const PIPE_MAX: usize = 1 << 20;

/// The reading end of the pipe.
pub struct OutputPipe {
    out: ChildStdout,
    /// What is read of a line that has not ended. Who holds it is the only one that reads.
    begun: Mutex<Vec<u8>>,
}

impl OutputPipe {
    /// Of a program that was started.
    pub fn new(out: ChildStdout) -> std::io::Result<OutputPipe> {
        fcntl_setfl(&out, fcntl_getfl(&out)? | OFlags::NONBLOCK)?;
        Ok(OutputPipe { out, begun: Mutex::default() })
    }

    /// Takes lines until the last process that may print has ended, or none is wanted any more.
    pub fn read_to_end(&self, lines: &AckLines) {
        while self.take(lines) {
            // OK to ignore an error: the read says what is wrong.
            let _ = poll(&mut [PollFd::new(&self.out.as_fd(), PollFlags::IN)], None);
        }
    }

    /// Takes the lines that have been printed so far; whether there may be more.
    pub fn take(&self, lines: &AckLines) -> bool {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let mut piece = vec![0; PIECE];
        let mut read = 0;
        // Who prints faster than this reads goes on printing: what came first is enough.
        while read < PIPE_MAX {
            let count = match rustix::io::read(&self.out, &mut piece) {
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return true,
                Ok(0) | Err(_) => {
                    if !begun.is_empty() {
                        lines.add(&std::mem::take(&mut *begun));
                    }
                    return false;
                }
                Ok(count) => count,
            };
            read += count;
            for part in piece[..count].split_inclusive(|byte| *byte == b'\n') {
                begun.extend_from_slice(part);
                while begun.len() >= LINE_MAX || begun.ends_with(b"\n") {
                    let end = begun.len().min(LINE_MAX);
                    let rest = begun.split_off(end);
                    let line = std::mem::replace(&mut *begun, rest);
                    if !lines.add(&line) {
                        return false;
                    }
                }
            }
        }
        true
    }
}
