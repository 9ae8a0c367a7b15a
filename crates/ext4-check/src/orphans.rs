//! Orphans: inodes that the next mount deletes or truncates. They are in a list that begins in
//! the superblock and goes on through the inodes' times of deletion, or in the orphan file.

//!
//! Between a replay and that mount an orphan is in any of the states through which its deletion,
//! or its truncation, goes: so less is asked of it than of other inodes ([`Fate`]).

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{
    Compat, InodeNo, Layout, ORPHAN_BLOCK_MAGIC, OrphanBlockTail, RawInode, RoCompat, orphan_slots,
};

use crate::FindingKind;
use crate::checker::Checker;

/// What the next mount does with an inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing.
    Stays,
    /// It is cut to its size: blocks beyond it are no damage.
    Cut,
    /// It is deleted, whatever is left of it. It must not map what is not its own, and all that it
    /// has is in use until then; but a folder names nothing any more, not even its parent.
    Deleted,
}

impl Checker<'_> {
    /// What the next mount does with an inode.
    pub(super) fn fate(&self, ino: InodeNo, inode: &RawInode) -> Fate {
        match (self.orphans.contains(&ino), inode.links()) {
            (false, _) => Fate::Stays,
            (true, 0) => Fate::Deleted,
            (true, _) => Fate::Cut,
        }
    }

    /// Collects the orphans of the list; those of the file follow when its inode is walked.
    pub(super) fn find_orphans(&mut self) -> Result<()> {
        let mut next = self.image.sb.last_orphan.get();
        while next != 0 {
            let ino = InodeNo(next);
            let may_be = !is_own(&self.image.layout, ino) && !self.orphans.contains(&ino);
            let inode = if may_be { self.image.read_inode(ino)? } else { None };
            let Some(inode) = inode else {
                let text = format_args!("the list of orphans leads to inode {ino}");
                self.findings.add(FindingKind::Orphan, "superblock", text);
                return Ok(());
            };
            self.orphans.insert(ino);
            next = inode.core().dtime.get();
        }
        self.find_orphans_in_file()
    }

    /// Reads the orphan file ahead of the scan: who is in it counts as in use.
    fn find_orphans_in_file(&mut self) -> Result<()> {
        let ino = InodeNo(self.image.sb.orphan_file_inode.get());
        let present = self.image.layout.features.ro_compat.contains(RoCompat::ORPHAN_PRESENT);
        if !present || !self.image.layout.features.compat.contains(Compat::ORPHAN_FILE) {
            return Ok(());
        }
        let Some(inode) = self.image.read_inode(ino)? else { return Ok(()) };
        // Walked with claims and findings of its own, which are thrown away: the scan comes
        // by again.
        let claims =
            std::mem::replace(&mut self.claims, crate::claims::Claims::new(&self.image.layout));
        let findings = std::mem::take(&mut self.findings);
        let mapped = self.walk_map(ino, &inode);
        self.claims = claims;
        self.findings = findings;
        for (_, start, len) in mapped?.runs {
            for number in start..start + u64::from(len) {
                let block = self.image.source.block(number)?;
                if OrphanBlockTail::of(&block).map(|t| t.magic.get()) != Some(ORPHAN_BLOCK_MAGIC) {
                    // It is something else. The scan says so.
                    continue;
                }
                let layout = &self.image.layout;
                let may_be = |i: &InodeNo| layout.inode_place(*i).is_ok() && !is_own(layout, *i);
                self.orphans.extend(slots(&block).filter(may_be));
            }
        }
        Ok(())
    }

    /// Looks at what a special file's blocks hold.
    pub(super) fn keep_special_runs(&mut self, ino: InodeNo, runs: Vec<(u32, u64, u32)>) {
        if ino.0 == self.image.sb.journal_inode.get() {
            self.journal_runs = runs;
        } else if ino.0 == self.image.sb.orphan_file_inode.get() {
            self.orphan_runs = runs;
        } else if self.image.is_quota_file(ino) {
            self.quota.keep_runs(ino, runs);
        }
    }

    /// The orphan file's blocks: magic number, checksum, and nobody in it unless the superblock
    /// says so.
    pub(super) fn check_orphan_file(&mut self) -> Result<()> {
        let ino = InodeNo(self.image.sb.orphan_file_inode.get());
        if !self.image.layout.features.compat.contains(Compat::ORPHAN_FILE) {
            return Ok(());
        }
        let bad = |this: &mut Self, text: std::fmt::Arguments| {
            this.findings.add(FindingKind::OrphanFile, format_args!("inode {ino}"), text);
        };
        let Some(inode) = self.image.read_inode(ino)?.filter(|i| i.links() > 0) else {
            bad(self, format_args!("the superblock names it as the orphan file, but it is free"));
            return Ok(());
        };
        let bs = u64::from(self.image.layout.block_size);
        let runs = std::mem::take(&mut self.orphan_runs);
        let mapped: u64 = runs.iter().map(|(_, _, len)| u64::from(*len)).sum();
        if inode.core().mode.get() & 0xf000 != 0x8000 || inode.size() != mapped * bs || mapped == 0
        {
            bad(self, format_args!("the orphan file is no regular file without holes"));
        }
        let seed = self.image.layout.checksums.inode_seed(ino, inode.generation());
        let present = self.image.layout.features.ro_compat.contains(RoCompat::ORPHAN_PRESENT);
        for (_, start, len) in runs {
            for number in start..start + u64::from(len) {
                let block = self.image.source.block(number)?;
                let magic = OrphanBlockTail::of(&block).map(|t| t.magic.get());
                if magic != Some(ORPHAN_BLOCK_MAGIC) {
                    bad(
                        self,
                        format_args!("block {number} of the orphan file has no magic number"),
                    );
                } else if !self.image.layout.checksums.verify_orphan_block(seed, number, &block) {
                    bad(self, format_args!("block {number} of the orphan file: wrong checksum"));
                }
                if !present && slots(&block).next().is_some() {
                    bad(self, format_args!("block {number} of the orphan file is not empty"));
                }
                // The scan has noted all that may be orphans.
                let known = |i: InodeNo| self.inodes.get(i).is_some_and(|known| known.used);
                let wild = slots(&block).find(|i| is_own(&self.image.layout, *i) || !known(*i));
                if let Some(wild) = wild {
                    bad(self, format_args!("block {number} of the orphan file holds inode {wild}"));
                }
            }
        }
        Ok(())
    }
}

/// The root and the inodes of the file system itself: never orphans.
fn is_own(layout: &Layout, ino: InodeNo) -> bool {
    ino == InodeNo::ROOT || layout.is_reserved(ino)
}

/// The inodes in a block of the orphan file.
fn slots(block: &[u8]) -> impl Iterator<Item = InodeNo> + '_ {
    let used = orphan_slots(block.len()) * 4;
    block[..used]
        .as_chunks::<4>()
        .0
        .iter()
        .map(|b| InodeNo(u32::from_le_bytes(*b)))
        .filter(|i| *i != InodeNo::NONE)
}
