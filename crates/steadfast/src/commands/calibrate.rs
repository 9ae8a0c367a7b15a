//! `steadfast lab calibrate`: a model of a disk, a file or a folder of this machine.

use std::fs::{File, Metadata};
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use rustix::fs::SeekFrom;
use steadfast_block::BlockDevice;
use steadfast_devices::source::{Direct, FileDevice, FileOptions};
use steadfast_lab::Watch;
use steadfast_lab::calibrate::{self, CalibrateError, Options};
use steadfast_setup::{forget_used, path};

use super::lab::outputs;
use super::lab::run::{INTERRUPTED, all, stop_on_signals};
use crate::cli::LabCalibrate;
use crate::document;
use crate::setup_error::to_anyhow;
use crate::terminal::{self, Progress};
use crate::{CommandEnd, Usage};

/// Bytes of a file of our own, unless there is less room.
const OWN_BYTES: u64 = 512 << 20;
/// Of the free space a file of our own takes one part of so many at most.
const OF_FREE: u64 = 4;

/// Measures, fits, judges; prints, and writes the device's file.
pub fn run(args: &LabCalibrate, out: &mut dyn Write) -> Result<CommandEnd> {
    let [file] = outputs::tried([("--output", args.output.as_deref())], [&args.path])?;
    let (device, own) = open(args)?;
    let stop = stop_on_signals()?;
    let progress = Progress::start();
    let watch = Watch { progress: &|share, what| progress.set(share, what), stop: &stop };
    let measured = (|| {
        let bytes = if own { calibrate::fill(&device, &watch)? } else { u64::MAX };
        let (writes, seed, seconds) = (args.write, args.seed, args.seconds);
        let options = Options { writes, seed, bytes, seconds };
        calibrate::measure(Arc::clone(&device), options, &watch)
    })();
    // Whoever waits for it need not wait for the fit.
    drop(device);
    (watch.progress)(0.97, "the model");
    let found = measured.and_then(|measured| calibrate::fit(&measured, &stop));
    progress.finish();
    let found = match found {
        Ok(found) => found,
        Err(e @ (CalibrateError::TooSmall { .. } | CalibrateError::ReadOnly { .. })) => {
            return Err(Usage(e.to_string()).into());
        }
        Err(e @ CalibrateError::Interrupted) => {
            terminal::error(&e.into());
            return Ok(CommandEnd::Status(INTERRUPTED));
        }
        Err(e) => return Err(e.into()),
    };
    let printed = match args.json {
        true => document::print(out, "steadfast-calibration", 1, &found),
        false => write!(out, "{}", found.text()),
    };
    let written = file.map_or(Ok(()), |file| {
        file.write(found.toml(&name_of(file.path())))?;
        terminal::note(&format!("Device: {}", file.path().display()));
        Ok(())
    });
    all([printed.map_err(Into::into), written])?;
    Ok(CommandEnd::Good)
}

/// What the device is called in its file: as the file, if a scenario can have that name.
pub(super) fn name_of(file: &Path) -> String {
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !stem.is_empty() && stem.chars().all(is_name) {
        true => stem.to_owned(),
        false => "device".into(),
    }
}

/// The device, past the page cache, and whether it is a file of our own.
fn open(args: &LabCalibrate) -> Result<(Arc<dyn BlockDevice>, bool)> {
    let (path, shown) = (args.path.as_path(), args.path.display());
    let found = path.metadata().map_err(|e| Usage(format!("{shown}: {e}")))?;
    let options =
        FileOptions { read_only: !args.write, direct: Direct::Required, ..FileOptions::default() };
    if found.is_dir() {
        if !args.write || args.destroy {
            usage!(
                "{shown}: is a folder: --write (without --destroy) measures with a file of its \
                 own there, which goes again; a file that is there is only read without --write"
            );
        }
        return Ok((in_folder(path, &options)?, true));
    }
    // What was never written is read without the disk.
    if found.is_file() && has_holes(path)? {
        usage!(
            "{shown}: has holes, or parts that were never written, which are read without the \
             disk: write all of it once, or name its folder with --write"
        );
    }
    if args.write && is_read_only(&found) {
        usage!("{shown}: is read-only: leave --write out");
    }
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(path, &options)?);
    if args.write {
        if !args.destroy {
            let held = path::occupant(&device).unwrap_or_else(|| "what somebody needs".into());
            usage!(
                "{shown}: --write overwrites what it holds (perhaps {held}): say --destroy, or \
                 name a folder, for a file of its own"
            );
        }
        calibrate::is_large_enough(&device.info()).map_err(|e| Usage(e.to_string()))?;
        // What is left of it would be taken for what it was.
        forget_used(&device).map_err(to_anyhow)?;
    }
    Ok((device, false))
}

/// Whether a block device takes no writes: it can be opened for them even so.
fn is_read_only(found: &Metadata) -> bool {
    let (major, minor) = (rustix::fs::major(found.rdev()), rustix::fs::minor(found.rdev()));
    let says = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/ro"));
    found.file_type().is_block_device() && says.is_ok_and(|text| text.trim() == "1")
}

/// Whether a file has a hole before its end, as SEEK_HOLE has it: allocated but never written
/// counts.
fn has_holes(path: &Path) -> Result<bool> {
    let file = File::open(path).map_err(|e| Usage(format!("{}: {e}", path.display())))?;
    let end = file.metadata()?.len();
    let hole = rustix::fs::seek(&file, SeekFrom::Hole(0));
    Ok(end > 0 && hole.is_ok_and(|at| at < end))
}

/// A new file in a folder. Its name goes at once, so that nothing stays, however this ends.
fn in_folder(folder: &Path, options: &FileOptions) -> Result<Arc<dyn BlockDevice>> {
    let free = rustix::fs::statvfs(folder)
        .map(|fs| fs.f_bavail.saturating_mul(fs.f_frsize))
        .context("free space")?;
    let size = OWN_BYTES.min(free / OF_FREE) >> 20 << 20;
    if size < calibrate::LEAST_BYTES {
        let (shown, needed) = (folder.display(), (calibrate::LEAST_BYTES * OF_FREE) >> 20);
        usage!("{shown}: {} MiB are free there, calibration needs {needed}", free >> 20);
    }
    let name = format!(".steadfast-calibrate-{}", std::process::id());
    let options = FileOptions { name: Some(folder.display().to_string()), ..options.clone() };
    let (device, made) = FileDevice::create_removable(folder.join(name), size, &options)?;
    made.remove();
    Ok(Arc::new(device))
}
