//! Data that are not what was written are found.

use std::sync::Arc;

use steadfast_bench::fio::{self, FioResults};
use steadfast_vfs::{FileSystem, HostFs};

use crate::memory::Behaviour;
use crate::{planned, simulate};

const JOB: &str = "[v]\nrw=randwrite\nsize=256k\nbsrange=512-8k\nverify=crc32c\n";

#[test]
fn what_was_written_is_read_back() {
    let (results, _) = simulate(JOB, Behaviour::default());
    assert_eq!(results.fault(), None);
    let [reads, writes] = &results.entries[0].figures.kinds;
    assert_eq!((reads.bytes, writes.bytes), (256 << 10, 256 << 10));
    // Blocks that are written again have their last data.
    let again = "[v]\nrw=randwrite\nsize=64k\nio_size=512k\nbssplit=512/50:8k/50\nverify=md5\n\
                 norandommap\n";
    assert_eq!(simulate(again, Behaviour::default()).0.fault(), None);
    let deep = "[v]\nrw=randwrite\nsize=64k\nloops=4\nverify=sha1\nioengine=libaio\niodepth=7\n";
    assert_eq!(simulate(deep, Behaviour::default()).0.fault(), None);
    let unread = JOB.to_owned() + "do_verify=0\n";
    assert_eq!(simulate(&unread, Behaviour::default()).0.entries[0].figures.kinds[0].requests, 0);
}

#[test]
fn a_planted_wrong_block_is_found() {
    let behaviour = Behaviour { corrupt_at: Some(0x1_2345), ..Behaviour::default() };
    let (results, _) = simulate(JOB, behaviour);
    let fault = results.fault().unwrap();
    assert_eq!(fault.errno, 84);
    let start = "verify: wrong data in v.0.0 at 74240: ";
    assert!(fault.what.starts_with(start), "{}", fault.what);
}

fn in_folder(folder: &std::path::Path, text: &str) -> FioResults {
    let fs: Arc<dyn FileSystem> = Arc::new(HostFs::open(folder).unwrap());
    fio::run(&fs, &planned(text).unwrap(), |_| {}).unwrap()
}

/// Each block says what it is, so that another run can check it.
#[test]
fn a_later_run_finds_what_was_changed_between() {
    let folder = tempfile::tempdir().unwrap();
    let job = "[v]\nfilename=f\nsize=256k\nverify=crc32c\nrw=";
    assert_eq!(in_folder(folder.path(), &format!("{job}write\ndo_verify=0")).fault(), None);
    assert_eq!(in_folder(folder.path(), &format!("{job}read")).fault(), None);
    let path = folder.path().join("f");
    let mut bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len(), 256 << 10);
    // A block in the place of another.
    bytes.copy_within(8192..12288, 40960);
    std::fs::write(&path, &bytes).unwrap();
    let found = in_folder(folder.path(), &format!("{job}randread"));
    let what = &found.fault().unwrap().what;
    assert!(what.contains("wrong data in f at 40960: the data of 8192"), "{what}");
}
