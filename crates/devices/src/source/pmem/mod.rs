//! Memory as a device: a file on a DAX file system, a block or DAX device of an NVDIMM, or an
//! emulated range, which is a file in the host's memory.
//!
//! The range is mapped. [`DirectMemory`] accesses its bytes; requests are copies. The durability of
//! stores is [`Pmem::promise`], which every command prints.
//!
//! # Invariants
//!
//! 1. A write is in the power-fail domain after the next fence; so the device says that it has a
//!    volatile cache, and a flush, or FUA, is that fence.
//! 2. Aligned words of 8 bytes do not tear; nothing longer is whole after a power cut.
//! 3. Where a fence is an `msync`, the first one that fails is final.
//! 4. Poison (a SIGBUS, also of a truncated file) is an error for the requested range. A write of
//!    whole sectors by a request then goes through the kernel, which clears it.

mod dax;
mod instructions;
mod label;
mod mapping;
mod open;
mod promise;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::os::fd::OwnedFd;

use bytes::Bytes;
use steadfast_block::{
    BlockDevice, BlockError, Completion, DeviceInfo, DirectMemory, Payload, Request, Result, check,
    first_data,
};
use steadfast_runtime::Mutex;

use super::file::FileDevice;
pub use label::{LABEL_BYTES, Mode, RangeLabel};
use mapping::Mapping;
pub use open::PmemOptions;
pub use promise::Promise;
pub(super) use promise::of_block_device;

/// A range of memory as a device.
pub struct Pmem {
    info: DeviceInfo,
    mapping: Mapping,
    promise: Promise,
    label: Option<RangeLabel>,
    /// The same file by system calls; locks it, too. `None`: a DAX device has no such way.
    file: Option<FileDevice>,
    /// A DAX device, locked.
    dax_device: Option<OwnedFd>,
    /// Ranges written back since the last fence, where that means something for the kernel.
    unsynced: Mutex<Vec<Range<usize>>>,
    failed: Mutex<Option<BlockError>>,
}

/// Ranges that are kept apart; more are one, from the first byte to the last.
const UNSYNCED_MAX: usize = 64;

impl Pmem {
    /// When what was stored is durable.
    pub fn promise(&self) -> &Promise {
        &self.promise
    }

    /// The label of an emulated range that has one. Its bytes are not part of the device.
    pub fn label(&self) -> Option<&RangeLabel> {
        self.label.as_ref()
    }

    /// How lines are written back: the instruction, or `msync`.
    pub fn writes_back(&self) -> &'static str {
        match self.promise {
            Promise::AfterSync => "msync",
            _ => instructions::writes_back().unwrap_or("msync"),
        }
    }

    fn inside(&self, op: &'static str, offset: u64, len: usize) -> Result<usize> {
        self.info.inside(op, offset, len as u64)?;
        // OK to cast: it is mapped.
        Ok(offset as usize)
    }

    fn writable(&self) -> Result<()> {
        match self.info.read_only {
            true => Err(BlockError::ReadOnly { device: self.info.name.clone() }),
            false => Ok(()),
        }
    }

    fn poisoned(&self, op: &'static str, offset: u64) -> BlockError {
        let reason = "the memory answered with an error (SIGBUS): it is poisoned, or its file was \
                      cut short; a write of whole sectors there clears poison";
        BlockError::Io { device: self.info.name.clone(), op, offset, reason: reason.into() }
    }

    fn read_bytes(&self, offset: u64, len: u64) -> Result<Bytes> {
        // OK to cast: it is mapped.
        let mut out = vec![0; len as usize];
        let at = self.inside("read", offset, out.len())?;
        self.mapping.load(at, &mut out).map_err(|_| self.poisoned("read", offset))?;
        Ok(out.into())
    }

    fn write_bytes(&self, offset: u64, data: &Payload) -> Result<()> {
        let mut at = offset as usize;
        for piece in data.parts() {
            if self.mapping.store_through(at, piece).is_err() {
                return self.write_by_the_kernel(offset, data);
            }
            at += piece.len();
        }
        self.note_unsynced(offset as usize..at);
        Ok(())
    }

    /// What was written in part is written again, whole: sectors torn meanwhile are torn by a write
    /// that was not answered.
    fn write_by_the_kernel(&self, offset: u64, data: &Payload) -> Result<()> {
        let Some(file) = &self.file else { return Err(self.poisoned("write", offset)) };
        file.write(offset, data.clone())?;
        // It may be in the page cache only.
        file.flush()
    }

    /// Of what a fence must give to `msync`.
    fn note_unsynced(&self, range: Range<usize>) {
        if !self.syncs() || range.is_empty() {
            return;
        }
        let mut unsynced = self.unsynced.lock();
        match unsynced.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => unsynced.push(range),
        }
        if unsynced.len() > UNSYNCED_MAX {
            let first = unsynced.iter().map(|r| r.start).min().unwrap_or(0);
            let last = unsynced.iter().map(|r| r.end).max().unwrap_or(0);
            unsynced.clear();
            unsynced.push(first..last);
        }
    }

    fn syncs(&self) -> bool {
        match self.promise {
            Promise::AfterSync => true,
            Promise::Not { .. } => false,
            Promise::Persistent | Promise::AfterWriteBack => instructions::writes_back().is_none(),
        }
    }

    fn fence_now(&self) -> Result<()> {
        instructions::fence();
        if !self.syncs() {
            return Ok(());
        }
        let mut failed = self.failed.lock();
        if let Some(failed) = &*failed {
            return Err(failed.clone());
        }
        let ranges = std::mem::take(&mut *self.unsynced.lock());
        for range in ranges {
            if let Err(e) = self.mapping.sync(range.start, range.len()) {
                let error = BlockError::Io {
                    device: self.info.name.clone(),
                    op: "flush",
                    offset: range.start as u64,
                    reason: format!("msync: {e}"),
                };
                *failed = Some(error.clone());
                return Err(error);
            }
        }
        Ok(())
    }

    fn perform(&self, request: &Request) -> Result<Bytes> {
        check(&self.info, request)?;
        match request {
            Request::Read { offset, len } => return self.read_bytes(*offset, *len),
            Request::Write { offset, data, fua } => {
                self.write_bytes(*offset, data)?;
                if *fua {
                    self.fence_now()?;
                }
            }
            Request::Flush => self.fence_now()?,
            Request::Discard { offset, len } => {
                if let Some(file) = &self.file {
                    file.discard(*offset, *len)?;
                }
            }
        }
        Ok(Bytes::new())
    }
}

impl BlockDevice for Pmem {
    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn submit(&self, request: Request) -> Completion {
        Completion::ready(self.perform(&request))
    }

    fn direct_memory(&self) -> Option<&dyn DirectMemory> {
        Some(self)
    }

    fn first_data(&self) -> Result<Option<u64>> {
        // To load from a hole would allocate it.
        match &self.file {
            Some(file) if file.is_file() => file.first_data_of_file(self.info.size),
            _ => first_data(self),
        }
    }

    // A waiting caller needs no completion: a copy is done when it returns.

    fn execute(&self, request: Request) -> Result<Bytes> {
        self.perform(&request)
    }
}

impl DirectMemory for Pmem {
    fn load(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let at = self.inside("load", offset, out.len())?;
        self.mapping.load(at, out).map_err(|_| self.poisoned("load", offset))
    }

    fn store(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.writable()?;
        let at = self.inside("store", offset, data.len())?;
        self.mapping.store(at, data).map_err(|_| self.poisoned("store", offset))
    }

    fn persist(&self, offset: u64, len: u64) -> Result<()> {
        // OK to cast: `inside` refuses what is not mapped.
        let at = self.inside("persist", offset, len as usize)?;
        if len > 0 {
            let written = self.mapping.write_back(at, len as usize);
            written.map_err(|_| self.poisoned("persist", offset))?;
            self.note_unsynced(at..at + len as usize);
        }
        Ok(())
    }

    fn store_through(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.writable()?;
        let at = self.inside("store", offset, data.len())?;
        self.mapping.store_through(at, data).map_err(|_| self.poisoned("store", offset))?;
        self.note_unsynced(at..at + data.len());
        Ok(())
    }

    fn fence(&self) -> Result<()> {
        self.fence_now()
    }
}

steadfast_runtime::debug_fields!(Pmem: info, promise);
