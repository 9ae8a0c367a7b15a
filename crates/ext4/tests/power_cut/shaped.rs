//! A file whose space is allocated, punched, zeroed and shifted: what a cut may leave of it.

use bytes::Bytes;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::RecordLog;
use steadfast_devices::filter::record::Note;
use steadfast_ext4::Ext4;
use steadfast_ext4_format::ondisk::Incompat;
use steadfast_suite::operation::Change;
use steadfast_vfs::{Fallocate, FileSystem, NewNode, OpenFlags};

/// Notes: so many operations have begun; so many are durable.
const BEGUN: u64 = 10;
const DURABLE: u64 = 11;

const STEPS: u64 = 60;
pub const NAME: &str = "shaped";
/// Every byte written is one of these few: what is anything else is of somebody else.
const OWN: std::ops::Range<u8> = 0xc0..0xc8;

/// What the file system is like: bytes a block or cluster, and whether files have block maps,
/// which can only be punched.
#[derive(Clone, Copy)]
pub struct Ground {
    pub unit: u64,
    pub block_maps: bool,
}

/// The operation number `i` on a file that is `size` bytes long.
fn operation(i: u64, size: u64, ground: Ground) -> Change {
    match any_operation(i, size, ground.unit) {
        Change::Fallocate { offset, len, .. } if ground.block_maps => {
            Change::Fallocate { what: Fallocate::PunchHole, offset, len }
        }
        any => any,
    }
}

fn any_operation(i: u64, size: u64, block: u64) -> Change {
    let mut rng = Rng::new(i);
    let blocks = size / block;
    let (at, len) = (rng.below(200_000), 1 + rng.below(40_000));
    let whole = |rng: &mut Rng| {
        let at = rng.below(blocks - 1);
        (at * block, (1 + rng.below(blocks - 1 - at)) * block)
    };
    let keep_size = i.is_multiple_of(2);
    let (what, (offset, len)) = match rng.below(7) {
        0 if blocks > 8 => {
            let (at, len) = whole(&mut rng);
            (Fallocate::CollapseRange, (at, len.min(8 * block)))
        }
        1 if blocks > 8 && size < 300_000 => (Fallocate::InsertRange, whole(&mut rng)),
        2 => (Fallocate::PunchHole, (at, len)),
        3 => (Fallocate::ZeroRange { keep_size }, (at, len)),
        4 => (Fallocate::Allocate { keep_size }, (at, len)),
        _ => return Change::Write { offset: at, len },
    };
    Change::Fallocate { what, offset, len }
}

/// What operation `i` writes.
fn own(i: u64) -> u8 {
    OWN.start + (i % 8) as u8
}

/// What the file holds after `steps` operations.
fn model(steps: u64, ground: Ground) -> Vec<u8> {
    let mut file: Vec<u8> = Vec::new();
    for i in 0..steps {
        operation(i, file.len() as u64, ground).make(&mut file, |_, out| out.fill(own(i)));
    }
    file
}

/// Runs all operations, each durable before the next.
pub fn run(fs: &Ext4, log: &RecordLog) {
    let features = fs.volume().layout.features;
    let ground = Ground {
        unit: fs.volume().layout.cluster_size(),
        block_maps: !features.incompat.contains(Incompat::EXTENT),
    };
    let flags = OpenFlags::READ | OpenFlags::WRITE;
    let (attr, fh) = fs.create(fs.root(), NAME.as_bytes(), NewNode::default(), flags).unwrap();
    for i in 0..STEPS {
        log.note(BEGUN, [i + 1, 0, 0]);
        let size = fs.getattr(attr.ino).unwrap().size;
        match operation(i, size, ground) {
            Change::Fallocate { what, offset, len } => {
                fs.fallocate(fh, what, offset, len).unwrap();
            }
            Change::Write { offset, len } => {
                fs.write(fh, offset, Bytes::from(vec![own(i); len as usize])).unwrap();
            }
            Change::Truncate { .. } => unreachable!("none is drawn"),
        }
        // Now and then several at once.
        if i % 3 > 0 {
            fs.fsync(fh, i.is_multiple_of(2)).unwrap();
            log.note(DURABLE, [i + 1, 0, 0]);
        }
    }
    fs.release(fh).unwrap();
}

/// Judges the file that was found after a cut.
pub fn check(
    found: Option<&[u8]>,
    notes: &[Note],
    ground: Ground,
    may_show_others: bool,
    what: &str,
) {
    let newest = |label| notes.iter().rev().find(|n| n.label == label).map_or(0, |n| n.detail[0]);
    let (begun, durable) = (newest(BEGUN), newest(DURABLE));
    let Some(found) = found else {
        assert_eq!(durable, 0, "{what}: the shaped file is gone");
        return;
    };
    if !may_show_others {
        let foreign = found.iter().position(|b| *b != 0 && !OWN.contains(b));
        assert_eq!(foreign, None, "{what}: shaped holds foreign data after {durable}..{begun}");
    }
    if durable > 0 && durable == begun {
        let expected = model(durable, ground);
        assert_eq!(found.len(), expected.len(), "{what}: shaped after {durable}");
        let differs = found.iter().zip(&expected).position(|(a, b)| a != b);
        assert_eq!(differs, None, "{what}: shaped after {durable}");
    }
}
