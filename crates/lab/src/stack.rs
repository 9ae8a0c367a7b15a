//! Builds what a variant describes: devices, file system, mount.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_devices::model::Model;
use steadfast_ext4::mkfs::{self, Contents, JournalChoice, JournalDeviceOptions, Options};
use steadfast_ext4::mount::{AccessTimes, DataMode, MountOptions};
use steadfast_vfs::TransactPolicy;

use crate::scenario::{Scenario, Variant};

/// Seconds since 1970 at which every simulated machine begins: 2024-01-01.
pub const EPOCH_SECONDS: u64 = 1_704_067_200;

/// A variant's devices: the disk and, where it has one, the journal's.
#[derive(Clone)]
pub struct Devices {
    /// Holds the file system.
    pub disk: Arc<dyn Model>,
    /// Holds an external journal.
    pub journal: Option<Arc<dyn Model>>,
}

impl Devices {
    /// Builds a variant's devices, all zeros.
    pub fn build(scenario: &Scenario, variant: &Variant) -> Result<Devices, String> {
        // OK to index: the scenario's check found every device described.
        let device = |name: &String| scenario.devices[name].build(name).map_err(|e| e.to_string());
        let journal = variant.journal.as_ref().map(device).transpose()?;
        Ok(Devices { disk: device(&variant.disk)?, journal })
    }

    /// Disk first, then the journal's device.
    pub fn all(&self) -> impl Iterator<Item = &Arc<dyn Model>> {
        std::iter::once(&self.disk).chain(&self.journal)
    }

    /// The disk as blocks.
    pub fn disk_blocks(&self) -> Arc<dyn BlockDevice> {
        Arc::clone(&self.disk) as Arc<dyn BlockDevice>
    }

    /// The journal's device as blocks.
    pub fn journal_blocks(&self) -> Option<Arc<dyn BlockDevice>> {
        self.journal.as_ref().map(|j| Arc::clone(j) as Arc<dyn BlockDevice>)
    }
}

/// Makes the file system, and the journal where it is external. The identity follows from the
/// simulation's seed. `contents` is what the disk holds.
pub fn make(
    disk: &Arc<dyn BlockDevice>,
    journal: Option<&Arc<dyn BlockDevice>>,
    variant: &Variant,
    contents: Contents,
) -> Result<(), String> {
    let mut options = mkfs_options(&variant.mkfs)?;
    options.contents = contents;
    if let Some(device) = journal {
        let block_size = options.block_size.unwrap_or(4096);
        options.block_size = Some(block_size);
        let journal_options = JournalDeviceOptions {
            block_size,
            zeros: true,
            ..JournalDeviceOptions::random(EPOCH_SECONDS)
        };
        mkfs::make_journal_device(device, &journal_options).map_err(|e| e.to_string())?;
        options.journal =
            JournalChoice::External { device: Arc::clone(device), accept_volatile: false };
    }
    mkfs::make(disk, &options).map(drop).map_err(|e| e.to_string())
}

/// mkfs options of a scenario: `-b BYTES`, `-N COUNT`, `-i BYTES`, `-m PERCENT`.
pub fn mkfs_options(text: &str) -> Result<Options, String> {
    let mut options = Options::random(EPOCH_SECONDS);
    let mut words = text.split_whitespace();
    while let Some(option) = words.next() {
        let value = words.next().ok_or_else(|| format!("mkfs option {option}: no value"))?;
        let number = || value.parse().map_err(|e| format!("mkfs {option} {value}: {e}"));
        match option {
            "-b" => options.block_size = Some(number()?),
            "-N" => options.inodes = Some(number()?),
            "-i" => options.inode_ratio = Some(number()?),
            "-m" => {
                options.reserved_percent =
                    value.parse().map_err(|e| format!("mkfs {option} {value}: {e}"))?;
            }
            _ => return Err(format!("mkfs option {option} is not known; known: -b -N -i -m")),
        }
    }
    Ok(options)
}

/// Mount options as a scenario writes them: `data=MODE`, `journal_async_commit`, `commit=SECONDS`,
/// `nodelalloc`, `noauto_da_alloc`, `accept_volatile`; with data=transact, `transact=WORD,WORD...`.
pub fn mount_options(text: &str) -> Result<MountOptions, String> {
    let mut options = MountOptions {
        simulated_epoch: EPOCH_SECONDS,
        // What is measured is what the workload asks for.
        access_times: AccessTimes::Never,
        ..MountOptions::default()
    };
    let mut transact: Option<String> = None;
    for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
        if let Some(words) = &mut transact
            && TransactPolicy::is_word(word)
        {
            words.push(',');
            words.push_str(word);
            continue;
        }
        match word.split_once('=') {
            Some(("data", "writeback")) => options.data = DataMode::Writeback,
            Some(("data", "ordered")) => options.data = DataMode::Ordered,
            Some(("data", "journal")) => options.data = DataMode::Journal,
            Some(("data", "transact")) => options.data = DataMode::Transact,
            Some(("transact", words)) => transact = Some(words.into()),
            Some(("commit", seconds)) => {
                let seconds: u64 =
                    seconds.parse().map_err(|e| format!("mount option {word}: {e}"))?;
                options.journal.commit_interval = Duration::from_secs(seconds.max(1));
            }
            None if word == "journal_async_commit" => options.journal.async_commit = true,
            None if word == "nodelalloc" => options.delayed_allocation = false,
            None if word == "delalloc" => options.delayed_allocation = true,
            None if word == "auto_da_alloc" => options.auto_da_alloc = true,
            None if word == "noauto_da_alloc" => options.auto_da_alloc = false,
            None if word == "accept_volatile" => options.journal.accept_volatile = true,
            _ => {
                return Err(format!(
                    "mount option '{word}' is not known; known: \
                     data=writeback|ordered|journal|transact, transact=WORDS, \
                     journal_async_commit, commit=SECONDS, delalloc, nodelalloc, \
                     auto_da_alloc, noauto_da_alloc, accept_volatile"
                ));
            }
        }
    }
    if let Some(words) = transact {
        options.transact = words.parse().map_err(|e| format!("mount option transact=: {e}"))?;
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_or_named() {
        let o = mount_options("data=writeback,journal_async_commit,commit=9").unwrap();
        assert_eq!(o.data, DataMode::Writeback);
        assert!(o.journal.async_commit);
        assert_eq!(o.journal.commit_interval, Duration::from_secs(9));
        let o = mount_options("data=transact,transact=fsync,timed=5s,commit=9").unwrap();
        assert_eq!(o.transact, "timed=5s,fsync".parse().unwrap());
        assert!(mount_options("transact=fsyn").unwrap_err().contains("'fsyn'"));
        assert!(mount_options("data=mirrored").unwrap_err().contains("data=mirrored"));
        assert_eq!(mkfs_options("-b 1024 -m 0").unwrap().block_size, Some(1024));
        assert!(mkfs_options("-z 3").unwrap_err().contains("-z"));
    }
}
