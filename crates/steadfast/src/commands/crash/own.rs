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
use steadfast_vfs::{FileSystem, JoinedFs, NewNode};

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
    let disks = RecordedDisks::new(setup, kind, prepare, watch.stops, &log)?;
    let bases = disks.contents()?;
    log.pause(false);
    let mounted = MountedAll::new(setup, disks.each.iter().map(|(blocks, _)| blocks))?;
    let stacks = RunStacks::begin(watch.stacks);
    let watched = WatchedFs::new(Arc::clone(&mounted.fs), &log);
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
    let tree = Tree::read(&*mounted.fs).map_err(NoTree::from);
    let (calls, lines) = (watched.calls(), lines.lines());
    drop(watched);
    served.end("the program")?;
    // What reaches the devices now is no longer of interest.
    let _ = mounted.unmount();
    disks.each.iter().for_each(|(blocks, _)| drop(blocks.close()));
    let about = setup.about();
    let run = ProgramRun { stacks, ..ProgramRun::new(about, bases, recording, lines, calls) };
    Ok(OwnRun { run, tree, ended, never_came })
}

/// Of a file system: what it is mounted from, and the models below that.
type DisksOfFs = (Blocks, Vec<Arc<dyn Model>>);

/// The recorded devices of all file systems of a setup, in its order.
struct RecordedDisks {
    each: Vec<DisksOfFs>,
}

impl RecordedDisks {
    /// With new file systems, in which the set-up's command has run.
    fn new(
        setup: &Setup,
        kind: FsKind,
        prepare: Option<&str>,
        stops: &AtomicUsize,
        log: &RecordLog,
    ) -> Result<RecordedDisks> {
        if setup.stack.is_none() && setup.joined.is_empty() {
            return Ok(RecordedDisks { each: vec![on_models(setup, kind, prepare, stops, log)?] });
        }
        let owner = crate::commands::mkfs::root_owner();
        let one = |setup: &Setup| match &setup.stack {
            Some(stack) => {
                let machine = stack.stack_machine(setup.wanted()?.for_fs());
                let (devices, blocks) = stack.recorded(&machine, owner, log).map_err(to_anyhow)?;
                Ok((blocks, devices.all().cloned().collect()))
            }
            None => on_models(setup, kind, None, stops, log),
        };
        let disks = RecordedDisks { each: setup.each().map(one).collect::<Result<_>>()? };
        let blocks = || disks.each.iter().map(|(blocks, _)| blocks);
        make_folders(setup, blocks())?;
        if let Some(command) = prepare {
            set_up(setup, blocks(), command, stops)?;
        }
        Ok(disks)
    }

    /// What all devices hold, once nothing is on its way to them.
    fn contents(&self) -> Result<Vec<Store>> {
        self.each.iter().try_for_each(|(blocks, _)| blocks.flush()).map_err(to_anyhow)?;
        Ok(self.each.iter().flat_map(|(_, models)| models).map(|model| model.contents()).collect())
    }
}

/// All file systems of a setup, mounted.
struct MountedAll {
    each: Vec<Arc<Ext4>>,
    /// What is seen of them: one tree.
    fs: Arc<dyn FileSystem>,
}

impl MountedAll {
    fn new<'b>(setup: &Setup, blocks: impl Iterator<Item = &'b Blocks>) -> Result<MountedAll> {
        let one = |(setup, blocks): (&Setup, &Blocks)| mount(setup, blocks);
        let each = setup.each().zip(blocks).map(one).collect::<Result<Vec<_>>>()?;
        let mut systems = each.iter().map(|fs| Arc::clone(fs) as Arc<dyn FileSystem>);
        let first = systems.next().context("a setup without a file system")?;
        let folders = setup.joined.iter().map(|(folder, _)| folder.clone().into_bytes());
        let others: Vec<_> = folders.zip(systems).collect();
        let fs = match others.is_empty() {
            true => first,
            false => {
                let joined = JoinedFs::new(first, others);
                Arc::new(joined.context("a folder of --stack to mount on")?)
            }
        };
        Ok(MountedAll { each, fs })
    }

    fn unmount(self) -> Result<()> {
        drop(self.fs);
        // All of them, also where one fails.
        let unmounted: Vec<_> = self.each.iter().map(|fs| fs.unmount()).collect();
        Ok(unmounted.into_iter().collect::<Result<_, _>>()?)
    }
}

/// Makes the folders to mount on, in the first file system.
fn make_folders<'b>(setup: &Setup, blocks: impl Iterator<Item = &'b Blocks>) -> Result<()> {
    if setup.joined.is_empty() {
        return Ok(());
    }
    let alone = Setup { joined: Vec::new(), ..setup.clone() };
    let mounted = MountedAll::new(&alone, blocks)?;
    let (uid, gid) = crate::commands::mkfs::root_owner();
    let node = NewNode { mode: 0o755, uid, gid, umask: 0 };
    for (folder, _) in &setup.joined {
        let mut dir = mounted.fs.root();
        for name in folder.split('/') {
            let found = mounted.fs.lookup(dir, name.as_bytes());
            dir = found.or_else(|_| mounted.fs.mkdir(dir, name.as_bytes(), node))?.ino;
        }
    }
    mounted.unmount().context("unmounting before the run")
}

/// The disk and the journal that were named, as models in real time, recorded.
fn on_models(
    setup: &Setup,
    kind: FsKind,
    prepare: Option<&str>,
    stops: &AtomicUsize,
    log: &RecordLog,
) -> Result<DisksOfFs> {
    let bases = prepared(setup, kind, prepare, stops)?;
    let disk = setup.disk.build(setup.size).map_err(|e| anyhow!(e))?;
    let card = setup.journal.build().map_err(|e| anyhow!(e))?;
    for (device, base) in iter::once(&disk).chain(&card).zip(&bases) {
        device.set_contents(base.clone())?;
    }
    let recorded = |device: &Arc<dyn Model>| -> Arc<dyn BlockDevice> {
        Arc::new(Record::new(Arc::clone(device) as Arc<_>, log))
    };
    let blocks = Blocks::new(recorded(&disk), card.as_ref().map(recorded), None);
    Ok((blocks, iter::once(disk).chain(card).collect()))
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
        set_up(setup, iter::once(&blocks), command, stops)?;
    }
    Ok(iter::once(&disk).chain(&card).map(Ram::store).collect())
}

/// Runs the set-up's command in the mounted file system.
fn set_up<'b>(
    setup: &Setup,
    blocks: impl Iterator<Item = &'b Blocks>,
    command: &str,
    stops: &AtomicUsize,
) -> Result<()> {
    let mounted = MountedAll::new(setup, blocks)?;
    let served = ServedFolder::new(Arc::clone(&mounted.fs), setup.wanted()?.fuse)?;
    let done = run_setup(command, served.path(), stops);
    served.end("the set-up")?;
    for (setup, fs) in setup.each().zip(&mounted.each) {
        if setup.wanted()?.ext4.data == DataMode::Transact {
            // Whatever makes points, and whether unmounting does: the run begins with what the
            // set-up has left.
            fs.transact().context("a transaction point after --setup")?;
        }
    }
    mounted.unmount().context("unmounting after --setup")?;
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
