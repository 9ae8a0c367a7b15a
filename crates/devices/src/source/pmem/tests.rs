use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use steadfast_block::{Persistence, conformance, pattern};
use steadfast_runtime::Sim;
use tempfile::TempDir;

use super::*;
use crate::source::OpenError;

fn in_memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

fn made(folder: &TempDir, size: u64) -> (PathBuf, Pmem) {
    let path = folder.path().join("range");
    Pmem::create_emulated(&path, size).unwrap();
    let pmem = Pmem::open(&path, &PmemOptions::default()).unwrap();
    (path, pmem)
}

fn maker(folder: &Path) -> impl Fn() -> Arc<dyn BlockDevice> + use<> {
    let folder = folder.to_owned();
    let next = std::cell::Cell::new(0);
    move || {
        next.set(next.get() + 1);
        let path = folder.join(format!("range{}", next.get()));
        Pmem::create_emulated(&path, 8 << 20).unwrap();
        Arc::new(Pmem::open(path, &PmemOptions::default()).unwrap())
    }
}

#[test]
fn conforms_in_memory_and_on_a_disk() {
    for folder in [in_memory(), tempfile::tempdir().unwrap()] {
        let make = maker(folder.path());
        conformance::run(&make);
        Sim::new(1).run(move || conformance::run(&make)).unwrap();
    }
}

#[test]
fn an_emulated_range_says_that_it_is_not_persistent() {
    let folder = in_memory();
    let (_, pmem) = made(&folder, 1 << 20);
    assert_eq!(pmem.promise().in_words(), "not persistent");
    let info = pmem.info();
    assert!(matches!(info.persistence, Persistence::Volatile { .. }), "{info:?}");
    assert!(info.volatile_cache, "without a fence nothing is anywhere");
    assert_eq!(info.atomic_write, 8);
}

#[test]
fn every_length_and_place_is_stored_and_nothing_beside_it() {
    let folder = in_memory();
    let (_, pmem) = made(&folder, 1 << 20);
    let lengths = [0, 1, 7, 8, 9, 63, 64, 65, 127, 255, 256, 257, 320, 511, 4095, 4096, 9000];
    for len in lengths {
        for at in [4096, 4097, 4100, 4104, 4159, 4161, 4096 + 40] {
            for through in [false, true] {
                let around = vec![0xee; len + 256];
                pmem.store(at - 128, &around).unwrap();
                let data = pattern::bytes(len as u64, at, len);
                match through {
                    true => pmem.store_through(at, &data).unwrap(),
                    false => pmem.store(at, &data).unwrap(),
                }
                pmem.persist(at, len as u64).unwrap();
                pmem.fence().unwrap();
                let mut got = vec![0; len + 256];
                pmem.load(at - 128, &mut got).unwrap();
                assert_eq!(got[128..128 + len], data[..], "{len} bytes at {at}");
                let beside = [&got[..128], &got[128 + len..]].concat();
                assert!(beside.iter().all(|b| *b == 0xee), "{len} bytes at {at}: beside");
            }
        }
    }
}

#[test]
fn what_was_stored_is_there_when_it_is_opened_again_and_in_the_file() {
    let folder = in_memory();
    let (path, pmem) = made(&folder, 1 << 20);
    let data = pattern::bytes(1, 0, 5000);
    pmem.store(3, &data).unwrap();
    drop(pmem);
    assert_eq!(std::fs::read(&path).unwrap()[3..5003], data[..]);
    let again =
        Pmem::open(&path, &PmemOptions { read_only: true, ..PmemOptions::default() }).unwrap();
    let mut got = vec![0; 5000];
    again.load(3, &mut got).unwrap();
    assert_eq!(got, data);
    assert!(matches!(again.store(0, &[1]), Err(BlockError::ReadOnly { .. })));
    assert!(matches!(again.store_through(0, &[1]), Err(BlockError::ReadOnly { .. })));
}

#[test]
fn poison_is_an_error_for_its_range() {
    let folder = in_memory();
    let (path, pmem) = made(&folder, 1 << 20);
    // A page that a file no longer has answers as poison does: with a SIGBUS.
    OpenOptions::new().write(true).open(&path).unwrap().set_len(512 << 10).unwrap();
    let mut out = [0; 64];
    let failed = pmem.load(600 << 10, &mut out).unwrap_err().to_string();
    assert!(failed.contains("load at byte 614400 failed") && failed.contains("poison"), "{failed}");
    pmem.load((512 << 10) - 64, &mut out).unwrap();
    assert!(pmem.load((512 << 10) - 32, &mut out).is_err(), "half of it is poisoned");
    assert!(pmem.store(600 << 10, &[1; 9]).is_err());
    assert!(pmem.store_through(600 << 10, &[1; 4096]).is_err());
    assert!(pmem.persist(600 << 10, 64).is_err());
    assert!(pmem.read(600 << 10, 4096).is_err());
    // From several threads at a time, each has its own.
    std::thread::scope(|scope| {
        for task in 0..4u64 {
            let pmem = &pmem;
            scope.spawn(move || {
                for n in 0..200 {
                    let mut out = [0; 128];
                    let at = if n % 2 == 0 { (700 << 10) + task * 4096 } else { task * 4096 };
                    assert_eq!(pmem.load(at, &mut out).is_err(), n % 2 == 0);
                }
            });
        }
    });
}

#[test]
fn whole_sectors_clear_poison() {
    let folder = in_memory();
    let (path, pmem) = made(&folder, 1 << 20);
    // The last page, so that the file is whole again when it has been written.
    let at = (1 << 20) - 4096;
    OpenOptions::new().write(true).open(&path).unwrap().set_len(at).unwrap();
    assert!(pmem.store_through(at, &[1; 4096]).is_err());
    let good = pattern::bytes(2, 0, 4096);
    pmem.write(at, good.clone().into()).unwrap();
    assert_eq!(pmem.read(at, 4096).unwrap(), good);
    pmem.store(at, &[1; 9]).unwrap();
}

#[test]
fn a_range_without_room_in_memory_answers_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(folder.path())
        .status();
    assert!(mounted.unwrap().success(), "tests are run as root");
    let outcome = std::panic::catch_unwind(|| {
        let path = folder.path().join("range");
        Pmem::create_emulated(&path, 1 << 20).unwrap();
        let pmem = Pmem::open(&path, &PmemOptions::default()).unwrap();
        let block = Bytes::from(vec![1; 4096]);
        let written = (0..256).map(|n| pmem.write(n * 4096, block.clone().into()));
        written.filter(Result::is_err).count()
    });
    let unmounted = std::process::Command::new("umount").arg(folder.path()).status();
    assert!(unmounted.unwrap().success());
    assert_eq!(outcome.unwrap(), 256 - 16);
}

#[test]
fn a_range_is_used_once() {
    let folder = in_memory();
    let (path, pmem) = made(&folder, 1 << 20);
    let refused = Pmem::open(&path, &PmemOptions::default()).unwrap_err();
    assert!(matches!(refused, OpenError::Busy { .. }), "{refused}");
    drop(pmem);
    Pmem::open(&path, &PmemOptions::default()).unwrap();
    assert!(Pmem::create_emulated(&path, 1 << 20).is_err(), "it is there already");
    for size in [0, 100, 4097] {
        assert!(Pmem::create_emulated(folder.path().join("y"), size).is_err());
    }
    assert!(!folder.path().join("y").exists());
    std::fs::write(folder.path().join("small"), [0; 600]).unwrap();
    let small = Pmem::open(folder.path().join("small"), &PmemOptions::default());
    assert!(matches!(small, Err(OpenError::TooSmall { .. })));
    let null = Pmem::open("/dev/null", &PmemOptions::default()).unwrap_err().to_string();
    assert!(null.contains("no DAX device"), "{null}");
}

/// Who may rename there exchanges the folder, before the range is made.
#[test]
fn a_new_range_is_made_where_the_folder_is() {
    let folder = in_memory();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("dir")).unwrap();
    std::fs::create_dir(at("roots")).unwrap();
    let found = crate::source::NewFile::folder_of(&at("dir/range")).unwrap();
    std::fs::rename(at("dir"), at("moved")).unwrap();
    std::os::unix::fs::symlink("roots", at("dir")).unwrap();
    let uuid = uuid::Uuid::from_u128(7);
    let label = RangeLabel { uuid, name: "a".into(), mode: Mode::Raw, bytes: 0, cookie: 0 };
    let (pmem, made) = Pmem::create_labelled(found, at("dir/range"), 1 << 20, label).unwrap();
    pmem.write(0, pattern::bytes(1, 0, 4096).into()).unwrap();
    pmem.flush().unwrap();
    let moved = std::fs::read(at("moved/range")).unwrap();
    assert_eq!(moved[..4096], pattern::bytes(1, 0, 4096)[..]);
    assert_eq!(Pmem::label_of(at("moved/range")).unwrap().uuid, uuid);
    // A file that has its name by now is not the one that is removed.
    std::fs::rename(at("moved/range"), at("moved/away")).unwrap();
    std::fs::write(at("moved/range"), "another's").unwrap();
    made.remove();
    assert!(at("moved/range").exists() && at("moved/away").exists());
    assert_eq!(std::fs::read_dir(at("roots")).unwrap().count(), 0);
}
