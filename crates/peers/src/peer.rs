//! A peer's life: made, run while its devices are recorded, and recovered from power cuts.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use steadfast_block::BlockDevice;
use steadfast_crash::explore::BootRecovery;
use steadfast_crash::{CrashError, Result as CrashResult};
use steadfast_devices::filter::record::{Durability, Record, RecordLog, Recording};
use steadfast_devices::model::{Model, ModelError, ModelParams};
use steadfast_devices::store::Store;
use steadfast_host::{Mount, MountFolder};
use steadfast_vfs::{FileSystem, HostFs};

use crate::exported::LoopExport;
use crate::kind::KernelFs;
use crate::tool::new_folder;
use crate::{PeerError, Result};

/// How long the devices may take to come to rest after a sync, in seconds.
const REST_SECONDS: u64 = 10;

/// Makes the devices anew: the disk, then the journal's device if there is one.
pub type Build = Arc<dyn Fn() -> Result<Vec<Arc<dyn Model>>, ModelError> + Send + Sync>;

/// What a run left: the devices' contents when recording began, the recording, and what the work
/// brought.
pub type PeerRecording<T> = (Vec<Store>, Recording, T);

/// Begins the recording.
pub type Begin<'b> = &'b mut dyn FnMut() -> CrashResult<()>;

/// A file system of the kernel on devices of ours. The devices are in real time: a modelled disk
/// takes as long as the disk would.
#[derive(Clone)]
pub struct Peer {
    /// Which.
    pub fs: KernelFs,
    /// For mount(8), or empty.
    pub mount_options: String,
    /// More words for its mkfs.
    pub mkfs_words: Vec<String>,
    /// Its devices.
    pub build: Build,
    /// Of those whose cache ignores flushes, by number, the size of the cache in bytes.
    pub lying_caches: Vec<Option<u64>>,
}

/// A peer that is mounted; taken away when dropped.
pub struct PeerMount {
    mount: Option<Mount>,
    exported: Vec<LoopExport>,
    models: Vec<Arc<dyn Model>>,
    log: RecordLog,
    folder: MountFolder,
}

/// Gives each to the kernel.
fn export(models: &[Arc<dyn Model>]) -> Result<Vec<LoopExport>> {
    models.iter().map(|model| LoopExport::new(Arc::clone(model) as Arc<_>)).collect()
}

impl Peer {
    /// One on modelled devices: the disk, then that of the journal if it has one. More words for
    /// its mkfs, separated by spaces, and mount options.
    pub fn on_models(fs: KernelFs, (mkfs, mount): (&str, &str), devices: Vec<ModelParams>) -> Peer {
        let lying_caches = devices.iter().map(ModelParams::lying_cache_bytes).collect();
        let build = move || {
            let named = devices.iter().zip(["disk", "journal"]);
            named.map(|(params, name)| params.build(name)).collect()
        };
        Peer {
            fs,
            mount_options: mount.to_owned(),
            mkfs_words: mkfs.split_whitespace().map(str::to_owned).collect(),
            build: Arc::new(build),
            lying_caches,
        }
    }

    fn devices(&self, contents: Option<Vec<Store>>) -> Result<Vec<Arc<dyn Model>>> {
        let device = |why: String| PeerError::Device { why };
        let models = (self.build)().map_err(|e| device(e.to_string()))?;
        for (model, contents) in models.iter().zip(contents.into_iter().flatten()) {
            model.set_contents(contents).map_err(|e| device(e.to_string()))?;
        }
        let (got, least) = (models.first().map_or(0, |m| m.info().size), self.fs.least_bytes());
        if got < least {
            return Err(PeerError::TooSmall { kind: self.fs.name(), least, got });
        }
        if models.len() > 1 && !self.fs.has_external_journal() {
            return Err(PeerError::NoExternalJournal { kind: self.fs.name() });
        }
        Ok(models)
    }

    fn make(&self, exported: &[LoopExport]) -> Result<()> {
        let journal = exported.get(1).map(LoopExport::path);
        self.fs.make(exported[0].path(), journal, &self.mkfs_words)
    }

    fn mount(&self, exported: &[LoopExport], at: &Path, more: &str) -> Result<Mount> {
        let devices: Vec<&Path> = exported.iter().map(LoopExport::path).collect();
        self.fs.mount(&devices, at, &[&self.mount_options, more])
    }

    /// Makes the file system on devices that hold `old` (what a used disk holds), and mounts it.
    ///
    /// # Errors
    /// Something is missing, or a tool refused.
    pub fn start(&self, old: Option<Vec<Store>>) -> Result<PeerMount> {
        self.up(old, true)
    }

    /// Mounts the file system that these contents hold ([`formatted`](Self::formatted)).
    ///
    /// # Errors
    /// Something is missing, or the mount was refused.
    pub fn resume(&self, contents: Vec<Store>) -> Result<PeerMount> {
        self.up(Some(contents), false)
    }

    /// What the devices hold once the file system has been made.
    ///
    /// # Errors
    /// Something is missing, or a tool refused.
    pub fn formatted(&self) -> Result<Vec<Store>> {
        self.fs.available()?;
        let models = self.devices(None)?;
        let exported = export(&models)?;
        self.make(&exported)?;
        exported.into_iter().try_for_each(LoopExport::take_away)?;
        Ok(models.iter().map(|model| model.contents()).collect())
    }

    fn up(&self, contents: Option<Vec<Store>>, make: bool) -> Result<PeerMount> {
        self.fs.available()?;
        let models = self.devices(contents)?;
        let log = RecordLog::new();
        let recorded = |(number, model): (usize, &Arc<dyn Model>)| -> Arc<dyn BlockDevice> {
            let lying = self.lying_caches.get(number).copied().flatten();
            let durability = lying.map_or(Durability::of(&model.info()), Durability::lying);
            Arc::new(Record::with_durability(Arc::clone(model) as Arc<_>, &log, durability))
        };
        let devices: Vec<_> = models.iter().enumerate().map(recorded).collect();
        let exported = devices.into_iter().map(LoopExport::new).collect::<Result<Vec<_>, _>>()?;
        if make {
            self.make(&exported)?;
        }
        let folder = new_folder()?;
        let mount = self.mount(&exported, folder.path(), "")?;
        Ok(PeerMount { mount: Some(mount), exported, models, log, folder })
    }

    /// Makes and mounts it on a disk that held something before, and does some work there with the
    /// devices recorded. The work gets the mounted file system, the record that the moments of its
    /// calls are taken from, and what it calls when it is ready: from there on it is recorded.
    /// Whether all could be taken away afterwards is beside what it brought.
    ///
    /// # Errors
    /// What could not be built, mounted or run.
    pub fn record<T>(
        &self,
        before: Store,
        work: impl FnOnce(&Arc<dyn FileSystem>, &RecordLog, Begin<'_>) -> CrashResult<T>,
    ) -> CrashResult<(PeerRecording<T>, Result<()>)> {
        let running = self.start(Some(vec![before])).map_err(CrashError::host)?;
        let mut bases = Vec::new();
        let brought = {
            let fs: Arc<dyn FileSystem> =
                Arc::new(HostFs::open(running.path()).map_err(CrashError::host)?);
            let mut begin = || {
                bases = running.begin().map_err(CrashError::host)?;
                Ok(())
            };
            work(&fs, running.log(), &mut begin)?
        };
        let (recording, taken_away) = running.end();
        Ok(((bases, recording, brought), taken_away))
    }

    /// Power on with these contents, one for each device: lets the kernel recover, calls `look`
    /// with the mounted folder, unmounts, and asks the file system's own check. `look` must leave
    /// nothing open. With `then` it is mounted once more, and that may change what is there.
    ///
    /// # Errors
    /// The host failed, or refused the second mount; what else the file system did is in the value.
    pub fn recover(
        &self,
        contents: Vec<Store>,
        look: &mut dyn FnMut(&Path),
        then: Option<&mut dyn FnMut(&Path)>,
    ) -> Result<BootRecovery> {
        let models = self.devices(Some(contents))?;
        let exported = export(&models)?;
        let disk = exported[0].path().to_path_buf();
        let journal = exported.get(1).map(|journal| journal.path().to_path_buf());
        let folder = new_folder()?;
        let mut recovery = BootRecovery::default();
        let mut spent = Duration::ZERO;
        if !self.fs.recovers_itself() {
            recovery.damage.extend(self.fs.check(&disk, journal.as_deref())?);
            let begun = Instant::now();
            recovery.manual_repair = !self.fs.preen(&disk)?;
            if recovery.manual_repair {
                self.fs.repair(&disk)?;
            }
            spent = begun.elapsed();
        }
        let begun = Instant::now();
        match self.mount(&exported, folder.path(), self.carefully()) {
            Ok(mount) => {
                recovery.time = spent + begun.elapsed();
                look(mount.path());
                mount.unmount()?;
                if self.fs.recovers_itself() {
                    recovery.damage.extend(self.fs.check(&disk, journal.as_deref())?);
                } else if recovery.manual_repair {
                    let why = "manual repair is needed: the repairs at boot were not enough";
                    recovery.damage.push(why.into());
                }
                if let Some(then) = then {
                    let mount = self.mount(&exported, folder.path(), self.carefully())?;
                    then(mount.path());
                    mount.unmount()?;
                }
            }
            Err(refusal) => {
                let why = format!("the kernel's mount was refused: {refusal}");
                recovery = BootRecovery { damage: recovery.damage, ..BootRecovery::refused(why) };
            }
        }
        // Before the devices end: an error in taking away is to be seen.
        exported.into_iter().try_for_each(LoopExport::take_away)?;
        Ok(recovery)
    }

    /// How a state that may be damaged, or made by an enemy, is mounted.
    fn carefully(&self) -> &'static str {
        match self.fs {
            KernelFs::Ext2 | KernelFs::Ext3 | KernelFs::Ext4 => {
                "nosuid,nodev,noexec,errors=remount-ro"
            }
            // The one that was recorded has the same UUID, and stays mounted as long as somebody
            // uses it.
            KernelFs::Xfs => "nosuid,nodev,noexec,nouuid",
            KernelFs::Btrfs | KernelFs::F2fs => "nosuid,nodev,noexec",
        }
    }
}

impl PeerMount {
    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// What its devices are asked is written there, and what happens around it may be.
    pub fn log(&self) -> &RecordLog {
        &self.log
    }

    /// Makes what is there durable, and begins the recording: what the devices hold now.
    ///
    /// # Errors
    /// Something goes on writing.
    pub fn begin(&self) -> Result<Vec<Store>> {
        let folder = |e: &dyn std::fmt::Display| PeerError::Folder { why: e.to_string() };
        let root = std::fs::File::open(self.path()).map_err(|e| folder(&e))?;
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(REST_SECONDS) {
            rustix::fs::syncfs(&root).map_err(|e| folder(&e))?;
            // The last flush makes all that came before it durable: nothing older is in doubt.
            for model in &self.models {
                model.flush().map_err(|e| PeerError::Device { why: e.to_string() })?;
            }
            let contents = || self.models.iter().map(|model| model.contents()).collect();
            if let Some(bases) = self.log.begin_anew(contents) {
                return Ok(bases);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(PeerError::NoRest { seconds: REST_SECONDS })
    }

    /// The power is cut: the recording ends here, and is whole. Then everything is taken away, and
    /// whether it could be is beside the recording: while something in the mount is open, mount and
    /// devices are there for who has it open, as long as this process lives.
    pub fn end(mut self) -> (Recording, Result<()>) {
        let recording = self.log.take();
        (recording, self.take_away())
    }

    fn take_away(&mut self) -> Result<()> {
        let unmounted = self.mount.take().map_or(Ok(()), Mount::unmount);
        if unmounted.is_err() {
            // They are in use with it: waiting would be for whoever uses it.
            self.exported.drain(..).for_each(LoopExport::leave);
        }
        unmounted?;
        self.exported.drain(..).try_for_each(LoopExport::take_away)
    }
}

impl Drop for PeerMount {
    fn drop(&mut self) {
        // OK to ignore: there is no caller left to report to.
        let _ = self.take_away();
    }
}
