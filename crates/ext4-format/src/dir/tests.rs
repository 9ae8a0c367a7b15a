//! The map as a whole, over memory.

use std::collections::BTreeMap;

use proptest::prelude::*;
use steadfast_vfs::{FileType, FsError};

use super::memory::{MemoryBlocks, context, directory};
use super::{DirBlocks, DirContext, Directory, DirectoryName, Part};
use crate::error::Ext4Error;
use crate::ondisk::{HashVersion, InodeNo};

type Dir = Directory<MemoryBlocks>;

/// Names from a position on, all of which make sense.
fn part(dir: &Dir, from: u64) -> crate::error::Result<Vec<DirectoryName>> {
    let Part { names, damage } = dir.read(from)?;
    damage.map_or(Ok(names), Err)
}

fn list(dir: &Dir) -> Vec<DirectoryName> {
    let (mut all, mut from) = (Vec::new(), 0);
    loop {
        let part = part(dir, from).unwrap();
        let Some(last) = part.last() else { return all };
        assert!(last.next > from, "reading moves forward");
        from = last.next;
        all.extend(part);
    }
}

fn name(i: u32) -> Vec<u8> {
    // Lengths from short to the longest, bytes of 0x80 and more among them.
    let len = 6 + (i as usize * 37) % 250;
    let mut name = format!("{i:06}").into_bytes();
    name.resize(len, 0xa0 | (i % 64) as u8);
    name
}

fn contexts() -> Vec<DirContext> {
    let mut all = Vec::new();
    for hash_version in [HashVersion::Legacy, HashVersion::HalfMd4, HashVersion::Tea] {
        for checksums in [false, true] {
            for dir_index in [false, true] {
                let mut context = context(checksums);
                context.format.hash_version = hash_version;
                context.format.dir_index = dir_index;
                all.push(context);
            }
        }
    }
    all
}

fn assert_holds(dir: &Dir, names: &BTreeMap<Vec<u8>, u32>) {
    let mut listed: BTreeMap<_, _> = BTreeMap::new();
    for e in list(dir) {
        assert!(listed.insert(e.name, e.ino.0).is_none(), "listed twice");
    }
    assert_eq!(listed.remove(&b"."[..]), Some(12));
    assert_eq!(listed.remove(&b".."[..]), Some(2));
    assert_eq!(&listed, names);
    for (name, ino) in names {
        assert_eq!(dir.lookup(name).unwrap().map(|f| f.ino.0), Some(*ino));
    }
}

#[test]
fn thousands_of_names_come_and_go() {
    for block_size in [1024, 2048, 4096] {
        for context in contexts() {
            let mut dir = directory(block_size, context);
            let mut names = BTreeMap::new();
            let count = if context.format.dir_index { 3000 } else { 300 };
            for i in 0..count {
                assert_eq!(dir.lookup(&name(i)).unwrap(), None);
                dir.insert(&name(i), InodeNo(100 + i), FileType::Regular).unwrap();
                names.insert(name(i), 100 + i);
            }
            assert_eq!(dir.blocks.indexed, context.format.dir_index);
            assert_holds(&dir, &names);
            assert!(!dir.is_empty().unwrap());
            for i in (0..count).filter(|i| i % 3 != 0) {
                let found = dir.lookup(&name(i)).unwrap().unwrap();
                dir.remove(&found).unwrap();
                names.remove(&name(i));
            }
            assert_holds(&dir, &names);
            let blocks = dir.blocks.block_count();
            for i in (0..count).filter(|i| i % 3 != 0) {
                dir.insert(&name(i), InodeNo(100 + i), FileType::Regular).unwrap();
            }
            assert!(dir.blocks.block_count() <= blocks + blocks / 4, "room is used again");
            for i in 0..count {
                let found = dir.lookup(&name(i)).unwrap().unwrap();
                dir.remove(&found).unwrap();
            }
            assert!(dir.is_empty().unwrap());
        }
    }
}

#[test]
fn a_second_index_level_grows_and_then_is_full() {
    let mut dir = directory(1024, context(true));
    let mut names = BTreeMap::new();
    let full = loop {
        // Long names fill leaves of three, so that the index overflows soon.
        let mut name = format!("{:07}", names.len()).into_bytes();
        name.resize(255, b'x');
        let ino = names.len() as u32 + 11;
        match dir.insert(&name, InodeNo(ino), FileType::Regular) {
            Ok(()) => names.insert(name, ino),
            Err(e) => break e,
        };
    };
    assert!(matches!(full, Ext4Error::Fs(FsError::NoSpace { what }) if what.contains("index")));
    assert!(names.len() > 15_000, "{}", names.len());
    assert_holds(&dir, &names);
}

/// Names of equal TEA hash: flipping the top bits of both words of a half key changes nothing, and
/// the name is the key.
fn colliding_names(count: u32) -> Vec<Vec<u8>> {
    let name = |i: u32| {
        let mut name = [b'n'; 240];
        for bit in (0..30).filter(|bit| i >> bit & 1 != 0) {
            name[bit * 8] ^= 0x80;
            name[bit * 8 + 4] ^= 0x80;
        }
        name.to_vec()
    };
    (0..count).map(name).collect()
}

#[test]
fn names_of_equal_hash_run_over_leaves() {
    let mut context = context(true);
    context.format.hash_version = HashVersion::Tea;
    for block_size in [1024, 4096] {
        let mut dir = directory(block_size, context);
        let mut names = BTreeMap::new();
        let colliding = colliding_names(200);
        let hash = dir.hash(HashVersion::Tea, &colliding[0]);
        assert!(colliding.iter().all(|n| dir.hash(HashVersion::Tea, n) == hash));
        for (i, colliding) in (0..).zip(colliding) {
            dir.insert(&colliding, InodeNo(1000 + i), FileType::Regular).unwrap();
            names.insert(colliding, 1000 + i);
            dir.insert(&name(i), InodeNo(2000 + i), FileType::Regular).unwrap();
            names.insert(name(i), 2000 + i);
        }
        assert_holds(&dir, &names);
        for colliding in colliding_names(200).into_iter().step_by(2) {
            let found = dir.lookup(&colliding).unwrap().unwrap();
            dir.remove(&found).unwrap();
            names.remove(&colliding);
        }
        assert_holds(&dir, &names);
    }
}

#[test]
fn behind_the_last_name_is_the_end_also_for_what_is_added_later() {
    for context in contexts().into_iter().filter(|c| c.format.dir_index) {
        for count in [5, 200] {
            let mut dir = directory(1024, context);
            for i in 0..count {
                dir.insert(&name(i), InodeNo(100 + i), FileType::Regular).unwrap();
            }
            let last = list(&dir).pop().unwrap();
            for i in 0..20 {
                dir.insert(&name(1000 + i), InodeNo(5000), FileType::Regular).unwrap();
            }
            assert!(part(&dir, last.next).unwrap().is_empty(), "{context:?} {count}");
            assert_eq!(list(&dir).len(), 2 + count as usize + 20);
        }
    }
}

#[test]
fn listing_survives_changes_between_calls() {
    for context in contexts() {
        let mut dir = directory(1024, context);
        // Names that stay, and others that come and go between the calls.
        for i in 0..40 {
            dir.insert(&name(i), InodeNo(100 + i), FileType::Regular).unwrap();
        }
        let (mut seen, mut from, mut turn) = (Vec::new(), 0, 0);
        loop {
            let part = part(&dir, from).unwrap();
            // Also going on in the middle of an answer.
            let Some(stop) = part.get(turn as usize % 3).or(part.last()) else { break };
            from = stop.next;
            seen.extend(part.into_iter().filter(|e| e.next <= from).map(|e| e.name));
            for i in 0..3 {
                let new = name(1000 + turn * 3 + i);
                dir.insert(&new, InodeNo(5000), FileType::Regular).unwrap();
            }
            if turn % 2 == 1 {
                let found = dir.lookup(&name(1000 + turn)).unwrap().unwrap();
                dir.remove(&found).unwrap();
            }
            turn += 1;
            assert!(turn < 3000, "reading ends");
            if turn > 200 {
                break;
            }
        }
        while let Some(last) = part(&dir, from).unwrap().last() {
            seen.extend(part(&dir, from).unwrap().into_iter().map(|e| e.name));
            from = last.next;
        }
        for i in 0..40 {
            assert_eq!(seen.iter().filter(|n| **n == name(i)).count(), 1, "{context:?} {i}");
        }
        let count = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), count, "nothing twice");
    }
}

#[test]
fn dots_are_found_and_the_parent_changes() {
    for context in contexts() {
        for names in [0, 200] {
            let mut dir = directory(1024, context);
            for i in 0..names {
                dir.insert(&name(i), InodeNo(100 + i), FileType::Regular).unwrap();
            }
            let dot = dir.lookup(b".").unwrap().unwrap();
            assert_eq!((dot.ino, dot.kind), (InodeNo(12), Some(FileType::Directory)));
            let dot_dot = dir.lookup(b"..").unwrap().unwrap();
            assert_eq!(dot_dot.ino, InodeNo(2));
            dir.repoint(&dot_dot, InodeNo(77), FileType::Directory).unwrap();
            assert_eq!(dir.lookup(b"..").unwrap().unwrap().ino, InodeNo(77));
            for i in 0..names {
                let found = dir.lookup(&name(i)).unwrap().unwrap();
                dir.repoint(&found, InodeNo(200 + i), FileType::Fifo).unwrap();
                let found = dir.lookup(&name(i)).unwrap().unwrap();
                assert_eq!((found.ino, found.kind), (InodeNo(200 + i), Some(FileType::Fifo)));
            }
        }
    }
}

/// The kernel makes directories in blocks that it has not cleared.
#[test]
fn what_is_in_the_gaps_does_not_matter() {
    let mut dir = directory(1024, context(false));
    // Two levels: the block after the first index is full is a node.
    for i in 0..8000 {
        dir.insert(&name(i), InodeNo(100 + i), FileType::Regular).unwrap();
    }
    let root = dir.read_root().unwrap();
    assert_eq!(root.levels(), 1);
    let node = root.block(0) as usize;
    for (block, at) in [(0, 9), (0, 10), (0, 11), (0, 22), (0, 23), (node, 6), (node, 7)] {
        let mut bytes = dir.blocks.blocks[block].to_vec();
        bytes[at] = 0xaa;
        dir.blocks.blocks[block] = bytes.into();
    }
    assert_eq!(dir.lookup(&name(7)).unwrap().map(|f| f.ino), Some(InodeNo(107)));
    assert_eq!(dir.lookup(b"..").unwrap().map(|f| f.ino), Some(InodeNo(2)));
    assert_eq!(list(&dir).len(), 8002);
}

#[test]
fn a_removed_directory_is_empty_and_stays_so() {
    let mut dir = directory(1024, context(true));
    dir.blocks.blocks.clear();
    assert_eq!(dir.lookup(b"..").unwrap(), None);
    assert_eq!(part(&dir, 0).unwrap(), []);
    let refused = dir.insert(b"a", InodeNo(100), FileType::Regular);
    assert_eq!(refused, Err(Ext4Error::Fs(FsError::NotFound)));
}

#[test]
fn an_index_without_dir_index_is_left_alone() {
    let mut dir = directory(1024, context(true));
    for i in 0..100 {
        dir.insert(&name(i), InodeNo(100 + i), FileType::Regular).unwrap();
    }
    dir.context.format.dir_index = false;
    assert!(matches!(dir.lookup(&name(1)), Err(Ext4Error::Corrupt { .. })));
    let refused = dir.insert(b"new", InodeNo(100), FileType::Regular);
    assert!(matches!(refused, Err(Ext4Error::Corrupt { .. })));
}

/// Kernel 6.12 hashed names with the code points that are to be ignored. Of small letters it kept
/// those too, so that a directory that heeds case stands for what it has left.
#[test]
fn names_filed_by_an_older_kernel_are_found_listed_and_split() {
    let kept = |i: u32| format!("name-{i:04}-\u{200d}-with-a-joiner").into_bytes();
    let plain = |i: u32| format!("plain-{i:04}").into_bytes();
    let asked = |i: u32| format!("NAME-{i:04}--With-a\u{feff}-JOINER").into_bytes();
    let mut dir = directory(1024, context(true));
    let mut names = BTreeMap::new();
    for i in 0..150 {
        for (name, ino) in [(kept(i), 100 + i), (plain(i), 1100 + i)] {
            dir.insert(&name, InodeNo(ino), FileType::Regular).unwrap();
            names.insert(name, ino);
        }
    }
    dir.context.casefold = true;
    assert_holds(&dir, &names);
    let found = |dir: &Dir, i| dir.lookup(&asked(i)).unwrap().map(|f| f.ino.0);
    assert!((0..150).all(|i| found(&dir, i) == Some(100 + i)));
    dir.context.format.misfiled_names = false;
    assert!((0..150).filter(|i| found(&dir, *i).is_some()).count() < 50);
    dir.context.format.misfiled_names = true;
    // New names divide the leaves; those indexed by the other hash move along.
    for i in 150..400 {
        for (name, ino) in [(asked(i), 100 + i), (plain(i), 3100 + i)] {
            assert_eq!(dir.lookup(&name).unwrap(), None);
            dir.insert(&name, InodeNo(ino), FileType::Regular).unwrap();
            names.insert(name, ino);
        }
    }
    assert_holds(&dir, &names);
    for i in 0..150 {
        let found = dir.lookup(&asked(i)).unwrap().unwrap();
        dir.remove(&found).unwrap();
        names.remove(&kept(i));
        assert!(!dir.blocks.is_hash_ordered());
    }
    assert_holds(&dir, &names);
    // None of them is left: nobody looks for them again.
    assert_eq!(dir.lookup(b"absent").unwrap(), None);
    assert!(dir.blocks.is_hash_ordered());
}

#[test]
fn names_without_a_folding_are_their_bytes_in_an_index_too() {
    let mut context = context(true);
    context.casefold = true;
    let mut dir = directory(1024, context);
    let mut names = BTreeMap::new();
    for i in 0..500 {
        for (name, ino) in [(b"a\xff", 100 + i), (b"A\xff", 1100 + i)] {
            let name = [format!("{i}").as_bytes(), name].concat();
            assert_eq!(dir.lookup(&name).unwrap(), None);
            dir.insert(&name, InodeNo(ino), FileType::Regular).unwrap();
            names.insert(name, ino);
        }
    }
    assert!(dir.blocks.indexed);
    assert_holds(&dir, &names);
}

/// With checksums a flip is found or means nothing; without them it may do anything that ends.
#[test]
fn flipped_bits_are_errors_or_harmless() {
    for checksums in [true, false] {
        for count in [3, 200] {
            let mut good = directory(1024, context(checksums));
            for i in 0..count {
                good.insert(&name(i), InodeNo(100 + i), FileType::Regular).unwrap();
            }
            let bits = good.blocks.blocks.len() * 1024 * 8;
            for bit in (0..bits).step_by(if count == 3 { 1 } else { 97 }) {
                let mut dir = Directory::new(good.blocks.clone(), good.context);
                let block = &mut dir.blocks.blocks[bit / 8192];
                let mut bytes = block.to_vec();
                bytes[bit % 8192 / 8] ^= 1 << (bit % 8);
                *block = bytes.into();
                let flipped = Directory::new(dir.blocks.clone(), dir.context);
                if use_all(&mut dir, count).is_ok() && checksums {
                    // Places of the index that are not in use have no checksum.
                    assert!(count == 200 && bit < 8192, "bit {bit} unnoticed");
                    assert_eq!(list(&flipped), list(&good), "bit {bit}");
                }
            }
        }
    }
}

fn use_all(dir: &mut Dir, count: u32) -> crate::error::Result<()> {
    let mut from = 0;
    while let Some(last) = part(dir, from)?.last() {
        assert!(last.next > from);
        from = last.next;
    }
    dir.lookup(b"..")?;
    dir.is_empty()?;
    for i in 0..count {
        if let Some(found) = dir.lookup(&name(i))? {
            dir.remove(&found)?;
        }
        dir.insert(&name(10_000 + i), InodeNo(5), FileType::Regular)?;
    }
    Ok(())
}

#[test]
fn a_name_out_of_place_is_an_error() {
    let mut dir = directory(1024, context(true));
    for i in 0..100 {
        dir.insert(&name(i), InodeNo(100 + i), FileType::Regular).unwrap();
    }
    // Two leaves change places: all checksums are right.
    let (a, b) = (dir.read_leaf(1).unwrap(), dir.read_leaf(2).unwrap());
    dir.blocks.blocks[1] = b;
    dir.blocks.blocks[2] = a;
    let error = (0..).try_fold(0, |from, _: u32| match part(&dir, from) {
        Ok(part) => part.last().map(|l| l.next).ok_or(None),
        Err(e) => Err(Some(e)),
    });
    assert!(matches!(error, Err(Some(Ext4Error::Corrupt { .. }))));
}

#[test]
fn entries_that_make_no_sense_are_left_out_and_the_others_stay() {
    for context in contexts() {
        for count in [5, 200] {
            let mut dir = directory(1024, context);
            for i in 0..count {
                dir.insert(&name(i), InodeNo(100 + i), FileType::Regular).unwrap();
            }
            let good = list(&dir);
            // A name with a slash or a NUL in it, an inode that there is not, one more "..".
            let changes: [fn(&mut [u8], usize); 4] = [
                |block, at| block[at + 8] = b'/',
                |block, at| block[at + 9] = 0,
                |block, at| block[at..at + 4].fill(0xff),
                |block, at| {
                    block[at + 6] = 2;
                    block[at + 8..at + 10].copy_from_slice(b"..");
                },
            ];
            for (i, change) in (1..).zip(changes) {
                let mut dir = Directory::new(dir.blocks.clone(), dir.context);
                let found = dir.lookup(&name(i)).unwrap().unwrap();
                let mut block = dir.read_leaf(found.block).unwrap().to_vec();
                change(&mut block, found.offset);
                dir.write_leaf(found.block, block).unwrap();
                let (mut left, mut damage, mut from) = (Vec::new(), None, 0);
                loop {
                    let part = dir.read(from).unwrap();
                    damage = damage.or(part.damage);
                    let Some(last) = part.names.last() else { break };
                    from = last.next;
                    left.extend(part.names);
                }
                assert!(damage.unwrap().to_string().contains("corrupt"), "{i}");
                assert_eq!(left.len(), good.len() - 1, "{i}: {context:?}");
                assert!(left.iter().all(|e| e.name != name(i)), "{i}");
                for other in (0..count).filter(|n| *n != i) {
                    assert!(dir.lookup(&name(other)).unwrap().is_some(), "{i}: {other}");
                }
                let (names, damage) = dir.read_block(found.block).unwrap();
                assert!(damage.is_some() && !names.is_empty(), "{i}");
                // It is not empty when all others have gone.
                for other in (0..count).filter(|n| *n != i) {
                    let found = dir.lookup(&name(other)).unwrap().unwrap();
                    dir.remove(&found).unwrap();
                }
                assert!(dir.is_empty().is_err(), "{i}: {context:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn any_bytes_are_an_error_or_a_directory(
        blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1024), 1..4),
        indexed: bool,
        casefold: bool,
    ) {
        let blocks = blocks.into_iter().map(Into::into).collect();
        let hash_ordered = Default::default();
        let blocks = MemoryBlocks { size: 1024, blocks, indexed, blocks_max: 8, hash_ordered };
        let mut dir = Directory::new(blocks, DirContext { casefold, ..context(false) });
        let _ = use_all(&mut dir, 3);
    }

    #[test]
    fn behaves_as_a_map(
        ops in prop::collection::vec((any::<bool>(), 0..400_u32), 1..600),
        version in 0_u8..3,
        unsigned: bool,
    ) {
        let mut context = context(true);
        context.format.hash_version = HashVersion::from_code(version).unwrap();
        context.format.hash_seed.unsigned = unsigned;
        let mut dir = directory(1024, context);
        let mut names = BTreeMap::new();
        for (add, i) in ops {
            match (add, dir.lookup(&name(i)).unwrap()) {
                (true, None) => {
                    dir.insert(&name(i), InodeNo(100 + i), FileType::Regular).unwrap();
                    prop_assert!(names.insert(name(i), 100 + i).is_none());
                }
                (false, Some(found)) => {
                    dir.remove(&found).unwrap();
                    prop_assert!(names.remove(&name(i)).is_some());
                }
                (_, found) => prop_assert_eq!(found.is_some(), names.contains_key(&name(i))),
            }
        }
        assert_holds(&dir, &names);
    }
}
