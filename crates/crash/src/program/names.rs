//! What lies where on an ext2, ext3 or ext4 image: what a write was for.

use std::collections::BTreeMap;

use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_ext4_format::ondisk::{GroupDesc, Layout, Superblock};
use steadfast_runtime::Sim;
use steadfast_vfs::{FileSystem, FileType, Ino};

use crate::JOURNAL_MAGIC;
use crate::explore::ext4::{blocks, mount};
use crate::tree::{Tree, shown};

/// The journal's inode.
const JOURNAL: Ino = Ino(8);
/// Names that one piece of a device is given at most.
const NAMES_MAX: usize = 4;

/// What a piece of a device holds.
#[derive(Debug, Clone)]
enum BlockUse {
    Superblock,
    Descriptors,
    BlockBitmap(u32),
    InodeBitmap(u32),
    /// Number of the first inode, how many bytes each.
    Inodes(u32, u64),
    Journal,
    Folder(Vec<u8>),
    /// Where in the file the piece begins.
    File(Vec<u8>, u64),
}

/// A map of an image.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// By the first byte: the first byte behind it, and what is there.
    pieces: BTreeMap<u64, (u64, BlockUse)>,
    inodes: BTreeMap<u64, Vec<u8>>,
    block: u64,
    /// Of file systems in folders of this one: their first devices, and those folders.
    joined: Vec<(u32, Vec<u8>, Names)>,
}

impl Names {
    /// The map of the ext2, ext3 or ext4 file system on these devices as it is after recovery;
    /// empty if there is none.
    pub fn of(contents: Vec<Store>, options: &MountOptions) -> Names {
        let options = options.clone();
        // OK to ignore: a map that cannot be made is empty.
        Sim::new(1).run(move || map(contents, options).unwrap_or_default()).unwrap_or_default()
    }

    /// Adds what another map knows and this one does not.
    pub(super) fn add(&mut self, other: Names) {
        for (start, piece) in other.pieces {
            let taken = self.at(start).is_some();
            if !taken {
                self.pieces.entry(start).or_insert(piece);
            }
        }
        for (inode, path) in other.inodes {
            self.inodes.entry(inode).or_insert(path);
        }
        self.block = self.block.max(other.block);
        for ((.., names), (.., more)) in self.joined.iter_mut().zip(other.joined) {
            names.add(more);
        }
    }

    /// Adds the map of a file system that is mounted in a folder of this one; its first device, of
    /// all that were recorded.
    pub fn join(&mut self, (device, folder): (u32, &[u8]), names: Names) {
        self.joined.push((device, folder.to_vec(), names));
    }

    /// What `data`, written to one of the recorded devices, was for.
    pub(super) fn on_device(&self, device: u32, offset: u64, data: &[u8]) -> String {
        let mut behind = self.joined.iter().rev();
        if let Some((first, folder, names)) = behind.find(|(first, ..)| *first <= device) {
            let what = names.on_device(device - first, offset, data);
            return if what.is_empty() { what } else { format!("{}/: {what}", shown(folder)) };
        }
        match device {
            0 => self.name(offset, data),
            _ => self.journal(data).join(", "),
        }
    }

    fn at(&self, offset: u64) -> Option<(u64, &(u64, BlockUse))> {
        let (start, piece) = self.pieces.range(..=offset).next_back()?;
        (offset < piece.0).then_some((*start, piece))
    }

    /// Where a byte of a file lies on the disk; `None` if it has no place there, or none is known.
    pub fn place(&self, path: &[u8], at: u64) -> Option<u64> {
        self.pieces.iter().find_map(|(start, (end, what))| match what {
            BlockUse::File(name, logical) if name == path => {
                let skip = at.checked_sub(*logical)?;
                (skip < end - start).then_some(start + skip)
            }
            _ => None,
        })
    }

    /// What `data`, written to the disk at `offset`, was for.
    pub fn name(&self, offset: u64, data: &[u8]) -> String {
        if self.pieces.is_empty() {
            return String::new();
        }
        let mut names: Vec<String> = Vec::new();
        let (mut at, end) = (offset, offset + data.len() as u64);
        while at < end {
            let found = self.at(at);
            let next = self.pieces.range(at + 1..).next().map_or(end, |(start, _)| *start);
            let to = found.map_or(next, |(_, piece)| piece.0).min(end);
            match found {
                Some((_, (_, BlockUse::Journal))) => {
                    let log = &data[(at - offset) as usize..(to - offset) as usize];
                    names.extend(self.journal(log));
                }
                Some((start, (_, what))) => names.push(self.one(what, at - start, to - at)),
                None => names.push("a block that is free later".into()),
            }
            at = to;
        }
        names.dedup();
        let more = names.len().saturating_sub(NAMES_MAX);
        names.truncate(NAMES_MAX);
        let more = if more > 0 { format!(" and {more} others") } else { String::new() };
        names.join(", ") + &more
    }

    /// What blocks of a journal hold, wherever the journal is.
    pub fn journal(&self, data: &[u8]) -> Vec<String> {
        let block = usize::try_from(self.block).unwrap_or(4096).max(1024);
        let kind = |block: &[u8]| {
            let word = |at: usize| {
                let bytes: [u8; 4] = block.get(at..at + 4)?.try_into().ok()?;
                Some(u32::from_be_bytes(bytes))
            };
            if !block.starts_with(&JOURNAL_MAGIC) {
                return "copies of blocks in the journal".into();
            }
            let transaction = word(8).unwrap_or(0);
            match word(4) {
                Some(1) => format!("journal: descriptor of transaction {transaction}"),
                Some(2) => format!("journal: commit of transaction {transaction}"),
                Some(3 | 4) => "journal: superblock".into(),
                Some(5) => format!("journal: revoked blocks of transaction {transaction}"),
                _ => "journal".into(),
            }
        };
        let mut names: Vec<String> = data.chunks(block).map(kind).collect();
        names.dedup();
        names
    }

    fn one(&self, what: &BlockUse, skip: u64, len: u64) -> String {
        match what {
            BlockUse::Superblock => "superblock".into(),
            BlockUse::Descriptors => "group descriptors".into(),
            BlockUse::BlockBitmap(group) => format!("block bitmap of group {group}"),
            BlockUse::InodeBitmap(group) => format!("inode bitmap of group {group}"),
            BlockUse::Inodes(first, size) => {
                let first = u64::from(*first) + skip / size;
                let last = first + (len / size).max(1) - 1;
                let known = self.inodes.range(first..=last).map(|(_, path)| shown_root(path));
                let known: Vec<String> = known.take(NAMES_MAX).collect();
                let of = if known.is_empty() { String::new() } else { " of ".to_owned() };
                format!("inodes {first} to {last}{of}{}", known.join(", "))
            }
            BlockUse::Journal => "journal".into(),
            BlockUse::Folder(path) => format!("names in {}", shown_root(path)),
            BlockUse::File(path, logical) => {
                format!("{} from byte {}", shown(path), logical + skip)
            }
        }
    }
}

fn shown_root(path: &[u8]) -> String {
    if path.is_empty() { "/".into() } else { shown(path) }
}

fn map(contents: Vec<Store>, options: MountOptions) -> Option<Names> {
    let rams = contents.into_iter().map(|store| Ram::from_store("disk", store).persistent());
    let rams: Vec<Ram> = rams.collect();
    let fs = mount(&blocks(&rams), options).ok()?;
    let (mut names, disk) = (Names::default(), rams[0].store());
    fixed(&mut names, &disk);
    let mut add = |fs: &Ext4, ino: Ino, what: &dyn Fn(u64) -> BlockUse| {
        for extent in fs.extents(ino, 0, u64::MAX).unwrap_or_default() {
            if !extent.inline && !extent.delayed && extent.physical > 0 {
                let end = extent.physical.saturating_add(extent.len);
                names.pieces.insert(extent.physical, (end, what(extent.logical)));
            }
        }
    };
    // A mount that uses the journal lets nobody look at it as at a file.
    let unused = MountOptions { read_only: true, no_load: true, ..MountOptions::default() };
    if let Ok(still) = mount(&blocks(&[Ram::from_store("disk", disk)]), unused) {
        add(&still, JOURNAL, &|_| BlockUse::Journal);
    }
    add(&fs, fs.root(), &|_| BlockUse::Folder(Vec::new()));
    let tree = Tree::read(&*fs).ok()?;
    for (path, node) in tree.nodes() {
        match node.attr.kind {
            FileType::Directory => add(&fs, node.attr.ino, &|_| BlockUse::Folder(path.to_vec())),
            FileType::Regular => add(&fs, node.attr.ino, &|at| BlockUse::File(path.to_vec(), at)),
            _ => {}
        }
    }
    names.inodes.insert(fs.root().0, Vec::new());
    names.inodes.extend(tree.nodes().map(|(path, node)| (node.attr.ino.0, path.to_vec())));
    // Not written back: it is a map of what is there.
    drop(fs);
    Some(names)
}

/// Superblocks, descriptors, bitmaps and inode tables.
fn fixed(names: &mut Names, disk: &Store) -> Option<()> {
    if disk.size() < 4096 {
        return None;
    }
    let sb =
        Superblock::parse_mended(&disk.read(1024, 1024)).ok().filter(Superblock::checksum_ok)?;
    let layout = Layout::new(&sb, disk.size()).ok()?;
    let block = u64::from(layout.block_size);
    names.block = block;
    let mut add = |first: u64, blocks: u64, what: BlockUse| {
        if blocks > 0 && layout.contains(first, blocks) {
            names.pieces.insert(first * block, ((first + blocks) * block, what));
        }
    };
    for group in layout.all_groups() {
        if layout.has_superblock(group) {
            let start = layout.group_start(group);
            add(start, 1, BlockUse::Superblock);
            add(start + 1, layout.desc_blocks.into(), BlockUse::Descriptors);
        }
        let (place, offset) = layout.desc_place(group);
        let (at, len) = (place * block + offset as u64, u64::from(layout.desc_size));
        if at + len > disk.size() {
            continue;
        }
        let bytes = disk.read(at, len);
        let desc = GroupDesc::parse(&bytes);
        add(desc.block_bitmap(), 1, BlockUse::BlockBitmap(group.0));
        add(desc.inode_bitmap(), 1, BlockUse::InodeBitmap(group.0));
        let first = layout.inode_number(group, 0).0;
        let inodes = BlockUse::Inodes(first, layout.inode_size.into());
        add(desc.inode_table(), layout.inode_table_blocks.into(), inodes);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use steadfast_block::BlockDevice;
    use steadfast_ext4_mkfs::{Options, make};
    use steadfast_vfs::{NewNode, OpenFlags};

    use super::*;

    /// A file system with a folder and a file in it.
    fn image() -> Store {
        let work = || {
            let ram = Ram::new("disk", 32 << 20).persistent();
            let device: Arc<dyn BlockDevice> = Arc::new(ram.clone());
            let mut options = Options::random(1_704_067_200);
            options.block_size = Some(4096);
            make(&device, &options).unwrap();
            let fs = Ext4::mount(device, MountOptions::default()).unwrap();
            let folder = fs.mkdir(fs.root(), b"folder", NewNode::default()).unwrap();
            let (_, fh) =
                fs.create(folder.ino, b"file", NewNode::default(), OpenFlags::WRITE).unwrap();
            fs.write(fh, 0, Bytes::from(vec![1; 10_000])).unwrap();
            fs.fsync(fh, false).unwrap();
            fs.release(fh).unwrap();
            fs.unmount().unwrap();
            ram.store()
        };
        Sim::new(1).run(work).unwrap()
    }

    #[test]
    fn every_kind_of_block_has_its_name() {
        let image = image();
        let names = Names::of(vec![image.clone()], &MountOptions::default());
        let all: Vec<String> = (0..image.size() / 4096)
            .map(|block| names.name(block * 4096, &image.read(block * 4096, 4096)))
            .collect();
        let first = ["superblock", "group descriptors"];
        assert_eq!(all[..2], first);
        for part in [
            "block bitmap of group 0",
            "inode bitmap of group 0",
            "inodes 1 to 16 of /, folder, folder/file",
            "journal: superblock",
            "journal: descriptor of transaction 2",
            "journal: commit of transaction 2",
            "names in /",
            "names in folder",
            "folder/file from byte 8192",
        ] {
            assert!(all.iter().any(|name| name.starts_with(part)), "{part} is nowhere");
        }
        let place = names.place(b"folder/file", 9000).unwrap();
        assert_eq!(image.read(place, 2), [1, 1][..]);
        assert_eq!(names.place(b"folder/file", 20_000), None);
        let two = names.name(0, &image.read(0, 8192));
        assert_eq!(two, "superblock, group descriptors");
    }

    #[test]
    fn what_is_no_file_system_has_no_names() {
        let names = Names::of(vec![Store::new(1 << 20)], &MountOptions::default());
        assert_eq!(names.name(0, &[0; 512]), "");
    }
}
