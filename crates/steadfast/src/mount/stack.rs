//! `--stack`: a scenario's variant, freshly made, in real time.

use anyhow::Result;
use steadfast_ext4_mkfs::Contents;
use steadfast_lab::scenario::{Scenario, Variant};
use steadfast_setup::{Blocks, Devices, Machine, Overwrite, SetupError};

use super::options::{CACHE_BYTES, MountSettings, parse_without_times};
use crate::Usage;
use crate::commands::mkfs;
use crate::commands::volume::open::look_after_stack;
use crate::setup_error::to_anyhow;

/// What is to be mounted.
pub struct MountStack {
    /// Its devices, with a new file system.
    pub blocks: Blocks,
    /// What they do not promise, or lack.
    pub notes: Vec<String>,
    /// SCENARIO/VARIANT.
    pub name: String,
}

/// Builds a variant's devices and makes its file system there; adds the variant's mount options
/// and what its machine decides to those that were given, which come after them.
pub fn build(
    file: &str,
    variant: Option<&str>,
    destroy: bool,
    wanted: &mut MountSettings,
) -> Result<MountStack> {
    let scenario = crate::commands::lab::find(file)?;
    let variant = choose(&scenario, variant)?;
    if let Some(kernel) = &variant.kernel {
        usage!(
            "variant '{}' is the kernel's own {kernel}: mount(8) mounts it, not steadfast",
            variant.name
        );
    }
    let setup = scenario.setup_of(variant);
    // Those that are there: the status has them joined by commas.
    let both = [setup.mount.clone(), wanted.text.clone()];
    let both: Vec<String> = both.into_iter().filter(|list| !list.is_empty()).collect();
    *wanted = parse_without_times(&both)?;
    apply(&setup.machine, wanted);
    let usage = |e: SetupError| match to_anyhow(e) {
        e if e.is::<Usage>() => e,
        e => Usage(e.to_string()).into(),
    };
    let devices = Devices::open(&setup, Overwrite::of(destroy)).map_err(usage)?;
    let notes = devices.notes().cloned().collect();
    let blocks = devices.blocks().map_err(usage)?;
    look_after_stack(&blocks)?;
    blocks.make(&setup, Contents::Zeros, mkfs::root_owner()).map_err(to_anyhow)?;
    wanted.ext4.journal_device.clone_from(&blocks.journal);
    Ok(MountStack { blocks, notes, name: format!("{}/{}", scenario.name, variant.name) })
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

/// The variant of this name, or the only one.
pub fn choose<'s>(scenario: &'s Scenario, name: Option<&str>) -> Result<&'s Variant> {
    let names = || {
        let names: Vec<&str> = scenario.variants.iter().map(|v| v.name.as_str()).collect();
        names.join(", ")
    };
    let found = match name {
        Some(name) => scenario.variants.iter().find(|v| v.name == name),
        None if scenario.variants.len() == 1 => scenario.variants.first(),
        None => {
            let which = format!("say which variant with --variant: {}", names());
            usage!("{}: {which}", scenario.name);
        }
    };
    found.ok_or_else(|| {
        let name = name.unwrap_or_default();
        Usage(format!("{}: no variant '{name}'; there are: {}", scenario.name, names())).into()
    })
}
