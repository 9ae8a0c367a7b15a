//! Extended attributes, in the inode and in blocks that several inodes may share.

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{
    Compat, InodeNo, RawInode, XATTR_MAGIC, XattrBlockHeader, XattrEntry, xattr_entry_hash,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::FindingKind;
use crate::checker::Checker;
use crate::encryption::is_context;
use crate::orphans::Fate;
use crate::values::ValueUse;

/// How often a block of attributes is used.
#[derive(Debug, Clone)]
pub(super) struct Use {
    /// As its header says.
    says: u32,
    found: u32,
    /// Blocks that each of them is charged for beside it: values in inodes.
    values: u64,
    /// The encryption context, if it is there.
    context: Option<Vec<u8>>,
}

/// What attributes say beside their values.
#[derive(Default)]
struct XattrSummary {
    values: Vec<ValueUse>,
    context: Option<Vec<u8>>,
}

/// Ranges of a region that are taken.
struct Region {
    taken: Vec<bool>,
}

impl Region {
    fn new(len: usize) -> Self {
        Region { taken: vec![false; len] }
    }

    /// Takes a range; false if a part of it is outside or taken.
    fn take(&mut self, at: usize, len: usize) -> bool {
        let Some(range) = at.checked_add(len).and_then(|end| self.taken.get_mut(at..end)) else {
            return false;
        };
        let free = range.iter().all(|t| !t);
        range.fill(true);
        free
    }
}

/// Checks the entries of `region` from `first` on; values lie `base` bytes from its start, or in
/// inodes, if there may be such: these are added to `seen`. What is wrong, in words.
fn check_entries(
    region: &[u8],
    (first, base): (usize, usize),
    in_block: bool,
    has_values: bool,
    seen: &mut XattrSummary,
) -> Option<String> {
    let mut space = Region::new(region.len());
    space.take(0, first);
    let mut at = first;
    loop {
        let rest = region.get(at..)?;
        let Some(head) = rest.first_chunk::<4>() else { break };
        if *head == [0; 4] {
            let collides = !space.take(at, 4);
            return collides.then(|| "attributes overlap".into());
        }
        let Ok((entry, _)) = XattrEntry::read_from_prefix(rest) else { break };
        let name_len = usize::from(entry.name_len);
        let len = (size_of::<XattrEntry>() + name_len).next_multiple_of(4);
        let Some(name) = rest.get(16..16 + name_len) else {
            return Some("an attribute's name reaches beyond its place".into());
        };
        if !space.take(at, len) {
            return Some("attributes overlap".into());
        }
        if in_block && entry.name_index == 0 {
            return Some("an attribute's name has no prefix".into());
        }
        if entry.value_inode.get() != 0 {
            if !has_values {
                return Some("an attribute's value is in an inode, which needs ea_inode".into());
            }
            seen.values.push(ValueUse::of(&entry, name));
            at += len;
            continue;
        }
        let size = entry.value_size.get() as usize;
        let start = base + usize::from(entry.value_offset.get());
        if size > region.len() || start + size > region.len() {
            return Some("an attribute's value reaches beyond its place".into());
        }
        if size > 0 && !space.take(start, size.next_multiple_of(4)) {
            return Some("attributes overlap".into());
        }
        if is_context(entry.name_index, name) {
            seen.context = region.get(start..start + size).map(<[u8]>::to_vec);
        }
        let value = region.get(start..start + size.next_multiple_of(4)).unwrap_or(&[]);
        let hash = entry.hash.get();
        let known = |signed| xattr_entry_hash(name, value, signed) == hash;
        let unset = hash == 0 && !in_block;
        if !unset && !known(false) && !known(true) {
            return Some("an attribute's hash is wrong".into());
        }
        at += len;
    }
    None
}

impl Checker<'_> {
    /// Attributes in the inode. Gives the blocks that it is charged for.
    pub(super) fn check_inode_xattrs(&mut self, ino: InodeNo, inode: &RawInode) -> u64 {
        let region = inode.xattr_region();
        if region.len() <= 4 || region[..4] != XATTR_MAGIC.to_le_bytes() {
            return 0;
        }
        let mut seen = XattrSummary::default();
        let text = check_entries(region, (4, 4), false, self.image.has_values(), &mut seen);
        let charged = self.values.note_uses(&self.image.layout, ino, seen.values);
        self.encryption.set_context(seen.context);
        if let Some(text) = text.filter(|_| self.fate(ino, inode) != Fate::Deleted) {
            self.inode_finding(ino, FindingKind::XattrInode, text);
        }
        charged
    }

    /// The block of attributes of an inode. Gives the blocks that the inode is charged for.
    pub(super) fn check_xattr_block(&mut self, ino: InodeNo, inode: &RawInode) -> Result<u64> {
        let block = inode.file_acl();
        if block == 0 {
            return Ok(0);
        }
        if !self.image.layout.features.compat.contains(Compat::EXT_ATTR)
            || !self.image.layout.contains(block, 1)
        {
            // Nobody ever looks at a reserved inode's.
            if ino >= self.image.layout.first_inode || ino == InodeNo::ROOT {
                let text = format_args!("its attributes are in block {block}");
                self.bad_inode(ino, FindingKind::XattrBlock, text);
            }
            return Ok(0);
        }
        let own = u64::from(self.image.layout.blocks_per_cluster);
        if let Some(known) = self.xattr_blocks.get_mut(&block) {
            known.found += 1;
            self.encryption.set_context(known.context.clone());
            return Ok(own + known.values);
        }
        if self.claim_for_inode(ino, block, 1) {
            return Ok(own);
        }
        let bytes = self.image.source.block(block)?;
        let place = format_args!("attribute block {block} of inode {ino}");
        if !self.image.layout.checksums.verify_xattr_block(block, &bytes) {
            self.findings.add(FindingKind::XattrChecksum, place, "wrong checksum");
        }
        let Ok((header, _)) = XattrBlockHeader::read_from_prefix(&bytes[..]) else {
            return Ok(own);
        };
        let (mut charged, mut context) = (0, None);
        let problem = if header.magic.get() != XATTR_MAGIC {
            Some(format!("the magic number is {:#010x}", header.magic.get()))
        } else if header.blocks.get() != 1 {
            Some(format!("it says it has {} blocks", header.blocks))
        } else {
            let mut seen = XattrSummary::default();
            let first = header.as_bytes().len();
            let text = check_entries(&bytes, (first, 0), true, self.image.has_values(), &mut seen);
            charged = self.values.note_uses(&self.image.layout, ino, seen.values);
            context = seen.context;
            text
        };
        // Values in inodes go one by one before the block does, if nobody else has it.
        let goes = self.fate(ino, inode) == Fate::Deleted && header.refcount.get() == 1;
        if let Some(text) = problem.filter(|_| !goes) {
            self.findings.add(
                FindingKind::XattrBlock,
                format_args!("attribute block {block} of inode {ino}"),
                text,
            );
        }
        self.encryption.set_context(context.clone());
        let says = header.refcount.get();
        self.xattr_blocks.insert(block, Use { says, found: 1, values: charged, context });
        Ok(own + charged)
    }

    /// Blocks of attributes are shared by as many inodes as they say.
    pub(super) fn check_xattr_refcounts(&mut self) {
        for (block, Use { says, found, .. }) in &self.xattr_blocks {
            if says != found {
                self.findings.add(
                    FindingKind::XattrRefcount,
                    format_args!("attribute block {block}"),
                    format_args!("it says that {says} inodes use it, but {found} do"),
                );
            }
        }
    }
}
