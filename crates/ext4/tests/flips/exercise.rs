//! Reading and writing a damaged file system.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_runtime::Sim;
use steadfast_vfs::{
    FileSystem, FileType, FsError, Ino, NewNode, OpenFlags, RenameFlags, Result, SetAttr, SetXattr,
    path,
};

use crate::image::{Population, contents, options};

/// What a reader found at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    File(Vec<u8>),
    /// A file that claims to be larger than any of the image.
    Huge,
    Symlink(Vec<u8>),
    /// Names.
    Directory(BTreeSet<Vec<u8>>),
    Other,
}

/// Entries after which a walk ends: damaged directories may contain each other.
const ENTRIES_MAX: usize = 4000;
/// Of a directory with many names, each which is looked at; all refer to one file.
const MANY: usize = 100;
/// The most that is read of a file; damaged sizes are huge.
const READ_MAX: u64 = 1 << 20;

/// What became of a case.
#[derive(Default)]
pub struct Outcome {
    pub mounted: bool,
    pub errors: usize,
    /// What was read without an error and is not what was written.
    pub wrong: Vec<String>,
}

fn read_file(fs: &Ext4, ino: Ino, size: u64) -> Result<Found> {
    let fh = fs.open(ino, OpenFlags::READ)?;
    let read = || {
        let mut all = Vec::new();
        while (all.len() as u64) < size.min(READ_MAX) {
            let piece = fs.read(fh, all.len() as u64, 64 << 10)?;
            if piece.is_empty() {
                break;
            }
            all.extend_from_slice(&piece);
        }
        if size > READ_MAX {
            fs.read(fh, size - 5000, 5000)?;
            // Many names may lead to it: what was read is not kept.
            return Ok(Found::Huge);
        }
        Ok(Found::File(all))
    };
    let outcome = read();
    fs.release(fh)?;
    outcome
}

fn look(fs: &Ext4, dir: Ino, name: &[u8]) -> Result<(Ino, Found)> {
    let attr = fs.lookup(dir, name)?;
    let found = match attr.kind {
        FileType::Regular => read_file(fs, attr.ino, attr.size)?,
        FileType::Symlink => Found::Symlink(fs.readlink(attr.ino)?),
        FileType::Directory => {
            let entries = path::list(fs, attr.ino)?;
            Found::Directory(entries.into_iter().map(|e| e.name).collect())
        }
        _ => Found::Other,
    };
    for name in fs.listxattr(attr.ino)? {
        let value = fs.getxattr(attr.ino, &name)?;
        assert!(value.len() <= 1 << 24, "an attribute of {} bytes", value.len());
    }
    Ok((attr.ino, found))
}

/// Everything that can be read, by path, and how many errors there were.
pub fn walk(fs: &Ext4) -> (BTreeMap<Vec<u8>, Found>, usize) {
    let (mut tree, mut errors, mut seen) = (BTreeMap::new(), 0, 0);
    let mut dirs: Vec<(Vec<u8>, Ino)> = Vec::new();
    match look(fs, fs.root(), b".") {
        Ok((ino, root)) => {
            dirs.push((Vec::new(), ino));
            tree.insert(b"/".to_vec(), root);
        }
        Err(_) => errors += 1,
    }
    while let Some((at, dir)) = dirs.pop() {
        let here: &[u8] = if at.is_empty() { b"/" } else { &at };
        let Some(Found::Directory(names)) = tree.get(here).cloned() else { continue };
        let step = if names.len() > MANY { names.len() / 50 } else { 1 };
        for name in names.iter().step_by(step) {
            seen += 1;
            if seen > ENTRIES_MAX {
                return (tree, errors);
            }
            let path = [&at[..], b"/", name].concat();
            match look(fs, dir, name) {
                Ok((ino, found)) => {
                    if matches!(found, Found::Directory(_)) {
                        dirs.push((path.clone(), ino));
                    }
                    tree.insert(path, found);
                }
                Err(_) => errors += 1,
            }
        }
    }
    (tree, errors)
}

/// Whether one may be an earlier state of the other: as after a log whose end is lost. Nothing in
/// the image was ever overwritten, so bytes are right or not there yet.
fn is_earlier(found: &Found, written: &Found) -> bool {
    match (found, written) {
        (Found::File(found), Found::File(written)) => {
            found.len() <= written.len()
                && found.iter().zip(written).all(|(f, w)| f == w || *f == 0)
        }
        _ => found == written,
    }
}

/// Names of the population that [`work`] touches.
const TOUCHED: [&[u8]; 6] =
    [b"/small3", b"/small4", b"/small5", b"/small6", b"/fragments", b"/pieces"];

/// When a tree was read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Before,
    /// After [`work`]; whether "/new" was written as a whole and made durable.
    After {
        new: bool,
    },
}

/// What was read and should not have been.
fn wrong(
    population: &Population,
    tree: &BTreeMap<Vec<u8>, Found>,
    in_the_log: bool,
    when: When,
) -> Vec<String> {
    let worked = when != When::Before;
    let mut wrong = Vec::new();
    for (path, found) in tree {
        let name = String::from_utf8_lossy(path);
        if worked && (path.starts_with(b"/new") || TOUCHED.contains(&&path[..])) {
            let new = Found::File(contents(70, 0, 20_000).to_vec());
            let right = if when == (When::After { new: true }) {
                *found == new
            } else {
                is_earlier(found, &new)
            };
            if path == b"/new" && !right {
                wrong.push("/new is not what was written".into());
            }
            continue;
        }
        let loose = worked || in_the_log;
        match population.tree.get(path) {
            Some(written) if found == written => {}
            Some(Found::Directory(_)) if loose && matches!(found, Found::Directory(_)) => {}
            Some(written) if in_the_log && is_earlier(found, written) => {}
            Some(_) => wrong.push(format!("{name} is not what was written")),
            // Deleted before the end, or one that the walk over the whole image left out.
            None if in_the_log => {}
            None if worked && path.iter().filter(|b| **b == b'/').count() > 1 => {}
            None => wrong.push(format!("{name} does not exist")),
        }
    }
    wrong
}

/// Creates, writes, moves, cuts and deletes: whether "/new" was written as a whole and made
/// durable, and how much failed.
fn work(fs: &Ext4) -> (bool, usize) {
    let root = fs.root();
    let node = NewNode::default();
    let rw = OpenFlags::READ | OpenFlags::WRITE;
    let whole = || -> Result<()> {
        let (_, fh) = fs.create(root, b"new", node, rw)?;
        let data = contents(70, 0, 20_000);
        let written = fs.write(fh, 0, data.clone());
        let durable = fs.fsync(fh, false);
        fs.release(fh)?;
        durable?;
        match written? {
            n if n == data.len() => Ok(()),
            _ => Err(FsError::NoSpace { what: "blocks" }),
        }
    };
    let written = |name: &[u8], at: u64, len: usize| -> Result<()> {
        let fh = fs.open(fs.lookup(root, name)?.ino, rw)?;
        let done = fs.write(fh, at, contents(71, at, len)).and_then(|_| fs.fsync(fh, true));
        fs.release(fh)?;
        done
    };
    let cut = |name: &[u8], size: u64| -> Result<()> {
        let set = SetAttr { size: Some(size), ..SetAttr::default() };
        fs.setattr(fs.lookup(root, name)?.ino, set).map(drop)
    };
    let moved = || -> Result<()> {
        let dir = fs.mkdir(root, b"newdir", node)?.ino;
        fs.rename((root, b"small3"), (dir, b"moved"), RenameFlags::empty())?;
        for n in 0..20 {
            fs.mkdir(dir, format!("directory {n}").as_bytes(), node)?;
        }
        fs.rmdir(dir, b"directory 7")
    };
    let in_large = || -> Result<()> {
        let dir = fs.lookup(root, b"indexed")?.ino;
        for n in 0..30 {
            let name = format!("new in a large directory {n}");
            fs.symlink(dir, name.as_bytes(), &[b'y'; 100], node)?;
        }
        Ok(())
    };
    let attributed = || -> Result<()> {
        let ino = |name: &[u8]| fs.lookup(root, name).map(|attr| attr.ino);
        fs.setxattr(ino(b"small7")?, b"user.note", &[9; 500], SetXattr::Any)?;
        match fs.setxattr(ino(b"small8")?, b"user.large", &[9; 3000], SetXattr::Any) {
            // Without inodes for values there is no room.
            Ok(()) | Err(FsError::NoSpace { .. }) => {}
            Err(e) => return Err(e),
        }
        fs.removexattr(ino(b"small9")?, b"user.note")?;
        fs.mkdir(ino(b"sub")?, b"inheriting", node).map(drop)
    };
    let new = whole();
    let outcomes = [
        attributed(),
        moved(),
        in_large(),
        fs.unlink(root, b"small4"),
        cut(b"small5", 100),
        written(b"small6", 2000, 9000),
        // Between its pieces, and behind its end.
        written(b"fragments", 1024, 5000),
        written(b"fragments", 1 << 20, 5000),
        cut(b"pieces", 11_000),
        fs.unlink(root, b"fragments"),
        fs.sync(),
    ];
    let failed = outcomes.iter().chain([&new]).filter(|o| o.is_err()).count();
    (new.is_ok(), failed)
}

fn mount(store: &Store, read_only: bool) -> Option<(Ram, Arc<Ext4>)> {
    let disk = Ram::from_store("disk", store.clone()).persistent();
    let options = MountOptions { read_only, ..options() };
    Some((disk.clone(), Ext4::mount(Arc::new(disk), options).ok()?))
}

/// Reads it all, then works on it and reads again.
pub fn run(population: &Population, store: Store, in_the_log: bool, seed: u64) -> Outcome {
    let (first, second) = (store.clone(), store);
    let reader = Sim::new(seed).run(move || {
        let (disk, fs) = mount(&first, true)?;
        let found = walk(&fs);
        assert!(disk.store() == first, "a read-only mount has written");
        Some(found)
    });
    let writer = Sim::new(seed).run(move || {
        let (disk, fs) = mount(&second, false)?;
        let (new, mut errors) = work(&fs);
        errors += usize::from(fs.unmount().is_err());
        drop(fs);
        let again = mount(&disk.store(), true).map(|(_, fs)| walk(&fs));
        Some((new, errors, again))
    });
    let mut outcome = Outcome::default();
    if let Some((tree, errors)) = reader.expect("the reader ends") {
        outcome.mounted = true;
        outcome.errors += errors;
        if population.checksums {
            outcome.wrong = wrong(population, &tree, in_the_log, When::Before);
        }
    }
    if let Some((new, errors, again)) = writer.expect("the writer ends") {
        outcome.mounted = true;
        outcome.errors += errors;
        if let Some((tree, errors)) = again {
            outcome.errors += errors;
            let when = When::After { new };
            if population.checksums {
                outcome.wrong.extend(wrong(population, &tree, in_the_log, when));
            }
        }
    }
    outcome
}
