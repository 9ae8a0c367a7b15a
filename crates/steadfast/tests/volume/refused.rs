//! Bad use is answered clearly, and not a byte of any member changes.

use std::collections::BTreeMap;
use std::fs::{self, File};

use super::Desk;

/// Where the first copy of a label is, and its version.
const LABEL: usize = 4096;
const VERSION: usize = LABEL + 8;

/// Mirrors, devices with damaged labels, and others.
fn desk() -> Desk {
    let desk = Desk::of(&["a", "b", "c", "d", "s", "ram", "e", "f", "g", "plain", "fs"], 4 << 20);
    desk.image("small", 1 << 20);
    desk.image("tiny", 64 << 10);
    desk.good("volume create d10 a b --region 64k --size 3m");
    desk.good("mkfs -q volume:a,b");
    desk.good("volume create d12 c d");
    desk.good("volume create solo s --volatile ram");
    desk.good("mkfs -q fs");
    fs::write(desk.path().join("text"), "text").unwrap();
    for name in ["e", "f", "g"] {
        desk.good(&format!("volume create {name} {name}"));
    }
    let mut newer = fs::read(desk.path().join("e")).unwrap();
    newer[VERSION] = 9;
    newer[LABEL + 4000] = 1;
    fs::write(desk.path().join("e"), newer).unwrap();
    desk.image("xfs", 4 << 20);
    let mut xfs = vec![0; 4 << 20];
    xfs[..4].copy_from_slice(b"XFSB");
    fs::write(desk.path().join("xfs"), xfs).unwrap();
    let cut_off = fs::read(desk.path().join("f")).unwrap();
    fs::write(desk.path().join("f"), &cut_off[..cut_off.len() / 2]).unwrap();
    let mut damaged = fs::read(desk.path().join("g")).unwrap();
    let end = damaged.len();
    damaged[LABEL + 100] ^= 1;
    damaged[end - LABEL + 100] ^= 1;
    fs::write(desk.path().join("g"), damaged).unwrap();
    desk
}

/// Everything that is there, byte by byte.
fn contents(desk: &Desk) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(desk.path()).unwrap().map(|entry| entry.unwrap());
    let all = entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()));
    all.collect()
}

fn all_refused(desk: &Desk, lines: &[(&str, i32, &str)]) {
    let before = contents(desk);
    for (line, status, says) in lines {
        desk.bad(line, *status, says);
        let after = contents(desk);
        assert!(before.keys().eq(after.keys()), "{line}: a file came or went");
        for (name, bytes) in &before {
            assert!(*bytes == after[name], "{line}: changed {name}");
        }
    }
}

#[test]
fn members_that_are_not_what_they_should_be() {
    let desk = desk();
    all_refused(
        &desk,
        &[
            // Used twice.
            ("volume create n plain plain", 2, "is given twice"),
            ("volume status a ./a", 2, "is given twice"),
            ("volume add a b --leg ./a", 2, "is given twice"),
            ("volume replace a b --leg 1 --with b", 2, "is given twice"),
            ("mkfs volume:a,./a", 2, "is given twice"),
            ("volume status a b volume:a,b", 2, "is given twice"),
            ("mkfs volume:a,", 2, "volume:a,: a member's name is empty"),
            ("mkfs volume:", 2, "a member's name is empty"),
            // Of another volume, or of several.
            ("volume create n b plain", 2, "b: is member 1 of volume 'd10'"),
            ("volume add a b --leg c", 2, "c: is member 0 of volume 'd12'"),
            ("volume add a b --leg c --spare", 2, "c: is member 0 of volume 'd12'"),
            ("volume replace a b --leg 1 --with c", 2, "c: is member 0 of volume 'd12'"),
            ("volume set a b c d --pass 1", 2, "several volumes: "),
            // Too small.
            ("volume add a b --leg small", 2, "small: is too small"),
            ("volume add a b --leg small --spare", 2, "small: is too small"),
            ("volume replace a b --leg 1 --with tiny", 2, "tiny: is too small"),
            ("volume create n tiny", 2, "tiny: is too small"),
            // Of a newer version, cut off, damaged, none.
            ("volume set e --pass 1", 3, "its volume label has version 9"),
            ("volume create n e", 3, "its volume label has version 9"),
            ("volume destroy e", 3, "its volume label has version 9"),
            ("mkfs e", 3, "its volume label has version 9"),
            ("put e text /text", 3, "its volume label has version 9"),
            ("volume set f --pass 1", 1, "is cut off"),
            ("mkfs f", 1, "is cut off"),
            ("volume set g --pass 1", 1, "checksum is wrong"),
            ("volume add a b --leg g", 1, "checksum is wrong"),
            ("volume set plain --pass 1", 2, "it has no label"),
            ("volume set a b plain --pass 1", 2, "it has no label"),
            ("volume set nothing --pass 1", 2, "nothing"),
            ("volume set text --pass 1", 2, "text"),
            // Somebody's file system.
            ("volume create n fs", 2, "holds a file system"),
            ("volume add a b --leg fs", 2, "holds a file system"),
            ("volume replace a b --leg 1 --with fs", 2, "holds a file system"),
            ("volume create n xfs", 2, "xfs: holds an XFS file system"),
            ("volume add a b --leg xfs", 2, "xfs: holds an XFS file system"),
            ("mkfs xfs", 2, "xfs: holds an XFS file system; -F overwrites it"),
            ("mkfs -O journal_dev xfs", 2, "xfs: holds an XFS file system; -F overwrites it"),
        ],
    );
    let held = File::open(desk.path().join("b")).unwrap();
    held.lock().unwrap();
    all_refused(&desk, &[("volume set a b --pass 2", 2, "b"), ("mkfs volume:a,b", 2, "b")]);
}

#[test]
fn what_would_lose_data() {
    let desk = desk();
    all_refused(
        &desk,
        &[
            ("volume remove s ram --leg 0", 2, "last good durable copy"),
            ("volume remove s ram --leg 0 --lose-data", 2, "last good durable copy"),
            ("volume replace s ram --leg 0", 2, "last good durable copy"),
            ("volume replace s ram --leg 0 --lose-data", 2, "last good durable copy"),
            ("volume offline s ram --leg 0", 2, "last good durable copy"),
            ("volume set a --pass 1", 1, "leg 1 (b) is missing"),
            ("volume destroy a", 1, "leg 1 (b) is missing"),
            ("put volume:b text /text", 1, "leg 0 (a) is missing"),
            // A member by itself is no image.
            ("mkfs a", 2, "a: is member 0 of the mirror 'd10'"),
            ("mkfs -O journal_dev b", 2, "b: is member 1 of the mirror 'd10'"),
            ("mkfs plain -J device=b", 2, "b: is member 1 of the mirror 'd10'"),
            ("put a text /text", 2, "a: is member 0 of the mirror 'd10'"),
            ("mkdir b /folder", 2, "b: is member 1 of the mirror 'd10'"),
            ("replay a", 2, "a: is member 0 of the mirror 'd10'"),
            ("ls a /", 2, "a: is member 0 of the mirror 'd10'"),
            ("check a", 2, "a: is member 0 of the mirror 'd10'"),
            ("mkfs -F a -b 1000", 2, ""),
        ],
    );
}

#[test]
fn numbers_and_words() {
    let desk = desk();
    all_refused(
        &desk,
        &[
            ("volume create n plain --size 1g", 2, "is too small: for 1073741824 bytes"),
            ("volume create n plain --size 100", 2, "whole regions"),
            ("volume create n plain --size 99999999999999999999", 2, "--size"),
            // Cut to 32 bits these would be 4096.
            ("volume create n plain --region 4294971392", 2, "at most 64m"),
            ("volume create n plain --kind stripe --interlace 4294971392", 2, "at most 100m"),
            ("volume create n plain --region 5000", 2, "power of two"),
            ("volume create n plain --kind stripe --interlace 1000", 2, "interlace"),
            ("volume create n plain --kind concat --size 1m", 2, "are for mirrors"),
            ("volume create n/m plain", 2, "is no name for a volume"),
            ("volume grow a b --size 1m", 2, "never made smaller"),
            ("volume grow a b --size 1g", 2, "cannot have"),
            ("volume grow a b --size 3145729", 2, "are not whole regions"),
            ("volume resync a b --rate 0", 2, "never ends"),
            ("volume set a b --pass 11", 2, "a pass is 0 to 9"),
            ("volume set a b --read-policy fast", 2, "choose roundrobin, geometric, "),
            ("volume set a b --read-policy preferred:4", 2, "there is no such policy"),
            ("volume set a b --read-policy preferred:2", 2, "there is none in this place"),
            ("volume create n plain --read-policy preferred:1", 2, "there is none in this place"),
            ("volume offline a b --leg 7", 2, "has no leg in place 7"),
            ("volume online a b --leg 0", 2, "is in use"),
            ("volume remove a b --leg 18446744073709551615", 2, "has no leg in place"),
        ],
    );
}

#[test]
fn whoever_insists_gets_a_member_for_something_else() {
    let desk = desk();
    desk.good("mkfs -q -F a");
    assert!(desk.good("check a").contains("clean"));
    desk.bad("volume status a", 1, "");
    desk.good("volume create n fs --force");
    desk.bad("check fs", 2, "is member 0 of the mirror 'n'");
    let start = fs::read(desk.path().join("fs")).unwrap()[..LABEL].to_vec();
    assert!(start.iter().all(|byte| *byte == 0), "the old superblock is gone");
    desk.good("volume create m e g --force");
}
