//! Who is an orphan, by the orphan file and the list.

use std::collections::BTreeSet;

use steadfast_ext4_format::ondisk::{Compat, InodeNo, Layout, orphan_slots};
use steadfast_ext4_format::{Ext4Error, Result};

use crate::extents::block_of;
use crate::inode::orphan_after;
use crate::meta::Parts;
use crate::state::{OrphanFile, OrphanSet};

/// Reads the orphan file and the list. Damage in the list ends it; e2fsck does the rest.
pub(crate) fn load(mut parts: Parts) -> Result<Parts> {
    if parts.volume.layout.features.compat.contains(Compat::ORPHAN_FILE) {
        parts.orphans.file = Some(find_file(&parts)?);
    }
    read(&parts)?;
    Ok(parts)
}

/// The same once it is known where the orphan file is.
pub(crate) fn read(parts: &Parts) -> Result<()> {
    let txn = parts.look();
    let mut orphans = OrphanSet::default();
    if let Some(file) = &parts.orphans.file {
        for (i, block) in file.blocks.iter().enumerate() {
            let contents = file.read(&txn, *block)?;
            let slots = orphan_slots(contents.len());
            for (j, raw) in contents.chunks_exact(4).take(slots).enumerate() {
                let no = InodeNo(u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]));
                if no != InodeNo::NONE {
                    check_orphan(&parts.volume.layout, no)?;
                    orphans.set_slot((i * slots + j) as u32, no);
                }
            }
        }
    }
    let (mut list, mut seen) = (Vec::new(), BTreeSet::new());
    let mut next = InodeNo(txn.superblock().last_orphan.get());
    while next != InodeNo::NONE && seen.insert(next) {
        check_orphan(&parts.volume.layout, next)?;
        list.push(next);
        next = orphan_after(&txn, next)?;
    }
    orphans.set_list(&list);
    drop(txn);
    parts.lock_meta().orphans = orphans;
    Ok(())
}

/// Refuses what is never an orphan, as `ext4_orphan_get` and `__ext4_iget` do: it would be deleted.
fn check_orphan(layout: &Layout, no: InodeNo) -> Result<()> {
    layout.inode_place(no)?;
    if no == InodeNo::ROOT || layout.is_reserved(no) {
        let what = "an orphan that belongs to the file system itself: let e2fsck repair this";
        return Err(Ext4Error::corrupt(what, format!("inode {no}")));
    }
    Ok(())
}

fn find_file(parts: &Parts) -> Result<OrphanFile> {
    let txn = parts.look();
    let no = InodeNo(txn.superblock().orphan_file_inode.get());
    let raw = txn.own_inode(no, "orphan file")?;
    let count = raw.size() / parts.volume.block_size();
    let mut blocks = Vec::new();
    for logical in 0..u32::try_from(count).unwrap_or(u32::MAX) {
        let block = block_of(&txn, no, logical)?;
        let hole = || Ext4Error::corrupt("a hole in the orphan file", format!("inode {no}"));
        blocks.push(block.ok_or_else(hole)?);
    }
    let seed = parts.volume.layout.checksums.inode_seed(no, raw.generation());
    Ok(OrphanFile { blocks, seed })
}
