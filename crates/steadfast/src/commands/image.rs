//! Images and devices: opening, mounting in process, `replay`, `check`, `info`.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Error, Result};
use serde_json::{Map, Value, json};
use steadfast::FileSystem;
use steadfast_block::BlockDevice;
use steadfast_ext4::Ext4;
use steadfast_ext4::Ext4Error;
use steadfast_ext4::mount::{
    check_mountable, delete_orphans, protection_wait, replay as replay_journal, replayed_blocks,
};
use steadfast_ext4::{AccessTimes, MountOptions};
use steadfast_ext4_check::{self as check, Field};
use steadfast_journal::{JournalError, RecoveryReport};
use steadfast_runtime::is_simulated;
use steadfast_setup::Blocks;
use steadfast_setup::path::{self, PathOptions};
use steadfast_vfs::path::shown;

use super::journal_device::of_image;
use super::volume;
use crate::cli::{Image, Reading};
use crate::mount::mmp;
use crate::terminal::counted;
use crate::{CommandEnd, document, source_date, terminal, way_out};

/// Memory for what is read of an image and written to it, in bytes.
const CACHE: u64 = 64 << 20;

/// Opens an image file, a block device, the volume that `volume:MEMBER,MEMBER` names, or a range of
/// memory.
pub fn open(path: &Path, read_only: bool) -> Result<Arc<dyn BlockDevice>> {
    let opened = path::open(path, PathOptions { read_only, ..PathOptions::default() });
    volume::open::looked_after(opened, read_only)
}

/// As [`open`], to be used in place: what can be mapped is mapped.
pub fn open_in_place(path: &Path, read_only: bool) -> Result<Arc<dyn BlockDevice>> {
    let options = PathOptions { read_only, in_place: true, ..PathOptions::default() };
    let opened = path::open(path, options);
    volume::open::looked_after(opened, read_only)
}

/// Opens an image file, a block device or a range of memory, whatever it holds.
pub fn open_file(path: &Path, read_only: bool) -> Result<Arc<dyn BlockDevice>> {
    let opened = path::open_file(path, PathOptions { read_only, ..PathOptions::default() });
    volume::open::looked_after(opened, read_only)
}

/// An image, and how it is mounted in process: as its superblock asks for, where nothing else is
/// said.
fn blocks(image: &Image, read_only: bool) -> Result<(Blocks, MountOptions)> {
    let device = open(&image.image, read_only)?;
    let journal = of_image(&image.image, image.given(), read_only)?;
    let blocks = Blocks::of(device, journal.map(|j| (j.device, j.number)));
    let (base, notes) = blocks.default_options(MountOptions::default());
    // Who only reads has nothing of it.
    for note in notes.iter().filter(|_| !read_only) {
        terminal::note(&format!("note: {}: {note}", image.image.display()));
    }
    let mut options = MountOptions {
        read_only,
        // Whoever works on an image may use all of it.
        use_reserved: true,
        // Each file is looked at once.
        cache_bytes: Some(CACHE),
        simulated_epoch: source_date::seconds(),
        ..base
    };
    // An image file on tmpfs is as good as the person who put it there thinks it is.
    options.journal.accept_volatile = true;
    Ok((blocks, options))
}

/// As it is read: with the journal replayed in memory, or without a look at it.
fn blocks_to_read(reading: &Reading) -> Result<(Blocks, MountOptions)> {
    if reading.no_replay {
        let blocks = Blocks::of(open(&reading.image.image, true)?, None);
        let unused = MountOptions { read_only: true, no_load: true, ..MountOptions::default() };
        return Ok((blocks, unused));
    }
    blocks(&reading.image, true)
}

fn mount(image: &Image, (blocks, options): (Blocks, MountOptions)) -> Result<FileSystem> {
    let (name, read_only) = (image.image.display().to_string(), options.read_only);
    // What is made belongs to root, as in an image that is mounted.
    let image_of = steadfast::Image::open(Arc::clone(&blocks.disk)).owner(0, 0);
    let image_of = image_of.mount_options(move |o| *o = options.clone());
    let mounted = mmp::reporting_wait(&blocks.disk, &name, read_only, || image_of.mount());
    mounted.map_err(|e| to_anyhow(e).context(name))
}

/// An error of the library in the command line's form: what it is about, then what is wrong.
pub fn to_anyhow(e: steadfast::Error) -> Error {
    match e {
        steadfast::Error::Path { path, source, .. } => {
            Error::new(source).context(shown(path.as_os_str().as_encoded_bytes()))
        }
        steadfast::Error::FileSystem { source, .. } => source.into(),
        e => e.into(),
    }
}

/// Mounts it for somebody who unmounts it; reads then leave times alone if `noatime` is set.
pub fn mounted(image: &Image, read_only: bool, noatime: bool) -> Result<Arc<Ext4>> {
    let (blocks, mut options) = blocks(image, read_only)?;
    if noatime {
        options.access_times = AccessTimes::Never;
    }
    let name = image.image.display().to_string();
    let mount = || blocks.mount(options);
    mmp::reporting_wait(&blocks.disk, &name, read_only, mount).context(name)
}

/// Mounts read-only (nothing is written, a journal is replayed in memory) and does `work`.
pub fn reading<T>(image: &Reading, work: impl FnOnce(&FileSystem) -> Result<T>) -> Result<T> {
    let fs = mount(&image.image, blocks_to_read(image)?)?;
    work(&fs)
}

/// Mounts, does `work`, and unmounts, also when the work failed.
pub fn changing<T>(image: &Image, work: impl FnOnce(&FileSystem) -> Result<T>) -> Result<T> {
    let (blocks, options) = blocks(image, false)?;
    if is_simulated() && !protection_wait(&*blocks.disk).unwrap_or_default().is_zero() {
        usage!(
            "{}: with multiple-mount protection every change waits in real time: unset \
             SOURCE_DATE_EPOCH",
            image.image.display()
        );
    }
    let fs = mount(image, (blocks, options))?;
    let done = work(&fs);
    let unmounted = fs.unmount().map_err(to_anyhow);
    let unmounted = unmounted.with_context(|| format!("unmounting {}", image.image.display()));
    let done = done?;
    unmounted.map(|()| done)
}

/// Replays the journal, deletes orphans, and says what there was.
pub fn replay(image: &Image, out: &mut dyn Write) -> Result<()> {
    let (Blocks { disk: device, .. }, options) = blocks(image, false)?;
    let name = image.image.display().to_string();
    let replayed = mmp::reporting_wait(&device, &name, false, || replay_journal(&device, &options));
    let report = replayed.with_context(|| name.clone())?;
    device.flush()?;
    if let Some(report) = &report {
        print_report(&image.image, report, out)?;
    }
    // Who replays wants to use it: "nothing to replay" of what no mount takes would mislead.
    let when = report.as_ref().map_or("", |_| ", now that the journal is replayed");
    let refused = check_mountable(&device, &options)
        .with_context(|| format!("{name}: it cannot be mounted{when}"))?;
    if let Some(e) = refused {
        return Err(e).with_context(|| format!("{name}: it can only be mounted with -o ro{when}"));
    }
    let deleted = mmp::reporting_wait(&device, &name, false, || delete_orphans(&device, &options));
    let deleted = deleted.with_context(|| format!("{name}: the orphans{when}"))?;
    if report.is_none() {
        writeln!(out, "{name}: nothing to replay")?;
    }
    match deleted {
        Some(0) => {}
        Some(n) => writeln!(out, "{name}: {} deleted or cut", counted(n as u64, "orphan"))?,
        None => terminal::note(&format!(
            "note: {name}: its journal was found by the superblock's copy of the journal's inode \
             only: orphans are left alone until e2fsck -f has restored the inode"
        )),
    }
    Ok(())
}

fn print_report(path: &Path, report: &RecoveryReport, out: &mut dyn Write) -> Result<()> {
    writeln!(
        out,
        "{}: {} replayed: {} written, {} revoked",
        path.display(),
        counted(report.transactions.into(), "transaction"),
        counted(report.blocks_replayed, "block"),
        counted(report.revoked, "image")
    )?;
    if report.fast_commits > 0 {
        let commits = counted(report.fast_commits.into(), "fast commit");
        writeln!(out, "{}: {commits} replayed", path.display())?;
    }
    for finding in &report.findings {
        writeln!(out, "  {finding}")?;
    }
    if report.errno != 0 {
        writeln!(out, "  an earlier error ({}) is recorded: run check", report.errno)?;
    }
    Ok(())
}

/// Checks the structure as it is after recovery, without writing.
pub fn check(reading: &Reading, json: bool, out: &mut dyn Write) -> Result<CommandEnd> {
    let image = &reading.image;
    let (Blocks { disk: device, .. }, options) = blocks_to_read(reading)?;
    // A file system whose journal cannot be read is checked as it stands; that is a finding too.
    let (overlay, journal_problem) = match replayed_blocks(&device, &options) {
        Ok(overlay) => (overlay, None),
        Err(e) => (steadfast_journal::Overlay::new(), Some(e)),
    };
    if let Some(e) = &journal_problem
        && is_no_finding(e)
    {
        return Err(e.clone()).with_context(|| image.image.display().to_string());
    }
    let seen = (!overlay.is_empty()).then_some(&overlay);
    let report = check::check(&device, seen).with_context(|| image.image.display().to_string())?;
    let mut findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    if let Some(e) = journal_problem {
        let text = e.to_string();
        if !findings.iter().any(|f| f.contains(&text)) {
            findings.push(format!("journal: {text}"));
        }
        way_out::of_journal(&e).into_iter().for_each(terminal::note);
    }
    let clean = findings.is_empty() && report.more_findings == 0;
    if json {
        let body = json!({
            "image": image.image.display().to_string(),
            "clean": clean,
            "findings": findings,
            "more_findings": report.more_findings,
            "needs_recovery": report.needs_recovery,
            "unmounted_cleanly": report.unmounted_cleanly,
            "error_recorded": report.error_recorded,
            "orphans": report.orphans.iter().map(|o| o.0).collect::<Vec<_>>(),
        });
        document::print(out, "steadfast-check", 1, body)?;
        return Ok(if clean { CommandEnd::Good } else { CommandEnd::Problem });
    }
    for finding in &findings {
        writeln!(out, "{finding}")?;
    }
    if report.more_findings > 0 {
        writeln!(out, "... and {} more", report.more_findings)?;
    }
    let name = image.image.display();
    if !report.orphans.is_empty() {
        let orphans = counted(report.orphans.len() as u64, "orphan");
        writeln!(out, "{name}: {orphans}, which the next mount deletes or cuts")?;
    }
    if clean {
        let recovery = match (report.needs_recovery, reading.no_replay) {
            (true, false) => ", once its journal is replayed",
            (true, true) => ", as far as can be seen without its journal",
            (false, _) => "",
        };
        writeln!(out, "{name}: clean{recovery}")?;
        return Ok(CommandEnd::Good);
    }
    let count = findings.len() as u64 + report.more_findings;
    writeln!(out, "{name}: damaged, {}", counted(count, "finding"))?;
    Ok(CommandEnd::Problem)
}

/// Whether an error says nothing about the image's health: there is no file system, it has a
/// feature that is not implemented, or a journal device is missing or the wrong one.
fn is_no_finding(e: &Ext4Error) -> bool {
    matches!(
        e,
        Ext4Error::Unsupported { .. }
            | Ext4Error::NoFileSystem { .. }
            | Ext4Error::Refused { .. }
            | Ext4Error::Journal(JournalError::Refused { .. } | JournalError::Unsupported { .. })
    )
}

/// A value of the superblock, for programs: numbers as numbers, times as seconds since 1970.
fn field(value: Field) -> Value {
    match value {
        Field::Text(text) => text.into(),
        Field::Nothing(_) | Field::Time(0) => Value::Null,
        Field::Number(n) => u64::try_from(n)
            .map(Value::from)
            .or(i64::try_from(n).map(Value::from))
            .unwrap_or_default(),
        Field::Named(n, _) | Field::Time(n) => n.into(),
        Field::List(words) => words.into(),
    }
}

/// Shows what the superblock says.
pub fn info(image: &Image, json: bool, out: &mut dyn Write) -> Result<()> {
    let device = open(&image.image, true)?;
    let info = check::info(&device).with_context(|| image.image.display().to_string())?;
    let rows = info.rows();
    if json {
        let mut fields = Map::new();
        for (name, value) in rows {
            let mut name = name.trim_end_matches(" #").to_lowercase().replace([' ', '-'], "_");
            if let Field::Named(_, unit @ "kB") = value {
                name = format!("{name}_{}", unit.to_lowercase());
            }
            fields.insert(name, field(value));
        }
        return Ok(document::print(out, "steadfast-info", 2, json!({ "info": fields }))?);
    }
    let width = rows.iter().map(|(name, _)| name.len() + 1).max().unwrap_or(0);
    for (name, value) in rows {
        // Label and last mount point may be anybody's.
        let value = shown(value.to_string().as_bytes());
        let head = format!("{:width$} ", format!("{name}:"));
        out.write_all(terminal::hanging(&head, &value).as_bytes())?;
    }
    Ok(())
}
