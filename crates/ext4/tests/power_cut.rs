//! The power is cut at many instants of a simulated run, in every data mode: what was
//! acknowledged is there, nothing foreign is, and e2fsck finds nothing wrong after recovery.

#[path = "power_cut/attributes.rs"]
mod attributes;
#[path = "power_cut/between.rs"]
mod between;
#[path = "power_cut/casefold.rs"]
mod casefold;
#[path = "power_cut/fast_maps.rs"]
mod fast_maps;
#[path = "power_cut/judge.rs"]
mod judge;
#[path = "power_cut/last_names.rs"]
mod last_names;
#[path = "power_cut/removed.rs"]
mod removed;
#[path = "power_cut/renamed.rs"]
mod renamed;
#[path = "power_cut/shaped.rs"]
mod shaped;
#[path = "power_cut/steps.rs"]
mod steps;
#[path = "power_cut/workload.rs"]
mod workload;

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_block::planted::BugSwitch;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::DeviceId;
use steadfast_devices::filter::{Durability, Record, RecordLog, Recording};
use steadfast_devices::model::ssd::SsdCache;
use steadfast_devices::model::{Model, ModelParams, NvramParams, SsdParams};
use steadfast_devices::store::Store;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_format::ondisk::{Compat, Incompat, RoCompat};
use steadfast_ext4_mkfs::{
    JournalChoice, JournalDeviceOptions, Options, make, make_journal_device,
};
use steadfast_runtime::Sim;

use judge::Judge;

const CUTS: u64 = 40;
/// Blocks of an internal journal.
const JOURNAL_BLOCKS: u32 = 2048;
/// More than twice what the tasks have in files at once: what they remove is free when the
/// removal is committed.
const FILES_BYTES: u64 = 32 << 20;
/// The same where each update is a transaction: the files are few and small. An internal journal
/// may take half of the disk.
const FEW_FILES_BYTES: u64 = 9 << 20;
/// So many files and directories; each has a cluster at least.
const FILES: u64 = 250;

/// How a file system is made and mounted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) data: DataMode,
    pub(crate) external: bool,
    pub(crate) async_commit: bool,
    pub(crate) block_size: u32,
    pub(crate) orphan_file: bool,
    pub(crate) delayed_allocation: bool,
    /// Without extents: ext3.
    pub(crate) block_maps: bool,
    /// Large attributes may have inodes for their values.
    pub(crate) value_inodes: bool,
    /// Bytes a cluster, with bigalloc.
    pub(crate) cluster_size: Option<u32>,
    /// There is a directory that ignores case.
    pub(crate) casefold: bool,
    /// An fsync is a fast commit where it can be.
    pub(crate) fast_commits: bool,
    /// There are quota files, which e2fsck compares with what is used.
    pub(crate) quotas: bool,
    /// The journal makes a transaction of each update.
    pub(crate) lone_updates: bool,
    /// Bytes of memory for contents: so few that checkpoints are forced long before the log is
    /// full.
    pub(crate) memory: Option<u64>,
    /// What the journal must not do.
    pub(crate) bug: Option<steadfast_journal::Bug>,
}

const PLAIN: Setup = Setup {
    data: DataMode::Ordered,
    external: false,
    async_commit: false,
    block_size: 4096,
    orphan_file: false,
    delayed_allocation: true,
    block_maps: false,
    value_inodes: false,
    cluster_size: None,
    casefold: false,
    fast_commits: false,
    quotas: false,
    lone_updates: false,
    memory: None,
    bug: None,
};

impl Setup {
    /// What the disk must have room for. Each cut is judged on an image of it: a larger one only
    /// takes longer.
    fn disk_bytes(&self) -> u64 {
        let journal =
            if self.external { 0 } else { u64::from(JOURNAL_BLOCKS) * u64::from(self.block_size) };
        let files = if self.lone_updates { FEW_FILES_BYTES } else { FILES_BYTES };
        journal + files + FILES * u64::from(self.cluster_size.unwrap_or(self.block_size))
    }

    pub(crate) fn options(&self, journal: Option<Arc<dyn BlockDevice>>) -> MountOptions {
        let mut options = MountOptions {
            data: self.data,
            journal_device: journal,
            delayed_allocation: self.delayed_allocation,
            ..MountOptions::default()
        };
        options.journal.async_commit = self.async_commit;
        options.journal.fast_commits = self.fast_commits;
        options.page_cache.memory_bytes = 16 << 20;
        if self.lone_updates {
            options.journal.image_bytes_max = 1;
        }
        if let Some(bytes) = self.memory {
            options.limit_memory(bytes);
        }
        options.journal.planted = self.bug.map(BugSwitch::with).unwrap_or_default();
        options
    }
}

/// What a run leaves for the judge.
pub(crate) struct Run {
    recording: Recording,
    /// Contents when recording began, one a device.
    bases: Vec<Store>,
}

impl Run {
    fn first_crash_point(&self) -> u64 {
        self.recording.first_crash_point()
    }

    fn last_crash_point(&self) -> u64 {
        self.recording.last_crash_point()
    }

    /// Contents of the devices that a cut may leave.
    fn contents(&self, cut: u64, keep: u64, rng: &mut Rng) -> Vec<Store> {
        let devices = self.bases.iter().zip(0..);
        devices
            .map(|(base, i)| self.recording.at(DeviceId(i), cut).contents(base, 0, keep, rng))
            .collect()
    }
}

fn disk(bytes: u64) -> Arc<dyn Model> {
    let params =
        SsdParams { sectors: bytes / 512, write_cache: SsdCache::Volatile, ..SsdParams::default() };
    ModelParams::Ssd(params).build("disk").unwrap()
}

fn card() -> Arc<dyn Model> {
    let params = NvramParams { size_mib: 8, initialised: true, ..NvramParams::default() };
    ModelParams::Nvram(params).build("card").unwrap()
}

fn run(setup: Setup, seed: u64, lying: bool) -> Run {
    run_with(setup, seed, lying, move |fs, log| {
        if setup.casefold {
            casefold::run(fs, log);
        } else {
            workload::run(fs, log, setup.fast_commits);
        }
        let made = fs.journal().map_or(0, |journal| journal.stats().fast_commits);
        assert!(!setup.fast_commits || made >= 10, "{made} fast commits");
        if let (Some(_), Some(journal)) = (setup.memory, fs.journal()) {
            let (stats, log) = (journal.stats(), u64::from(journal.usage().1));
            let before_it_was_full = stats.checkpoints > 10 * (stats.logged_blocks / log + 1);
            assert!(before_it_was_full && stats.space_waits > 10, "{stats:?}, {log}");
        }
    })
}

/// Records what `work` does.
fn run_with(
    setup: Setup,
    seed: u64,
    lying: bool,
    work: impl FnOnce(&Arc<Ext4>, &RecordLog) + Send + 'static,
) -> Run {
    Sim::new(seed)
        .run(move || {
            let bytes = setup.disk_bytes();
            let (disk, card) = (disk(bytes), card());
            // What was there before: to be seen by nobody.
            let mut old = Store::new(bytes);
            for at in (0..bytes).step_by(1 << 10) {
                let data = steadfast_block::pattern::bytes(judge::FOREIGN_TAG, at, 1 << 10);
                old.write_slice(at, &data);
            }
            disk.set_contents(old).unwrap();
            let disk_device: Arc<dyn BlockDevice> = disk.clone();
            let card_device: Arc<dyn BlockDevice> = card.clone();
            let mut options = Options::random(1_700_000_000);
            if setup.orphan_file {
                options.features = Options::upstream_features();
            }
            if setup.block_maps {
                options.features = Options::ext2_features();
            }
            if setup.value_inodes {
                options.features.incompat |= Incompat::EA_INODE;
            }
            if setup.cluster_size.is_some() {
                options.features.ro_compat |= RoCompat::BIGALLOC;
                options.cluster_size = setup.cluster_size;
            }
            if setup.casefold {
                options.features.incompat |= Incompat::CASEFOLD;
            }
            if setup.quotas {
                options.features.ro_compat |= RoCompat::QUOTA;
            }
            if setup.fast_commits {
                options.features.compat |= Compat::FAST_COMMIT;
            }
            options.block_size = Some(setup.block_size);
            options.journal = JournalChoice::InternalOf(JOURNAL_BLOCKS);
            if setup.external {
                let mut journal = JournalDeviceOptions::random(1_700_000_000);
                journal.block_size = setup.block_size;
                make_journal_device(&card_device, &journal).unwrap();
                options.journal =
                    JournalChoice::External { device: card_device.clone(), accept_volatile: false };
            }
            make(&disk_device, &options).unwrap();
            let log = RecordLog::new();
            let durability = if lying {
                let drains_within = Duration::from_millis(20);
                Durability::Lying { cache_bytes: 1 << 20, drains_within }
            } else {
                Durability::of(&disk_device.info())
            };
            let bases = vec![disk.contents(), card.contents()];
            let recorded: Vec<Arc<dyn BlockDevice>> = vec![
                Arc::new(Record::with_durability(disk_device, &log, durability)),
                Arc::new(Record::new(card_device, &log)),
            ];
            let journal = setup.external.then(|| recorded[1].clone());
            let fs = Ext4::mount(recorded[0].clone(), setup.options(journal)).unwrap();
            work(&fs, &log);
            fs.unmount().unwrap();
            Run { recording: log.take(), bases }
        })
        .unwrap()
}

/// `STEADFAST_SOAK` says how many runs, each of another seed.
fn explore(setup: Setup, seed: u64) {
    let soak = std::env::var("STEADFAST_SOAK").ok().and_then(|v| v.parse().ok()).unwrap_or(1u64);
    for round in 0..soak.max(1) {
        explore_on(setup, seed + 1000 * round, false);
    }
}

fn explore_on(setup: Setup, seed: u64, lying: bool) {
    let run = run(setup, seed, lying);
    let mut rng = Rng::new(seed);
    let (first, last) = (run.first_crash_point(), run.last_crash_point());
    let cuts: Vec<_> = (0..CUTS)
        .map(|_| {
            let cut = first + 1 + rng.below(last - first);
            (cut, [0, 10, 50, 90, 100][rng.below(5) as usize])
        })
        .collect();
    judge_cuts(setup, &run, seed, cuts);
}

/// Recovers and judges cuts of a run, each with the percentage of what may be lost that is kept.
fn judge_cuts(setup: Setup, run: &Run, seed: u64, cuts: impl IntoIterator<Item = (u64, u64)>) {
    let mut rng = Rng::new(seed);
    let judge = Judge::new(setup);
    for (cut, keep) in cuts {
        let stores = run.contents(cut, keep, &mut rng);
        let notes = run.recording.notes_before(cut).to_vec();
        let what = format!("{setup:?}, seed {seed}, cut {cut}, keep {keep} %");
        let again = judge.judge(stores, &notes, &what);
        // The power goes again, during recovery or soon after.
        if rng.percent(30) {
            let cut = again.first_crash_point()
                + 1
                + rng.below(again.last_crash_point() - again.first_crash_point());
            let stores = again.contents(cut, keep, &mut rng);
            judge.judge(stores, &notes, &format!("{what}, then cut {cut}"));
        }
    }
}

/// The test of the tests: they can fail.
#[test]
#[should_panic]
fn a_lying_cache_breaks_promises() {
    explore_on(PLAIN, 1, true);
}

#[test]
fn ordered() {
    explore(PLAIN, 1);
}

#[test]
fn ordered_with_an_orphan_file_and_small_blocks() {
    explore(Setup { block_size: 1024, orphan_file: true, ..PLAIN }, 2);
}

#[test]
fn ordered_with_values_in_inodes_and_small_blocks() {
    explore(Setup { value_inodes: true, block_size: 1024, orphan_file: true, ..PLAIN }, 13);
}

#[test]
fn ordered_with_a_directory_that_ignores_case() {
    explore(Setup { casefold: true, block_size: 1024, ..PLAIN }, 14);
}

#[test]
fn ordered_with_quota_files_of_our_mkfs() {
    explore(Setup { quotas: true, ..PLAIN }, 19);
}

#[test]
fn ordered_without_delayed_allocation() {
    explore(Setup { delayed_allocation: false, ..PLAIN }, 3);
}

#[test]
fn ordered_on_an_external_journal() {
    explore(Setup { external: true, ..PLAIN }, 4);
}

#[test]
fn ordered_with_fast_commits_in_small_blocks() {
    explore(Setup { fast_commits: true, block_size: 1024, orphan_file: true, ..PLAIN }, 17);
}

#[test]
fn ordered_with_fast_commits_on_an_external_journal() {
    explore(Setup { fast_commits: true, external: true, ..PLAIN }, 18);
}

#[test]
fn writeback() {
    explore(Setup { data: DataMode::Writeback, ..PLAIN }, 5);
}

#[test]
fn writeback_with_asynchronous_commit_on_an_external_journal() {
    let data = DataMode::Writeback;
    explore(Setup { data, external: true, async_commit: true, ..PLAIN }, 6);
}

#[test]
fn journalled_data() {
    explore(Setup { data: DataMode::Journal, ..PLAIN }, 7);
}

#[test]
fn journalled_data_on_an_external_journal() {
    explore(Setup { data: DataMode::Journal, external: true, ..PLAIN }, 8);
}

/// Checkpoints under the pressure of memory.
#[test]
fn journalled_data_in_little_memory() {
    explore(Setup { data: DataMode::Journal, memory: Some(1 << 20), ..PLAIN }, 20);
}

#[test]
fn journalled_data_in_little_memory_on_an_external_journal() {
    let (data, block_size) = (DataMode::Journal, 1024);
    explore(Setup { data, external: true, block_size, memory: Some(512 << 10), ..PLAIN }, 21);
}

/// The tests in little memory can fail: a checkpoint that memory forces is cut, too.
#[cfg(feature = "planted-bugs")]
#[test]
#[should_panic(expected = "cut")]
fn a_tail_before_the_flush_is_found_in_little_memory() {
    let (data, bug) = (DataMode::Journal, Some(steadfast_journal::Bug::TailBeforeFlush));
    explore(Setup { data, bug, external: true, memory: Some(1 << 20), ..PLAIN }, 20);
}

#[test]
fn ordered_in_little_memory() {
    explore(Setup { memory: Some(512 << 10), orphan_file: true, ..PLAIN }, 22);
}

#[test]
fn block_maps() {
    explore(Setup { block_maps: true, block_size: 1024, ..PLAIN }, 10);
}

#[test]
fn block_maps_with_journalled_data() {
    explore(Setup { data: DataMode::Journal, block_maps: true, ..PLAIN }, 11);
}

#[test]
fn blocks_larger_than_a_page() {
    explore(Setup { block_size: 16384, ..PLAIN }, 12);
}

#[test]
fn clusters() {
    explore(Setup { cluster_size: Some(16384), block_size: 1024, orphan_file: true, ..PLAIN }, 14);
}

#[test]
fn clusters_with_journalled_data() {
    explore(Setup { cluster_size: Some(65536), data: DataMode::Journal, ..PLAIN }, 15);
}

#[test]
fn clusters_on_an_external_journal_without_delayed_allocation() {
    let (external, delayed_allocation) = (true, false);
    explore(Setup { cluster_size: Some(16384), external, delayed_allocation, ..PLAIN }, 16);
}
