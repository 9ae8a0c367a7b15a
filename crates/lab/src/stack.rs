//! Builds what a variant describes: devices, file system, mount.

use std::sync::Arc;

use steadfast_block::{BlockDevice, is_zero};
use steadfast_crash::risk::old_contents;
use steadfast_devices::filter::{Schedule, schedule};
use steadfast_devices::model::Model;
use steadfast_devices::store::Store;
use steadfast_ext4::Ext4;
use steadfast_ext4::options as ext4;
use steadfast_ext4::{AccessTimes, MountOptions};
use steadfast_ext4_mkfs::option_table::apply_line;
use steadfast_ext4_mkfs::{self as mkfs, Contents, JournalChoice, JournalDeviceOptions, Options};
use steadfast_runtime::Sim;
use steadfast_vfs::options::{self, Applied, WrongOption};

use crate::driver::{Driver, DriverCost};
use crate::namespace::Namespace;
use crate::scenario::{Scenario, Variant};
pub use crate::volumes::Volumes;
use crate::volumes::{Open, Tree};
use crate::{LabError, OptionsError, VariantError};

/// Seconds since 1970 at which every simulated machine begins: 2024-01-01.
pub(crate) const EPOCH_SECONDS: u64 = 1_704_067_200;

/// A variant's devices, and what its disk and its journal are made of.
#[derive(Clone)]
pub struct Devices {
    /// In the order of [`Scenario::leaves`].
    leaves: Vec<Leaf>,
    disk: Tree,
    journal: Option<Tree>,
    scheduler: Option<schedule::Settings>,
}

/// What is put over a device, which has this name: a recording, or nothing.
pub(crate) type Over<'a> = dyn FnMut(&str, &Arc<dyn Model>) -> Arc<dyn BlockDevice> + 'a;

/// A device of a variant.
#[derive(Clone)]
struct Leaf {
    name: String,
    model: Arc<dyn Model>,
    namespace: Namespace,
    driver: DriverCost,
}

/// A variant's devices as the file system sees them.
#[derive(Clone)]
pub struct Blocks {
    /// The disk, behind its scheduler where it has one.
    pub disk: Arc<dyn BlockDevice>,
    /// The journal's device.
    pub journal: Option<Arc<dyn BlockDevice>>,
    /// That scheduler.
    pub queue: Option<Arc<Schedule>>,
    /// The volumes of both.
    pub(crate) volumes: Open,
}

impl Devices {
    /// Builds a variant's devices, all zeros.
    pub fn build(scenario: &Scenario, variant: &Variant) -> Result<Devices, VariantError> {
        let scheduler = scenario.scheduler_of(variant).cloned();
        Devices::of(scenario, (&variant.disk, variant.journal.as_deref()), scheduler)
    }

    /// The devices of these, all zeros.
    fn of(
        scenario: &Scenario,
        (disk, journal): (&str, Option<&str>),
        scheduler: Option<schedule::Settings>,
    ) -> Result<Devices, VariantError> {
        let mut names = Vec::new();
        let disk = Tree::of(scenario, disk, &mut names);
        let journal = journal.map(|j| Tree::of(scenario, j, &mut names));
        let leaf = |name: String| -> Result<Leaf, VariantError> {
            // OK to index: the scenario's check found every device described.
            let model = scenario.devices[&name].build(&name)?;
            let driver = scenario.drivers.get(&name).copied().unwrap_or_default();
            let namespace = scenario.namespaces.get(&name).copied().unwrap_or_default();
            Ok(Leaf { name, model, namespace, driver })
        };
        let leaves = names.into_iter().map(leaf).collect::<Result<_, VariantError>>()?;
        Ok(Devices { leaves, disk, journal, scheduler })
    }

    /// Those of the disk first, then those of the journal.
    pub fn all(&self) -> impl Iterator<Item = &Arc<dyn Model>> {
        self.leaves.iter().map(|leaf| &leaf.model)
    }

    /// Fills them with what they held before ([`old_contents`]), to be seen by nobody.
    pub(crate) fn fill(&self) -> Result<(), VariantError> {
        for device in self.all() {
            device.set_contents(old_contents(device.info().size))?;
        }
        Ok(())
    }

    /// Whether the disk or the journal is a volume.
    pub(crate) fn has_volumes(&self) -> bool {
        let is_volume = |tree: &Tree| matches!(tree, Tree::Volume { .. });
        is_volume(&self.disk) || self.journal.as_ref().is_some_and(is_volume)
    }

    /// Whether the file system sees what the devices hold, byte by byte.
    pub(crate) fn are_seen_as_they_are(&self) -> bool {
        let moves = |leaf: &Leaf| leaf.namespace == Namespace::Sector;
        !self.has_volumes() && !self.leaves.iter().any(moves)
    }

    /// The disk over devices that stand for these.
    pub(crate) fn open_disk(
        &self,
        devices: &[Arc<dyn BlockDevice>],
        state: Volumes,
        open: &mut Open,
    ) -> Result<Arc<dyn BlockDevice>, VariantError> {
        self.disk.open(devices, state, open)
    }

    /// As the file system sees them, with new volumes.
    ///
    /// # Errors
    /// A volume cannot be made, with the reason.
    pub fn blocks(&self) -> Result<Blocks, VariantError> {
        self.blocks_over(Volumes::New, &mut |_, model| Arc::clone(model) as Arc<dyn BlockDevice>)
    }

    /// The same, with something over each device: below its driver, the volumes and the scheduler.
    ///
    /// # Errors
    /// A volume cannot be made or assembled, with the reason.
    pub(crate) fn blocks_over(
        &self,
        state: Volumes,
        over: &mut Over<'_>,
    ) -> Result<Blocks, VariantError> {
        let mut device = |leaf: &Leaf| -> Result<Arc<dyn BlockDevice>, VariantError> {
            let device = leaf.namespace.open(over(&leaf.name, &leaf.model), state)?;
            Ok(match leaf.driver.is_some() {
                true => Arc::new(Driver::new(device, leaf.driver)),
                false => device,
            })
        };
        let devices = self.leaves.iter().map(&mut device).collect::<Result<Vec<_>, _>>()?;
        let mut volumes = Open::default();
        let disk = self.disk.open(&devices, state, &mut volumes)?;
        let journal = self.journal.as_ref().map(|j| j.open(&devices, state, &mut volumes));
        let blocks = Blocks::new(disk, journal.transpose()?, self.scheduler.as_ref());
        Ok(Blocks { volumes, ..blocks })
    }
}

impl Blocks {
    /// Puts the scheduler, if there is one, before the disk.
    pub fn new(
        disk: Arc<dyn BlockDevice>,
        journal: Option<Arc<dyn BlockDevice>>,
        scheduler: Option<&schedule::Settings>,
    ) -> Blocks {
        let queue = scheduler.map(|s| Arc::new(Schedule::new(Arc::clone(&disk), s.clone())));
        let disk = queue.as_ref().map_or(disk, |q| Arc::clone(q) as Arc<dyn BlockDevice>);
        Blocks { disk, journal, queue, volumes: Open::default() }
    }

    /// Waits until everything written is durable.
    ///
    /// # Errors
    /// The first device that fails.
    pub fn flush(&self) -> Result<(), VariantError> {
        Ok(std::iter::once(&self.disk).chain(&self.journal).try_for_each(|d| d.flush())?)
    }

    /// Ends the use of the volumes.
    ///
    /// # Errors
    /// The first that cannot be closed.
    pub fn close(&self) -> Result<(), VariantError> {
        self.volumes.close()
    }
}

/// A device or volume of a scenario by itself, new.
///
/// # Errors
/// It cannot be built, with the reason.
pub fn device(scenario: &Scenario, name: &str) -> Result<Arc<dyn BlockDevice>, VariantError> {
    Ok(Devices::of(scenario, (name, None), None)?.blocks()?.disk)
}

/// What a device holds now, read through it: of a volume nobody else knows.
///
/// # Errors
/// The device fails.
pub fn contents_of(device: &Arc<dyn BlockDevice>) -> Result<Store, VariantError> {
    const PIECE: u64 = 1 << 20;
    let size = device.info().size;
    let mut store = Store::new(size);
    let mut at = 0;
    while at < size {
        let data = device.read(at, PIECE.min(size - at))?;
        let len = data.len() as u64;
        if !is_zero(&data) {
            store.write_slice(at, &data);
        }
        at += len;
    }
    Ok(store)
}

/// Makes the file system, and the journal where it is external. The identity follows from the
/// simulation's seed. `contents` is what the disk holds.
pub fn make(
    disk: &Arc<dyn BlockDevice>,
    journal: Option<&Arc<dyn BlockDevice>>,
    variant: &Variant,
    contents: Contents,
) -> Result<(), VariantError> {
    make_owned(disk, journal, variant, contents, (0, 0))
}

/// As [`make`], with the root folder for this user and group.
///
/// # Errors
/// As [`make`].
pub fn make_owned(
    disk: &Arc<dyn BlockDevice>,
    journal: Option<&Arc<dyn BlockDevice>>,
    variant: &Variant,
    contents: Contents,
    root_owner: (u32, u32),
) -> Result<(), VariantError> {
    let mut options = read_mkfs_options(&variant.mkfs)
        .map_err(|wrong| OptionsError(wrong.into_iter().map(|(_, what)| what).collect()))?;
    options.contents = contents;
    options.root_owner = root_owner;
    if let Some(device) = journal {
        let block_size = options.block_size.unwrap_or(4096);
        options.block_size = Some(block_size);
        let journal_options = JournalDeviceOptions {
            block_size,
            zeros: true,
            ..JournalDeviceOptions::random(EPOCH_SECONDS)
        };
        mkfs::make_journal_device(device, &journal_options)?;
        options.journal =
            JournalChoice::External { device: Arc::clone(device), accept_volatile: false };
    }
    mkfs::make(disk, &options)?;
    Ok(())
}

/// Makes a variant's file system on its devices, mounts and unmounts it, in a simulation: what mkfs
/// and the mount refuse, options that do not go together or a journal that has no room, is known
/// then. Nothing to try of the kernel's file systems.
///
/// # Errors
/// The variant cannot be built, with the reason.
pub fn try_out(scenario: &Scenario, variant: &Variant) -> Result<(), LabError> {
    if variant.kernel.is_some() {
        return Ok(());
    }
    let (scenario, v) = (scenario.clone(), variant.clone());
    let tried = Sim::new(1).run(move || -> Result<(), VariantError> {
        let devices = Devices::build(&scenario, &v)?;
        let blocks = devices.blocks()?;
        make(&blocks.disk, blocks.journal.as_ref(), &v, Contents::Zeros)?;
        let mut options = mount_options(&v.mount)?;
        options.journal_device = blocks.journal.clone();
        let fs = Ext4::mount(Arc::clone(&blocks.disk), options)?;
        fs.unmount().map_err(VariantError::Unmount)?;
        blocks.close()
    });
    tried.map_err(VariantError::from).flatten().map_err(|e| e.of(variant))
}

/// mkfs options as a scenario writes them: those that say what is to be made, and `-J size=MIB` of
/// a journal on the disk.
///
/// # Errors
/// All that cannot be taken: the word, and what is wrong with it.
pub(crate) fn read_mkfs_options(text: &str) -> Result<Options, Vec<(String, String)>> {
    let mut options = Options::random(EPOCH_SECONDS);
    let words: Vec<&str> = text.split_whitespace().collect();
    let Some(at) = words.iter().position(|word| *word == "-J") else {
        return apply_line(&mut options, text).map(|()| options);
    };
    let value = words.get(at + 1).copied().unwrap_or_default();
    let mib = value.strip_prefix("size=").and_then(|v| v.parse::<u32>().ok());
    let rest = [&words[..at], words.get(at + 2..).unwrap_or_default()].concat().join(" ");
    let mut wrong = apply_line(&mut options, &rest).err().unwrap_or_default();
    let block_size = u64::from(options.block_size.unwrap_or(4096));
    match mib.and_then(|mib| u32::try_from((u64::from(mib) << 20) / block_size).ok()) {
        Some(blocks) => options.journal = JournalChoice::InternalOf(blocks),
        None => wrong.push((value.into(), format!("mkfs option -J {value}: it is size=MIB"))),
    }
    if wrong.is_empty() { Ok(options) } else { Err(wrong) }
}

/// Mount options as a scenario writes them: those of the file system (docs/mount.md).
///
/// # Errors
/// All that cannot be taken.
pub(crate) fn read_mount_options(text: &str) -> Result<MountOptions, Vec<WrongOption>> {
    let mut read = MountOptions {
        simulated_epoch: EPOCH_SECONDS,
        // What is measured is what the workload asks for.
        access_times: AccessTimes::Never,
        ..MountOptions::default()
    };
    // As a mount has it: `sync` that follows another option is no transaction point's word.
    let is_other = |word: &str| {
        options::apply(steadfast_fuse::OPTIONS, word, &mut steadfast_fuse::Options::default())
            .is_ok_and(|applied| applied != Applied::Unknown)
    };
    let words = options::split(ext4::OPTIONS, text, is_other);
    read.data_given = words.iter().find(|word| ext4::speaks_of_journal(word)).cloned();
    let mut wrong: Vec<WrongOption> =
        words.iter().filter_map(|word| mount_option(word, &mut read).err()).collect();
    wrong.extend(ext4::check_together(&read, &words).err());
    if wrong.is_empty() { Ok(read) } else { Err(wrong) }
}

fn mount_option(word: &str, to: &mut MountOptions) -> Result<(), WrongOption> {
    let wrong = |what| Err(WrongOption::new(word, what));
    if matches!(word, "ro" | "noload" | "norecovery") {
        return wrong("a variant is written to");
    }
    if options::apply(ext4::OPTIONS, word, to)? != Applied::Unknown {
        return Ok(());
    }
    let mut of_mounts = steadfast_fuse::Options::default();
    match options::apply(steadfast_fuse::OPTIONS, word, &mut of_mounts)? {
        Applied::Unknown => Err(options::unknown(word, &options::names(ext4::OPTIONS))),
        _ => wrong("is for mount points: a variant is used in process"),
    }
}

/// As `read_mount_options`, with what is wrong in one line.
///
/// # Errors
/// All that cannot be taken.
pub fn mount_options(text: &str) -> Result<MountOptions, OptionsError> {
    read_mount_options(text)
        .map_err(|wrong| OptionsError(wrong.iter().map(ToString::to_string).collect()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use steadfast_ext4::DataMode;

    use super::*;

    #[test]
    fn options_are_read_or_named() {
        let o = mount_options("data=writeback,journal_async_commit,commit=9").unwrap();
        assert_eq!(o.data, DataMode::Writeback);
        assert!(o.journal.async_commit);
        assert_eq!(o.journal.commit_interval, Duration::from_secs(9));
        let o = mount_options("data=transact,transact=fsync,timed=5s,commit=9").unwrap();
        assert_eq!(o.transact, "timed=5s,fsync".parse().unwrap());
        assert!(mount_options("transact=fsyn").unwrap_err().to_string().contains("'fsyn'"));
        assert!(mount_options("data=mirrored").unwrap_err().to_string().contains("data=mirrored"));
        // As a mount takes it, and a mount's own is refused.
        let apart = mount_options("data=transact,transact=fsync,noatime,sync").unwrap_err();
        assert!(apart.to_string().contains("sync: is for mount points"), "{apart}");
        assert!(mount_options("data=transact,transact=fsync,sync").is_ok());
        // Which a mount refuses where there is no journal.
        let given = mount_options("commit=9,data=journal").unwrap().data_given;
        assert_eq!(given.as_deref(), Some("data=journal"));
        let o = mount_options("fast_commit,cache=8m,relatime").unwrap();
        assert!(o.journal.fast_commits && o.cache_bytes == Some(8 << 20));
        assert_eq!(o.access_times, AccessTimes::Relative);
        let wrong = read_mount_options("noatme,ro,allow_other,commit=0,data=journal").unwrap_err();
        let words: Vec<&str> = wrong.iter().map(|w| w.word.as_str()).collect();
        assert_eq!(words, ["noatme", "ro", "allow_other", "commit=0"]);
        assert_eq!(read_mkfs_options("-b 1024 -m 0").unwrap().block_size, Some(1024));
        assert!(read_mkfs_options("-z 3").unwrap_err()[0].1.contains("-z"));
        let journal = read_mkfs_options("-J size=128 -b 4096").unwrap().journal;
        assert!(matches!(journal, JournalChoice::InternalOf(32768)));
        assert!(read_mkfs_options("-J device=x").unwrap_err()[0].1.contains("size=MIB"));
    }
}
