//! Files that are whole on the disk and closed when they lose their only name: each is there, all
//! of it, or not there at all.

use steadfast_devices::filter::RecordLog;
use steadfast_devices::filter::record::Note;
use steadfast_ext4::Ext4;
use steadfast_vfs::{FileSystem, FsError, NewNode, OpenFlags};

use crate::workload::contents;

/// Notes: the file is there, whole; somebody begins to remove it; it is gone.
const LEFT: u64 = 30;
const GOING: u64 = 31;
const GONE: u64 = 32;

const FILES: u64 = 24;
const RW: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);

fn name(i: u64) -> Vec<u8> {
    format!("left{i}").into_bytes()
}

/// Some are empty, some have a block or two, some have several extents.
fn length(i: u64) -> usize {
    [0, 900, 6000, 40_000][i as usize % 4]
}

pub fn run(fs: &Ext4, log: &RecordLog) {
    let root = fs.root();
    for i in 0..FILES {
        let (_, fh) = fs.create(root, &name(i), NewNode::default(), RW).unwrap();
        fs.write(fh, 0, contents(4000 + i, 0, length(i))).unwrap();
        if i % 4 == 3 {
            fs.write(fh, 90_000, contents(4000 + i, 90_000, 5000)).unwrap();
        }
        fs.fsync(fh, false).unwrap();
        fs.release(fh).unwrap();
        log.note(LEFT, [i, 0, 0]);
        let Some(old) = i.checked_sub(2) else { continue };
        log.note(GOING, [old, 0, 0]);
        fs.unlink(root, &name(old)).unwrap();
        // What it had is free for others at once, or when the removal is on the disk.
        if i % 3 > 0 {
            fs.fsyncdir(root).unwrap();
            log.note(GONE, [old, 0, 0]);
        }
    }
}

pub fn judge(fs: &Ext4, notes: &[Note], what: &str) {
    let noted = |label, i| notes.iter().any(|n| n.label == label && n.detail[0] == i);
    for i in (0..FILES).filter(|i| noted(LEFT, *i)) {
        let attr = match fs.lookup(fs.root(), &name(i)) {
            Ok(attr) => attr,
            Err(FsError::NotFound) => {
                assert!(noted(GOING, i), "{what}: left{i} is lost");
                continue;
            }
            Err(e) => panic!("{what}: left{i}: {e}"),
        };
        assert!(!noted(GONE, i), "{what}: left{i} is back");
        let fh = fs.open(attr.ino, OpenFlags::READ).unwrap();
        let data = fs.read(fh, 0, 1 << 20).unwrap_or_else(|e| panic!("{what}: left{i}: {e}"));
        fs.release(fh).unwrap();
        let mut whole = contents(4000 + i, 0, length(i)).to_vec();
        if i % 4 == 3 {
            whole.resize(90_000, 0);
            whole.extend_from_slice(&contents(4000 + i, 90_000, 5000));
        }
        assert!(data == whole, "{what}: left{i} is not whole ({} bytes)", data.len());
    }
}
