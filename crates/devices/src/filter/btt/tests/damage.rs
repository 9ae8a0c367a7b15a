//! Tables that are damaged in one place: the error, and what still works.

use super::*;
use crate::filter::btt::info::PAGE;

/// An arena with sectors 0 to 2 written, and its layout.
fn written() -> (Device, find::LocatedArena) {
    let (memory, btt) = made(Options { nfree: 2, ..Options::default() });
    btt.write(0, pattern::bytes(1, 0, 3 * 4096).into()).unwrap();
    let found = arena(&memory);
    (memory, found)
}

fn error(memory: &Device) -> String {
    open(memory).err().unwrap().to_string()
}

fn reported(memory: &Device) -> String {
    let report = check(&**memory).unwrap();
    assert!(!report.is_good());
    assert_eq!(report.problems.len() as u64, report.problem_count);
    report.problems[0].what.clone()
}

#[test]
fn the_copy_of_an_info_block_counts_if_it_is_damaged() {
    let (memory, found) = written();
    for damage in [&b"BTT"[..], b"XYZ"] {
        // A wrong checksum, with and without the signature; the UUID is left.
        patch(&memory, found.at, damage);
        patch(&memory, found.at + 200, &[1]);
        let btt = open(&memory).unwrap();
        assert!(btt.namespace().arenas[0].from_copy);
        assert_eq!(btt.read(0, 3 * 4096).unwrap(), pattern::bytes(1, 0, 3 * 4096));
        assert!(reported(&memory).starts_with("the info block is damaged, its copy is good"));
        assert_eq!(restore(&memory, None), Ok(1));
        assert!(check(&*memory).unwrap().is_good());
    }
}

#[test]
fn a_copy_alone_is_no_namespace_until_somebody_says_so() {
    let (memory, found) = written();
    patch(&memory, found.at, &[0; PAGE as usize]);
    assert_eq!(probe(&*memory), Ok(None));
    assert_eq!(check(&*memory).err(), Some(none("pmem0".into())));
    assert_eq!(restore(&memory, None), Ok(1));
    let btt = open(&memory).unwrap();
    assert_eq!(btt.read(0, 3 * 4096).unwrap(), pattern::bytes(1, 0, 3 * 4096));
}

#[test]
fn a_damaged_copy_is_reported_and_restored() {
    let (memory, found) = written();
    patch(&memory, found.at + found.info.layout.copy + 60, &[1, 2, 3]);
    assert!(open(&memory).is_ok());
    assert_eq!(reported(&memory), "the copy of the info block is damaged: restore it");
    assert_eq!(restore(&memory, None), Ok(1));
    assert_eq!(restore(&memory, None), Ok(0));
    patch(&memory, found.at + found.info.layout.copy + 60, &[1, 2, 3]);
    patch(&memory, found.at + 60, &[1, 2, 3]);
    let wanted =
        "pmem0: byte 4096: the info block has a wrong checksum, and there is no copy of it";
    assert!(error(&memory).starts_with(wanted), "{}", error(&memory));
    assert!(reported(&memory).starts_with(wanted));
}

#[test]
fn an_info_block_of_the_other_version_in_the_data_is_not_believed() {
    let memory = memory();
    format(&memory, Options::default()).unwrap();
    let old: [u8; PAGE as usize] = load(&memory, 4096);
    let info = format(&memory, Options { version: Version::V2_0, ..Options::default() }).unwrap();
    patch(&memory, 4096, &old);
    assert_eq!(probe(&*memory), Ok(Some(info)));
    // One that is made over it removes it.
    let info = format(&memory, Options::default()).unwrap();
    assert_eq!(probe(&*memory), Ok(Some(info)));
    assert_eq!(load::<16>(&memory, 0), [0; 16]);
}

/// Both are there: the label decides as with Linux, and without one the copy.
#[test]
fn of_both_versions_the_label_says_which() {
    let memory = memory();
    let old = format(&memory, Options::default()).unwrap();
    let first: [u8; PAGE as usize] = load(&memory, 4096);
    let copy_at = arena(&memory).info.layout.copy + 4096;
    let copy: [u8; PAGE as usize] = load(&memory, copy_at);
    let new = format(&memory, Options { version: Version::V2_0, ..Options::default() }).unwrap();
    let as_version = |version| probe_as(&*memory, Some(version));
    // The first block of the namespace of 2.0 holds an info block of 1.1, as its user may write.
    patch(&memory, 4096, &first);
    assert_eq!(as_version(Version::V2_0), Ok(Some(new.clone())));
    assert_eq!(as_version(Version::V1_1), Ok(Some(old.clone())));
    assert_eq!(probe(&*memory), Ok(Some(new.clone())));
    // One that is damaged, or that cannot be: without a label it was refused once.
    let mut damages = vec![(300, vec![0xff]), (16, vec![9; 48])];
    let mut metadata = find::find(&*memory, Some(Version::V1_1)).unwrap().unwrap().remove(0).info;
    metadata.layout.sector = 520;
    damages.push((0, metadata.bytes()));
    for (at, damage) in damages {
        patch(&memory, 4096, &first);
        patch(&memory, 4096 + at, &damage);
        assert_eq!(as_version(Version::V2_0), Ok(Some(new.clone())));
        assert_eq!(probe(&*memory), Ok(Some(new.clone())));
        assert!(as_version(Version::V1_1).is_err());
    }
    // The info block of 2.0 is gone. What its user wrote is not trusted for all that, ...
    patch(&memory, 0, &[0; PAGE as usize]);
    patch(&memory, 4096, &first);
    assert_eq!(as_version(Version::V2_0), Ok(None));
    // ... but one whose copy is there: labels of ours said 2.0 of it.
    patch(&memory, copy_at, &copy);
    assert_eq!(as_version(Version::V2_0), Ok(Some(old.clone())));
    // A label of 1.1 is of nothing else, as with Linux.
    format(&memory, Options { version: Version::V2_0, ..Options::default() }).unwrap();
    assert_eq!(as_version(Version::V1_1), Ok(None));
}

/// A lost info block is written again from the copy of the version that the label says.
#[test]
fn what_the_label_says_is_restored() {
    let memory = memory();
    let made = format(&memory, Options { version: Version::V2_0, ..Options::default() }).unwrap();
    patch(&memory, 0, &[0; PAGE as usize]);
    assert_eq!(probe_copy(&*memory, Some(Version::V1_1)), Ok(None));
    let lost = none("pmem0".into());
    assert_eq!(restore(&memory, Some(Version::V1_1)), Err(lost));
    let copy = probe_copy(&*memory, Some(Version::V2_0)).unwrap().unwrap();
    assert_eq!((copy.uuid, copy.bytes()), (made.uuid, made.bytes()));
    assert_eq!(restore(&memory, Some(Version::V2_0)), Ok(1));
    assert_eq!(probe(&*memory), Ok(Some(made)));
}

#[test]
fn sequence_numbers_that_do_not_follow_are_reported() {
    let (memory, found) = written();
    let group = found.at + found.info.layout.group_at(1);
    patch(&memory, group + 12, &[3, 0, 0, 0]);
    patch(&memory, group + 16 + 12, &[3, 0, 0, 0]);
    let wanted = format!(
        "pmem0: byte {group}: flog, lane 1: the sequence numbers 3 and 3 do not follow each other; \
         check the namespace (ndctl check-namespace too), and restore from a backup what it names"
    );
    assert_eq!(error(&memory), wanted);
    assert_eq!(reported(&memory), wanted);
}

#[test]
fn what_the_flog_names_must_be_there() {
    let (memory, found) = written();
    let blocks = found.info.layout.blocks;
    let group = found.at + found.info.layout.group_at(0);
    // Lane 0 wrote sectors 0 and 2: the newest entry is in place 0.
    let entry: [u8; 16] = load(&memory, group);
    patch(&memory, group + 4, &blocks.to_le_bytes());
    assert!(error(&memory).contains(&format!("of {blocks}")), "{}", error(&memory));
    patch(&memory, group, &entry);
    patch(&memory, group, &found.info.layout.sectors.to_le_bytes());
    assert!(error(&memory).contains("flog, lane 0: it names sector"), "{}", error(&memory));
    patch(&memory, group, &entry);
    let other = found.at + found.info.layout.group_at(1);
    let entry: [u8; 64] = load(&memory, other);
    patch(&memory, group, &entry);
    assert!(error(&memory).contains("is the free one of two lanes"), "{}", error(&memory));
    patch(&memory, group + 48, &[1]);
    assert!(error(&memory).contains("in places that no known program uses"), "{}", error(&memory));
}

#[test]
fn what_the_map_names_must_be_there_and_only_once() {
    let (memory, found) = written();
    let entry = |sector| found.at + found.info.layout.entry_at(sector);
    patch(&memory, entry(1), &[0xff; 4]);
    let btt = open(&memory).unwrap();
    assert!(btt.read(0, 4096).is_ok());
    let wanted = "for sector 1 of the arena at byte 4096, which has";
    let message = btt.read(4096, 4096).unwrap_err().to_string();
    assert!(message.contains(wanted), "{message}");
    let message = btt.write(4096, vec![1; 4096].into()).unwrap_err().to_string();
    assert!(message.contains(wanted), "{message}");
    assert!(reported(&memory).starts_with("map: sector 1 is in block 1073741823 of"));
    let same: [u8; 4] = load(&memory, entry(0));
    patch(&memory, entry(1), &same);
    assert!(reported(&memory).contains("which is another sector's too"));
}

#[test]
fn an_arena_with_an_error_is_read_only() {
    let (memory, found) = written();
    let mut info = found.info.clone();
    info.error = true;
    for at in [0, info.layout.copy] {
        patch(&memory, found.at + at, &info.bytes());
    }
    let btt = open(&memory).unwrap();
    assert!(btt.info().read_only && btt.namespace().arenas[0].error);
    assert!(btt.read(0, 4096).is_ok());
    assert!(btt.write(0, vec![1; 4096].into()).is_err());
    assert!(reported(&memory).starts_with("the arena is marked as one with an error"));
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    let (memory, found) = written();
    let mut info = found.info.clone();
    for (sector, block) in [(520, 576), (528, 576), (4104, 4160), (4224, 4224)] {
        (info.layout.sector, info.layout.block) = (sector, block);
        patch(&memory, found.at, &info.bytes());
        let wanted = format!("pmem0: its sectors of {sector} bytes carry metadata of their own");
        assert!(error(&memory).starts_with(&wanted), "{}", error(&memory));
    }
    info.layout = found.info.layout;
    info.layout.lanes = 1 << 20;
    patch(&memory, found.at, &info.bytes());
    assert!(error(&memory).contains("1048576 free blocks (nfree)"), "{}", error(&memory));
}

#[test]
fn discarded_sectors_of_4096_bytes_are_zeros_and_smaller_ones_stay() {
    let (memory, _) = written();
    let btt = open(&memory).unwrap();
    btt.discard(4096, 8192).unwrap();
    assert_eq!(btt.read(4096, 8192).unwrap(), vec![0; 8192]);
    btt.write(8192, vec![7; 4096].into()).unwrap();
    drop(btt);
    let btt = open(&memory).unwrap();
    assert_eq!(btt.read(0, 4096).unwrap(), pattern::bytes(1, 0, 4096));
    assert_eq!(btt.read(8192, 4096).unwrap(), vec![7; 4096]);
    let report = check(&*memory).unwrap();
    assert_eq!((report.is_good(), report.written, report.discarded), (true, 2, 1));

    let (_, btt) = made(Options { sector: 512, ..Options::default() });
    btt.write(0, vec![7; 4096].into()).unwrap();
    btt.discard(0, 4096).unwrap();
    assert_eq!(btt.read(0, 4096).unwrap(), vec![7; 4096]);
}
