//! External journals: a device that holds nothing but a journal.
//!
//! The device begins like an ext file system: an ext superblock at byte 1024, with the feature
//! `journal_dev`, says what it is and names it by UUID. The journal superblock is the block after
//! it, and names the file systems that use the journal (`s_users`). Log blocks are counted from
//! the device's start.
//!
//! Replaying a wrong journal destroys data. So everything that can be checked is checked, and each
//! mistake has its own message.
//!
//! Source: kernel `fs/ext4/super.c` (`ext4_get_dev_journal`), e2fsprogs `mke2fs -O journal_dev`.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use uuid::Uuid;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::crc32c;
use crate::format::{FormatOptions, format};
use crate::ondisk::superblock::JournalSuperblock;
use crate::{JournalError, Log, Result};

/// The parts of the ext superblock that mean something on a journal device.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct ExtSuperblock {
    inodes_count: U32,
    /// `s_blocks_count_lo`
    blocks_count: U32,
    unused_a: [u8; 12],
    /// `s_first_data_block`
    first_data_block: U32,
    /// `s_log_block_size`: 1024 shifted by this.
    log_block_size: U32,
    /// `s_log_cluster_size`
    log_cluster_size: U32,
    /// `s_blocks_per_group` and its siblings
    per_group: [U32; 3],
    /// `s_mtime`
    mount_time: U32,
    /// `s_wtime`
    write_time: U32,
    /// `s_mnt_count`
    mount_count: U16,
    /// `s_max_mnt_count`
    max_mount_count: U16,
    /// `s_magic`
    magic: U16,
    /// `s_state`
    state: U16,
    /// `s_errors`
    errors: U16,
    unused_b: [u8; 2],
    /// `s_lastcheck`
    last_check: U32,
    unused_c: [u8; 8],
    /// `s_rev_level`
    revision: U32,
    unused_d: [u8; 4],
    /// `s_first_ino`
    first_inode: U32,
    /// `s_inode_size`
    inode_size: U16,
    unused_e: [u8; 2],
    /// `s_feature_compat`
    feature_compat: U32,
    /// `s_feature_incompat`
    feature_incompat: U32,
    /// `s_feature_ro_compat`
    feature_ro_compat: U32,
    /// `s_uuid`
    uuid: [u8; 16],
    /// `s_volume_name`
    label: [u8; 16],
    unused_f: [u8; 128],
    /// `s_mkfs_time`
    created: U32,
    unused_g: [u8; 752],
    /// `s_checksum`
    checksum: U32,
}

const _: () = {
    assert!(size_of::<ExtSuperblock>() == 1024);
    assert!(std::mem::offset_of!(ExtSuperblock, log_block_size) == 0x18);
    assert!(std::mem::offset_of!(ExtSuperblock, magic) == 0x38);
    assert!(std::mem::offset_of!(ExtSuperblock, revision) == 0x4c);
    assert!(std::mem::offset_of!(ExtSuperblock, feature_compat) == 0x5c);
    assert!(std::mem::offset_of!(ExtSuperblock, uuid) == 0x68);
    assert!(std::mem::offset_of!(ExtSuperblock, last_check) == 0x40);
    assert!(std::mem::offset_of!(ExtSuperblock, created) == 0x108);
    assert!(std::mem::offset_of!(ExtSuperblock, checksum) == 0x3fc);
};

/// `EXT4_SUPER_MAGIC`
const EXT_MAGIC: u16 = 0xef53;
/// `EXT4_FEATURE_INCOMPAT_JOURNAL_DEV`
const JOURNAL_DEV: u32 = 0x8;
/// `EXT4_FEATURE_RO_COMPAT_METADATA_CSUM`
const METADATA_CSUM: u32 = 0x400;
const SUPERBLOCK_BYTE: u64 = 1024;

/// A journal device as it was found.
#[derive(Debug, Clone)]
pub struct ExternalDevice {
    /// The log on it.
    pub log: Log,
    /// The device's UUID: what a file system's `s_journal_uuid` names.
    pub uuid: Uuid,
    /// Its volume name.
    pub label: String,
    /// The journal superblock.
    pub superblock: JournalSuperblock,
}

/// How to make a journal device.
#[derive(Debug, Clone)]
pub struct ExternalOptions {
    /// Bytes in a block: those of the file system that will use it.
    pub block_size: u32,
    /// Volume name, at most 16 bytes.
    pub label: String,
    /// Unix seconds for the superblock's time of creation.
    pub unix_seconds: u32,
    /// Blocks of the journal; `None`: the whole device.
    pub blocks: Option<u32>,
    /// The journal itself; its UUID is the device's.
    pub format: FormatOptions,
}

/// Makes a device a journal device (`mke2fs -O journal_dev`). Everything on it is lost.
pub fn format_device(
    device: Arc<dyn BlockDevice>,
    options: &ExternalOptions,
) -> Result<ExternalDevice> {
    if options.label.len() > 16 {
        return Err(JournalError::refused("a volume name has at most 16 bytes"));
    }
    let whole = Log::external(Arc::clone(&device), options.block_size)?;
    let blocks = options.blocks.unwrap_or(whole.blocks());
    if blocks > whole.blocks() {
        return Err(JournalError::refused(format!(
            "{} blocks do not fit the device, which has {}",
            blocks,
            whole.blocks()
        )));
    }
    let log = Log::external_of(device, options.block_size, blocks)?;
    let mut superblock = format(&log, &options.format)?;
    superblock.encode();
    write_ext_superblock(&log, options)?;
    let (uuid, label) = (options.format.uuid, options.label.clone());
    Ok(ExternalDevice { log, uuid, label, superblock })
}

fn write_ext_superblock(log: &Log, options: &ExternalOptions) -> Result<()> {
    let mut sb = <ExtSuperblock as zerocopy::FromZeros>::new_zeroed();
    let small = u32::from(options.block_size == 1024);
    sb.blocks_count = U32::new(log.blocks());
    sb.first_data_block = U32::new(small);
    sb.log_block_size = U32::new(options.block_size.trailing_zeros() - 10);
    sb.log_cluster_size = sb.log_block_size;
    // One group holds all blocks, as far as a group can; nobody reads it on a journal device.
    sb.per_group = [options.block_size * 8, options.block_size * 8, 0].map(U32::new);
    (sb.write_time, sb.last_check) =
        (U32::new(options.unix_seconds), U32::new(options.unix_seconds));
    sb.created = U32::new(options.unix_seconds);
    sb.max_mount_count = U16::new(u16::MAX);
    sb.magic = U16::new(EXT_MAGIC);
    sb.state = U16::new(1);
    sb.errors = U16::new(1);
    sb.revision = U32::new(1);
    sb.first_inode = U32::new(11);
    sb.inode_size = U16::new(256);
    sb.feature_incompat = U32::new(JOURNAL_DEV);
    sb.uuid = *options.format.uuid.as_bytes();
    sb.label[..options.label.len()].copy_from_slice(options.label.as_bytes());
    put_ext_superblock(log.device(), &sb)
}

/// Writes the ext superblock into its place, which may be less than the device's sector.
fn put_ext_superblock(device: &Arc<dyn BlockDevice>, sb: &ExtSuperblock) -> Result<()> {
    let sector = u64::from(device.info().logical_block);
    let from = SUPERBLOCK_BYTE / sector * sector;
    let to = (SUPERBLOCK_BYTE + 1024).div_ceil(sector) * sector;
    let mut bytes = device.read(from, to - from)?.to_vec();
    let at = (SUPERBLOCK_BYTE - from) as usize;
    bytes[at..at + 1024].copy_from_slice(sb.as_bytes());
    Ok(device.write_fua(from, bytes.into())?)
}

fn get_ext_superblock(device: &Arc<dyn BlockDevice>) -> Result<ExtSuperblock> {
    let sector = u64::from(device.info().logical_block);
    let from = SUPERBLOCK_BYTE / sector * sector;
    let to = (SUPERBLOCK_BYTE + 1024).div_ceil(sector) * sector;
    let bytes = device.read(from, to - from)?;
    let at = (SUPERBLOCK_BYTE - from) as usize;
    // OK to unwrap: 1024 bytes were read there.
    Ok(ExtSuperblock::read_from_bytes(&bytes[at..at + 1024]).unwrap())
}

/// Opens a journal device, whatever its block size.
///
/// # Errors
/// [`JournalError::Refused`] if it is no journal device; [`JournalError::Corrupt`] if its
/// superblocks are damaged.
pub fn open_device(device: Arc<dyn BlockDevice>) -> Result<ExternalDevice> {
    let name = device.info().name;
    if device.info().size < 4096 {
        return Err(JournalError::refused(format!("{name} is too small for a journal device")));
    }
    let ext = get_ext_superblock(&device)?;
    if ext.magic.get() != EXT_MAGIC {
        return Err(JournalError::refused(format!(
            "{name} is not a journal device: it has no ext superblock; give the device that was \
             made with -O journal_dev"
        )));
    }
    if ext.feature_incompat.get() & JOURNAL_DEV == 0 {
        return Err(JournalError::refused(format!(
            "{name} is not a journal device: it holds a file system of its own"
        )));
    }
    let csum = ext.feature_ro_compat.get() & METADATA_CSUM != 0;
    if csum && crc32c(!0, &ext.as_bytes()[..1020]) != ext.checksum.get() {
        return Err(JournalError::corrupt("the checksum does not match", "ext superblock"));
    }
    let log_block_size = ext.log_block_size.get();
    if log_block_size > 6 {
        let what = format!("block size 2^{log_block_size} KiB");
        return Err(JournalError::corrupt(what, "ext superblock"));
    }
    let block_size = 1024 << log_block_size;
    let blocks = ext.blocks_count.get();
    if u64::from(blocks) * u64::from(block_size) > device.info().size {
        let what = format!("it claims {blocks} blocks of {block_size} bytes: more than there are");
        return Err(JournalError::corrupt(what, "ext superblock"));
    }
    let log = Log::external_of(device, block_size, blocks)?;
    let superblock = log.read_superblock()?;
    let uuid = Uuid::from_bytes(ext.uuid);
    if superblock.uuid() != uuid {
        return Err(JournalError::corrupt(
            "the journal and its device have different UUIDs",
            "journal superblock",
        ));
    }
    let end = ext.label.iter().position(|b| *b == 0).unwrap_or(16);
    let label = String::from_utf8_lossy(&ext.label[..end]).into_owned();
    Ok(ExternalDevice { log, uuid, label, superblock })
}

/// A file system's description of its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The file system's UUID.
    pub fs_uuid: Uuid,
    /// The UUID of the journal device it was attached to (`s_journal_uuid`).
    pub journal_uuid: Uuid,
    /// Its block size in bytes.
    pub block_size: u32,
}

/// Opens the journal device of a file system. Refuses a device that is no journal, the journal of
/// another file system, another block size, or in use by another file system. Nothing is changed.
pub fn open_for(device: Arc<dyn BlockDevice>, owner: &Owner) -> Result<ExternalDevice> {
    let name = device.info().name;
    let found = open_device(device)?;
    check_block_size(&found, owner.block_size)?;
    if found.uuid != owner.journal_uuid {
        return Err(JournalError::refused(format!(
            "{name} is another journal: its UUID is {}, the file system's journal has {}; give \
             the right journal device",
            found.uuid, owner.journal_uuid
        )));
    }
    let sb = &found.superblock;
    let users = sb.users();
    if sb.nr_users() > 1 {
        return Err(JournalError::refused(format!(
            "{name} is used by {} file systems; a shared journal is not supported",
            sb.nr_users()
        )));
    }
    if users.is_empty() {
        return Err(JournalError::refused(format!(
            "{name} is attached to no file system any more: its journal must not be replayed; \
             attach it again, or give the file system a new journal"
        )));
    }
    if users[0] != owner.fs_uuid {
        return Err(JournalError::refused(format!(
            "{name} is in use by another file system, {}; this one is {}",
            users[0], owner.fs_uuid
        )));
    }
    Ok(found)
}

fn check_block_size(found: &ExternalDevice, block_size: u32) -> Result<()> {
    let theirs = found.log.block_size();
    if theirs != block_size {
        return Err(JournalError::refused(format!(
            "{} has {theirs}-byte blocks, the file system {block_size}-byte blocks; they must be \
             equal: make the journal device with the same block size",
            found.log.device().info().name
        )));
    }
    Ok(())
}

/// Attaches a file system to a journal device that is free, or already its own. The journal must be
/// clean: old transactions would be replayed over another file system. The file system then names
/// [`ExternalDevice::uuid`] as its journal.
pub fn attach(
    device: Arc<dyn BlockDevice>,
    fs_uuid: Uuid,
    block_size: u32,
) -> Result<ExternalDevice> {
    let mut found = open_device(device)?;
    check_block_size(&found, block_size)?;
    let name = found.log.device().info().name;
    let users = found.superblock.users();
    if let Some(other) = users.iter().find(|u| **u != fs_uuid) {
        return Err(JournalError::refused(format!(
            "{name} is in use by another file system, {other}; detach it there first, or make \
             the journal device again"
        )));
    }
    if found.superblock.start().is_some() {
        return Err(JournalError::refused(format!(
            "{name} holds transactions of an earlier use; make the journal device again"
        )));
    }
    write_users(&mut found, &[fs_uuid])?;
    Ok(found)
}

/// As [`attach`], for a file system that does not name this journal as its own (any more): leftover
/// transactions are discarded, never replayed. Returns their number.
pub fn reattach(device: Arc<dyn BlockDevice>, fs_uuid: Uuid, block_size: u32) -> Result<u32> {
    let found = open_device(Arc::clone(&device))?;
    check_block_size(&found, block_size)?;
    let foreign = found.superblock.users().iter().any(|u| *u != fs_uuid);
    let mut discarded = 0;
    if !foreign && found.superblock.start().is_some() {
        // The number is only reported: a log that is too damaged to be counted is discarded too.
        let counted = crate::recover_dry(&found.log, &*device);
        discarded = counted.map_or(1, |(report, _)| report.transactions);
        crate::discard_contents(&found.log)?;
    }
    if found.superblock.errno() != 0 && !foreign {
        crate::clear_errno(&found.log)?;
    }
    attach(device, fs_uuid, block_size)?;
    Ok(discarded)
}

/// Removes a file system that does not name this journal any more from the list of its users;
/// others stay. With `new_uuid` the journal gets a new UUID and loses its contents, so that it is
/// never mistaken for the one that the file system had.
pub fn release(device: Arc<dyn BlockDevice>, fs_uuid: Uuid, new_uuid: Option<Uuid>) -> Result<()> {
    let mut found = open_device(Arc::clone(&device))?;
    let users: Vec<Uuid> = found.superblock.users().into_iter().filter(|u| *u != fs_uuid).collect();
    let Some(new_uuid) = new_uuid else { return write_users(&mut found, &users) };
    crate::discard_contents(&found.log)?;
    write_users(&mut found, &users)?;
    let (mut sb, block) = found.log.read_superblock_block()?;
    sb.set_uuid(new_uuid);
    let mut block = block.to_vec();
    block[..JournalSuperblock::BYTES].copy_from_slice(&sb.encode());
    // A power cut between the two leaves a device whose parts disagree: it is no file system's
    // journal.
    found.log.write_block(found.log.superblock_at(), block.into(), true)?;
    let mut ext = get_ext_superblock(&device)?;
    ext.uuid = *new_uuid.as_bytes();
    if ext.feature_ro_compat.get() & METADATA_CSUM != 0 {
        ext.checksum = U32::new(crc32c(!0, &ext.as_bytes()[..1020]));
    }
    put_ext_superblock(&device, &ext)
}

/// Detaches a file system from its journal device, whose log must be clean.
pub fn detach(device: Arc<dyn BlockDevice>, fs_uuid: Uuid) -> Result<()> {
    let mut found = open_device(device)?;
    let name = found.log.device().info().name;
    if found.superblock.users() != [fs_uuid] {
        return Err(JournalError::refused(format!("{name} is not attached to {fs_uuid}")));
    }
    if found.superblock.start().is_some() {
        return Err(JournalError::refused(format!(
            "{name} holds transactions that must be recovered first"
        )));
    }
    write_users(&mut found, &[])
}

fn write_users(found: &mut ExternalDevice, users: &[Uuid]) -> Result<()> {
    let (sb, block) = found.log.read_superblock_block()?;
    let steps = match found.log.tears_sectors() {
        true => sb.steps_to_users(users),
        false => vec![sb.with_users(users)],
    };
    let mut block = block.to_vec();
    for mut step in steps {
        block[..JournalSuperblock::BYTES].copy_from_slice(&step.encode());
        found.superblock = step;
        let block = Bytes::copy_from_slice(&block);
        found.log.write_block(found.log.superblock_at(), block, true)?;
    }
    Ok(())
}
