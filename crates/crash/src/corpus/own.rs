//! Steadfast's own file systems under the corpus: in process, in virtual time, on a RAM disk with a
//! volatile cache.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_devices::filter::record::{DeviceId, Durability, Media, Record, RecordLog};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::{AccessTimes, Ext4, MountOptions};
use steadfast_ext4_format::ondisk::RoCompat;
use steadfast_ext4_mkfs::{self as mkfs, JournalChoice, Options};
use steadfast_runtime::{Sim, sleep};
use steadfast_vfs::FileSystem;
use uuid::Uuid;

use super::explore::{Found, Recorded, Subject};
use super::run::{play, set_up};
use super::seen::use_it;
use super::step::Workload;
use crate::e2fsck::E2fsck;

/// 2024-01-01.
const EPOCH: u64 = 1_704_067_200;
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
    at_boot: Option<E2fsck>,
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
    ) -> Result<Own, String> {
        let id = |n: u8| Uuid::from_bytes([n; 16]);
        let ram = Ram::new("disk", DISK).persistent();
        let device: Arc<dyn BlockDevice> = Arc::new(ram.clone());
        let mut make = Options::new(id(1), id(2), EPOCH);
        make.block_size = Some(4096);
        make.journal = JournalChoice::InternalOf(LOG_BLOCKS);
        match kind {
            OwnKind::Ext4 => {}
            OwnKind::Ext4NoChecksums => make.features.ro_compat -= RoCompat::METADATA_CSUM,
            OwnKind::Ext2 => {
                make.features = Options::ext2_features();
                make.journal = JournalChoice::None;
            }
        }
        mkfs::make(&device, &make).map_err(|e| format!("making {name}: {e}"))?;
        let at_boot = match kind {
            OwnKind::Ext4 | OwnKind::Ext4NoChecksums => None,
            OwnKind::Ext2 => Some(E2fsck::find().ok_or("e2fsck is not installed")?),
        };
        let access_times = AccessTimes::Never;
        let options = MountOptions { simulated_epoch: EPOCH, access_times, ..options };
        let (name, formatted) = (name.to_owned(), ram.store());
        Ok(Own { name, options, formatted, at_boot, lying: false, media: Media::default(), linger })
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

fn mounted(options: &MountOptions, disk: &Arc<dyn BlockDevice>) -> Result<Arc<Ext4>, String> {
    Ext4::mount(Arc::clone(disk), options.clone())
        .map_err(|e| format!("the mount was refused: {e}"))
}

fn recorded(
    options: &MountOptions,
    ram: &Ram,
    durability: Durability,
    linger: Duration,
    workload: &Workload,
) -> Result<Recorded, String> {
    let plain: Arc<dyn BlockDevice> = Arc::new(ram.clone());
    let fs = mounted(options, &plain)?;
    set_up(&*fs, workload)?;
    fs.unmount().map_err(|e| format!("unmounting after the set-up: {e}"))?;
    let log = RecordLog::new();
    let cached = Arc::new(ram.clone().with_volatile_cache());
    let device: Arc<dyn BlockDevice> = Arc::new(Record::with_durability(cached, &log, durability));
    let fs = mounted(options, &device)?;
    // What a mount writes is durable.
    fs.sync().map_err(|e| format!("sync: {e}"))?;
    device.flush().map_err(|e| format!("flush: {e}"))?;
    let bases = log.begin_anew(|| vec![ram.store()]).ok_or("something is in flight")?;
    let story = play(&*fs, &log, workload)?;
    sleep(linger);
    let recording = log.take();
    // What reaches the disk now is no longer of interest.
    let _ = fs.unmount();
    Ok(Recorded { bases, recording, story })
}

fn recovered(options: &MountOptions, contents: Store) -> Found {
    let ram = Ram::from_store("disk", contents).persistent();
    let disk: Arc<dyn BlockDevice> = Arc::new(ram);
    let fs = match mounted(options, &disk) {
        Ok(fs) => fs,
        Err(why) => return Found::refused(why),
    };
    let mut found = Found::look(&*fs);
    if let Err(e) = fs.unmount() {
        found.damage.push(format!("it cannot be unmounted: {e}"));
    }
    drop(fs);
    match steadfast_ext4_check::check(&disk, None) {
        Ok(report) => found.damage.extend(report.findings.iter().map(ToString::to_string)),
        Err(e) => found.damage.push(format!("the structure check failed: {e}")),
    }
    match mounted(options, &disk) {
        Ok(fs) => {
            found.usable = use_it(&*fs);
            // What it leaves is of no interest.
            let _ = fs.unmount();
        }
        Err(why) => found.damage.push(format!("it cannot be mounted again: {why}")),
    }
    found
}

impl Subject for Own {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn record(&self, workload: &Workload) -> Result<Recorded, String> {
        let (options, workload, linger) = (self.options.clone(), workload.clone(), self.linger);
        let ram = Ram::from_store("disk", self.formatted.clone()).persistent();
        let durability = if self.lying { LYING } else { Durability::OnFlush };
        let ran = Sim::new(1)
            .run(move || recorded(&options, &ram, durability, linger, &workload))
            .unwrap_or_else(|stuck| Err(format!("the run stopped: {stuck}")));
        let recorded = ran.map_err(|why| format!("{}: {why}", self.name))?;
        let recording = recorded.recording.with_media(DeviceId(0), self.media);
        Ok(Recorded { recording, ..recorded })
    }

    fn recover(&self, mut contents: Vec<Store>) -> Result<Found, String> {
        let Some(mut disk) = contents.pop() else { return Err("there is no disk".into()) };
        let mut by_hand = None;
        if let Some(e2fsck) = &self.at_boot {
            (disk, by_hand) = e2fsck.at_boot(&disk)?;
        }
        let options = self.options.clone();
        let mut found = Sim::new(1)
            .run(move || recovered(&options, disk))
            .unwrap_or_else(|stuck| Found::refused(format!("recovery stopped: {stuck}")));
        let needed = |said: String| format!("manual repair is needed: {said}");
        found.by_hand = by_hand.is_some();
        found.damage.extend(by_hand.map(needed));
        Ok(found)
    }
}
