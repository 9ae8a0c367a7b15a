//! A directory that ignores case, with an index: names come, change their case by way of others,
//! and go.

use steadfast_devices::filter::RecordLog;
use steadfast_devices::filter::record::Note;
use steadfast_ext4::Ext4;
use steadfast_ext4_format::ondisk::InodeFlags;
use steadfast_vfs::{FileSystem, FsError, NewNode, OpenFlags, RenameFlags, path};

/// All steps up to this one are durable.
const STEPPED: u64 = 300;

const STEPS: u64 = 240;
const FOLDER: &[u8] = b"caseless";

fn name(i: u64) -> String {
    format!("Ärger mit Straße {i} {}", "x".repeat(i as usize % 40))
}

fn otherwise(i: u64) -> String {
    format!("A\u{308}RGER MIT STRASSE {i} {}", "X".repeat(i as usize % 40))
}

/// Step `i` makes name `i`; every third takes away the name made 30 steps before, by another
/// spelling, and every third gives one made 31 steps before that other spelling.
pub fn run(fs: &Ext4, log: &RecordLog) {
    let dir = fs.mkdir(fs.root(), FOLDER, NewNode::default()).unwrap().ino;
    let flags = fs.inode_flags(dir).unwrap();
    fs.set_inode_flags(dir, flags | InodeFlags::CASEFOLD.bits()).unwrap();
    for i in 0..STEPS {
        let made = fs.create(dir, name(i).as_bytes(), NewNode::default(), OpenFlags::WRITE);
        let (_, fh) = made.unwrap();
        if i % 3 == 0 && i >= 30 {
            fs.unlink(dir, otherwise(i - 30).as_bytes()).unwrap();
        }
        if i % 3 == 1 && i >= 31 {
            let (from, to) = (name(i - 31), otherwise(i - 31));
            for (from, to) in [(from.as_str(), "between"), ("between", to.as_str())] {
                let (from, to) = (from.as_bytes(), to.as_bytes());
                fs.rename((dir, from), (dir, to), RenameFlags::empty()).unwrap_or_else(|e| {
                    // The name was taken away before.
                    assert_eq!(e, FsError::NotFound);
                });
            }
        }
        if i % 4 == 0 {
            fs.fsync(fh, false).unwrap();
            log.note(STEPPED, [i, 0, 0]);
        }
        fs.release(fh).unwrap();
    }
}

/// Names that must be there are found by both spellings; those that must be gone by none.
pub fn judge(fs: &Ext4, notes: &[Note], what: &str) {
    let Some(note) = notes.iter().rev().find(|n| n.label == STEPPED) else { return };
    let done = note.detail[0];
    let dir = fs.lookup(fs.root(), FOLDER).unwrap_or_else(|e| panic!("{what}: {e}")).ino;
    assert!(fs.inode_flags(dir).unwrap() & InodeFlags::CASEFOLD.bits() != 0, "{what}");
    let find = |name: String| match fs.lookup(dir, name.as_bytes()) {
        Ok(attr) => Some(attr.ino),
        Err(FsError::NotFound) => None,
        Err(e) => panic!("{what}: {e}"),
    };
    for i in 0..=done {
        let (one, other) = (find(name(i)), find(otherwise(i)));
        assert_eq!(one, other, "{what}: name {i}");
        // Steps that are not promised yet may have happened, or half of a change of case.
        if i % 3 == 0 && i + 30 <= done {
            assert_eq!(one, None, "{what}: name {i} is there again");
        } else if i + 31 < done {
            assert!(one.is_some(), "{what}: name {i} is lost");
        }
    }
    let listed = path::list(fs, dir).unwrap_or_else(|e| panic!("{what}: {e}"));
    for entry in listed {
        let found = fs.lookup(dir, &entry.name).map(|attr| attr.ino);
        assert_eq!(found, Ok(entry.ino), "{what}: {}", String::from_utf8_lossy(&entry.name));
    }
}
