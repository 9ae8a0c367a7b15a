//! Where a workload runs: on a variant's stack, in a simulation of its own, or in real time; and on
//! a file system of the kernel's.

use std::path::Path;
use std::sync::Arc;

use steadfast_peers::{FolderMount, KernelFs, PathMount, clear_leftovers, fuse_options};
use steadfast_setup::{DeviceSource, Devices, Overwrite, Setup, Stack};
use steadfast_vfs::HostFs;

use super::setting::{Part, Report, Setting, Subject};
use super::workload::{JobResult, Workload};
use crate::scenario::{Scenario, Variant};
use crate::{LabError, Result, ScenarioError, VariantError};

impl Setting {
    /// What may be done to devices of this machine: what they held before the run was looked at
    /// ([`look_at_paths`](Self::look_at_paths)), what they hold now is of the run.
    pub fn overwrite(&self) -> Overwrite {
        Overwrite::of(self.options.real.is_some())
    }

    /// Looks whether all devices that are paths of this machine, and all of a variant together, can
    /// be used. From then on they are the run's; nothing is written.
    ///
    /// # Errors
    /// One is in use, or holds what may not be overwritten.
    pub fn look_at_paths(&self) -> Result<(), LabError> {
        let Some(overwrite) = self.options.real else { return Ok(()) };
        // A run that was killed may have them in use.
        clear_leftovers();
        let topology = &self.scenario.topology;
        let paths = topology.devices.iter().filter(|(_, device)| device.model().is_none());
        paths.map(|(name, _)| name).try_for_each(|name| {
            let refused = |why| ScenarioError::Path(why).of(&self.scenario);
            topology.look(name, overwrite).map_err(refused)
        })?;
        self.scenario.variants.iter().filter(|v| v.kernel.is_none()).try_for_each(|variant| {
            let refused = |why| VariantError::from(why).of(variant);
            Devices::open(&self.scenario.setup_of(variant), overwrite).map(drop).map_err(refused)
        })
    }

    /// Runs something on the machine of a setup.
    pub fn on_machine<T: Send + 'static>(
        &self,
        setup: &Setup,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        match self.options.real {
            Some(_) => work(),
            None => setup.simulation(self.options.seed).run(work)?,
        }
    }

    /// Runs something on a variant's stack, with so much page cache or as its machine has it.
    pub fn on_stack<T: Send + 'static>(
        &self,
        variant: &Variant,
        memory_bytes: Option<u64>,
        work: impl FnOnce(&Stack) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let own = || self.scenario.machine_of(variant).page_cache_bytes(None);
        let memory_bytes = memory_bytes.unwrap_or_else(own);
        let setup = self.scenario.setup_of(variant);
        let stack = Stack::new(setup.clone(), memory_bytes, self.overwrite());
        self.on_machine(&setup, move || {
            let done = work(&stack)?;
            stack.shut_down()?;
            Ok(done)
        })
    }

    /// Runs a workload in real time: on the variant's stack, or on its file system of the kernel's.
    pub fn in_real_time(
        &self,
        workload: &dyn Workload,
        variant: &Variant,
        report: Report,
    ) -> Result<JobResult> {
        let of = Subject { setting: self, variant };
        let work = workload.on_file_system(of);
        let Some(kernel) = &variant.kernel else {
            let Some(work) = work else { return workload.run(of, Part::Speed, report) };
            let fuse = variant.fuse.as_deref().map(fuse_options).transpose()?;
            return self.on_stack(variant, Some(work.memory_bytes), move |stack| {
                let Some(options) = fuse else { return (work.run)(stack.mounted()?) };
                let served = FolderMount::with_options(stack.mounted()?, &options)?;
                let host = HostFs::open(served.path()).map_err(VariantError::from);
                let ran = host.and_then(|host| (work.run)(Arc::new(host)));
                let taken_away = served.take_away();
                let ran = ran?;
                taken_away?;
                Ok(ran)
            });
        };
        let work = work.ok_or_else(|| VariantError::NeedsDevices(kernel.clone()))?;
        let both = std::iter::once(&variant.stack.disk).chain(&variant.stack.journal);
        let paths =
            both.map(|name| path_of(&self.scenario, name)).collect::<Result<Vec<_>, _>>()?;
        let options = (variant.stack.mkfs.as_str(), variant.stack.mount.as_str());
        let mounted = PathMount::new(kernel_fs(kernel)?, options, &paths)?;
        let host = HostFs::open(mounted.path()).map_err(VariantError::from);
        let ran = host.and_then(|host| (work.run)(Arc::new(host)));
        let taken_away = mounted.take_away();
        let ran = ran?;
        taken_away?;
        Ok(ran)
    }
}

/// The kernel's file system of a name.
pub(super) fn kernel_fs(kernel: &str) -> Result<KernelFs> {
    // Checked where the scenario is read.
    KernelFs::of_name(kernel).ok_or_else(|| VariantError::UnknownKernel(kernel.to_owned()))
}

/// Where a device is on this machine.
fn path_of<'s>(scenario: &'s Scenario, device: &str) -> Result<&'s Path> {
    match scenario.topology.devices.get(device).map(|device| &device.source) {
        Some(DeviceSource::Path(path)) => Ok(path),
        _ => Err(VariantError::NoPath(device.to_owned())),
    }
}
