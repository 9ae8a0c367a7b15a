//! Mounting, and serving until it is unmounted.

use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::io::Errno;
use steadfast_block::BlockDevice;
use steadfast_devices::filter::{Scheduler, Window};
use steadfast_devices::source::descriptor;
use steadfast_ext4::Dax;
use steadfast_ext4::Ext4;
use steadfast_ext4_tune::JournalDevice;
use steadfast_fuse::{FuseMount, MountError};
use steadfast_setup::Blocks;
use steadfast_setup::path::{absolute, memory};
use steadfast_vfs::FileSystem;

use super::log::LogFile;
use super::options::{self, MountSettings};
use super::served::ServedMount;
use super::{
    background, claim, control_socket, descriptors, log, mmp, remount, stack, transact, trouble,
};
use crate::cli::Mount;
use crate::commands::image;
use crate::commands::journal_device::{of_image, open_journal};
use crate::commands::serve as serve_commands;
use crate::commands::volume;
use crate::stop_signals::Stops;
use crate::{CommandEnd, Usage, allocator, terminal};

/// How long the end is held up by those who asked for it and wait for the answer.
const ANSWERS: Duration = Duration::from_secs(5);

/// Mounts; in the background unless asked otherwise.
pub fn mount(args: &Mount, out: &mut dyn Write) -> Result<CommandEnd> {
    let wanted = options::parse(&args.options)?;
    if wanted.remount {
        // The source is as mount(8) has it in its table; the folder says which mount it is.
        let at = args.mountpoint.as_deref().unwrap_or(&args.device);
        return remount::remount(at, &args.options);
    }
    let in_background = !args.foreground && !args.serves_in_background;
    if in_background {
        // What can be checked without the child is checked here.
        args.mountpoint()?;
        return background::start();
    }
    let name = format!("{}.log", std::process::id());
    let (folder, log) = LogFile::of_process(args.log.as_deref(), args.serves_in_background, &name)?;
    let served = serve(args, &folder, log.as_ref(), wanted, out);
    // A log that nobody asked for is kept where it says what went wrong.
    if let (Some(log), false) = (&log, matches!(served, Ok(CommandEnd::Problem))) {
        log.remove_own();
    }
    served
}

fn serve(
    args: &Mount,
    folder: &Path,
    log: Option<&LogFile>,
    mut wanted: MountSettings,
    out: &mut dyn Write,
) -> Result<CommandEnd> {
    log::start(log, wanted.debug)?;
    volume::open::signals_are_looked_after();
    allocator::give_back(wanted.ext4.cache_bytes.unwrap_or(options::CACHE_BYTES));
    if !wanted.without_effect.is_empty() {
        tracing::debug!("mount options that change nothing: {}", wanted.without_effect.join(","));
    }
    descriptors::make_room(wanted.fuse.threads)?;
    let stops = Stops::listen()?;
    let held = stops.hold();
    let claim = check_place(args.mountpoint()?, &wanted, folder)?;
    drop(held);
    let mut opened = open(args, &mut wanted)?;
    let notes = std::mem::take(&mut opened.notes);
    let held = stops.hold();
    let begun = PendingMount::new(
        opened,
        args.mountpoint()?,
        wanted,
        log.map(|log| log.path.clone()),
        folder,
        false,
    )?;
    drop(claim);
    let served = &begun.served;
    for note in &notes {
        note_and_log(note, args.serves_in_background);
    }
    let ending = Arc::clone(served);
    held.then(move |signal| {
        tracing::info!("signal {signal}: unmounting {}", ending.mountpoint.display());
        end(&ending);
    });
    if let Some(note) = served.recovery() {
        note_and_log(&note, args.serves_in_background);
    }
    if let Some(note) = transact::discards_at_unmount(served) {
        note_and_log(&note, args.serves_in_background);
    }
    tracing::info!("{} mounted at {}", served.source, served.mountpoint.display());
    if let (true, Some(log)) = (args.serves_in_background, log)
        && let Err(e) = background::detach(log, out)
    {
        // Whoever wanted it was killed, and nobody knows of it.
        begun.served.unmounter.unmount_lazily()?;
        begun.serve()?;
        return Err(e);
    }
    begun.serve()
}

/// A file system at its mount point that nobody serves yet.
pub struct PendingMount {
    /// What its control socket works on.
    pub served: Arc<ServedMount>,
    mounted: FuseMount,
    socket: control_socket::Socket,
}

impl PendingMount {
    /// Mounts what was opened, and answers on its control socket in `folder`. `stays`: the process
    /// does not end with the mount.
    pub fn new(
        opened: MountSource,
        at: &Path,
        wanted: MountSettings,
        log: Option<PathBuf>,
        folder: &Path,
        stays: bool,
    ) -> Result<PendingMount> {
        let (not_served, name) = (Arc::clone(&opened.fs), opened.source.clone());
        let vfs = Arc::clone(&opened.fs) as Arc<dyn FileSystem>;
        let begun =
            FuseMount::new(vfs, at, &wanted.fuse).map_err(not_mounted).and_then(|mounted| {
                // Nobody could take it away who does not know its socket: without one it does not
                // stay.
                let unmounter = mounted.unmounter();
                let begun = PendingMount::answering(mounted, opened, wanted, log, folder, stays);
                begun.inspect_err(|_| {
                    // OK to ignore: the first error says more.
                    let _ = unmounter.unmount_lazily();
                })
            });
        begun.map_err(|e| {
            // Nobody has used it: leave it as it was found, but for what was recovered.
            let back = not_served.unmount().err().map(|e| format!("unmounting {name}: {e}"));
            let recovery = not_served.recovery();
            let recovered = recovery.map(|r| format!("{name} had not been unmounted: {r}"));
            let beside: Vec<String> = recovered.into_iter().chain(back).collect();
            if beside.is_empty() { e } else { e.context(beside.join("; ")) }
        })
    }

    fn answering(
        mounted: FuseMount,
        MountSource { fs, source, queue, notes: _ }: MountSource,
        wanted: MountSettings,
        log: Option<PathBuf>,
        folder: &Path,
        stays: bool,
    ) -> Result<PendingMount> {
        let errors = trouble::log(&fs, &source);
        let served = Arc::new(ServedMount {
            fs,
            source,
            queue,
            mountpoint: mounted.mountpoint().to_path_buf(),
            device: mounted.device().map(ToOwned::to_owned),
            transport: mounted.transport().clone(),
            in_force: Mutex::new(wanted.clone()),
            wanted,
            log,
            since: Instant::now(),
            unmounter: mounted.unmounter(),
            invalidator: mounted.invalidator(),
            kept_read_only: AtomicBool::new(false),
            errors,
            down: mounted.down(),
            stays,
            let_go: AtomicBool::new(false),
            ended: Mutex::new(None),
            has_ended: Condvar::new(),
        });
        let socket = control_socket::Socket::open(folder, &served)?;
        Ok(PendingMount { served, mounted, socket })
    }

    /// Serves it until it is unmounted, and writes everything.
    pub fn serve(self) -> Result<CommandEnd> {
        let connection = self.mounted.serve();
        let ended = self.served.finish();
        self.socket.close(ANSWERS);
        connection?;
        Ok(if ended.is_ok() { CommandEnd::Good } else { CommandEnd::Problem })
    }
}

/// Why something could not be mounted: where it was to be, or something else.
pub fn not_mounted(e: MountError) -> anyhow::Error {
    match e {
        MountError::MountPoint { .. } | MountError::OnlyRoot { .. } => Usage(e.to_string()).into(),
        e => e.into(),
    }
}

/// Prints a note for the user who mounts, and logs it where that is not the same place.
fn note_and_log(note: &str, in_background: bool) {
    tracing::warn!("{note}");
    if in_background {
        terminal::note(note);
    }
}

/// Refuses what can be refused before anything is opened: from then on something may be written
/// (a volume's labels, what the journal holds). The place is the caller's until it has mounted.
pub fn check_place(
    at: &Path,
    wanted: &MountSettings,
    folder: &Path,
) -> Result<claim::MountpointLock> {
    let claim = claim::MountpointLock::new(folder, at)?;
    FuseMount::check(at, &wanted.fuse).map_err(not_mounted)?;
    control_socket::Socket::check(folder)?;
    Ok(claim)
}

/// What is to be mounted.
pub struct MountSource {
    fs: Arc<Ext4>,
    /// Its name.
    source: String,
    queue: Option<Arc<Scheduler>>,
    /// What its superblock asks for and does not get.
    pub notes: Vec<String>,
}

impl MountSource {
    /// The file system on a device, by the name that the table of mounts is to have.
    pub fn on(
        device: Arc<dyn BlockDevice>,
        journal: Option<JournalDevice>,
        source: &str,
        wanted: &mut MountSettings,
    ) -> Result<MountSource> {
        let blocks = Blocks::of(device, journal.map(|j| (j.device, j.number)));
        let notes = wanted.over_superblock(&blocks)?;
        let notes = notes.into_iter().map(|note| format!("note: {source}: {note}")).collect();
        Ok(MountSource { notes, ..MountSource::mounted(blocks, source, wanted)? })
    }

    /// The same with these options, whatever its superblock asks for.
    fn mounted(blocks: Blocks, source: &str, wanted: &mut MountSettings) -> Result<MountSource> {
        source.clone_into(&mut wanted.fuse.source);
        let (options, read_only) = (wanted.for_fs(), wanted.ext4.read_only);
        let mount = || blocks.mount(options);
        let fs = mmp::reporting_wait(&blocks.disk, source, read_only, mount);
        let fs = fs.with_context(|| source.to_owned())?;
        Ok(MountSource { fs, source: source.to_owned(), queue: blocks.queue, notes: Vec::new() })
    }
}

/// Opens what is to be mounted.
fn open(args: &Mount, wanted: &mut MountSettings) -> Result<MountSource> {
    if let Some(file) = &args.stack {
        let stack = stack::build(file, args.variant.as_deref(), args.destroy, wanted)?;
        let notes = stack.notes.iter().map(|note| format!("note: {note}")).collect();
        return Ok(MountSource {
            notes,
            ..MountSource::mounted(stack.blocks, &stack.name, wanted)?
        });
    }
    let path = &args.device;
    if !wanted.ext4.read_only
        && let Some(why) = not_writable(path)
    {
        terminal::note(&format!("{}: {why}, mounted read-only", path.display()));
        (wanted.ext4.read_only, wanted.fuse.read_only) = (true, true);
    }
    refuse_a_hosts(args)?;
    let device = match wanted.ext4.dax {
        Dax::Always => image::open_in_place(path, wanted.ext4.read_only)?,
        Dax::Inode | Dax::Never => image::open(path, wanted.ext4.read_only)?,
    };
    let device = from_offset(device, wanted.offset)?;
    let journal = match (wanted.ext4.no_load, wanted.offset, wanted.journals.as_slice()) {
        (true, _, _) => None,
        // Which one it is the superblock says, and that is not at the beginning.
        (false, 1.., [only]) => Some(open_journal(only, wanted.ext4.read_only, true)?),
        (false, 1.., []) => None,
        (false, 1.., _) => usage!("with offset= only one journal= can be given"),
        (false, 0, journals) => of_image(path, journals, wanted.ext4.read_only)?,
    };
    let file =
        || memory::file(path).canonicalize().unwrap_or_else(|_| path.clone()).display().to_string();
    let source = absolute(path).unwrap_or_else(file);
    MountSource::on(device, journal, &source, wanted)
}

/// The device from this byte on.
fn from_offset(device: Arc<dyn BlockDevice>, offset: u64) -> Result<Arc<dyn BlockDevice>> {
    if offset == 0 {
        return Ok(device);
    }
    let info = device.info();
    let block = u64::from(info.logical_block);
    if !offset.is_multiple_of(block) {
        usage!("offset={offset}: {} has blocks of {block} bytes: a multiple is needed", info.name);
    }
    let Some(len) = info.size.checked_sub(offset).filter(|len| *len >= block) else {
        usage!("offset={offset}: {} has {} bytes only", info.name, info.size);
    };
    let len = len / block * block;
    Ok(Arc::new(Window::new(info.name.clone(), device, offset, len)?))
}

/// A volume that a running host keeps is mounted by the host: it is no file.
fn refuse_a_hosts(args: &Mount) -> Result<()> {
    let path = &args.device;
    let named = path.to_str().filter(|name| !name.contains(['/', ':', ',']));
    let (Some(name), Err(_)) = (named, path.symlink_metadata()) else { return Ok(()) };
    if !serve_commands::has_volume(name) {
        return Ok(());
    }
    let at = args.mountpoint()?.display();
    let what = "is a volume of the running host, which mounts it itself";
    Err(Usage(format!("{name}: {what}: steadfast host mount {name} {at}")).into())
}

/// Whether an image or device is there and cannot be written to. A block device says so itself:
/// opening it for writing works all the same.
fn not_writable(path: &Path) -> Option<&'static str> {
    const PROTECTED: &str = "is write-protected";
    let path = memory::file(path);
    let meta = path.metadata().ok()?;
    if meta.file_type().is_block_device() {
        let (major, minor) = (rustix::fs::major(meta.rdev()), rustix::fs::minor(meta.rdev()));
        let says = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/ro"));
        if says.is_ok_and(|text| text.trim() == "1") {
            return Some(PROTECTED);
        }
    }
    match rustix::fs::access(path, rustix::fs::Access::WRITE_OK) {
        Err(Errno::ROFS) => Some(PROTECTED),
        // Who started this program had the right to.
        Err(_) if descriptor(path, false).is_some() => None,
        Err(Errno::ACCESS | Errno::PERM) => Some("no permission to write it"),
        _ => None,
    }
}

/// What SIGTERM, SIGINT and SIGHUP (unless it is ignored) do: unmount. Files that stay open are cut
/// off after a moment.
fn end(served: &Arc<ServedMount>) {
    if served.unmounter.unmount().is_err()
        && let Err(e) = served.unmounter.unmount_lazily()
    {
        tracing::error!("{e}");
        return;
    }
    // The kernel lets go and the serving thread goes on from there.
    if !served.let_go_in_time() {
        let status = served.cut_off();
        std::process::exit(i32::from(status.is_err()));
    }
}
