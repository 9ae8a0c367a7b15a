//! The index of a directory: its root in block 0, and below it leaves, or one level of nodes (two
//! with `large_dir`) above them.
//!
//! Root and nodes are disguised as blocks of entries, so that a system without indexes sees a
//! linear directory: the root's ".." and a node's one unused entry seem to reach to the block's
//! end. Behind them stands a table of (lowest hash, block), sorted by hash; the first one's hash
//! is that of the parent, its place is taken by the table's limit and count. Checksums follow the
//! table's last possible place and cover what is used of it. Source: the kernel's
//! Documentation/filesystems/ext4/directory.rst and fs/ext4/namei.c.

use std::ops::{Deref, DerefMut};

use bytes::Bytes;

use super::block::{DOT, DOT_DOT, first_block};
use super::{DirBlocks, DirBlocksMut, Directory, NameLocation};
use crate::error::{Result, unsupported};
use crate::ondisk::{
    DX_NODE_ENTRIES_OFFSET, DX_ROOT_ENTRIES_OFFSET, DxCountLimit, DxEntry, DxRootInfo, HashVersion,
    InodeNo, file_type_from_code,
};

/// Bytes of a place in a table.
const PLACE: usize = size_of::<DxEntry>();

/// A root or a node; checked.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Block in the directory.
    pub number: u32,
    bytes: Contents,
    table: usize,
}

/// A block's bytes: those of the cache until they are changed.
#[derive(Debug, Clone)]
enum Contents {
    Shared(Bytes),
    Own(Vec<u8>),
}

impl Deref for Contents {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Contents::Shared(bytes) => bytes,
            Contents::Own(bytes) => bytes,
        }
    }
}

impl DerefMut for Contents {
    fn deref_mut(&mut self) -> &mut [u8] {
        if let Contents::Shared(bytes) = self {
            *self = Contents::Own(bytes.to_vec());
        }
        match self {
            Contents::Own(bytes) => bytes,
            Contents::Shared(_) => unreachable!("made our own above"),
        }
    }
}

/// The way from the root to a leaf: each node, and the place taken in it.
#[derive(Debug, Clone)]
pub(super) struct Path {
    /// The root first; one for each level below it follows.
    pub steps: Vec<(Node, usize)>,
}

impl Node {
    fn u16_at(&self, at: usize) -> usize {
        usize::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]))
    }

    fn u32_at(&self, at: usize) -> u32 {
        let b = &self.bytes[at..at + 4];
        u32::from_le_bytes([b[0], b[1], b[2], b[3]])
    }

    fn set_u32(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn limit(&self) -> usize {
        self.u16_at(self.table)
    }

    pub fn count(&self) -> usize {
        self.u16_at(self.table + 2)
    }

    fn set_count(&mut self, count: usize) {
        let count = (count as u16).to_le_bytes();
        self.bytes[self.table + 2..self.table + 4].copy_from_slice(&count);
    }

    pub fn is_full(&self) -> bool {
        self.count() >= self.limit()
    }

    /// The lowest hash of place `i`, with the continuation bit; 0 for the first.
    pub fn hash(&self, i: usize) -> u32 {
        if i == 0 { 0 } else { self.u32_at(self.table + i * PLACE) }
    }

    /// The block of place `i`.
    pub fn block(&self, i: usize) -> u32 {
        // The upper four bits are set aside for other uses.
        self.u32_at(self.table + i * PLACE + 4) & 0x0fff_ffff
    }

    pub fn set_block(&mut self, i: usize, block: u32) {
        self.set_u32(self.table + i * PLACE + 4, block);
    }

    /// The last place whose lowest hash is not above `hash`.
    fn place_for(&self, hash: u32) -> usize {
        let (mut low, mut high) = (1, self.count());
        while low < high {
            let middle = (low + high) / 2;
            if self.hash(middle) <= hash { low = middle + 1 } else { high = middle }
        }
        low - 1
    }

    /// Puts a place behind place `i`.
    ///
    /// # Panics
    /// If the node is full.
    pub fn insert_after(&mut self, i: usize, hash: u32, block: u32) {
        assert!(!self.is_full(), "room in the index is made first");
        let at = self.table + (i + 1) * PLACE;
        let end = self.table + self.count() * PLACE;
        self.bytes.copy_within(at..end, at + PLACE);
        self.set_u32(at, hash);
        self.set_u32(at + 4, block);
        self.set_count(self.count() + 1);
    }

    /// Moves the places from `i` on to the empty node `to`.
    pub fn split_off(&mut self, i: usize, to: &mut Node) {
        let count = self.count();
        assert!(i < count && count - i <= to.limit(), "the places fit");
        for (new, old) in (i..count).enumerate() {
            if new != 0 {
                to.set_u32(to.table + new * PLACE, self.hash(old));
            }
            to.set_block(new, self.block(old));
        }
        to.set_count(count - i);
        // The first place's hash is limit and count.
        let from = self.table + if i == 0 { 4 } else { i * PLACE };
        self.bytes[from..self.table + count * PLACE].fill(0);
        self.set_count(i);
    }

    /// Leaves one place, for `block`.
    pub fn restart(&mut self, block: u32) {
        self.set_count(1);
        self.set_block(0, block);
    }

    /// Node levels between root and leaves; of the root only.
    pub fn levels(&self) -> u8 {
        self.info().indirect_levels
    }

    pub fn set_levels(&mut self, levels: u8) {
        DxRootInfo { indirect_levels: levels, ..self.info() }.write_to(&mut self.bytes);
    }

    /// The hash function; of the root only, checked when it was read.
    pub fn function(&self) -> HashVersion {
        HashVersion::from_code(self.info().hash_version).expect("checked when it was read")
    }

    fn info(&self) -> DxRootInfo {
        DxRootInfo::of_root(&self.bytes).expect("blocks are 1024 bytes or more")
    }

    /// "." or ".." as found; of the root only.
    pub fn dot(&self, at: usize) -> NameLocation {
        let kind = file_type_from_code(self.bytes[at + 7]);
        NameLocation { ino: InodeNo(self.u32_at(at)), kind, block: 0, offset: at }
    }

    /// Sets inode and type of "." or ".."; of the root only.
    pub fn repoint(&mut self, offset: usize, ino: InodeNo, kind: u8) {
        assert!(offset == DOT || offset == DOT_DOT, "the root holds only the dots");
        super::block::repoint(&mut self.bytes, offset, ino, kind);
    }
}

impl Path {
    /// The block of the leaf.
    pub fn leaf(&self) -> u32 {
        let (node, at) = self.last();
        node.block(*at)
    }

    /// The lowest hash that the leaf may hold.
    pub fn lowest(&self) -> u32 {
        let step = self.steps.iter().rev().find(|(_, at)| *at != 0);
        step.map_or(0, |(node, at)| node.hash(*at) & !1)
    }

    /// The node above the leaf, and the leaf's place.
    pub fn last(&self) -> &(Node, usize) {
        self.steps.last().expect("a path has the root")
    }
}

impl<D: DirBlocks> Directory<D> {
    /// Reads and checks the root. Only what the kernel writes is looked at: it leaves in the gaps
    /// what the block held before.
    pub(super) fn read_root(&self) -> Result<Node> {
        let root = self.read_table(0, DX_ROOT_ENTRIES_OFFSET)?;
        let bad = |what: &str| self.context.corrupt(0, format!("index root: {what}"));
        if root.bytes[DOT + 4..DOT + 9] != [12, 0, 1, root.bytes[DOT + 7], b'.']
            || root.dot(DOT).ino != self.context.ino
            || !(1..=self.context.format.inodes_count).contains(&root.dot(DOT_DOT).ino.0)
            || root.bytes[DOT_DOT + 6] != 2
            || root.bytes[DOT_DOT + 8..DOT_DOT + 10] != *b".."
            || root.u16_at(DOT_DOT + 4) != root.bytes.len() - DOT_DOT
        {
            return Err(bad("no \".\" and \"..\" in front"));
        }
        let info = root.info();
        if info.reserved.get() != 0 || info.info_length != 8 || info.flags & 1 != 0 {
            return Err(bad("impossible header"));
        }
        let code = info.hash_version;
        if HashVersion::from_code(code).is_none_or(|known| known.code() != code) {
            return unsupported(format!(
                "hash version {code} of directory inode {}",
                self.context.ino
            ));
        }
        if info.indirect_levels > self.context.format.index_levels_max {
            return Err(bad("more levels than the file system's features allow"));
        }
        self.check_table(&root)?;
        Ok(root)
    }

    /// Reads an index block. What comes from the device is checked whole, checksum and places;
    /// what is in memory has been.
    fn read_table(&self, number: u32, table: usize) -> Result<Node> {
        let check = |contents: &[u8]| {
            if !self.context.format.checksums.verify_dx_block(self.context.seed, contents) {
                let what = "no index block, or its checksum is wrong";
                return Err(self.context.corrupt(number, what));
            }
            let bytes = Contents::Shared(Bytes::copy_from_slice(contents));
            let node = Node { number, bytes, table };
            self.check_table(&node)?;
            (0..node.count()).try_for_each(|i| self.check_place(&node, i))
        };
        let bytes = Contents::Shared(self.blocks.read(number, &check)?);
        Ok(Node { number, bytes, table })
    }

    fn read_node(&self, number: u32) -> Result<Node> {
        let node = self.read_table(number, DX_NODE_ENTRIES_OFFSET)?;
        if node.u32_at(0) != 0 || node.u16_at(4) != node.bytes.len() {
            return Err(self.context.corrupt(number, "not an index node"));
        }
        self.check_table(&node)?;
        Ok(node)
    }

    /// Places that fit into a table.
    fn limit(&self, block_size: usize, table: usize) -> usize {
        let checksum = self.context.format.checksums.metadata();
        usize::from(DxCountLimit::capacity(block_size, table, checksum))
    }

    /// Limit and count: with them right, every place can be looked at.
    fn check_table(&self, node: &Node) -> Result<()> {
        let bad = |what: String| Err(self.context.corrupt(node.number, format!("index: {what}")));
        let (found, right) = (node.limit(), self.limit(node.bytes.len(), node.table));
        if found != right {
            return bad(format!("limit {found} instead of {right}"));
        }
        let count = node.count();
        if count == 0 || count > right {
            return bad(format!("count {count} of {right}"));
        }
        Ok(())
    }

    /// One place. Those that are followed are checked each time: the block may have been made for
    /// something else, if two claim it.
    fn check_place(&self, node: &Node, i: usize) -> Result<()> {
        let bad = |what: String| Err(self.context.corrupt(node.number, format!("index: {what}")));
        let block = node.block(i);
        if block == 0 || block == node.number || block >= self.blocks.block_count() {
            return bad(format!("place {i} points to block {block}"));
        }
        if i > 1 && node.hash(i) < node.hash(i - 1) {
            return bad(format!("place {i} out of order"));
        }
        Ok(())
    }

    /// The way to the first leaf where names of this hash can be.
    pub(super) fn path_to(&self, root: Node, hash: u32) -> Result<Path> {
        let levels = root.levels();
        let at = root.place_for(hash);
        self.check_place(&root, at)?;
        let mut steps = vec![(root, at)];
        for _ in 0..levels {
            // OK to unwrap: the root is there.
            let (above, at) = steps.last().unwrap();
            let node = self.read_node(above.block(*at))?;
            let at = node.place_for(hash);
            self.check_place(&node, at)?;
            steps.push((node, at));
        }
        Ok(Path { steps })
    }

    /// Moves on to the next leaf and returns its lowest hash; `None` after the last. The
    /// continuation bit says whether that hash occurs in the leaf before, too.
    pub(super) fn next_leaf(&self, path: &mut Path) -> Result<Option<u32>> {
        let Some(level) = path.steps.iter().rposition(|(node, at)| at + 1 < node.count()) else {
            return Ok(None);
        };
        let levels = path.steps.len();
        path.steps.truncate(level + 1);
        let (node, at) = &mut path.steps[level];
        *at += 1;
        self.check_place(node, *at)?;
        let lowest = node.hash(*at);
        while path.steps.len() < levels {
            let node = self.read_node(path.leaf())?;
            self.check_place(&node, 0)?;
            path.steps.push((node, 0));
        }
        Ok(Some(lowest))
    }
}

impl<D: DirBlocksMut> Directory<D> {
    /// Writes a root or node with a fresh checksum.
    pub(super) fn write_node(&mut self, node: &mut Node) -> Result<()> {
        self.context.format.checksums.set_dx_block(self.context.seed, &mut node.bytes);
        self.blocks.write(node.number, node.bytes.to_vec())
    }

    /// A root with one place for `leaf`, for the directory whose parent is `parent`.
    pub(super) fn new_root(&self, parent: InodeNo, leaf: u32) -> Node {
        let size = self.blocks.block_size();
        let mut bytes = first_block(&self.context, size, parent);
        let to_end = (size - DOT_DOT) as u16;
        bytes[DOT_DOT + 4..DOT_DOT + 6].copy_from_slice(&to_end.to_le_bytes());
        let info = DxRootInfo {
            reserved: 0.into(),
            hash_version: self.context.format.hash_version.code(),
            info_length: size_of::<DxRootInfo>() as u8,
            indirect_levels: 0,
            flags: 0,
        };
        info.write_to(&mut bytes);
        let bytes = Contents::Own(bytes);
        let mut root = Node { number: 0, bytes, table: DX_ROOT_ENTRIES_OFFSET };
        self.start_table(&mut root);
        root.set_block(0, leaf);
        root
    }

    /// A node with a table of one place that points nowhere yet.
    pub(super) fn new_node(&self, number: u32) -> Node {
        let size = self.blocks.block_size();
        let mut bytes = vec![0; size];
        bytes[4..6].copy_from_slice(&(size as u16).to_le_bytes());
        let bytes = Contents::Own(bytes);
        let mut node = Node { number, bytes, table: DX_NODE_ENTRIES_OFFSET };
        self.start_table(&mut node);
        node
    }

    fn start_table(&self, node: &mut Node) {
        let limit = self.limit(node.bytes.len(), node.table) as u16;
        node.bytes[node.table..node.table + 2].copy_from_slice(&limit.to_le_bytes());
        node.set_count(1);
    }
}
