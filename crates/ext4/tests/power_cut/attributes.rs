//! Extended attributes: one block that files share until one of them changes its own, and, where
//! there are such, values in inodes.

use steadfast_devices::filter::RecordLog;
use steadfast_devices::filter::record::Note;
use steadfast_ext4::Ext4;
use steadfast_vfs::{Fh, FileSystem, FsError, Ino, NewNode, OpenFlags, SetXattr};

/// The attributes are at least of this version, and this stage of it.
pub const ATTRIBUTED: u64 = 200;

const FILES: u64 = 4;
const VERSIONS: u8 = 16;
const SHARED: &[u8] = b"user.shared";
const LARGE: &[u8] = b"user.large";

/// Marks what the first file has for itself in the second stage.
const OWN: u8 = 0x80;

fn file_name(i: u64) -> Vec<u8> {
    format!("attributed{i}").into_bytes()
}

fn shared(version: u8, own: u8) -> Vec<u8> {
    vec![version | own; 300 + usize::from(version) * 20]
}

fn large(version: u8) -> Vec<u8> {
    vec![version; 6000 + usize::from(version) * 700]
}

/// In each version all files get the same attribute (stage 0), then the first changes it, the
/// second loses it and the third goes away and comes back (stage 1). Each stage is made durable.
pub fn run(fs: &Ext4, log: &RecordLog) {
    let root = fs.root();
    let make = |i| {
        let (attr, fh) =
            fs.create(root, &file_name(i), NewNode::default(), OpenFlags::WRITE).unwrap();
        (attr.ino, fh)
    };
    let mut files: Vec<(Ino, Fh)> = (0..FILES).map(make).collect();
    let mut has_large = true;
    for version in 1..VERSIONS {
        for (ino, _) in &files {
            fs.setxattr(*ino, SHARED, &shared(version, 0), SetXattr::Any).unwrap();
            match fs.setxattr(*ino, LARGE, &large(version), SetXattr::Any) {
                Ok(()) => {}
                Err(FsError::NoSpace { .. }) => has_large = false,
                Err(e) => panic!("{e}"),
            }
        }
        sync_all(fs, &files);
        log.note(ATTRIBUTED, [version.into(), 0, has_large.into()]);
        fs.setxattr(files[0].0, SHARED, &shared(version, OWN), SetXattr::Replace).unwrap();
        fs.removexattr(files[1].0, SHARED).unwrap();
        fs.release(files[2].1).unwrap();
        fs.unlink(root, &file_name(2)).unwrap();
        files[2] = make(2);
        sync_all(fs, &files);
        log.note(ATTRIBUTED, [version.into(), 1, has_large.into()]);
    }
    files.into_iter().for_each(|(_, fh)| fs.release(fh).unwrap());
}

/// One file's fsync promises nothing of the others: a commit may have come in between.
fn sync_all(fs: &Ext4, files: &[(Ino, Fh)]) {
    files.iter().for_each(|(_, fh)| fs.fsync(*fh, false).unwrap());
}

/// What is there of an attribute: version and mark. Panics if it is neither whole nor absent.
fn found(fs: &Ext4, i: u64, name: &[u8], what: &str) -> Option<(u8, u8)> {
    let ino = match fs.lookup(fs.root(), &file_name(i)) {
        Ok(attr) => attr.ino,
        Err(FsError::NotFound) => return None,
        Err(e) => panic!("{what}: {e}"),
    };
    let value = match fs.getxattr(ino, name) {
        Ok(value) => value,
        Err(FsError::NoData) => return None,
        Err(e) => panic!("{what}: {e}"),
    };
    let (version, own) = (value[0] & !OWN, value[0] & OWN);
    let whole = if name == SHARED { shared(version, own) } else { large(version) };
    assert!(value == whole, "{what}: {} of file {i} is not whole", String::from_utf8_lossy(name));
    Some((version, own))
}

/// Holds what is there against the newest promise, and all against each other.
pub fn judge(fs: &Ext4, notes: &[Note], what: &str) {
    for i in 0..FILES {
        found(fs, i, SHARED, what);
        found(fs, i, LARGE, what);
    }
    let Some(note) = notes.iter().rev().find(|n| n.label == ATTRIBUTED) else { return };
    let (version, stage) = (note.detail[0] as u8, note.detail[1]);
    let is = |i, name: &[u8]| found(fs, i, name, what);
    let newest = is(3, SHARED).unwrap_or_else(|| panic!("{what}: file 3 has lost its attribute"));
    assert!(newest.0 >= version, "{what}: file 3 has version {}, not {version}", newest.0);
    let first = is(0, SHARED).unwrap_or_else(|| panic!("{what}: file 0 has lost its attribute"));
    let kept = first.0 > version || (first.0 == version && (stage == 0 || first.1 == OWN));
    assert!(kept, "{what}: file 0 has {first:?}, not version {version}, stage {stage}");
    if let Some(second) = is(1, SHARED) {
        let later = second.0 > version || (second.0 == version && stage == 0);
        assert!(later, "{what}: file 1 has {second:?} after it was removed");
    }
    if note.detail[2] == 1 {
        let large = is(0, LARGE).unwrap_or_else(|| panic!("{what}: file 0 has lost its value"));
        assert!(large.0 >= version, "{what}: file 0's value has version {}", large.0);
    }
}
