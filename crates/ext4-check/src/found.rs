//! Directories that the scan of the inodes has found; they are read after it.

use steadfast_ext4_format::ondisk::InodeNo;

/// Blocks of a directory that are read at once.
const BATCH: u32 = 64;

/// A directory that the scan of the inodes has found.
#[derive(Debug)]
pub(super) struct ScannedDirectory {
    pub(super) ino: InodeNo,
    pub(super) generation: u32,
    /// It has an index.
    pub(super) indexed: bool,
    /// File block, first block and length of each run that is the directory's alone.
    pub(super) runs: Vec<(u32, u64, u32)>,
    /// Blocks of the directory.
    pub(super) blocks: u32,
    /// Its names are encrypted: any bytes.
    pub(super) encrypted: bool,
    /// Its names are one if they are equal after folding.
    pub(super) casefold: bool,
    /// The contents, if they are in the inode.
    pub(super) inline: Option<Vec<u8>>,
}

impl ScannedDirectory {
    /// Where a block of the directory lies.
    pub(super) fn place(&self, block: u32) -> Option<u64> {
        let i = self.runs.partition_point(|(first, _, _)| *first <= block).checked_sub(1)?;
        let (first, start, len) = self.runs[i];
        (block - first < len).then(|| start + u64::from(block - first))
    }

    /// What is read at once: place in the file, first block and length.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (u32, u64, u32)> + '_ {
        self.runs.iter().flat_map(|(first, start, len)| {
            let steps = (0..*len).step_by(BATCH as usize);
            steps.map(move |at| (first + at, start + u64::from(at), BATCH.min(len - at)))
        })
    }
}
