//! `steadfast mkfs`: makes a file system or a journal device in an image or on a device.

mod extended;
mod fill;
pub mod given;
mod identity;
mod unfinished;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use steadfast_block::BlockDevice;
use steadfast_block::signatures;
use steadfast_devices::source::{FileDevice, FileOptions};
use steadfast_ext4_mkfs::{self as mkfs, Contents, JournalChoice, JournalDeviceOptions, Options};
use steadfast_ext4_tune as tune;
use steadfast_setup::path::{members_of, memory};
use steadfast_volume::member::{read_label, wipe_label};

use self::unfinished::UnfinishedFile;
use super::bytes_of;
use super::volume::open::refuse_member;
use crate::cli::Mkfs;
use crate::setup_error::to_anyhow;
use crate::{Usage, source_date, terminal};

/// Makes what was asked for.
pub fn run(args: &Mkfs, out: &mut dyn Write) -> Result<()> {
    let words: Vec<&str> =
        args.table.all("O").flat_map(|f| f.split(',')).filter(|f| !f.is_empty()).collect();
    let (device, new) = open(args)?;
    let made = make(args, &words, &device, new.is_some(), out);
    if let (Ok(()), Some(NewImageFile::File(file))) = (&made, new) {
        file.keep();
    }
    made
}

/// An image that was not there before.
enum NewImageFile {
    /// Of a dry run: it goes by itself.
    Nowhere,
    /// Ours, until it is kept.
    File(UnfinishedFile),
}

fn make(
    args: &Mkfs,
    words: &[&str],
    device: &Arc<dyn BlockDevice>,
    fresh: bool,
    out: &mut dyn Write,
) -> Result<()> {
    if !args.force && !fresh && !args.dry_run {
        refuse_to_overwrite(device, &args.image)?;
    }
    let time = source_date::seconds();
    if words.contains(&"journal_dev") {
        if !args.sources.is_empty() {
            usage!("-d fills a file system, and a journal device is none");
        }
        return make_journal(args, words, device, fresh, time, out);
    }
    let mut options = options(args, device, fresh, time)?;
    if memory::offers_dax(memory::file(&args.image)) {
        // As mke2fs does: files can be used in place where a block is a page.
        options.block_size = options.block_size.or(Some(4096));
    }
    journal(args, device, &mut options)?;
    if journal_is_left_out(args, words, device, &options) {
        options.journal = JournalChoice::None;
        // What is refused is said alone.
        if !args.quiet && mkfs::look(device, &options).is_ok() {
            terminal::note("note: too small for a journal: it gets none");
        }
    }
    let name = || args.image.display().to_string();
    if args.dry_run {
        return print_made(&mkfs::look(device, &options).with_context(name)?, &name(), out);
    }
    // What is refused leaves a member as it was.
    mkfs::look(device, &options).with_context(name)?;
    forget_others(device)?;
    let made = mkfs::make(device, &options).with_context(name)?;
    device.flush()?;
    let filled = match args.sources.is_empty() {
        true => None,
        false => Some(fill::fill(device, args, &options).with_context(|| given_up(args, fresh))?),
    };
    if args.quiet {
        return Ok(());
    }
    print_made(&made, &name(), out)?;
    filled.iter().try_for_each(|filled| Ok(writeln!(out, "{filled}")?))
}

/// What there is where it could not be filled.
fn given_up(args: &Mkfs, fresh: bool) -> String {
    let name = args.image.display();
    match fresh {
        true => format!("{name} is not made"),
        false => format!("{name} is made, and holds what came before this"),
    }
}

/// Whether the journal that nobody asked for by name has no room: mke2fs goes without it then.
fn journal_is_left_out(
    args: &Mkfs,
    words: &[&str],
    device: &Arc<dyn BlockDevice>,
    options: &Options,
) -> bool {
    let by_name = !args.journal.is_empty() || words.contains(&"has_journal");
    if by_name || !matches!(options.journal, JournalChoice::Internal) {
        return false;
    }
    let info = device.info();
    let block = options.block_size.unwrap_or_else(|| mkfs::default_block_size(&info));
    mkfs::default_journal_blocks(info.size / u64::from(block.max(1))).is_none()
}

/// Whose the root folder is: the caller's, who could not use it otherwise if he may not give files
/// away.
pub fn root_owner() -> (u32, u32) {
    if rustix::process::geteuid().is_root() { (0, 0) } else { extended::caller() }
}

/// What is to be made.
fn options(args: &Mkfs, device: &Arc<dyn BlockDevice>, fresh: bool, time: u64) -> Result<Options> {
    let mut options = Options::random(time);
    options.root_owner = root_owner();
    options.contents = if fresh { Contents::Zeros } else { Contents::Unknown };
    args.table.apply(&mut options)?;
    name_it(args, &mut options.label, &mut options.uuid)?;
    let block = options.block_size.unwrap_or_else(|| mkfs::default_block_size(&device.info()));
    if args.uuid.is_some() {
        options.hash_seed = mkfs::hash_seed_of(options.uuid);
    }
    extended::apply(&mut options, &args.extended, block)?;
    Ok(options)
}

/// Label and UUID, where they are given.
fn name_it(args: &Mkfs, label: &mut String, uuid: &mut uuid::Uuid) -> Result<()> {
    if let Some(given) = &args.label {
        let (kept, is_cut) = identity::label(given);
        if is_cut {
            terminal::note(&format!("note: the label is too long: it becomes '{kept}'"));
        }
        kept.clone_into(label);
    }
    if let Some(text) = &args.uuid {
        *uuid = identity::uuid("-U", text)?;
    }
    Ok(())
}

/// What was made, as mke2fs prints it.
fn print_made(made: &mkfs::MkfsReport, name: &str, out: &mut dyn Write) -> Result<()> {
    writeln!(
        out,
        "{name}: {} blocks of {} bytes, {} inodes, {}",
        made.blocks,
        made.block_size,
        made.inodes,
        terminal::counted(made.groups.into(), "group")
    )?;
    writeln!(out, "UUID: {}", made.uuid)?;
    if !made.label.is_empty() {
        writeln!(out, "Label: {}", made.label)?;
    }
    write!(out, "{}", terminal::hanging("Features: ", &made.features.join(" ")))?;
    match (made.journal_blocks, made.external_journal) {
        (Some(blocks), _) => writeln!(out, "Journal: internal, {blocks} blocks")?,
        (None, Some(uuid)) => writeln!(out, "Journal: external, UUID {uuid}")?,
        (None, None) => writeln!(out, "Journal: none")?,
    }
    if !made.backups.is_empty() {
        let backups: Vec<String> = made.backups.iter().map(u64::to_string).collect();
        let head = "Superblock backups at blocks: ";
        write!(out, "{}", terminal::hanging(head, &backups.join(", ")))?;
    }
    Ok(())
}

/// Opens the image; makes it if there is none. A new one is all zeros.
fn open(args: &Mkfs) -> Result<(Arc<dyn BlockDevice>, Option<NewImageFile>)> {
    let path = &args.image;
    let size = bytes_of("--size", args.size.as_deref())?;
    if members_of(path).is_some() {
        if size.is_some() {
            usage!("--size is for a new image; a volume has its own");
        }
        return Ok((super::image::open(path, false)?, None));
    }
    let options = FileOptions::default();
    let is_memory = memory::is_memory(path).map_err(to_anyhow)?;
    let file = memory::file(path);
    if !is_memory && !file.exists() {
        let Some(size) = size else {
            usage!("{}: no such file; --size SIZE makes one", path.display());
        };
        if size < 4096 {
            usage!("--size {size}: an image has at least 4096 bytes; say 64m, or 4g");
        }
        if args.dry_run {
            // Somewhere else, and gone when it is closed.
            let nothing = tempfile::NamedTempFile::new().context("a file to plan with")?;
            nothing.as_file().set_len(size / 4096 * 4096)?;
            return Ok((
                Arc::new(FileDevice::open(nothing.path(), &options)?),
                Some(NewImageFile::Nowhere),
            ));
        }
        let made = UnfinishedFile::new(file)?;
        let rounded = size / 4096 * 4096;
        let device =
            made.make(|folder| Ok(FileDevice::create_in(folder, file, rounded, &options)?));
        let device =
            device.with_context(|| format!("--size {}", steadfast_lab::size::shown(size)))?;
        return Ok((Arc::new(device), Some(NewImageFile::File(made))));
    }
    // What is no image has no size to name.
    let device = super::image::open_file(path, false)?;
    if size.is_some() {
        usage!("{}: exists, and has a size; leave out --size, or remove it", path.display());
    }
    if !args.force {
        refuse_member(&device).map_err(|error| match error.downcast::<Usage>() {
            Ok(what) => Usage(format!("{what}; -F takes it from the volume")).into(),
            Err(error) => error,
        })?;
    }
    Ok((device, None))
}

/// Takes both copies of a volume's label away, which was to be overwritten: the second one would
/// still say that it is a member. And the signatures of what is not ours.
fn forget_others(device: &Arc<dyn BlockDevice>) -> Result<()> {
    use steadfast_volume::VolumeError::{Corrupt, Features, Newer};
    match read_label(device) {
        Ok(Some(_)) | Err(Newer { .. } | Features { .. } | Corrupt { .. }) => wipe_label(device)?,
        Ok(None) | Err(_) => {}
    }
    Ok(signatures::wipe(device)?)
}

/// A file system or journal that is there is not overwritten without being asked to.
fn refuse_to_overwrite(device: &Arc<dyn BlockDevice>, path: &Path) -> Result<()> {
    let Some(held) = steadfast::occupant(device) else { return Ok(()) };
    let path = path.display();
    if let Some(used) = journal_in_use(device) {
        usage!(
            "{path}: {used}; take it from there first with `steadfast journal detach IMAGE \
             --journal {path}`, or -F overwrites it, and what it holds is lost"
        );
    }
    usage!("{path}: holds {held}; -F overwrites it, and what it holds is lost")
}

/// Whose journal a journal device is, and what waits in it.
fn journal_in_use(device: &Arc<dyn BlockDevice>) -> Option<String> {
    let is_journal = steadfast_ext4_check::info(device).is_ok_and(|info| info.is_journal_device);
    let status = is_journal.then(|| tune::status(device, None).ok()).flatten()?;
    let users: Vec<String> = status.users().iter().map(ToString::to_string).collect();
    let waits = status.pending.map_or(0, |p| p.transactions);
    let waiting = match waits {
        0 => String::new(),
        n => format!(", which needs the {} in it", terminal::counted(n.into(), "transaction")),
    };
    (!users.is_empty())
        .then(|| format!("it is the journal of the file system {}{waiting}", users.join(", ")))
}

fn make_journal(
    args: &Mkfs,
    words: &[&str],
    device: &Arc<dyn BlockDevice>,
    fresh: bool,
    time: u64,
    out: &mut dyn Write,
) -> Result<()> {
    if words.len() > 1 {
        usage!("-O journal_dev takes no other feature beside it");
    }
    let mut options = JournalDeviceOptions::random(time);
    options.zeros = fresh;
    options.accept_volatile = args.accept_volatile;
    let mut as_given = Options::random(time);
    args.table.apply_one("b", &mut as_given)?;
    options.block_size = as_given.block_size.unwrap_or(4096);
    name_it(args, &mut options.label, &mut options.uuid)?;
    let blocks = device.info().size / u64::from(options.block_size);
    if args.dry_run {
        let (size, uuid) = (options.block_size, options.uuid);
        writeln!(out, "journal device: {blocks} blocks of {size} bytes, UUID {uuid}")?;
        return Ok(());
    }
    forget_others(device)?;
    let made = mkfs::make_journal_device(device, &options)
        .with_context(|| args.image.display().to_string())?;
    device.flush()?;
    if args.quiet {
        return Ok(());
    }
    writeln!(
        out,
        "journal device: {} blocks of {} bytes, UUID {}",
        made.blocks, made.block_size, made.uuid
    )?;
    Ok(())
}

/// `-J device=PATH` or `-J size=MEGABYTES`.
fn journal(args: &Mkfs, to: &Arc<dyn BlockDevice>, options: &mut Options) -> Result<()> {
    for word in args.journal.iter().flat_map(|w| w.split(',')) {
        match word.split_once('=') {
            Some(("device", path)) => {
                let device = super::image::open(Path::new(path), false);
                options.journal = JournalChoice::External {
                    device: device.context("the journal device")?,
                    accept_volatile: args.accept_volatile,
                };
            }
            Some(("size", megabytes)) => {
                let megabytes: u64 = megabytes.parse().map_err(|_| {
                    Usage(format!("-J {word}: a whole number of megabytes is needed"))
                })?;
                let block = options.block_size;
                let block = block.unwrap_or_else(|| mkfs::default_block_size(&to.info()));
                let blocks = megabytes
                    .checked_mul(1 << 20)
                    .map(|b| b / u64::from(block))
                    .and_then(|blocks| u32::try_from(blocks).ok())
                    .ok_or_else(|| {
                        let most = (u64::from(u32::MAX) * u64::from(block)) >> 20;
                        Usage(format!("-J {word}: too large: at most {most} megabytes"))
                    })?;
                options.journal = JournalChoice::InternalOf(blocks);
            }
            _ => usage!("-J {word} is unknown: choose device=PATH or size=MEGABYTES"),
        }
    }
    Ok(())
}
