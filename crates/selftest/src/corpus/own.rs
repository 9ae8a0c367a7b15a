//! Steadfast's own file systems under the corpus: in process, in virtual time, on a RAM disk with a
//! volatile cache.

use std::sync::Arc;
use std::time::Duration;

use steadfast_crash::CrashError;
use steadfast_crash::e2fsck::E2fsck;
use steadfast_crash::explore::ext4::{blocks, make, mount, recorded};
use steadfast_crash::explore::{OnRam, RebootTarget, System};
use steadfast_devices::filter::record::{Durability, Media, RecordLog};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::options::OPTIONS;
use steadfast_ext4::{AccessTimes, MountOptions};
use steadfast_ext4_format::ondisk::RoCompat;
use steadfast_ext4_mkfs::{JournalChoice, JournalDeviceOptions, Options};
use steadfast_runtime::{Sim, sleep};
use steadfast_vfs::FileSystem;
use steadfast_vfs::options::{WordEffect, apply};
use uuid::Uuid;

use super::explore::{CorpusRun, Player, Subject};
use super::run::set_up;
use super::step::Workload;
use crate::devices::EPOCH;

/// Bytes of the disk: room for a log of 4 MiB and three thousand names.
const DISK: u64 = 16 << 20;
/// The fewest blocks of a log.
const LOG_BLOCKS: u32 = 1024;
/// A drive that ignores flushes keeps so much, for longer than a workload takes.
const LYING: Durability =
    Durability::Lying { cache_bytes: 64 << 20, drains_within: Duration::from_secs(3600) };

/// Which of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnKind {
    /// With a journal, and checksums in it and in the metadata.
    Ext4,
    /// With a journal, without checksums.
    Ext4NoChecksums,
    /// Without one: `e2fsck -p` repairs it at each boot.
    Ext2,
}

/// One of Steadfast's file systems.
pub struct Own {
    name: String,
    options: MountOptions,
    formatted: Store,
    machine: Arc<dyn RebootTarget>,
    lying: bool,
    media: Media,
    linger: Duration,
}

impl Own {
    /// A file system of this kind, mounted with these options, on an honest disk. A run goes on
    /// for `linger` after its last operation.
    ///
    /// # Errors
    /// It cannot be made; ext2: e2fsck is not installed.
    pub fn new(
        name: &str,
        kind: OwnKind,
        options: MountOptions,
        linger: Duration,
    ) -> steadfast_crash::Result<Own> {
        let id = |n: u8| Uuid::from_bytes([n; 16]);
        let ram = Ram::new("disk", DISK).persistent();
        let mut how = Options::new(id(1), id(2), EPOCH);
        how.block_size = Some(4096);
        how.journal = JournalChoice::InternalOf(LOG_BLOCKS);
        match kind {
            OwnKind::Ext4 => {}
            OwnKind::Ext4NoChecksums => how.features.ro_compat -= RoCompat::METADATA_CSUM,
            OwnKind::Ext2 => {
                how.features = Options::ext2_features();
                how.journal = JournalChoice::None;
            }
        }
        make(&blocks(std::slice::from_ref(&ram)), how, JournalDeviceOptions::random)
            .map_err(|e| format!("making {name}: {e}"))?;
        let access_times = AccessTimes::Never;
        let options = MountOptions { simulated_epoch: EPOCH, access_times, ..options };
        let machine = OnRam::new(options.clone());
        let machine = match kind {
            OwnKind::Ext4 | OwnKind::Ext4NoChecksums => machine,
            OwnKind::Ext2 => {
                let missing = || CrashError::host("e2fsck is not installed");
                machine.repaired_by(E2fsck::find().ok_or_else(missing)?)
            }
        };
        let (name, formatted, machine) = (name.to_owned(), ram.store(), machine.shared());
        Ok(Own { name, options, formatted, machine, lying: false, media: Media::default(), linger })
    }

    /// One in words: ext4 or ext2, mount options after colons, as in `ext4:data=journal`.
    ///
    /// # Errors
    /// Words that are not known, or as of [`new`](Self::new).
    pub fn of_words(name: &str, linger: Duration) -> steadfast_crash::Result<Own> {
        let mut words = name.split(':');
        let kind = match words.next() {
            Some("ext4") => OwnKind::Ext4,
            Some("ext2") => OwnKind::Ext2,
            _ => return Err(format!("{name}: not ext4 or ext2").into()),
        };
        let mut options = MountOptions::default();
        for word in words {
            match apply(OPTIONS, word, &mut options) {
                Ok(WordEffect::Set) => {}
                Ok(_) => {
                    return Err(format!("{name}: {word} is no option, or has no effect").into());
                }
                Err(e) => return Err(format!("{name}: {e}").into()),
            }
        }
        Own::new(name, kind, options, linger)
    }

    /// On a disk of another medium.
    #[must_use]
    pub fn on(mut self, media: Media) -> Own {
        self.media = media;
        self
    }

    /// On a disk that ignores flushes: the control.
    #[must_use]
    pub fn on_a_lying_disk(mut self) -> Own {
        self.lying = true;
        self.name += ", flushes ignored";
        self
    }
}

fn run(
    options: &MountOptions,
    ram: &Ram,
    durability: Durability,
    linger: Duration,
    (workload, player): (&Workload, &Player),
) -> steadfast_crash::Result<CorpusRun> {
    let refused = |why| format!("the mount was refused: {why}");
    let fs = mount(&blocks(std::slice::from_ref(ram)), options.clone()).map_err(refused)?;
    set_up(&*fs, workload)?;
    fs.unmount().map_err(|e| format!("unmounting after the set-up: {e}"))?;
    let log = RecordLog::new();
    let cached = Arc::new(ram.clone().with_volatile_cache());
    let device = recorded(cached, &log, Some(durability));
    let fs = mount(&[Arc::clone(&device)], options.clone()).map_err(refused)?;
    // What a mount writes is durable.
    fs.sync().map_err(|e| format!("sync: {e}"))?;
    device.flush().map_err(|e| format!("flush: {e}"))?;
    let bases =
        log.begin_anew(|| vec![ram.store()]).ok_or_else(|| "something is in flight".to_owned())?;
    let played = player(&(Arc::clone(&fs) as Arc<dyn FileSystem>), &log, workload)?;
    sleep(linger);
    let recording = log.take();
    // What reaches the disk now is no longer of interest.
    let _ = fs.unmount();
    Ok(CorpusRun::new(bases, recording, played))
}

impl Subject for Own {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn record(&self, workload: &Workload, player: &Player) -> steadfast_crash::Result<CorpusRun> {
        let player = Arc::clone(player);
        let (options, workload, linger) = (self.options.clone(), workload.clone(), self.linger);
        let ram = Ram::from_store("disk", self.formatted.clone()).persistent();
        let durability = if self.lying { LYING } else { Durability::OnFlush };
        let ran = Sim::new(1)
            .run(move || run(&options, &ram, durability, linger, (&workload, &player)))
            .unwrap_or_else(|stuck| Err(format!("the run stopped: {stuck}").into()));
        let CorpusRun { recorded, refused } = ran.map_err(|why| format!("{}: {why}", self.name))?;
        Ok(CorpusRun { recorded: recorded.on_media(0, self.media), refused })
    }

    fn system(&self) -> &dyn System {
        &self.machine
    }
}
