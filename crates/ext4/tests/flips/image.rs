//! The image that is damaged, and what it holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_ext4_format::ondisk::{Incompat, RoCompat};
use steadfast_ext4_mkfs::{JournalChoice, Options, make};
use steadfast_runtime::Sim;
use steadfast_vfs::{FileSystem, Ino, NewNode, OpenFlags, RenameFlags, SetXattr};
use uuid::Uuid;

use crate::exercise::{Found, walk};

/// Bytes of a block.
pub const BLOCK: u64 = 1024;
const IMAGE_BYTES: u64 = 12 << 20;
/// Every block of data begins with it, so that it is known from metadata.
const DATA: [u8; 4] = *b"DATA";

/// rwxr-x---, and rwx for the user 1000.
const DEFAULT_ACL: &[u8] = &[
    2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255, 2, 0, 7, 0, 232, 3, 0, 0, 4, 0, 5, 0, 255, 255,
    255, 255, 16, 0, 7, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255,
];

/// Every log's first block begins with it: the magic number and the kind.
const LOG_SUPERBLOCK: [u8; 8] = [0xc0, 0x3b, 0x39, 0x98, 0, 0, 0, 4];

/// A populated image.
pub struct Population {
    pub checksums: bool,
    pub store: Store,
    /// Blocks of the log.
    pub log: (u64, u64),
    /// Blocks with bitmaps, with inodes, with extent trees or pointers, and with directories; not
    /// empty ones.
    pub metadata: [Vec<u64>; 4],
    /// What a reader finds, by path.
    pub tree: BTreeMap<Vec<u8>, Found>,
}

/// Bytes whose every block says that it is data, and whose.
pub fn contents(file: u64, from: u64, len: usize) -> Bytes {
    let byte = |at: u64| match at % BLOCK {
        n @ 0..4 => DATA[n as usize],
        _ => (at.wrapping_mul(file * 2 + 3) >> 3) as u8 | 1,
    };
    (from..from + len as u64).map(byte).collect()
}

/// Mount options of all cases: little memory, and a log that stays well filled.
pub fn options() -> MountOptions {
    let mut options = MountOptions::default();
    options.page_cache.memory_bytes = 4 << 20;
    options.metadata_cache_blocks = 1024;
    options.journal.checkpoint_start_fraction = 0.9;
    options.journal.checkpoint_stop_fraction = 0.6;
    options
}

fn file(fs: &Ext4, dir: Ino, name: &str, pieces: impl Iterator<Item = (u64, Bytes)>) -> Ino {
    let rw = OpenFlags::READ | OpenFlags::WRITE;
    let (attr, fh) = fs.create(dir, name.as_bytes(), NewNode::default(), rw).unwrap();
    for (at, data) in pieces {
        assert_eq!(fs.write(fh, at, data.clone()).unwrap(), data.len());
    }
    fs.fsync(fh, false).unwrap();
    fs.release(fh).unwrap();
    attr.ino
}

fn populate(fs: &Ext4) {
    let root = fs.root();
    let node = NewNode::default();
    for n in 0..24u64 {
        let len = 1 + (n * 977 % 9000) as usize;
        file(fs, root, &format!("small{n}"), [(0, contents(n, 0, len))].into_iter());
    }
    // Extent trees: with a leaf in a block, with several.
    for (name, pieces) in [("pieces", 30), ("fragments", 220u64)] {
        let holes = (0..pieces).map(|n| (n * 2 * BLOCK, contents(40, n * 2 * BLOCK, 1024)));
        file(fs, root, name, holes);
    }
    // Directories: of one block, of several with an index, of many with an index of two levels.
    let one = file(fs, root, "linked", [(0, contents(50, 0, 3000))].into_iter());
    for (dir, names, len) in [("linear", 8, 12), ("indexed", 60, 60), ("deep", 560, 220)] {
        let dir = fs.mkdir(root, dir.as_bytes(), node).unwrap().ino;
        for n in 0..names {
            let name = format!("{n:04}{}", "x".repeat(len));
            fs.link(one, dir, name.as_bytes()).unwrap();
        }
    }
    let sub = fs.mkdir(root, b"sub", node).unwrap().ino;
    let below = fs.mkdir(sub, b"below", node).unwrap().ino;
    file(fs, below, "bottom", [(0, contents(60, 0, 5000))].into_iter());
    for n in 7..12 {
        let ino = fs.lookup(root, format!("small{n}").as_bytes()).unwrap().ino;
        fs.setxattr(ino, b"user.note", &[n; 500], SetXattr::Any).unwrap();
        fs.setxattr(ino, b"user.own", &[n; 30], SetXattr::Any).unwrap();
        // Only where there are inodes for values.
        let _ = fs.setxattr(ino, b"user.large", &contents(90, 0, 4000), SetXattr::Any);
    }
    fs.setxattr(sub, b"system.posix_acl_default", DEFAULT_ACL, SetXattr::Any).unwrap();
    fs.symlink(root, b"fast", b"DATA/short", node).unwrap();
    fs.symlink(root, b"slow", &[&DATA[..], &[b'l'; 200]].concat(), node).unwrap();
}

/// Done after everything else has gone home: what the log of a dirty image holds.
fn go_on(fs: &Ext4) {
    let root = fs.root();
    let none = RenameFlags::empty();
    for n in 0..12u64 {
        let name = format!("later{n}");
        file(fs, root, &name, [(0, contents(80 + n, 0, 4000))].into_iter());
        fs.link(fs.lookup(root, name.as_bytes()).unwrap().ino, root, &[b'l', n as u8 + b'a'])
            .unwrap();
        let dir = fs.mkdir(root, format!("later dir{n}").as_bytes(), NewNode::default()).unwrap();
        fs.rename((root, name.as_bytes()), (dir.ino, b"moved"), none).unwrap();
        if n % 4 == 3 {
            fs.unlink(dir.ino, b"moved").unwrap();
            fs.rmdir(root, format!("later dir{n}").as_bytes()).unwrap();
        }
    }
    let holes = (0..120).map(|n| (n * 2 * BLOCK, contents(79, n * 2 * BLOCK, 1024)));
    file(fs, root, "later fragments", holes);
    fs.sync().unwrap();
}

/// What the file system is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Checksums,
    Plain,
    /// Without checksums and without extents.
    BlockMaps,
    /// Without checksums, in clusters of four blocks.
    Clusters,
}

impl Form {
    /// Block groups of the image.
    fn groups(self) -> u64 {
        if self == Form::Clusters { 1 } else { 2 }
    }
}

fn options_of_mkfs(form: Form) -> Options {
    let mut options = Options::new(Uuid::from_u128(7), Uuid::from_u128(8), 1_700_000_000);
    if form == Form::Checksums {
        options.features = Options::upstream_features();
        options.features.incompat |= Incompat::EA_INODE;
    } else {
        options.features.ro_compat.remove(RoCompat::METADATA_CSUM);
    }
    if form == Form::BlockMaps {
        options.features.incompat.remove(Incompat::EXTENT | Incompat::BIT64);
    }
    if form == Form::Clusters {
        options.features.ro_compat |= RoCompat::BIGALLOC;
        options.cluster_size = Some(BLOCK as u32 * 4);
    }
    options.block_size = Some(BLOCK as u32);
    options.inodes = Some(256);
    options.journal = JournalChoice::InternalOf(1024);
    options
}

impl Population {
    /// Makes it, in a simulation; `dirty`: as a power cut leaves it.
    pub fn make(form: Form, dirty: bool) -> Population {
        let made = Sim::new(1).run(move || {
            let disk = Ram::new("disk", IMAGE_BYTES).persistent();
            let device: Arc<dyn BlockDevice> = Arc::new(disk.clone());
            let made = make(&device, &options_of_mkfs(form)).unwrap();
            let fs = Ext4::mount(Arc::clone(&device), options()).unwrap();
            populate(&fs);
            fs.unmount().unwrap();
            let fs = Ext4::mount(device, options()).unwrap();
            go_on(&fs);
            if !dirty {
                fs.unmount().unwrap();
            }
            (disk.store(), made.journal_blocks.expect("an internal journal"))
        });
        let (store, log) = made.unwrap();
        let start = (0..IMAGE_BYTES / BLOCK)
            .find(|b| store.read(b * BLOCK, 8)[..] == LOG_SUPERBLOCK)
            .expect("a log");
        let log = (start, start + log);
        let contents = store.clone();
        let tree = Sim::new(1).run(move || {
            let disk = Arc::new(Ram::from_store("disk", contents).persistent());
            let fs = Ext4::mount(disk, MountOptions { read_only: true, ..options() }).unwrap();
            let (tree, errors) = walk(&fs);
            assert_eq!(errors, 0);
            tree
        });
        let metadata = metadata(&store, log, form.groups());
        let checksums = form == Form::Checksums;
        Population { checksums, store, log, metadata, tree: tree.unwrap() }
    }
}

/// Whether a block is empty or begins as data does; a short file's block ends soon after.
fn is_data(bytes: &[u8]) -> bool {
    let begun = DATA.iter().zip(bytes).take_while(|(a, b)| a == b).count();
    begun == DATA.len() || bytes[begun..].iter().all(|b| *b == 0)
}

/// Blocks that are neither empty, nor data, nor of the log. The bitmaps of the groups follow each
/// other, then come the inodes, then the log; extent trees have a magic
/// number.
fn metadata(store: &Store, log: (u64, u64), groups: u64) -> [Vec<u64>; 4] {
    // The first group's descriptor begins with where its bitmap is.
    let bitmaps = store.read(2 * BLOCK, 4).iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
    let inodes = bitmaps + 2 * groups;
    let mut kinds = [const { Vec::new() }; 4];
    for block in (bitmaps..IMAGE_BYTES / BLOCK).filter(|b| !(log.0..log.1).contains(b)) {
        let bytes = store.read(block * BLOCK, BLOCK);
        if is_data(&bytes) {
            continue;
        }
        let kind = match block {
            b if b < inodes => 0,
            b if b < log.0 => 1,
            _ if bytes[..2] == [0x0a, 0xf3] => 2,
            // Pointers to two blocks; a directory has the length of a name there.
            _ if bytes[2..4] == [0, 0] && bytes[6..8] == [0, 0] => 2,
            _ => 3,
        };
        kinds[kind].push(block);
    }
    assert!(kinds.iter().all(|k| !k.is_empty()));
    kinds
}
