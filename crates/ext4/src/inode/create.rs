//! New inodes.

use std::sync::Arc;

use steadfast_ext4_format::extents::{Node, ROOT_BYTES};
use steadfast_ext4_format::ondisk::{GroupFlags, Incompat, InodeFlags, InodeNo, RawInode};
use steadfast_ext4_format::{Result, bitmap};
use steadfast_runtime::random_u64;
use steadfast_vfs::{FileType, NewNode};

use crate::alloc::{free_inode_number, inode_bitmap};
use crate::meta::Txn;
use crate::state::{Inode, InodeEdit, Life};

/// Set-group-id.
const SETGID: u16 = 0o2000;

/// Flags that a new inode takes from its directory (`EXT4_FL_INHERITED`, without those of
/// features that are refused).
const INHERITED: InodeFlags = InodeFlags::SECURE_DELETE
    .union(InodeFlags::UNDELETE)
    .union(InodeFlags::COMPRESSED)
    .union(InodeFlags::SYNC)
    .union(InodeFlags::NO_DUMP)
    .union(InodeFlags::NO_ATIME)
    .union(InodeFlags::JOURNAL_DATA)
    .union(InodeFlags::NO_TAIL)
    .union(InodeFlags::DIR_SYNC)
    .union(InodeFlags::DAX)
    .union(InodeFlags::CASEFOLD);

/// What all kinds of inodes may have (`EXT4_OTHER_FLMASK`).
pub(crate) const FOR_ALL: InodeFlags = InodeFlags::NO_DUMP.union(InodeFlags::NO_ATIME);

/// Makes an inode in or near the directory `parent`, with the mode of `node`: no links, no name, no
/// blocks, an empty extent tree or block map (no tree for a symbolic link). The caller gives it
/// `name`, by which a directory finds its group, and links.
///
/// # Errors
/// No space: no inode is free.
pub(crate) fn create_inode(
    txn: &mut Txn<'_>,
    parent: InodeNo,
    (kind, name): (FileType, &[u8]),
    node: NewNode,
) -> Result<InodeNo> {
    let above = txn.raw_inode(parent)?;
    let no = txn.allocator.allocate_inode(txn, parent, &above, (kind, name))?;
    begin_table_block(txn, no)?;
    prepare_place(txn, no)?;
    let size = usize::from(txn.volume.layout.inode_size);
    let mut raw = RawInode::new(size, txn.superblock().extra_of_new_inodes());
    let mut mode = node.mode;
    raw.set_uid(node.uid);
    raw.set_gid(node.gid);
    if above.permissions() & SETGID != 0 {
        raw.set_gid(above.gid());
        if kind == FileType::Directory {
            mode |= SETGID;
        }
    }
    raw.set_mode(kind, mode);
    let mut flags = above.flags().intersection(INHERITED);
    if above.flags().contains(InodeFlags::PROJECT_INHERIT) {
        raw.set_project(above.project());
        if kind == FileType::Directory {
            flags.insert(InodeFlags::PROJECT_INHERIT);
        }
    }
    match kind {
        FileType::Directory => {}
        FileType::Regular => flags.remove(InodeFlags::DIR_SYNC | InodeFlags::CASEFOLD),
        _ => flags = flags.intersection(FOR_ALL),
    }
    let mapped = matches!(kind, FileType::Regular | FileType::Directory);
    if mapped && txn.volume.uses_extents() {
        flags.insert(InodeFlags::EXTENTS);
        Node::empty(ROOT_BYTES).encode(raw.block_mut());
    }
    raw.set_flags(flags);
    let feature = txn.volume.layout.features.incompat.contains(Incompat::INLINE_DATA);
    if feature && kind == FileType::Directory && raw.inline_room().is_some() {
        // Its first block is stored in the inode then, as any change that fits.
        raw.set_inline_contents(&[]);
    }
    raw.core_mut().generation.set(random_u64() as u32);
    let now = txn.volume.stamps.tick();
    raw.set_atime(now);
    raw.set_mtime(now);
    raw.set_ctime(now);
    raw.set_crtime(now);
    let inode = Arc::new(Inode::new(no, raw, txn.running_tid(), 0));
    let mut edit = InodeEdit::new(inode, Life::Begins);
    edit.data_changed = true;
    txn.inodes.insert(no, edit);
    Ok(no)
}

/// Gives the inode's number back: its blocks are gone, it has no links and is no orphan.
pub(crate) fn delete_inode(txn: &mut Txn<'_>, no: InodeNo) -> Result<()> {
    let seconds = txn.volume.clock.seconds() as u32;
    let edit = txn.edit_inode(no)?;
    edit.life = Life::Ends;
    edit.raw.core_mut().dtime.set(seconds);
    edit.raw.set_links(0);
    let kind = edit.raw.file_type();
    free_inode_number(txn, no, kind == Some(FileType::Directory))
}

/// A block of the table in which no other inode is in use need not be read: it becomes zeros
/// (kernel: __ext4_get_inode_loc). Where tables were not zeroed, what the disk holds decides what a
/// fast commit may record: there it is read.
fn begin_table_block(txn: &mut Txn<'_>, no: InodeNo) -> Result<()> {
    let (block, place) = txn.inode_block(no)?;
    if txn.in_memory(block) {
        return Ok(());
    }
    let layout = &txn.volume.layout;
    let zeroed = txn.group(place.group).flags().contains(GroupFlags::INODE_ZEROED);
    if txn.may_be_recorded() && layout.features.group_checksums() && !zeroed {
        return Ok(());
    }
    let per_block = layout.block_size / u32::from(layout.inode_size);
    let first = place.index / per_block * per_block;
    let map = inode_bitmap(txn, place.group)?;
    let mut others = (first..first + per_block).filter(|index| *index != place.index);
    let unused = others.all(|index| {
        let held = txn.holds.contains(layout.inode_number(place.group, index));
        !bitmap::is_set(&map, index) && !held
    });
    if unused {
        txn.create(block, vec![0; layout.block_size as usize]);
    }
    Ok(())
}

/// Before a new inode gets this number. Who replays a fast commit that records it looks first
/// at what its place in the table holds, and the kernel (6.18) refuses the log if that is
/// neither zeros nor an inode. Tables need not have been zeroed when the file system was made.
/// So the first inode in such a block is not recorded, and zeros the places behind it for the next.
fn prepare_place(txn: &mut Txn<'_>, no: InodeNo) -> Result<()> {
    let layout = &txn.volume.layout;
    if !txn.may_be_recorded() || !layout.features.group_checksums() {
        return Ok(());
    }
    let (block, place) = txn.inode_block(no)?;
    let desc = txn.group(place.group);
    if desc.flags().contains(GroupFlags::INODE_ZEROED) {
        return Ok(());
    }
    let size = usize::from(layout.inode_size);
    let never_used = layout.inodes_per_group.saturating_sub(desc.itable_unused());
    let table = txn.read(block)?;
    let raw = RawInode::from_bytes(&table[place.offset..place.offset + size]);
    let is_inode = layout.features.metadata_csum() && layout.checksums.verify_inode(no, &raw);
    if raw.as_bytes().iter().all(|b| *b == 0) || is_inode {
        return Ok(());
    }
    txn.mark_ineligible();
    // The number is taken already, so it counts as used.
    let ahead = never_used.saturating_sub(place.index).max(1) as usize;
    let from = place.offset.saturating_add(size.saturating_mul(ahead));
    txn.modify(block, |table| {
        if let Some(unused) = table.get_mut(from..) {
            unused.fill(0);
        }
    })
}
