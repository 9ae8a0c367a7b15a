//! Whether two replays of one journal gave the same image.

use steadfast_devices::store::Store;

use super::stage::{Contents, Stage};

/// A difference that is meant to be: offset in bytes, length, why.
type Leave = (usize, usize, &'static str);

/// In the file system's superblock.
const SUPERBLOCK: &[Leave] = &[
    (0x00c, 8, "s_free_blocks_count_lo, s_free_inodes_count: summed up over the groups"),
    (0x030, 4, "s_wtime: when the replay wrote it"),
    (0x066, 1, "s_feature_ro_compat: orphan_present is taken back where nobody is in the file"),
    (
        0x0c8,
        4,
        "s_algorithm_usage_bitmap: nobody's; keeps a torn write whole (ondisk/atomic_write.rs)",
    ),
    (0x10c, 40, "s_jnl_blocks: a home mark (external journal), which our replay takes away"),
    (0x158, 4, "s_free_blocks_count_hi: likewise"),
    (0x178, 8, "s_kbytes_written: they count what they write"),
    (0x274, 1, "s_wtime_hi"),
    (0x3fc, 4, "s_checksum: follows from the rest"),
];

/// In the journal's superblock.
const JOURNAL: &[Leave] = &[
    (0x018, 4, "s_sequence: how far to skip beyond the last transaction is free"),
    (0x0fc, 4, "s_checksum: follows from the rest"),
];

/// In the journal's superblock, by a mount of the kernel.
const JOURNAL_KERNEL: &[Leave] = &[(0x058, 4, "s_head: where it will go on writing")];

/// Who replayed after us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    E2fsck,
    Kernel,
}

impl Peer {
    fn may_differ(self, offset: u64, common: &[Leave], kernel: &[Leave]) -> bool {
        let kernel = if self == Peer::Kernel { kernel } else { &[] };
        common
            .iter()
            .chain(kernel)
            .any(|(from, len, _)| (*from as u64..(from + len) as u64).contains(&offset))
    }

    fn in_superblock(self, offset: u64) -> bool {
        self.may_differ(offset, SUPERBLOCK, &[])
    }

    fn in_journal(self, offset: u64) -> bool {
        self.may_differ(offset, JOURNAL, JOURNAL_KERNEL)
    }
}

/// The bytes in which they differ.
fn differing(a: &Store, b: &Store) -> Vec<u64> {
    const PIECE: u64 = 512;
    assert_eq!(a.size(), b.size());
    let pieces = (0..a.size() / PIECE).map(|n| n * PIECE);
    let differ = pieces.filter(|at| a.read(*at, PIECE) != b.read(*at, PIECE));
    differ
        .flat_map(|at| {
            let (a, b) = (a.read(at, PIECE), b.read(at, PIECE));
            (0..PIECE).filter(move |i| a[*i as usize] != b[*i as usize]).map(move |i| at + i)
        })
        .collect()
}

/// Panics unless all bytes are the same, apart from those listed above.
pub fn assert_same(stage: &Stage, ours: &Contents, peer: Peer, what: &str) {
    let theirs = stage.contents();
    let block_size = u64::from(stage.shape.block_size);
    let check = |ours: &Store, theirs: &Store, journal: Option<u64>, name: &str| {
        for at in differing(ours, theirs) {
            let offset = |from: u64| at.wrapping_sub(from);
            let fine = peer.in_superblock(offset(1024))
                || journal.is_some_and(|start| peer.in_journal(offset(start)));
            let place = format!("byte {at} of the {name} (journal superblock at {journal:?})");
            assert!(fine, "{:?}, {what}, {peer:?}: {place} differs", stage.shape);
        }
    };
    let internal = stage.journal_superblock().map(|b| b * block_size);
    check(&ours.disk, &theirs.disk, internal, "disk");
    if let (Some(ours), Some(theirs)) = (&ours.card, &theirs.card) {
        // Behind the ext superblock in bytes 1024 to 2047.
        check(ours, theirs, Some(block_size.max(2048)), "journal's device");
    }
}
