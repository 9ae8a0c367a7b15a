//! What is measured.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::Amounts;
use crate::program::run_ok;
use crate::{Result, SuiteError, Target};

const PAGE: usize = 4096;
const MIB: usize = 1 << 20;
const LIMIT: Duration = Duration::from_secs(600);

/// A target that is measured.
pub(super) struct MountBench {
    pub(super) target: Target,
    pub(super) amounts: Amounts,
    pub(super) archive: PathBuf,
}

/// A row: what is done before, what is timed, what is done after.
pub(super) struct RowOf {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) count: fn(&Amounts) -> u64,
    /// Begins with a fresh mount and empty caches.
    pub(super) cold: bool,
    pub(super) prepare: fn(&MountBench) -> Result<()>,
    pub(super) work: fn(&MountBench) -> Result<()>,
    pub(super) clean: fn(&MountBench) -> Result<()>,
}

const fn row(
    name: &'static str,
    unit: &'static str,
    count: fn(&Amounts) -> u64,
    work: fn(&MountBench) -> Result<()>,
) -> RowOf {
    RowOf { name, unit, count, cold: false, prepare: nothing, work, clean: nothing }
}

fn files(a: &Amounts) -> u64 {
    u64::from(a.files)
}

fn mebibytes(a: &Amounts) -> u64 {
    a.file_bytes / MIB as u64
}

fn random(a: &Amounts) -> u64 {
    u64::from(a.random)
}

fn durable(a: &Amounts) -> u64 {
    u64::from(a.durable)
}

fn archived(a: &Amounts) -> u64 {
    u64::from(a.archive_files)
}

/// Each row finds what the rows before it have left. What a cached row reads is read once before:
/// another target's cold row has emptied the host's caches since.
pub(super) const ROWS: [RowOf; 14] = [
    RowOf { prepare: make_folder, ..row("create", "file", files, create) },
    RowOf { prepare: stat, ..row("stat, cached", "file", files, stat) },
    RowOf { cold: true, ..row("stat, cold", "file", files, stat) },
    RowOf { clean: remove_folder, ..row("delete", "file", files, delete) },
    row("sequential write + fsync", "MiB", mebibytes, sequential_write),
    RowOf { cold: true, ..row("sequential read, cold", "MiB", mebibytes, sequential_read) },
    RowOf {
        prepare: sequential_read,
        ..row("sequential read, cached", "MiB", mebibytes, sequential_read)
    },
    RowOf { cold: true, ..row("random read 4 KiB, cold", "read", random, random_read) },
    RowOf {
        prepare: sequential_read,
        ..row("random read 4 KiB, cached", "read", random, random_read)
    },
    row("random write 4 KiB, fsync at the end", "write", random, random_write),
    RowOf { prepare: remove_data, ..row("append 4 KiB + fsync", "write", durable, append) },
    RowOf { clean: remove_data, ..row("overwrite 4 KiB + fsync", "write", durable, overwrite) },
    row("untar", "file", archived, untar),
    RowOf { prepare: nothing, ..row("remove the tree", "file", archived, remove_tree) },
];

/// An archive of a tree such as the kernel's headers.
pub(super) fn archive(files: u32) -> Result<TempDir> {
    let folder = tempfile::tempdir().map_err(SuiteError::host("a folder for temporary files"))?;
    let tree = folder.path().join("tree");
    crate::programs::header_tree(&tree, files as usize).map_err(SuiteError::host(&tree))?;
    let mut tar = Command::new("tar");
    tar.arg("-cf").arg(folder.path().join("tree.tar")).arg("-C").arg(folder.path()).arg("tree");
    run_ok(LIMIT, &mut tar)?;
    Ok(folder)
}

impl MountBench {
    fn folder(&self) -> PathBuf {
        self.target.mountpoint().join("files")
    }

    fn file(&self, i: u32) -> PathBuf {
        self.folder().join(format!("file-{i:06}"))
    }

    fn data(&self) -> PathBuf {
        self.target.mountpoint().join("data")
    }

    /// A place in the file, the same sequence for every target.
    fn place(&self, i: u32) -> u64 {
        let pages = (self.amounts.file_bytes / PAGE as u64).max(1);
        // The upper half: the lower bits of a product hardly vary.
        (u64::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % pages * PAGE as u64
    }
}

fn nothing(_: &MountBench) -> Result<()> {
    Ok(())
}

/// Does something with a path; an error names it.
fn with<T>(path: &Path, work: impl FnOnce(&Path) -> std::io::Result<T>) -> Result<T> {
    work(path).map_err(SuiteError::host(path))
}

fn make_folder(b: &MountBench) -> Result<()> {
    with(&b.folder(), |p| fs::create_dir(p))
}

fn create(b: &MountBench) -> Result<()> {
    (0..b.amounts.files).try_for_each(|i| with(&b.file(i), |p| File::create_new(p)).map(drop))
}

fn stat(b: &MountBench) -> Result<()> {
    (0..b.amounts.files).try_for_each(|i| with(&b.file(i), |p| fs::symlink_metadata(p)).map(drop))
}

fn delete(b: &MountBench) -> Result<()> {
    (0..b.amounts.files).try_for_each(|i| with(&b.file(i), |p| fs::remove_file(p)))
}

fn remove_folder(b: &MountBench) -> Result<()> {
    with(&b.folder(), |p| fs::remove_dir(p))
}

fn sequential_write(b: &MountBench) -> Result<()> {
    with(&b.data(), |p| {
        let mut file = File::create(p)?;
        let part = vec![0x5a; MIB];
        for _ in 0..mebibytes(&b.amounts) {
            file.write_all(&part)?;
        }
        file.sync_all()
    })
}

fn sequential_read(b: &MountBench) -> Result<()> {
    with(&b.data(), |p| {
        let mut file = File::open(p)?;
        let mut part = vec![0; MIB];
        for _ in 0..mebibytes(&b.amounts) {
            file.read_exact(&mut part)?;
        }
        Ok(())
    })
}

fn random_read(b: &MountBench) -> Result<()> {
    with(&b.data(), |p| {
        let file = File::open(p)?;
        let mut page = vec![0; PAGE];
        (0..b.amounts.random).try_for_each(|i| file.read_exact_at(&mut page, b.place(i)))
    })
}

fn random_write(b: &MountBench) -> Result<()> {
    with(&b.data(), |p| {
        let file = File::options().write(true).open(p)?;
        let page = vec![0xa5; PAGE];
        (0..b.amounts.random).try_for_each(|i| file.write_all_at(&page, b.place(i)))?;
        file.sync_all()
    })
}

fn remove_data(b: &MountBench) -> Result<()> {
    with(&b.data(), |p| fs::remove_file(p))
}

fn append(b: &MountBench) -> Result<()> {
    with(&b.data(), |p| {
        let mut file = File::options().append(true).create(true).open(p)?;
        let page = vec![0x11; PAGE];
        for _ in 0..b.amounts.durable {
            file.write_all(&page)?;
            file.sync_all()?;
        }
        Ok(())
    })
}

fn overwrite(b: &MountBench) -> Result<()> {
    with(&b.data(), |p| {
        let file = File::options().write(true).open(p)?;
        let page = vec![0x22; PAGE];
        for i in 0..u64::from(b.amounts.durable) {
            file.write_all_at(&page, i * PAGE as u64)?;
            file.sync_all()?;
        }
        Ok(())
    })
}

fn untar(b: &MountBench) -> Result<()> {
    let mut tar = Command::new("tar");
    run_ok(LIMIT, tar.arg("-xf").arg(&b.archive).arg("-C").arg(b.target.mountpoint())).map(drop)
}

fn remove_tree(b: &MountBench) -> Result<()> {
    with(&b.target.mountpoint().join("tree"), |p| fs::remove_dir_all(p))
}
