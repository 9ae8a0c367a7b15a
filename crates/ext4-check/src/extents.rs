//! Walks through an inode's extent tree: order, bounds and checksums of every node; claims every
//! block.

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::csum::InodeSeed;
use steadfast_ext4_format::ondisk::{
    Extent, ExtentHeader, ExtentIndex, ExtentLeaf, InodeNo, RawInode,
};
use steadfast_vfs::FileType;
use zerocopy::FromBytes;

use crate::FindingKind;
use crate::checker::Checker;
use crate::finding::as_finding;
use crate::inodes::InodeExtents;
use crate::orphans::Fate;

/// The range of file blocks that a node may map: from, to (exclusive).
type Span = (u64, u64);

/// One walk.
pub(super) struct Walk {
    ino: InodeNo,
    seed: InodeSeed,
    is_dir: bool,
    keep_runs: bool,
    /// Blocks of the file that the size covers.
    size_blocks: u64,
    mapped: InodeExtents,
    /// The file block behind the last extent.
    next: u64,
    /// The cluster of the file in which the last extent ends, and of the device.
    cluster: Option<(u64, u64)>,
}

impl Checker<'_> {
    /// Walks through the tree of an inode that has one.
    pub(super) fn walk_extents(&mut self, ino: InodeNo, inode: &RawInode) -> Result<InodeExtents> {
        let bs = u64::from(self.image.layout.block_size);
        let mut walk = Walk {
            ino,
            seed: self.image.layout.checksums.inode_seed(ino, inode.generation()),
            is_dir: inode.file_type() == Some(FileType::Directory)
                && self.fate(ino, inode) == Fate::Stays,
            keep_runs: self.image.needs_runs(ino, inode),
            size_blocks: inode.size().div_ceil(bs),
            mapped: InodeExtents::default(),
            next: 0,
            cluster: None,
        };
        let root = inode.block();
        if let Some(header) = self.node_header(&walk, root, None, 0)? {
            self.walk_node(&mut walk, root, &header, (0, 1 << 32))?;
        }
        Ok(walk.mapped)
    }

    /// The header of a node, if it makes sense.
    fn node_header(
        &mut self,
        walk: &Walk,
        node: &[u8],
        depth: Option<u16>,
        block: u64,
    ) -> Result<Option<ExtentHeader>> {
        let header = match ExtentHeader::parse(node, depth, String::new) {
            Ok(header) => header,
            Err(e) => {
                let what = as_finding(e)?;
                let text = format_args!("{what} (extent node in block {block}, 0 is the inode)");
                self.inode_finding(walk.ino, FindingKind::ExtentNode, text);
                return Ok(None);
            }
        };
        // A writer may leave out as much as a checksum takes, never more.
        if header.max.get() + 2 < ExtentHeader::capacity(node.len()) {
            let max = header.max.get();
            let text = format_args!("extent node in block {block} says it has room for {max} only");
            self.inode_finding(walk.ino, FindingKind::ExtentNode, text);
        }
        Ok(Some(header))
    }

    fn walk_node(
        &mut self,
        walk: &mut Walk,
        node: &[u8],
        header: &ExtentHeader,
        span: Span,
    ) -> Result<()> {
        let entries = usize::from(header.entries.get());
        let raw = node[12..].chunks_exact(12).take(entries);
        if header.depth.get() == 0 {
            for leaf in raw.flat_map(ExtentLeaf::read_from_bytes) {
                self.walk_extent(walk, Extent::from(leaf), span);
            }
            return Ok(());
        }
        if entries == 0 {
            self.inode_finding(walk.ino, FindingKind::ExtentNode, "an inner extent node is empty");
        }
        let indices: Vec<ExtentIndex> = raw.flat_map(ExtentIndex::read_from_bytes).collect();
        let mut low = span.0;
        for (i, index) in indices.iter().enumerate() {
            let start = u64::from(index.logical.get());
            let end = indices.get(i + 1).map_or(span.1, |n| u64::from(n.logical.get()));
            if start < low || start >= end.min(span.1) {
                let text = format_args!("extent indices out of order at file block {start}");
                self.inode_finding(walk.ino, FindingKind::ExtentOrder, text);
                continue;
            }
            low = start;
            self.walk_child(walk, header.depth.get() - 1, index, (start, end.min(span.1)))?;
        }
        Ok(())
    }

    fn walk_child(
        &mut self,
        walk: &mut Walk,
        depth: u16,
        index: &ExtentIndex,
        span: Span,
    ) -> Result<()> {
        let (ino, block) = (walk.ino, index.block());
        if !self.image.layout.contains(block, 1) {
            let text = format_args!("extent node at block {block}, outside the file system");
            self.inode_finding(ino, FindingKind::ExtentRange, text);
            return Ok(());
        }
        walk.mapped.blocks += u64::from(self.image.layout.blocks_per_cluster);
        if !self.claims.claim_one(block) {
            let text = format_args!("extent node at block {block}, which has another owner");
            self.inode_finding(ino, FindingKind::BlockShared, text);
            return Ok(());
        }
        let node = self.image.source.block(block)?;
        if !self.image.layout.checksums.verify_extent_block(walk.seed, &node) {
            let text = format_args!("wrong checksum of the extent node in block {block}");
            self.inode_finding(ino, FindingKind::ExtentChecksum, text);
        }
        let Some(header) = self.node_header(walk, &node, Some(depth), block)? else {
            return Ok(());
        };
        let first = node.get(12..16).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
        if header.entries.get() > 0 && first.map(u64::from) != Some(span.0) {
            let start = span.0;
            let text = format_args!("extent node in block {block} does not begin at {start}");
            self.inode_finding(ino, FindingKind::ExtentOrder, text);
        }
        self.walk_node(walk, &node, &header, span)
    }

    fn walk_extent(&mut self, walk: &mut Walk, e: Extent, span: Span) {
        let ino = walk.ino;
        let (first, start, len) = (e.logical, e.start, e.len);
        let mut bad = |kind, text: &str| {
            self.findings.add(
                kind,
                format_args!("inode {ino}"),
                format_args!("extent of {len} blocks at file block {first}, block {start}: {text}"),
            );
        };
        if len == 0 {
            return bad(FindingKind::ExtentNode, "is empty");
        }
        if start == 0 || !self.image.layout.contains(start, u64::from(len)) {
            return bad(FindingKind::ExtentRange, "lies outside the file system");
        }
        if u64::from(first) < walk.next || u64::from(first) < span.0 {
            return bad(FindingKind::ExtentOrder, "out of order");
        }
        // Space that was allocated beyond the end may reach further than its node.
        let beyond = e.unwritten && e.end() > walk.size_blocks;
        if e.end() > 1 << 32 || (e.end() > span.1 && !beyond) {
            return bad(FindingKind::ExtentOrder, "reaches beyond its node");
        }
        if walk.is_dir && e.unwritten {
            bad(FindingKind::DirectoryHole, "is unwritten in a directory");
        }
        if walk.is_dir && u64::from(first) > walk.next {
            bad(FindingKind::DirectoryHole, "follows a hole in a directory");
        }
        walk.next = e.end();
        let ratio = u64::from(self.image.layout.blocks_per_cluster);
        let begins = (u64::from(first) / ratio, start / ratio);
        let same = walk.cluster == Some(begins);
        let torn = walk.cluster.is_some_and(|(of_file, _)| of_file == begins.0 && !same);
        if u64::from(first) % ratio != start % ratio || torn {
            bad(FindingKind::Cluster, "does not lie in clusters as in the file");
        }
        let end = start + u64::from(len);
        walk.cluster = Some(((e.end() - 1) / ratio, (end - 1) / ratio));
        // A cluster that the last extent ended in is the file's already.
        let new = if same { (begins.1 + 1) * ratio } else { start };
        let clusters = end.div_ceil(ratio).saturating_sub(new / ratio);
        let mapped = &mut walk.mapped;
        mapped.blocks += clusters * ratio;
        mapped.end = mapped.end.max(e.end());
        if !e.unwritten {
            mapped.written_end = mapped.written_end.max(e.end());
        }
        // What somebody else has claimed is left out, so that no block is read for two.
        let shared = new < end && self.claim_for_inode(ino, new, end - new);
        if !shared && walk.keep_runs {
            walk.mapped.runs.push((first, start, len));
        }
    }

    /// Claims an inode's blocks; whether some had another owner.
    pub(super) fn claim_for_inode(&mut self, ino: InodeNo, start: u64, len: u64) -> bool {
        let (findings, mut shared) = (&mut self.findings, false);
        self.claims.claim(start, len, |block, n| {
            shared = true;
            let text = format_args!("{n} blocks from {block} on have another owner too");
            findings.add(FindingKind::BlockShared, format_args!("inode {ino}"), text);
        });
        shared
    }
}
