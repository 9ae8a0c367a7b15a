//! A variant's file system for dd and hdparm: mounted when it is first asked for, and again after
//! it has been unmounted, so that nothing is kept of what was written.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::Duration;

use steadfast_bench::dd::place::{self, Named, NotOpened, Opened, Place, Snk, Src, named};
use steadfast_bench::dd::{
    self, Counts, Errno, Failed, Job, Operands, Reporter, Skipped, Source, Tally, WrongOperand,
};
use steadfast_block::BlockDevice;
use steadfast_ext4::Ext4;
use steadfast_ext4_mkfs::Contents;
use steadfast_runtime::{Mutex, cpu};
use steadfast_vfs::{FileSystem, NewNode};

use super::Setting;
use super::machine::Modelled;
use crate::VariantError;
use crate::scenario::{OWN_DISK, Variant};
use crate::stack::{Blocks, Devices, device, make};

/// The page cache of a machine of which the scenario does not say how much memory it has.
const MEMORY: u64 = 64 << 20;

/// A variant's stack, in a simulation.
pub(super) struct Stack {
    machine: Modelled,
    devices: Blocks,
    mounted: Mutex<Option<Arc<Ext4>>>,
    /// Devices that dd names: each new, and used by nobody else.
    named: Mutex<BTreeMap<String, Arc<dyn BlockDevice>>>,
}

impl Stack {
    /// What a variant is built of.
    pub fn machine(setting: &Setting, variant: &Variant) -> Modelled {
        Modelled {
            scenario: setting.scenario.clone(),
            variant: variant.clone(),
            memory: setting.memory_of(variant).unwrap_or(MEMORY),
        }
    }

    /// Builds the devices and makes the file system.
    pub fn build(machine: Modelled) -> Result<Stack, VariantError> {
        let built = Devices::build(&machine.scenario, &machine.variant)?;
        let devices = built.blocks()?;
        let journal = devices.journal.as_ref();
        make(&devices.disk, journal, &machine.variant, Contents::Zeros)?;
        Ok(Stack { machine, devices, mounted: Mutex::default(), named: Mutex::default() })
    }

    /// A device or volume of the scenario, new.
    fn new_device(&self, name: &str) -> Result<Arc<dyn BlockDevice>, VariantError> {
        let scenario = &self.machine.scenario;
        if !scenario.devices.contains_key(name) && !scenario.volumes.contains_key(name) {
            return Err(VariantError::NoDevice(name.to_owned()));
        }
        device(scenario, name)
    }

    /// Unmounts, and ends the use of the volumes.
    pub fn shut_down(self) -> Result<(), VariantError> {
        self.unmount()?;
        self.devices.close()
    }

    /// The file system.
    pub fn mounted(&self) -> Result<Arc<Ext4>, VariantError> {
        let mut mounted = self.mounted.lock();
        if let Some(fs) = &*mounted {
            return Ok(Arc::clone(fs));
        }
        let fs = self.machine.mount(&self.devices)?;
        *mounted = Some(Arc::clone(&fs));
        Ok(fs)
    }

    /// Writes everything back and forgets what was kept of it.
    pub fn unmount(&self) -> Result<(), VariantError> {
        let mounted = self.mounted.lock().take();
        mounted.map_or(Ok(()), |fs| fs.unmount().map_err(VariantError::Unmount))
    }

    /// Runs dd: the counts, and what it said; `Err` only where nothing could be begun.
    pub fn copy(&self, line: &str) -> Result<(Counts, Said), VariantError> {
        let operands = parsed(line)?;
        let (said, tally) = (Said::default(), Tally::default());
        let failed = |said: String| VariantError::Dd { line: line.to_owned(), said };
        let not_opened = |e: NotOpened| failed(e.to_string());
        let (Some(from), Some(to)) = (&operands.input, &operands.output) else {
            return Err(failed("if= and of= are needed".into()));
        };
        let source = place::source(self, named(from), &operands)?.map_err(not_opened)?;
        let cost = self.record_cost([named(from), named(to)]);
        let mut source = Charged { source, cost };
        let opened = place::sink(self, named(to), &operands, &said)?.map_err(not_opened)?;
        let (mut sink, whole) = opened;
        let (source, sink) = (&mut source, &mut *sink);
        let operands = &operands;
        let (tally, reporter) = (&tally, &said);
        let done = dd::run(Job { operands, source, sink, tally, reporter, failed: !whole });
        if done == Err(Failed) && tally.counts().bytes == 0 {
            return Err(failed(said.words()));
        }
        Ok((tally.counts(), said))
    }

    /// Processor time of each record of a copy between these.
    fn record_cost(&self, ends: [Named<'_>; 2]) -> Duration {
        let machine = self.machine.scenario.machine_of(&self.machine.variant);
        let us = match ends {
            [Named::Device(_), _] | [_, Named::Device(_)] => machine.dd_device_us,
            [Named::File(_), _] | [_, Named::File(_)] => machine.dd_file_us,
            _ => 0.0,
        };
        Duration::from_secs_f64(us / 1e6)
    }

    /// Runs dd, all of which must go well.
    pub fn copy_silently(&self, line: &str) -> Result<(), VariantError> {
        match self.copy(line)?.1.words() {
            none if none.is_empty() => Ok(()),
            said => Err(VariantError::Dd { line: line.to_owned(), said }),
        }
    }
}

/// A source whose records cost the processor something.
struct Charged {
    source: Src,
    cost: Duration,
}

impl Source for Charged {
    fn read(&mut self, buf: &mut [u8]) -> Result<usize, Errno> {
        cpu(self.cost);
        self.source.read(buf)
    }

    fn skip(&mut self, bytes: u64) -> Result<Skipped, Errno> {
        self.source.skip(bytes)
    }

    fn forget(&mut self, all: bool) -> Result<(), Errno> {
        self.source.forget(all)
    }
}

/// dd's operands.
pub(crate) fn parsed(line: &str) -> Result<Operands, WrongOperand> {
    let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    dd::parse(&words)
}

/// What dd says beside its counts.
#[derive(Default)]
pub(super) struct Said(Mutex<Vec<String>>);

impl Said {
    /// All of it.
    pub fn words(&self) -> String {
        self.0.lock().join("; ")
    }
}

impl Reporter for Said {
    fn says(&self, message: &str) {
        self.0.lock().push(message.to_owned());
    }

    fn line(&self, _line: &str) {}
}

impl Place for Stack {
    type Error = VariantError;

    fn fs(&self) -> Result<Arc<dyn FileSystem>, VariantError> {
        Ok(self.mounted()?)
    }

    fn device(&self, name: &str) -> Result<Arc<dyn BlockDevice>, VariantError> {
        if name == OWN_DISK {
            // What the file system keeps in memory is on the disk then, and is not kept.
            self.unmount()?;
            return Ok(Arc::clone(&self.devices.disk));
        }
        let mut named = self.named.lock();
        if let Some(device) = named.get(name) {
            return Ok(Arc::clone(device));
        }
        let device = self.new_device(name)?;
        named.insert(name.to_owned(), Arc::clone(&device));
        Ok(device)
    }

    fn host_source(&self, _: &OsStr, _: &Operands) -> Result<Opened<Src>, VariantError> {
        Err(VariantError::NoHost)
    }

    fn host_sink(
        &self,
        _: &OsStr,
        _: &Operands,
        _: &dyn Reporter,
    ) -> Result<Opened<(Snk, bool)>, VariantError> {
        Err(VariantError::NoHost)
    }

    fn new_node(&self) -> NewNode {
        NewNode { mode: 0o644, uid: 0, gid: 0, umask: 0 }
    }
}
