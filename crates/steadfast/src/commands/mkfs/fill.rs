//! `-d`: what a new file system is filled with.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use steadfast::tree::{Options as TreeOptions, Report};
use steadfast::{FileSystem, Journal, Source};
use steadfast_block::BlockDevice;
use steadfast_ext4_mkfs::{JournalChoice, Options};
use steadfast_vfs::{FsError, SetAttr};

use crate::cli::Mkfs;
use crate::commands::image::to_anyhow;
use crate::{source_date, terminal};

/// How much is in the image now.
pub struct FillResult {
    /// Objects.
    inodes: u64,
    /// Bytes that are taken, and all.
    used: u64,
    all: u64,
}

impl std::fmt::Display for FillResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        let inodes = terminal::counted(self.inodes, "object");
        write!(f, "Contents: {inodes}, {} of {} MiB used", mib(self.used), mib(self.all))
    }
}

/// Fills a file system that was just made; `options` are those that it was made with.
pub fn fill(device: &Arc<dyn BlockDevice>, args: &Mkfs, options: &Options) -> Result<FillResult> {
    let name = args.image.display().to_string();
    let image = steadfast::Image::open(Source::Device(Arc::clone(device))).owner(0, 0);
    let image = match &options.journal {
        JournalChoice::External { device, .. } => {
            image.journal(Journal::external(Arc::clone(device))).accept_volatile(true)
        }
        _ => image,
    };
    let image = image.mount_options(|options| {
        options.simulated_epoch = source_date::seconds();
        // It is kept when it is finished, or not at all.
        options.without_journal = true;
    });
    let fs = image.mount().map_err(to_anyhow).with_context(|| name.clone())?;
    let filled = fill_from_all(&fs, args, options);
    let unmounted = fs.unmount().map_err(to_anyhow);
    let filled = filled?;
    unmounted.map(|()| filled).context(name)
}

fn fill_from_all(fs: &FileSystem, args: &Mkfs, options: &Options) -> Result<FillResult> {
    let before = fs.statfs().map_err(to_anyhow)?;
    args.sources.iter().try_for_each(|from| one(fs, from, args))?;
    root_as_asked(fs, args, options)?;
    let room = fs.statfs().map_err(to_anyhow)?;
    let block = u64::from(room.block_size);
    let used = room.blocks.saturating_sub(room.blocks_free).saturating_mul(block);
    let inodes = before.inodes_free.saturating_sub(room.inodes_free);
    Ok(FillResult { inodes, used, all: room.blocks.saturating_mul(block) })
}

/// Fills it from one folder or archive.
fn one(fs: &FileSystem, from: &Path, args: &Mkfs) -> Result<()> {
    let options = TreeOptions::new()
        .owners(args.owners.map())
        .whiteouts(args.whiteouts.into())
        .exclude(&args.image)
        .on_note(|note| terminal::note(&format!("note: {note}")));
    let options = match source_date::newest()? {
        Some(newest) => options.newest(newest),
        None => options,
    };
    let named = || match from.as_os_str() == "-" {
        true => "the standard input".to_owned(),
        false => from.display().to_string(),
    };
    let done = if from.as_os_str() == "-" {
        options.unpack(fs, std::io::stdin().lock(), "/")
    } else if from.is_dir() {
        options.contents(true).by_name(true).copy_in(fs, from, "/")
    } else {
        let file = File::open(from).with_context(named)?;
        options.unpack(fs, BufReader::with_capacity(1 << 20, file), "/")
    };
    let full = |e: &steadfast::Error| {
        matches!(e, steadfast::Error::Path { source: FsError::NoSpace { .. }, .. })
    };
    match done {
        Ok(Report { .. }) => Ok(()),
        Err(e) if full(&e) => {
            let what = "the image is full: make it larger with --size, or for more objects with -N";
            Err(to_anyhow(e).context(named()).context(what))
        }
        Err(e) => Err(to_anyhow(e).context(named())),
    }
}

/// Owner and permissions of the root folder that were asked for by name stand over those of what
/// fills it.
fn root_as_asked(fs: &FileSystem, args: &Mkfs, options: &Options) -> Result<()> {
    let mut words = args.extended.iter().flat_map(|list| list.split(',')).map(str::trim);
    let mut set = SetAttr::default();
    if words.clone().any(|word| word.starts_with("root_owner")) {
        (set.uid, set.gid) = (Some(options.root_owner.0), Some(options.root_owner.1));
    }
    if words.any(|word| word.starts_with("root_perms")) {
        set.mode = Some(options.root_mode);
    }
    if set != SetAttr::default() {
        fs.vfs().setattr(fs.vfs().root(), set)?;
    }
    Ok(())
}
