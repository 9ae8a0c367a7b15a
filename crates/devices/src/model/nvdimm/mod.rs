//! An NVDIMM-N: DDR4 memory that saves itself to flash when the power fails.
//!
//! # Where the figures of the preset come from
//!
//! HPE 8GB NVDIMM Single Rank x4 DDR4-2133, of 2016. The memory's own times are those of JEDEC's
//! DDR4 standard (JESD79-4, speed bin 2133P: 15-15-15 clocks of 0.9375 ns): a line of 64 bytes is
//! a burst of eight transfers, 3.75 ns, and 3.3 % of the time goes to refreshes. A line in a row
//! that is not open costs closing the one that is and opening its own, 28 ns; a row has 8 KiB
//! (16 devices of 4 bits, 512 bytes each). Misses of different banks overlap in a real controller;
//! here they do not.
//!
//! What the processor adds is less well known: 50 ns to the controller and back (servers of that
//! time load a line in 80 to 90 ns), ten lines at a time (the line fill buffers of Intel's
//! manual). So 4 KiB are stored past the caches in some 0.33 us and loaded in 0.5 us. Measured on
//! a machine of today: 0.45 to 0.49 us with two fences and a commit line, and 0.56 us for a copy.
//! A line that is written back with clwb takes 11 ns, which is measured: 64 of them, with the
//! stores before and a fence after, take 1.34 us.
//!
//! # How it is used
//!
//! As memory ([`DirectMemory`]): each access occupies the processor of its task; in real time it
//! costs only the copy. As a block device it is like Linux's pmem driver: one copy per request, in
//! the calling task, without a queue and without an interrupt; so a request is complete when
//! `submit` returns.
//!
//! # What it promises
//!
//! With ADR data that the controller has accepted survives: stores that were written back and
//! fenced, requests after a flush. With eADR the caches survive too. Either way only aligned words
//! of 8 bytes are whole. It is persistent while its energy source is good and it is armed (JESD245:
//! the host arms the save). The flash is not modelled: a save is complete.

mod module;
mod params;

use std::time::Duration;

use bytes::Bytes;
use steadfast_block::{
    BlockDevice, Completion, DeviceInfo, DirectMemory, Persistence, Request, Result as BlockResult,
    check,
};
use steadfast_runtime::{Mutex, cpu, now};

use super::parameters::{Describe, ModelKind, ParameterTable};
use super::units::{mib, us};
use super::{Battery, Model, ModelError, ModelParams, exchange};
use crate::store::Store;
use module::Module;
pub use params::{NvdimmParams, PowerFailDomain};

/// Bytes that a power cut leaves old or new, never mixed, where they are aligned.
const WORD: u32 = 8;

/// A modelled NVDIMM-N.
pub struct Nvdimm {
    info: DeviceInfo,
    armed: bool,
    energy: Mutex<Battery>,
    module: Mutex<Module>,
    store: Mutex<Store>,
}

impl Nvdimm {
    /// A module, empty.
    ///
    /// # Errors
    /// [`ModelError::Parameter`] names the parameter that makes no sense.
    pub fn new(name: &str, params: &NvdimmParams) -> Result<Self, ModelError> {
        params.check()?;
        let info = params.info(name);
        Ok(Nvdimm {
            armed: params.armed,
            energy: Mutex::new(params.energy_source),
            store: Mutex::new(Store::new(info.size)),
            module: Mutex::new(Module::new(params.clone())),
            info,
        })
    }

    /// Changes the state of the energy source.
    pub fn set_energy_source(&self, state: Battery) {
        *self.energy.lock() = state;
    }

    fn persistence(&self) -> Persistence {
        let energy = *self.energy.lock();
        let reason = match (energy, self.armed) {
            (Battery::Good, true) => return Persistence::Persistent,
            (Battery::Good, false) => {
                "the module is not armed: it does not save itself when the power fails".to_owned()
            }
            (bad, _) => format!("its energy source {}: it cannot save itself", bad.in_words()),
        };
        Persistence::Volatile { reason }
    }

    /// Does something with the module that takes its time: on the processor of the caller, who
    /// holds no lock meanwhile.
    fn take(&self, work: impl FnOnce(&mut Module, u64) -> u64) {
        let ns = work(&mut self.module.lock(), now().0);
        cpu(Duration::from_nanos(ns));
    }

    /// What the driver does: a copy.
    fn perform(&self, request: &Request) -> BlockResult<Bytes> {
        check(&self.info, request)?;
        match request {
            Request::Read { offset, len } => {
                self.take(|module, _| module.fetch(*offset, *len, true));
                return Ok(self.store.lock().read(*offset, *len));
            }
            Request::Write { offset, data, fua } => {
                self.take(|module, at| module.stream(at, *offset, data.len() as u64));
                self.store.lock().write(*offset, data);
                if *fua {
                    self.take(|module, _| module.fence());
                }
            }
            Request::Flush => self.take(|module, _| module.fence()),
            // Memory has nothing to give back.
            Request::Discard { .. } => {}
        }
        Ok(Bytes::new())
    }
}

impl BlockDevice for Nvdimm {
    fn info(&self) -> DeviceInfo {
        let mut info = self.info.clone();
        info.persistence = self.persistence();
        info
    }

    fn submit(&self, request: Request) -> Completion {
        Completion::ready(self.perform(&request))
    }

    fn direct_memory(&self) -> Option<&dyn DirectMemory> {
        Some(self)
    }
}

impl DirectMemory for Nvdimm {
    fn load(&self, offset: u64, out: &mut [u8]) -> BlockResult<()> {
        let len = out.len() as u64;
        self.info.inside("load", offset, len)?;
        self.take(|module, _| module.fetch(offset, len, true));
        out.copy_from_slice(&self.store.lock().read(offset, len));
        Ok(())
    }

    /// The lines are fetched into the caches to be changed there.
    fn store(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        let len = data.len() as u64;
        self.info.inside("store", offset, len)?;
        self.take(|module, _| module.fetch(offset, len, false));
        self.store.lock().write_slice(offset, data);
        Ok(())
    }

    fn persist(&self, offset: u64, len: u64) -> BlockResult<()> {
        self.info.inside("persist", offset, len)?;
        self.take(|module, at| module.write_back(at, offset, len));
        Ok(())
    }

    /// Whole lines go past the caches; what remains at the ends is stored and written back.
    fn store_through(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        let len = data.len() as u64;
        self.info.inside("store", offset, len)?;
        let first = offset.next_multiple_of(params::LINE);
        let end = (offset + len) / params::LINE * params::LINE;
        self.take(|module, at| match first < end {
            true => {
                let mut ns = module.stream(at, first, end - first);
                for (from, to) in [(offset, first), (end, offset + len)] {
                    if from < to {
                        ns += module.fetch(from, to - from, false);
                        ns += module.write_back(at + ns, from, to - from);
                    }
                }
                ns
            }
            false => {
                let ns = module.fetch(offset, len, false);
                ns + module.write_back(at + ns, offset, len)
            }
        });
        self.store.lock().write_slice(offset, data);
        Ok(())
    }

    fn fence(&self) -> BlockResult<()> {
        self.take(|module, _| module.fence());
        Ok(())
    }
}

impl Model for Nvdimm {
    fn contents(&self) -> Store {
        self.store.lock().snapshot()
    }

    fn set_contents(&self, contents: Store) -> Result<(), ModelError> {
        exchange(&self.info.name, &mut self.store.lock(), contents)
    }

    fn saves_caches(&self) -> bool {
        !self.info.volatile_cache
    }
}

impl Describe for NvdimmParams {
    const KIND: ModelKind = ModelKind {
        name: "nvdimm",
        title: "memory module that saves itself",
        preset: "HPE 8GB NVDIMM-N, DDR4-2133",
        physics: "bursts, open rows, refreshes, lines on their way, fences; energy source; ADR",
        parameters: Self::PARAMETERS,
        is_memory: true,
        default: || ModelParams::Nvdimm(NvdimmParams::default()),
        test_disk_bytes_min: None,
    };

    fn info(&self, name: &str) -> DeviceInfo {
        let mut info = DeviceInfo::new(name, self.description.clone(), mib(self.size_mib));
        info.atomic_write = WORD;
        info.volatile_cache = self.power_fail_domain != PowerFailDomain::Eadr;
        info
    }

    fn check_together(&self) -> Result<(), ModelError> {
        let interval = self.refresh_interval_us;
        if us(self.refresh_ns / 1e3) >= us(interval) {
            let why = format!("must be less than refresh_interval_us, {interval} us");
            return Err(Self::refusal("refresh_ns", self.refresh_ns, why));
        }
        if !self.row_bytes.is_power_of_two() {
            return Err(Self::refusal("row_bytes", self.row_bytes, "must be a power of two"));
        }
        Ok(())
    }

    fn test_disk(self, bytes: u64) -> Self {
        // OK to cast: `check` refuses what is too large.
        NvdimmParams { size_mib: (bytes >> 20) as u32, ..self }
    }
}

#[cfg(test)]
mod tests;
