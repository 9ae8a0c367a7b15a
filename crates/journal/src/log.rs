//! The location of the log: a device, and a map from log blocks to its bytes.
//!
//! An internal log is a file of the file system, which provides the extents. An external log is a
//! whole device, and its log blocks are the device's blocks, counted from the device's start: first
//! the ext superblock that identifies the device, then the journal superblock, then the log (see
//! [`external`](crate::external)).

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::planted::BugSwitch;
use steadfast_block::{BlockDevice, Completion, DeviceInfo, DirectMemory, Payload, Request};

use crate::ondisk::superblock::{JournalSuperblock, MIN_LOG_BLOCKS};
use crate::planted::Bug;
use crate::{JournalError, LogBlock, Result};

/// A run of log blocks that lies in one piece on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogExtent {
    /// First log block.
    pub log_block: LogBlock,
    /// Where it lies, in blocks of the log's block size from the device's start.
    pub device_block: u64,
    /// Blocks.
    pub len: u32,
}

/// Where the log lives. Cheap to clone.
#[derive(Clone)]
pub struct Log {
    device: Arc<dyn BlockDevice>,
    block_size: u32,
    extents: Arc<[LogExtent]>,
    blocks: u32,
    superblock_at: LogBlock,
    external: bool,
    /// A power cut keeps less than a sector whole.
    tears_sectors: bool,
    /// A bug that the crash explorer is to find.
    pub(crate) planted: BugSwitch<Bug>,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log")
            .field("device", &self.device.info().name)
            .field("block_size", &self.block_size)
            .field("extents", &self.extents)
            .field("external", &self.external)
            .finish()
    }
}

/// Bytes of the smallest sector.
const SECTOR: u32 = 512;

impl Log {
    /// A log inside a file system: `extents` map the journal's file, in order and without holes,
    /// and lie within the device. `block_size` is the file system's, in bytes.
    pub fn internal(
        device: Arc<dyn BlockDevice>,
        block_size: u32,
        extents: Vec<LogExtent>,
    ) -> Result<Log> {
        check_block_size(&device.info(), block_size)?;
        let device_blocks = device.info().size / u64::from(block_size);
        let mut blocks = 0u32;
        for e in &extents {
            let place = || format!("the journal's extent at log block {}", e.log_block);
            if e.log_block.0 != blocks || e.len == 0 {
                return Err(JournalError::corrupt("the journal's file has a hole", place()));
            }
            if e.device_block.checked_add(u64::from(e.len)).is_none_or(|end| end > device_blocks) {
                return Err(JournalError::corrupt("it ends beyond the device", place()));
            }
            blocks = blocks
                .checked_add(e.len)
                .ok_or_else(|| JournalError::corrupt("more than 2^32 blocks", place()))?;
        }
        Log::new(device, block_size, (extents.into(), blocks), LogBlock(0))
    }

    /// A log on its own device, with blocks of `block_size` bytes. Says nothing of what is on
    /// the device: see [`external::open_device`](crate::external::open_device).
    pub fn external(device: Arc<dyn BlockDevice>, block_size: u32) -> Result<Log> {
        check_block_size(&device.info(), block_size)?;
        let blocks = device.info().size / u64::from(block_size);
        Log::external_of(device, block_size, u32::try_from(blocks).unwrap_or(u32::MAX))
    }

    /// An external log whose ext superblock says that it has so many blocks.
    pub(crate) fn external_of(
        device: Arc<dyn BlockDevice>,
        block_size: u32,
        blocks: u32,
    ) -> Result<Log> {
        // The ext superblock is at byte 1024: in block 1 of 1-KiB blocks, else in block 0.
        let superblock_at = LogBlock(if block_size == 1024 { 2 } else { 1 });
        let extent = LogExtent { log_block: LogBlock(0), device_block: 0, len: blocks };
        Log::new(device, block_size, (Arc::new([extent]), blocks), superblock_at)
    }

    /// A log whose extents have so many blocks; before the superblock of an external one there are
    /// others.
    fn new(
        device: Arc<dyn BlockDevice>,
        block_size: u32,
        (extents, blocks): (Arc<[LogExtent]>, u32),
        superblock_at: LogBlock,
    ) -> Result<Log> {
        check_length(blocks)?;
        let tears_sectors = device.info().atomic_write < SECTOR;
        let external = superblock_at != LogBlock(0);
        Ok(Log {
            device,
            block_size,
            extents,
            blocks,
            superblock_at,
            external,
            tears_sectors,
            planted: BugSwitch::default(),
        })
    }

    /// The device that holds the log; of an internal log, the file system's.
    pub fn device(&self) -> &Arc<dyn BlockDevice> {
        &self.device
    }

    /// The log's memory, if its device is memory and says that a power cut tears its sectors, which
    /// stores do: what is written there is stored, without a request.
    pub(crate) fn memory(&self) -> Option<&dyn DirectMemory> {
        if self.tears_sectors { self.device.direct_memory() } else { None }
    }

    /// Stores part of the log, durable after a fence. Where the memory cannot be stored to, it is
    /// written by a request: that clears poison.
    pub(crate) fn store(&self, memory: &dyn DirectMemory, offset: u64, data: &Bytes) -> Result<()> {
        match memory.store_through(offset, data) {
            Ok(()) => Ok(()),
            Err(_) => Ok(self.device.write_fua(offset, data.clone().into())?),
        }
    }

    /// Whether a power cut keeps less than a sector of the log whole.
    pub(crate) fn tears_sectors(&self) -> bool {
        self.tears_sectors
    }

    /// Bytes in a block.
    pub fn block_size(&self) -> u32 {
        self.block_size
    }

    /// Blocks that the owner maps, the superblock included.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Whether the log has a device of its own.
    pub fn is_external(&self) -> bool {
        self.external
    }

    /// Where the journal superblock is.
    pub fn superblock_at(&self) -> LogBlock {
        self.superblock_at
    }

    /// The byte at which `block` lies, and how many of the `count` blocks from there on lie in
    /// one piece.
    ///
    /// # Panics
    /// If the blocks are not in the log: callers check what they read from disk.
    pub(crate) fn place(&self, block: LogBlock, count: u32) -> (u64, u32) {
        assert!(block.0 < self.blocks && count <= self.blocks - block.0, "outside the log");
        let i = self.extents.partition_point(|e| e.log_block.0 <= block.0) - 1;
        let e = self.extents[i];
        let into = block.0 - e.log_block.0;
        let offset = (e.device_block + u64::from(into)) * u64::from(self.block_size);
        (offset, count.min(e.len - into))
    }

    /// Reads `count` blocks that follow each other in the log, without wrapping.
    pub(crate) fn read(&self, block: LogBlock, count: u32) -> Result<Bytes> {
        let (mut at, mut left, mut reads) = (block.0, count, Vec::new());
        while left > 0 {
            let (offset, n) = self.place(LogBlock(at), left);
            let len = u64::from(n) * u64::from(self.block_size);
            reads.push(self.device.submit(Request::Read { offset, len }));
            (at, left) = (at + n, left - n);
        }
        let mut all = Payload::new();
        for read in reads {
            all.push(read.wait()?);
        }
        Ok(all.into_contiguous())
    }

    /// Whether one block begins with these bytes.
    pub(crate) fn begins_with(&self, block: LogBlock, with: &[u8]) -> Result<bool> {
        let (offset, _) = self.place(block, 1);
        Ok(self.device.begins_with(offset, u64::from(self.block_size), with)?)
    }

    /// Starts writing `data`, whole blocks that lie in one piece, at byte `offset`.
    pub(crate) fn submit_write(&self, offset: u64, data: Payload, fua: bool) -> Completion {
        self.device.submit(Request::Write { offset, data, fua })
    }

    /// Writes one block; durable on return if `durable`.
    pub(crate) fn write_block(&self, block: LogBlock, data: Bytes, durable: bool) -> Result<()> {
        let (offset, _) = self.place(block, 1);
        if let Some(memory) = self.memory() {
            self.store(memory, offset, &data)?;
            return if durable { Ok(memory.fence()?) } else { Ok(()) };
        }
        let fua = durable && self.device.info().volatile_cache;
        Ok(self.submit_write(offset, data.into(), fua).wait().map(drop)?)
    }

    /// Reads and checks the journal superblock.
    pub fn read_superblock(&self) -> Result<JournalSuperblock> {
        Ok(self.read_superblock_block()?.0)
    }

    /// The superblock, and its whole block as it is on disk.
    pub(crate) fn read_superblock_block(&self) -> Result<(JournalSuperblock, Bytes)> {
        let block = self.read(self.superblock_at, 1)?;
        // If the medium tears single words, a power cut may leave the checksum old and the tail
        // new, or the other way round. Either tail is valid: the log before the new one is not
        // reused until the update is complete.
        let sb =
            JournalSuperblock::decode(&block, self.block_size, self.blocks, self.tears_sectors)?;
        Ok((sb, block))
    }
}

impl Log {
    /// Switches a bug on for the recovery of this log.
    #[must_use]
    pub fn with_planted(self, planted: BugSwitch<Bug>) -> Log {
        Log { planted, ..self }
    }
}

fn check_block_size(info: &DeviceInfo, block_size: u32) -> Result<()> {
    if !block_size.is_power_of_two() || !(1024..=65536).contains(&block_size) {
        let what =
            format!("{block_size} is no block size; it is a power of two from 1024 to 65536");
        return Err(JournalError::refused(what));
    }
    if block_size < info.logical_block {
        return Err(JournalError::refused(format!(
            "{}: blocks of {block_size} bytes are smaller than the device's {}-byte sectors",
            info.name, info.logical_block
        )));
    }
    Ok(())
}

fn check_length(blocks: u32) -> Result<()> {
    if blocks < MIN_LOG_BLOCKS {
        return Err(JournalError::refused(format!(
            "a journal has at least {MIN_LOG_BLOCKS} blocks; this one would have {blocks}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Disk;

    fn extent(log: u32, device: u64, len: u32) -> LogExtent {
        LogExtent { log_block: LogBlock(log), device_block: device, len }
    }

    #[test]
    fn extents_map_in_pieces() {
        let disk = Disk::new("d", 4 << 20);
        let extents = vec![extent(0, 100, 1000), extent(1000, 3000, 500)];
        let log = Log::internal(disk.device(), 1024, extents).unwrap();
        assert_eq!(log.blocks(), 1500);
        assert_eq!(log.place(LogBlock(0), 10), (100 << 10, 10));
        assert_eq!(log.place(LogBlock(990), 20), (1090 << 10, 10));
        assert_eq!(log.place(LogBlock(1000), 20), (3000 << 10, 20));
    }

    #[test]
    fn a_superblock_is_checked() {
        let disk = Disk::new("d", 4 << 20);
        let log = Log::external(disk.device(), 1024).unwrap();
        assert!(matches!(log.read_superblock(), Err(JournalError::Corrupt { .. })));
        crate::format(&log, &crate::FormatOptions::new(uuid::Uuid::from_u128(1))).unwrap();
        log.read_superblock().unwrap();
        // Its sequence number.
        disk.poke(2048 + 0x18, &[0, 0, 0, 9]);
        let err = log.read_superblock().unwrap_err().to_string();
        assert!(err.contains("checksum"), "{err}");
    }

    #[test]
    fn bad_maps_are_refused() {
        let disk = Disk::new("d", 4 << 20);
        let internal = |extents| Log::internal(disk.device(), 1024, extents);
        assert!(matches!(internal(vec![extent(0, 0, 10)]), Err(JournalError::Refused { .. })));
        for bad in [
            vec![extent(1, 0, 2000)],
            vec![extent(0, 0, 1500), extent(1600, 1500, 100)],
            vec![extent(0, 4000, 1024)],
            vec![extent(0, u64::MAX, 1024)],
        ] {
            assert!(matches!(internal(bad), Err(JournalError::Corrupt { .. })));
        }
        assert!(Log::internal(disk.device(), 3000, vec![]).is_err());
    }
}
