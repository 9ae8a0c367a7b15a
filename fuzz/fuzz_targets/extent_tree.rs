//! Nodes of an extent tree: parsed by themselves, and as the root or the leaf of a file's tree in a
//! small image that is then read and written. Its metadata has no checksums: they would keep
//! everything else from being reached.
#![cfg_attr(feature = "libfuzzer", no_main)]

use std::sync::{Arc, OnceLock};

use steadfast_block::BlockDevice;
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_ext4_format::ondisk::{Extent, ExtentHeader, ExtentIndex, ExtentLeaf, RoCompat};
use steadfast_ext4_mkfs::{JournalChoice, Options, make};
use steadfast_runtime::Sim;
use steadfast_vfs::{FileSystem, NewNode, OpenFlags, Result, SetAttr};
use zerocopy::FromBytes;

const BLOCK: u64 = 1024;
const IMAGE_BYTES: u64 = 4 << 20;
/// Pieces of the file: more than an inode holds extents.
const PIECES: u64 = 30;
/// Where the extent tree's root is in an inode, and how long it is.
const ROOT: (u64, usize) = (40, 60);

/// An image with a file of many extents.
struct Image {
    store: Store,
    /// Byte at which the file's inode has its tree's root.
    root: u64,
    /// Byte of the tree's only leaf.
    leaf: u64,
}

/// The first block from `from` on that begins a node of an extent tree.
fn find_node(store: &Store, from: u64, step: u64, at: u64, wanted: &[u8]) -> u64 {
    let mut starts = (from..IMAGE_BYTES).step_by(step as usize);
    starts.find(|start| store.read(start + at, wanted.len() as u64)[..] == *wanted).unwrap() + at
}

fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let made = Sim::new(1).run(|| {
            let disk = Ram::new("disk", IMAGE_BYTES).persistent();
            let device: Arc<dyn BlockDevice> = Arc::new(disk.clone());
            let mut options = Options::random(1_700_000_000);
            options.features.ro_compat.remove(RoCompat::METADATA_CSUM);
            options.block_size = Some(BLOCK as u32);
            options.journal = JournalChoice::InternalOf(1024);
            make(&device, &options).unwrap();
            let fs = Ext4::mount(device, MountOptions::default()).unwrap();
            let rw = OpenFlags::READ | OpenFlags::WRITE;
            let (_, fh) = fs.create(fs.root(), b"file", NewNode::default(), rw).unwrap();
            for n in 0..PIECES {
                fs.write(fh, n * 2 * BLOCK, vec![7; BLOCK as usize].into()).unwrap();
            }
            fs.release(fh).unwrap();
            fs.unmount().unwrap();
            disk.store()
        });
        let store = made.unwrap();
        // Magic number, one entry, room for four, depth 1; and the leaf it leads to.
        let root = find_node(&store, 0, 128, ROOT.0, &[0x0a, 0xf3, 1, 0, 4, 0, 1, 0]);
        let leaf = find_node(&store, BLOCK, BLOCK, 0, &[0x0a, 0xf3, PIECES as u8, 0]);
        Image { store, root, leaf }
    })
}

/// Reads the file, fills a hole, appends, cuts and deletes it. Errors are fine.
fn use_file(fs: &Ext4) -> Result<()> {
    let attr = fs.lookup(fs.root(), b"file")?;
    let fh = fs.open(attr.ino, OpenFlags::READ | OpenFlags::WRITE)?;
    let data = || vec![9; 3000].into();
    let _ = fs.read(fh, 0, 2 * (PIECES * BLOCK) as usize);
    let _ = fs.write(fh, 5 * BLOCK, data());
    let _ = fs.write(fh, 1 << 20, data());
    let _ = fs.fsync(fh, false);
    let size = Some(9 * BLOCK + 5);
    let _ = fs.setattr(attr.ino, SetAttr { size, ..SetAttr::default() });
    fs.release(fh)?;
    let _ = fs.unlink(fs.root(), b"file");
    fs.create(fs.root(), b"other", NewNode::default(), OpenFlags::WRITE).map(drop)
}

/// Mounts the image with these bytes at `at`.
fn mounted(at: u64, bytes: &[u8]) {
    let mut store = image().store.clone();
    store.write_slice(at, bytes);
    let ended = Sim::new(1).run(move || {
        let disk = Arc::new(Ram::from_store("disk", store).persistent());
        let Ok(fs) = Ext4::mount(disk, MountOptions::default()) else { return };
        let _ = use_file(&fs);
        let _ = fs.unmount();
    });
    ended.unwrap();
}

/// Parses the node by itself.
fn parse(expected_depth: Option<u16>, node: &[u8]) {
    let Ok(header) = ExtentHeader::parse(node, expected_depth, String::new) else { return };
    let count = usize::from(header.entries.get());
    let entries: Vec<_> = node[12..].chunks_exact(12).take(count).collect();
    assert_eq!(entries.len(), count, "an accepted header counts entries that are there");
    for entry in entries {
        if header.depth.get() == 0 {
            let leaf = ExtentLeaf::read_from_bytes(entry).unwrap();
            let extent = Extent::from(leaf);
            if extent.len > 0 {
                assert_eq!(ExtentLeaf::from(extent), leaf);
            }
        } else {
            assert!(ExtentIndex::read_from_bytes(entry).unwrap().block() < 1 << 48);
        }
    }
}

pub fn run(input: &[u8]) {
    let Some((how, node)) = input.split_first() else { return };
    parse((*how < 6).then_some(u16::from(*how)), node);
    // As it is, or with the magic number that would have to be guessed.
    let mut node = node.to_vec();
    if how & 0x10 != 0 && node.len() >= 2 {
        node[..2].copy_from_slice(&[0x0a, 0xf3]);
    }
    if how & 0x20 != 0 {
        mounted(image().root, &node[..node.len().min(ROOT.1)]);
    } else {
        mounted(image().leaf, &node[..node.len().min(BLOCK as usize)]);
    }
}

steadfast_fuzz::target!(run);
