//! Making an empty journal.

use bytes::Bytes;
use steadfast_block::Payload;
use uuid::Uuid;

use crate::ondisk::superblock::JournalSuperblock;
use crate::{Checksums, JournalFeatures, Log, LogBlock, Result, Tid};

/// What a new journal is like.
#[derive(Debug, Clone)]
pub struct FormatOptions {
    /// Journal UUID (`s_uuid`): of an external journal its device's; of an internal one by
    /// custom the file system's.
    pub uuid: Uuid,
    /// File systems that use it. For an internal journal empty is right (it counts one user
    /// without a name, as mke2fs writes it); for an external one the UUIDs of those attached.
    pub users: Vec<Uuid>,
    /// How blocks are protected.
    pub checksums: Checksums,
    /// 64-bit block numbers.
    pub wide: bool,
    /// Number of the clean log (`s_sequence`): the first transaction is the one after it.
    pub sequence: Tid,
    /// Overwrite the log with zeros. Without it, transactions of an earlier journal in the same
    /// place are distinguished only by checksum (which needs a fresh `uuid`) and commit time.
    pub erase: bool,
    /// Blocks at its end that are for fast commits once the journal has that feature; 0 for the
    /// default of 256 (see [`Config::fast_commits`](crate::Config::fast_commits)).
    pub fast_blocks: u32,
}

impl FormatOptions {
    /// Checksum v3, 64-bit block numbers, no users, an erased log.
    pub fn new(uuid: Uuid) -> Self {
        FormatOptions {
            uuid,
            users: Vec::new(),
            checksums: Checksums::V3,
            wide: true,
            sequence: Tid(1),
            erase: true,
            fast_blocks: 0,
        }
    }
}

/// Makes the log an empty journal; flushed to the device on return.
///
/// The superblock is written last: a power cut before leaves no journal, or the old one with its
/// transactions gone, never a mixture.
pub fn format(log: &Log, options: &FormatOptions) -> Result<JournalSuperblock> {
    let first = LogBlock(log.superblock_at().0 + 1);
    if options.erase {
        // The old superblock goes first, so that it never names a log that is half zeros.
        let zeros = Bytes::from(vec![0; log.block_size() as usize]);
        log.write_block(log.superblock_at(), zeros, true)?;
        erase(log, first)?;
    }
    let mut sb = JournalSuperblock::new(log.block_size(), log.blocks(), first.0, options.sequence);
    let mut features = JournalFeatures::default();
    features.set_checksums(options.checksums);
    features.set_incompat(JournalFeatures::WIDE, options.wide);
    sb.set_features(features);
    sb.set_fast_blocks(options.fast_blocks);
    sb.set_uuid(options.uuid);
    sb.set_users(&options.users);
    if !log.is_external() && options.users.is_empty() {
        sb.set_nr_users(1);
    }
    let mut block = vec![0; log.block_size() as usize];
    block[..JournalSuperblock::BYTES].copy_from_slice(&sb.encode());
    flush_if_cached(log)?;
    log.write_block(log.superblock_at(), block.into(), true)?;
    Ok(sb)
}

/// Largest piece written at once, bytes.
const ERASE_BYTES: u32 = 1 << 20;

fn erase(log: &Log, first: LogBlock) -> Result<()> {
    let zeros = Bytes::from(vec![0; ERASE_BYTES as usize]);
    let bs = log.block_size();
    let (mut at, mut writes) = (first.0, std::collections::VecDeque::new());
    while at < log.blocks() {
        let want = (ERASE_BYTES / bs).min(log.blocks() - at);
        let (offset, n) = log.place(LogBlock(at), want);
        let data = Payload::from(zeros.slice(..(n * bs) as usize));
        writes.push_back(log.submit_write(offset, data, false));
        at += n;
        if writes.len() >= 16
            && let Some(oldest) = writes.pop_front()
        {
            oldest.wait()?;
        }
    }
    for write in writes {
        write.wait()?;
    }
    Ok(())
}

fn flush_if_cached(log: &Log) -> Result<()> {
    if log.device().info().volatile_cache {
        log.device().flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Disk;

    #[test]
    fn a_formatted_log_is_clean_and_reads_back() {
        let disk = Disk::new("d", 8 << 20);
        let log = Log::external(disk.device(), 4096).unwrap();
        let uuid = Uuid::from_u128(7);
        let user = Uuid::from_u128(8);
        let mut options = FormatOptions::new(uuid);
        options.users = vec![user];
        format(&log, &options).unwrap();
        let sb = log.read_superblock().unwrap();
        assert_eq!((sb.uuid(), sb.users()), (uuid, vec![user]));
        assert_eq!((sb.first(), sb.start(), sb.sequence()), (LogBlock(2), None, Tid(1)));
        assert_eq!(sb.features().names(), ["journal_64bit", "journal_checksum_v3"]);
    }
}
