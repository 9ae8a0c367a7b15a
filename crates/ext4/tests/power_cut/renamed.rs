//! Renames that leave a whiteout, labels, and files cut in the middle of a block: each is done
//! whole or not at all, and what was cut off does not come back.

use steadfast_devices::filter::RecordLog;
use steadfast_devices::filter::record::Note;
use steadfast_ext4::{DataMode, Ext4};
use steadfast_vfs::{
    Attr, FileSystem, FileType, FsError, NewNode, OpenFlags, RenameFlags, SetAttr,
};

use crate::workload::contents;

/// Notes: a file is there under its old name; it has its new one, and a whiteout the old.
const THERE: u64 = 40;
const COVERED: u64 = 41;
/// The label is at least this one.
const LABELLED: u64 = 42;
/// A file is as short as it is to be.
const SHORTENED: u64 = 43;

const FILES: u64 = 16;
const SHORT: usize = 5000;
const LONG: usize = 12_000;
const RW: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);

fn old_name(i: u64) -> Vec<u8> {
    format!("lower{i}").into_bytes()
}

fn new_name(i: u64) -> Vec<u8> {
    format!("upper{i}").into_bytes()
}

fn make(fs: &Ext4, name: &[u8], file: u64, len: usize) -> Attr {
    let (attr, fh) = fs.create(fs.root(), name, NewNode::default(), RW).unwrap();
    fs.write(fh, 0, contents(file, 0, len)).unwrap();
    fs.fsync(fh, false).unwrap();
    fs.release(fh).unwrap();
    attr
}

/// As overlayfs moves files; every other one over another file.
pub fn whiteouts(fs: &Ext4, log: &RecordLog) {
    let root = fs.root();
    for i in 0..FILES {
        make(fs, &old_name(i), 5000 + i, 6000);
        if i % 2 == 1 {
            make(fs, &new_name(i), 6000 + i, 900);
        }
        log.note(THERE, [i, 0, 0]);
        fs.rename((root, &old_name(i)), (root, &new_name(i)), RenameFlags::WHITEOUT).unwrap();
        if i % 3 > 0 {
            fs.fsyncdir(root).unwrap();
            log.note(COVERED, [i, 0, 0]);
        }
    }
}

pub fn labels(fs: &Ext4, log: &RecordLog) {
    for i in 1..=FILES {
        fs.set_label(format!("label{i}").as_bytes()).unwrap();
        log.note(LABELLED, [i, 0, 0]);
    }
}

/// Files of several blocks become shorter, and somebody else's promise commits that.
pub fn shortened(fs: &Ext4, log: &RecordLog) {
    for i in 0..FILES {
        let attr = make(fs, format!("short{i}").as_bytes(), 7000 + i, LONG);
        let size = SetAttr { size: Some(SHORT as u64), ..SetAttr::default() };
        fs.setattr(attr.ino, size).unwrap();
        // Made after it, and so in the same transaction or a later one.
        make(fs, format!("beside{i}").as_bytes(), 8000 + i, 100);
        log.note(SHORTENED, [i, 0, 0]);
    }
}

/// Holds what is there against the notes. Makes files longer, to see what comes to light.
pub fn judge(fs: &Ext4, data: DataMode, notes: &[Note], what: &str) {
    let noted = |label, i| notes.iter().any(|n| n.label == label && n.detail[0] == i);
    for i in (0..FILES).filter(|i| noted(THERE, *i)) {
        judge_whiteout(fs, i, noted(COVERED, i), what);
    }
    let newest = notes.iter().filter(|n| n.label == LABELLED).map(|n| n.detail[0]).max();
    let label = String::from_utf8(fs.label().unwrap()).unwrap();
    let number = match label.strip_prefix("label") {
        Some(number) => number.parse().unwrap_or_else(|_| panic!("{what}: label {label}")),
        None => 0,
    };
    assert!(number >= newest.unwrap_or(0), "{what}: label {label}, {newest:?} was durable");
    for i in (0..FILES).filter(|i| noted(SHORTENED, *i)) {
        judge_short(fs, i, data, what);
    }
}

fn judge_whiteout(fs: &Ext4, i: u64, covered: bool, what: &str) {
    let find = |name: &[u8]| match fs.lookup(fs.root(), name) {
        Ok(attr) => Some(attr),
        Err(FsError::NotFound) => None,
        Err(e) => panic!("{what}: {e}"),
    };
    let old = find(&old_name(i)).unwrap_or_else(|| panic!("{what}: lower{i} has left nothing"));
    let new = find(&new_name(i));
    let is_done = match old.kind {
        FileType::Regular => false,
        FileType::CharDevice => true,
        other => panic!("{what}: lower{i} is {other:?}"),
    };
    assert!(is_done || !covered, "{what}: lower{i} is back");
    let file = read(fs, if is_done { new.unwrap() } else { old }, 6000);
    assert!(file == contents(5000 + i, 0, 6000), "{what}: file {i} is not whole");
    if is_done {
        assert_eq!(old.nlink, 1, "{what}: the whiteout of file {i}");
    } else if i % 2 == 1 {
        let replaced = read(fs, new.unwrap(), 900);
        assert!(replaced == contents(6000 + i, 0, 900), "{what}: upper{i} is gone too early");
    } else {
        assert!(new.is_none(), "{what}: file {i} has both names");
    }
}

fn judge_short(fs: &Ext4, i: u64, data: DataMode, what: &str) {
    let name = format!("short{i}");
    let attr = fs.lookup(fs.root(), name.as_bytes()).unwrap();
    // What follows may have been done before a second cut; then it is as long, with zeros.
    let sizes = [SHORT as u64, LONG as u64];
    assert!(sizes.contains(&attr.size), "{what}: {name} has {} bytes", attr.size);
    fs.setattr(attr.ino, SetAttr { size: Some(LONG as u64), ..SetAttr::default() }).unwrap();
    let found = read(fs, attr, LONG);
    assert!(found[..SHORT] == contents(7000 + i, 0, SHORT), "{what}: {name} has changed");
    let back = found[SHORT..].iter().filter(|b| **b != 0).count();
    assert!(back == 0 || data == DataMode::Writeback, "{what}: {back} bytes of {name} came back");
}

fn read(fs: &Ext4, attr: Attr, len: usize) -> Vec<u8> {
    let fh = fs.open(attr.ino, OpenFlags::READ).unwrap();
    let data = fs.read(fh, 0, len).unwrap();
    fs.release(fh).unwrap();
    data.to_vec()
}
