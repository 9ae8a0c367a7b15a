//! A run on Steadfast's own file system, mounted by FUSE in a private folder.

use std::iter;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use anyhow::{Context, Result, anyhow};
use steadfast_block::BlockDevice;
use steadfast_crash::program::{NoTree, ProgramRun, Tree, WatchedFs};
use steadfast_devices::filter::record::{Record, RecordLog};
use steadfast_devices::model::Model;
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::DataMode;
use steadfast_ext4::Ext4;
use steadfast_ext4_format::ondisk::Compat;
use steadfast_ext4_mkfs::{Contents, JournalChoice, JournalDeviceOptions, Options};
use steadfast_setup::Blocks;
use steadfast_vfs::FileSystem;

use super::control::{ControlPlace, RunControl};
use super::ended::RunEnd;
use super::prepare::run_setup;
use super::printed::AckLines;
use super::program;
use super::served::ServedFolder;
use super::setup::Setup;
use super::stacks::RunStacks;
use super::watch::Watch;
use crate::cli::FsKind;
use crate::setup_error::to_anyhow;

/// A recorded run with what it left.
pub struct OwnRun {
    /// The recording, without what is known of it above.
    pub run: ProgramRun,
    /// The files at its end, without any cut.
    pub tree: Result<Tree, NoTree>,
    /// How the program ended.
    pub ended: RunEnd,
    /// Failures that were asked for and whose calls never came, in words.
    pub never_came: Vec<String>,
}

/// Runs the program and records it.
pub fn record(
    setup: &Setup,
    kind: FsKind,
    prepare: Option<&str>,
    watch: &mut Watch<'_>,
) -> Result<OwnRun> {
    let log = RecordLog::new();
    log.pause(true);
    let (blocks, bases) = match &setup.stack {
        Some(stack) => {
            let machine = stack.stack_machine(setup.wanted()?.for_fs());
            let owner = crate::commands::mkfs::root_owner();
            let (devices, blocks) = stack.recorded(&machine, owner, &log).map_err(to_anyhow)?;
            if let Some(command) = prepare {
                set_up(setup, &blocks, command, watch.stops)?;
            }
            blocks.flush().map_err(to_anyhow)?;
            let bases: Vec<Store> = devices.all().map(|device| device.contents()).collect();
            (blocks, bases)
        }
        None => on_models(setup, kind, prepare, watch.stops, &log)?,
    };
    log.pause(false);
    let fs = mount(setup, &blocks)?;
    let stacks = RunStacks::begin(watch.stacks);
    let watched = WatchedFs::new(Arc::clone(&fs) as Arc<dyn FileSystem>, &log);
    let watched = Arc::new(watched.observed_by(stacks.observer()));
    let served =
        ServedFolder::new(Arc::clone(&watched) as Arc<dyn FileSystem>, setup.wanted()?.fuse)?;
    let lines = AckLines::new(&log);
    let control = RunControl::new(&log, &lines, &watched, served.path());
    let control = ControlPlace::open(control)?;
    let ended = program::run(served.path(), &lines, Some(&control), watch)?;
    let stacks = stacks.end();
    let never_came = control.close();
    let recording = log.take();
    let tree = Tree::read(&*fs).map_err(NoTree::from);
    let (calls, lines) = (watched.calls(), lines.lines());
    drop(watched);
    served.end("the program")?;
    // What reaches the devices now is no longer of interest.
    let _ = fs.unmount();
    drop(fs);
    let _ = blocks.close();
    let about = setup.about();
    let run = ProgramRun { stacks, ..ProgramRun::new(about, bases, recording, lines, calls) };
    Ok(OwnRun { run, tree, ended, never_came })
}

/// The disk and the journal that were named, as models in real time, recorded; and what they hold
/// before the run.
fn on_models(
    setup: &Setup,
    kind: FsKind,
    prepare: Option<&str>,
    stops: &AtomicUsize,
    log: &RecordLog,
) -> Result<(Blocks, Vec<Store>)> {
    let bases = prepared(setup, kind, prepare, stops)?;
    let disk = setup.disk.build(setup.size).map_err(|e| anyhow!(e))?;
    let card = setup.journal.build().map_err(|e| anyhow!(e))?;
    for (device, base) in iter::once(&disk).chain(&card).zip(&bases) {
        device.set_contents(base.clone())?;
    }
    let recorded = |device: &Arc<dyn Model>| -> Arc<dyn BlockDevice> {
        Arc::new(Record::new(Arc::clone(device) as Arc<_>, log))
    };
    Ok((Blocks::new(recorded(&disk), card.as_ref().map(recorded), None), bases))
}

fn mount(setup: &Setup, blocks: &Blocks) -> Result<Arc<Ext4>> {
    Ok(blocks.mount(setup.wanted()?.for_fs())?)
}

/// What the devices hold before the run: a new file system, in which the set-up's command has run.
fn prepared(
    setup: &Setup,
    kind: FsKind,
    command: Option<&str>,
    stops: &AtomicUsize,
) -> Result<Vec<Store>> {
    let disk = Ram::new("disk", setup.size).persistent();
    let card = setup.journal.build().map_err(|e| anyhow!(e))?;
    let card = card.map(|card| Ram::new("journal", card.info().size).persistent());
    let shared = |ram: &Ram| Arc::new(ram.clone()) as Arc<dyn BlockDevice>;
    let blocks = Blocks::new(shared(&disk), card.as_ref().map(shared), None);
    make(setup, kind, &blocks)?;
    if let Some(command) = command {
        set_up(setup, &blocks, command, stops)?;
    }
    Ok(iter::once(&disk).chain(&card).map(Ram::store).collect())
}

/// Runs the set-up's command in the mounted file system.
fn set_up(setup: &Setup, blocks: &Blocks, command: &str, stops: &AtomicUsize) -> Result<()> {
    let fs = mount(setup, blocks)?;
    let served = ServedFolder::new(Arc::clone(&fs) as Arc<dyn FileSystem>, setup.wanted()?.fuse)?;
    let done = run_setup(command, served.path(), stops);
    served.end("the set-up")?;
    if setup.wanted()?.ext4.data == DataMode::Transact {
        // Whatever makes points, and whether unmounting does: the run begins with what the
        // set-up has left.
        fs.transact().context("a transaction point after --setup")?;
    }
    fs.unmount().context("unmounting after --setup")?;
    done
}

fn make(setup: &Setup, kind: FsKind, blocks: &Blocks) -> Result<()> {
    let mut options = Options::random(setup.epoch);
    options.contents = Contents::Zeros;
    options.root_owner = crate::commands::mkfs::root_owner();
    // As on a larger disk: small ones would get smaller blocks.
    options.block_size = Some(4096);
    if kind != FsKind::Ext4 {
        options.features = Options::ext2_features();
    }
    if kind == FsKind::Ext2 {
        options.journal = JournalChoice::None;
    }
    if setup.wanted()?.ext4.journal.fast_commits {
        // The mount needs the feature.
        options.features.compat |= Compat::FAST_COMMIT;
    }
    let journal = |time| JournalDeviceOptions { zeros: true, ..JournalDeviceOptions::random(time) };
    blocks.make_with(options, journal).context("making the file system")
}
