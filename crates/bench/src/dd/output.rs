//! Writing: whole blocks, leaps over zeros, the last part of a direct write.

use super::ends::Sink;
use super::errno::Errno;
use super::operands::Operands;
use super::words::{Conv, Flags};

/// The sink with what the operands say of writing to it.
pub(super) struct Output<'a> {
    pub(super) sink: &'a mut dyn Sink,
    pub(super) obs: usize,
    pub(super) direct: bool,
    pub(super) sparse: bool,
    pub(super) nocache: bool,
    /// The last write was a leap.
    pub(super) leapt: bool,
    /// The end must be followed by an fsync.
    pub(super) must_sync: bool,
}

impl<'a> Output<'a> {
    pub(super) fn new(sink: &'a mut dyn Sink, operands: &Operands) -> Output<'a> {
        Output {
            sink,
            obs: operands.obs,
            direct: operands.oflags.contains(Flags::DIRECT),
            sparse: operands.conv.contains(Conv::SPARSE),
            nocache: operands.oflags.contains(Flags::NOCACHE),
            leapt: false,
            must_sync: operands.conv.contains(Conv::FSYNC),
        }
    }

    /// Writes a block; returns how much of it was written, and why not all of it.
    pub(super) fn write(&mut self, data: &[u8]) -> (usize, Option<Errno>) {
        if self.direct && data.len() < self.obs {
            // What is not a whole block cannot be written past the cache.
            if let Err(e) = self.sink.stop_direct() {
                return (0, Some(e));
            }
            self.direct = false;
            self.must_sync = true;
        }
        let mut done = 0;
        while done < data.len() {
            self.leapt = false;
            if self.sparse && done == 0 && data.iter().all(|b| *b == 0) {
                match self.sink.seek(data.len() as u64) {
                    Ok(()) => {
                        self.leapt = true;
                        return (data.len(), None);
                    }
                    Err(_) => self.sparse = false,
                }
            }
            match self.sink.write(&data[done..]) {
                Ok(0) => return (done, Some(Errno::NOSPC)),
                Ok(n) => done += n.min(data.len() - done),
                Err(e) => return (done, Some(e)),
            }
        }
        if self.nocache {
            // OK to ignore: pages that cannot be dropped stay in the cache.
            let _ = self.sink.forget(false);
        }
        (done, None)
    }
}
