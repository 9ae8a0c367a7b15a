//! `--stack`: a scenario's variant, freshly made, in real time.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use steadfast_block::BlockDevice;
use steadfast_devices::filter::Schedule;
use steadfast_ext4_mkfs::Contents;
use steadfast_lab::scenario::{Scenario, Variant};
use steadfast_lab::stack::{self, Blocks, Devices};

use super::options::Wanted;
use crate::Usage;
use crate::commands::mkfs;

/// What is to be mounted.
pub struct Stack {
    /// Holds the file system; behind its request scheduler, if it has one.
    pub disk: Arc<dyn BlockDevice>,
    /// That scheduler.
    pub queue: Option<Arc<Schedule>>,
    /// SCENARIO/VARIANT.
    pub name: String,
}

/// Builds a variant's devices and makes its file system there; adds the variant's mount options
/// to those that were given, which come after them.
pub fn build(file: &str, variant: Option<&str>, wanted: &mut Wanted) -> Result<Stack> {
    let scenario = crate::commands::lab::find(file)?;
    let variant = choose(&scenario, variant)?;
    if let Some(kernel) = &variant.kernel {
        let why = format!(
            "variant '{}' is the kernel's own {kernel}: mount(8) mounts it, not steadfast",
            variant.name
        );
        return Err(Usage(why).into());
    }
    let devices = Devices::build(&scenario, variant).map_err(|e| Usage(e.to_string()))?;
    let Blocks { disk, journal, queue, .. } = devices.blocks().map_err(|e| Usage(e.to_string()))?;
    let owner = mkfs::root_owner();
    let made = stack::make_owned(&disk, journal.as_ref(), variant, Contents::Zeros, owner);
    made.map_err(|e| anyhow!(e))?;
    // Those that are there: the status has them joined by commas.
    let both = [variant.mount.clone(), wanted.text.clone()];
    let both: Vec<String> = both.into_iter().filter(|list| !list.is_empty()).collect();
    *wanted = super::options::parse(&both)?;
    wanted.ext4.journal_device = journal;
    Ok(Stack { disk, queue, name: format!("{}/{}", scenario.name, variant.name) })
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
            return Err(Usage(format!("{}: {which}", scenario.name)).into());
        }
    };
    found.ok_or_else(|| {
        let name = name.unwrap_or_default();
        Usage(format!("{}: no variant '{name}'; there are: {}", scenario.name, names())).into()
    })
}
