//! Fast commits in the log, replayed at the mount after a power cut. The input is tags, each a
//! piece of a number and a value: they get the head with the transaction's number, stay within
//! blocks, and each commit ends with a right checksum, which the fuzzer could not guess.
#![cfg_attr(feature = "libfuzzer", no_main)]

use std::sync::OnceLock;

use steadfast_ext4::{Ext4, MountOptions};
use steadfast_ext4_format::ondisk::{Compat, Features};
use steadfast_ext4_mkfs::Options;
use steadfast_fuzz::image::{
    BLOCK, Image, ImageBytes, Look, MAP_AT, Recipe, SUPERBLOCK, use_image,
};
use steadfast_fuzz::input::pieces;
use steadfast_vfs::{FileSystem, NewNode, OpenFlags, Result};

/// Where the superblock has the number of the journal's inode.
const JOURNAL: u64 = SUPERBLOCK + 0xe0;
/// Where the journal's own superblock, big-endian, has its length and the blocks of fast commits.
const LENGTH: u64 = 0x10;
const FAST_BLOCKS: u64 = 0x54;
/// Where the first extent of an inode has its first block.
const EXTENT_START: u64 = 20;

/// Tags that structure the log, and bytes of a tag's head and of the last tag.
const PAD: u16 = 7;
const TAIL: u16 = 8;
const HEAD: u16 = 9;
const HEAD_BYTES: usize = 4;
const TAIL_BYTES: usize = 12;
/// Blocks of tags that are written at most.
const BLOCKS_MAX: usize = 60;

fn options() -> MountOptions {
    let mut options = MountOptions::default();
    options.journal.fast_commits = true;
    options
}

fn fill(fs: &Ext4) -> Result<()> {
    let rw = OpenFlags::READ | OpenFlags::WRITE;
    let (attr, fh) = fs.create(fs.root(), b"file", NewNode::default(), rw)?;
    fs.write(fh, 0, vec![7; 20_000].into())?;
    fs.sync()?;
    fs.write(fh, 30_000, vec![8; 5000].into())?;
    fs.fsync(fh, false)?;
    fs.link(attr.ino, fs.root(), b"other name")?;
    fs.unlink(fs.root(), b"file")?;
    let (_, new) = fs.create(fs.root(), b"new", NewNode::default(), rw)?;
    fs.write(new, 0, vec![9; 3000].into())?;
    fs.fsync(new, false)?;
    let used = fs.journal().map_or(0, |journal| journal.stats().fast_commits);
    assert_eq!(used, 2, "what is done here is fast commits");
    Ok(())
}

fn places(look: &Look<'_>) -> Vec<ImageBytes> {
    // It is one extent, which no reader of files is given.
    let journal = u64::from(look.word(look.inode(look.word(JOURNAL)) + MAP_AT + EXTENT_START));
    let field = |at: u64| u64::from(look.word(journal * BLOCK + at).swap_bytes());
    let end = journal + field(LENGTH);
    // The block between is nobody's.
    (end - field(FAST_BLOCKS) + 1..end).map(ImageBytes::block).collect()
}

pub fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let mut features: Features = Options::debian_features();
        features.compat |= Compat::FAST_COMMIT;
        let image =
            Image::new(&Recipe { features, options, cut: true, fill, places, ..Recipe::default() });
        let first = image.store.read(image.places[0].at, 4);
        assert_eq!(first[..], [HEAD as u8, 0, 8, 0], "the image has fast commits");
        image
    })
}

/// Blocks of tags, as a journal writes them.
#[derive(Default)]
struct Area {
    bytes: Vec<u8>,
    sum: u32,
}

impl Area {
    fn room(&self) -> usize {
        BLOCK as usize - self.bytes.len() % BLOCK as usize
    }

    fn put(&mut self, tag: u16, value: &[u8]) {
        let from = self.bytes.len();
        self.bytes.extend(tag.to_le_bytes());
        // OK to cast: it fits into a block.
        self.bytes.extend((value.len() as u16).to_le_bytes());
        self.bytes.extend_from_slice(value);
        // The kernel's sum is not inverted.
        self.sum = !crc32c::crc32c_append(!self.sum, &self.bytes[from..]);
    }

    /// Goes on in the next block if there is no room in this one.
    fn make_room(&mut self, bytes: usize) {
        let room = self.room();
        if room < bytes {
            match room.checked_sub(HEAD_BYTES) {
                Some(rest) => self.put(PAD, &vec![0; rest]),
                None => self.bytes.extend(vec![0; room]),
            }
        }
    }

    fn end(&mut self, tid: [u8; 4]) {
        self.make_room(TAIL_BYTES);
        let from = self.bytes.len();
        self.bytes.extend([TAIL as u8, 0, 8, 0]);
        self.bytes.extend(tid);
        let sum = !crc32c::crc32c_append(!self.sum, &self.bytes[from..]);
        self.bytes.extend(sum.to_le_bytes());
        self.sum = 0;
    }
}

pub fn run(input: &[u8]) {
    let image = image();
    let first = image.store.read(image.places[0].at, 12);
    let tid = [first[8], first[9], first[10], first[11]];
    let mut area = Area::default();
    area.put(HEAD, &[[0; 4], tid].concat());
    for (tag, value) in pieces(input) {
        if area.bytes.len() > BLOCKS_MAX * BLOCK as usize {
            break;
        }
        let value = &value[..value.len().min(BLOCK as usize - HEAD_BYTES)];
        match tag % 9 {
            0 => area.end(tid),
            // OK to cast: below 9.
            tag => {
                area.make_room(HEAD_BYTES + value.len());
                area.put(tag as u16, value);
            }
        }
    }
    area.end(tid);
    let mut store = image.store.clone();
    for (place, block) in image.places.iter().zip(area.bytes.chunks(BLOCK as usize)) {
        store.write_slice(place.at, &[0; BLOCK as usize]);
        store.write_slice(place.at, block);
    }
    use_image(store, options());
}

steadfast_fuzz::target!(run);
