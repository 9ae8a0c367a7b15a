//! `--stack`: a setup or a scenario's variant, freshly made, in real time.

use anyhow::Result;
use steadfast_ext4_mkfs::Contents;
use steadfast_setup::{Blocks, Devices, Machine, Overwrite, SetupError};

use super::options::{CACHE_BYTES, MountSettings, parse_without_times};
use crate::Usage;
use crate::commands::mkfs;
use crate::commands::stack_file::StackFile;
use crate::commands::volume::open::look_after_stack;
use crate::setup_error::to_anyhow;

/// What is to be mounted.
pub struct MountStack {
    /// Its devices, with a new file system.
    pub blocks: Blocks,
    /// What they do not promise, or lack.
    pub notes: Vec<String>,
    /// SCENARIO/VARIANT, or the setup's file.
    pub name: String,
}

/// Builds a stack's devices and makes its file system there; adds its mount options and what its
/// machine decides to those that were given, which come after them.
pub fn build(
    file: &str,
    variant: Option<&str>,
    destroy: bool,
    wanted: &mut MountSettings,
) -> Result<MountStack> {
    let file = StackFile::find(file)?;
    let stack = file.choose(variant, "--variant")?;
    let stack = stack.of_ours("mount(8) mounts it, not steadfast")?;
    let setup = &stack.setup;
    // Those that are there: the status has them joined by commas.
    let both = [setup.mount.clone(), wanted.text.clone()];
    let both: Vec<String> = both.into_iter().filter(|list| !list.is_empty()).collect();
    *wanted = parse_without_times(&both)?;
    apply(&setup.machine, wanted);
    let usage = |e: SetupError| match to_anyhow(e) {
        e if e.is::<Usage>() => e,
        e => Usage(e.to_string()).into(),
    };
    let devices = Devices::open(setup, Overwrite::of(destroy)).map_err(usage)?;
    let notes = devices.notes().cloned().collect();
    let blocks = devices.blocks().map_err(usage)?;
    look_after_stack(&blocks)?;
    blocks.make(setup, Contents::Zeros, mkfs::root_owner()).map_err(to_anyhow)?;
    wanted.ext4.journal_device.clone_from(&blocks.journal);
    Ok(MountStack { blocks, notes, name: stack.name_in(&file.name) })
}

/// What the machine decides: its memory is the page cache's, as in a run of the scenario, unless
/// `cache=` says how much the mount keeps in all.
pub fn apply(machine: &Machine, wanted: &mut MountSettings) {
    let given = wanted.text.split(',').any(|word| word.starts_with("cache="));
    let memory = machine.memory_mb.map(|mb| mb << 20).filter(|_| !given);
    machine.apply(memory.unwrap_or(CACHE_BYTES), &mut wanted.ext4);
    if memory.is_some() {
        wanted.ext4.cache_bytes = None;
    }
}
