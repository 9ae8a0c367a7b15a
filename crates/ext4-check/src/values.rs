//! Attributes' values in inodes of their own: each is used as often as it says, and is the one
//! that the attribute means.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_ext4_format::ondisk::{
    InodeFlags, InodeNo, Layout, RawInode, XattrEntry, xattr_entry_hash,
};

use crate::FindingKind;
use crate::finding::Findings;
use crate::image::Image;
use crate::table::InodeTable;

/// An attribute whose value is in an inode.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueUse {
    inode: InodeNo,
    size: u32,
    hash: u32,
    /// Hash of the name alone, in the two forms.
    name_hashes: [u32; 2],
}

impl ValueUse {
    /// Blocks that the owner is charged for: whole clusters.
    pub(super) fn blocks(&self, layout: &Layout) -> u64 {
        let clusters = u64::from(self.size).div_ceil(layout.cluster_size());
        clusters * u64::from(layout.blocks_per_cluster)
    }

    pub(super) fn of(entry: &XattrEntry, name: &[u8]) -> Self {
        ValueUse {
            inode: InodeNo(entry.value_inode.get()),
            size: entry.value_size.get(),
            hash: entry.hash.get(),
            name_hashes: [false, true].map(|signed| xattr_entry_hash(name, &[], signed)),
        }
    }
}

/// An inode that holds a value.
#[derive(Debug, Clone, Copy)]
struct Holder {
    size: u64,
    checksum: u32,
    /// Uses as it says.
    says: u64,
    found: u64,
    /// Lustre's form: it knows its owner and has no checksum.
    owner: u32,
}

/// What was found of values and who uses them.
#[derive(Debug, Default)]
pub(super) struct Values {
    holders: BTreeMap<InodeNo, Holder>,
    /// With the inode in which, or in whose block, the attribute is.
    uses: Vec<(InodeNo, ValueUse)>,
}

impl Values {
    /// Gives the blocks that an owner of these is charged for.
    pub(super) fn note_uses(&mut self, layout: &Layout, by: InodeNo, uses: Vec<ValueUse>) -> u64 {
        let blocks = uses.iter().map(|u| u.blocks(layout)).sum();
        self.uses.extend(uses.into_iter().map(|u| (by, u)));
        blocks
    }

    /// Notes an inode that may hold a value.
    pub(super) fn note_holder(&mut self, image: &Image, ino: InodeNo, inode: &RawInode) {
        if !image.has_values() || !inode.flags().contains(InodeFlags::EA_INODE) {
            return;
        }
        let core = inode.core();
        let holder = Holder {
            size: inode.size(),
            checksum: core.atime.get(),
            says: u64::from(core.ctime.get()) << 32 | u64::from(core.version_lo.get()),
            found: 0,
            owner: core.mtime.get(),
        };
        self.holders.insert(ino, holder);
    }

    /// Holds uses and holders against each other. A holder in use counts as having a name.
    pub(super) fn check(
        &mut self,
        findings: &mut Findings,
        inodes: &mut InodeTable,
        orphans: &BTreeSet<InodeNo>,
    ) {
        let Values { mut holders, uses } = std::mem::take(self);
        for (by, used) in uses {
            let wrong = match holders.get_mut(&used.inode) {
                None => Some("it holds no value"),
                Some(holder) => {
                    holder.found += 1;
                    let known = used
                        .name_hashes
                        .iter()
                        .any(|h| h.rotate_left(16) ^ holder.checksum == used.hash);
                    if holder.size != u64::from(used.size) {
                        Some("the value has another length")
                    } else if !known && holder.owner != by.0 {
                        Some("the value has another checksum")
                    } else {
                        None
                    }
                }
            };
            if let Some(text) = wrong {
                let place = format_args!("an attribute of inode {by}");
                let text = format_args!("its value is in inode {}, but {text}", used.inode);
                findings.add(FindingKind::XattrValue, place, text);
            }
        }
        for (ino, holder) in holders {
            if holder.found > 0
                && let Some(known) = inodes.get_mut(ino)
            {
                known.found += 1;
            }
            let orphan = orphans.contains(&ino);
            // Lustre counts no uses.
            let lustre = holder.owner != 0 && holder.says == 0 && holder.found == 1;
            if holder.says != holder.found && !orphan && !lustre {
                let place = format_args!("inode {ino}");
                let (says, found) = (holder.says, holder.found);
                let text =
                    format_args!("it holds the value of {says} attributes, but {found} use it");
                findings.add(FindingKind::XattrValue, place, text);
            }
        }
    }
}
