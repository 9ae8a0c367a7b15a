//! Directories, part by part, however small the part.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::kernel::{Kernel, Op, ROOT, body, u32_at, u64_at};
use super::scripted::{FILE, Scripted};
use super::{ENOTDIR, ENTRY, O_RDWR, empty, entry, mounted};

/// `struct fuse_dirent` without its name.
const DIRENT: usize = 24;

/// The root's number on the disk, which ls(1) shows.
const OWN_ROOT: u64 = 2;

/// One entry that was read.
struct Read {
    name: Vec<u8>,
    node: u64,
    next: u64,
    /// Of READDIRPLUS: the number to look up, which the kernel counts unless it is 0.
    found: Option<u64>,
}

fn request(kernel: &Kernel, op: Op, dir: u64, offset: u64, size: u32) -> Vec<u8> {
    // struct fuse_read_in
    let asked = body().u64(0).u64(offset).u32(size).u32(0).u64(0).u32(0).u32(0);
    let answer = kernel.ask(op, dir, asked).unwrap();
    assert!(answer.len() <= size as usize, "{} bytes for {size}", answer.len());
    answer
}

/// The entries of an answer, each on eight bytes' alignment.
fn entries(answer: &[u8], plus: bool) -> Vec<Read> {
    let (mut all, mut at) = (Vec::new(), 0);
    while at < answer.len() {
        assert_eq!(at % 8, 0);
        let found = plus.then(|| entry(&answer[at..]));
        at += if plus { ENTRY } else { 0 };
        let head = &answer[at..at + DIRENT];
        let len = u32_at(head, 16) as usize;
        let name = answer[at + DIRENT..at + DIRENT + len].to_vec();
        let (node, next) = (u64_at(head, 0), u64_at(head, 8));
        if let Some(found) = &found
            && found.node != 0
        {
            assert_eq!(found.attr.mode >> 12, u32_at(head, 20), "type of {name:?}");
        }
        all.push(Read { name, node, next, found: found.map(|f| f.node) });
        at += (DIRENT + len).next_multiple_of(8);
    }
    all
}

/// Reads a directory to its end; what it holds.
fn read_all(kernel: &Kernel, op: Op, dir: u64, size: u32) -> BTreeMap<Vec<u8>, Read> {
    let (mut all, mut offset) = (BTreeMap::new(), 0);
    loop {
        let part = entries(&request(kernel, op, dir, offset, size), op == Op::Readdirplus);
        let Some(last) = part.last() else { return all };
        offset = last.next;
        for read in part {
            let name = read.name.clone();
            assert!(all.insert(name.clone(), read).is_none(), "{name:?} twice");
        }
    }
}

/// The kernel throws an answer away in which one name is none.
#[test]
fn names_that_the_kernel_does_not_take_are_not_sent() {
    let kernel = Kernel::over(Scripted::new());
    for op in [Op::Readdir, Op::Readdirplus] {
        let sent = entries(&request(&kernel, op, ROOT, 0, 4096), op == Op::Readdirplus);
        let names: Vec<&[u8]> = sent.iter().map(|e| &e.name[..]).collect();
        assert_eq!(names, [&b"one"[..], b"four"]);
    }
}

/// What is not held is another's after the last name goes, while the kernel still asks for it.
#[test]
fn each_entry_that_the_kernel_counts_is_held() {
    let scripted = Scripted::new();
    let kernel = Kernel::over(scripted.clone());
    let sent = entries(&request(&kernel, Op::Readdirplus, ROOT, 0, 4096), true);
    let counted: Vec<u64> = sent.iter().filter_map(|e| e.found).filter(|node| *node != 0).collect();
    assert_eq!(counted, [FILE, FILE + 1], "the second cannot be read");
    assert_eq!(scripted.held.load(Ordering::Relaxed), 2);
    for node in counted {
        kernel.forget(node, 1);
    }
    // Nobody answers a FORGET.
    let until = Instant::now() + Duration::from_secs(60);
    while scripted.held.load(Ordering::Relaxed) > 0 {
        assert!(Instant::now() < until, "a hold is left");
        std::thread::yield_now();
    }
}

#[test]
fn every_name_is_met_once_whatever_the_size_of_a_part() {
    let kernel = mounted();
    let dir = kernel.mkdir(ROOT, b"dir").unwrap().node;
    let mut made = BTreeMap::new();
    for n in 0..200_usize {
        let name = format!("{n:03}{}", "x".repeat(n)).into_bytes();
        let (file, fh) = kernel.create(dir, &name, O_RDWR).unwrap();
        kernel.release(file.node, fh).unwrap();
        made.insert(name, file.node);
    }
    for (op, size) in [
        (Op::Readdir, 4096),
        (Op::Readdir, 300),
        (Op::Readdir, 65_536),
        (Op::Readdirplus, 4096),
        (Op::Readdirplus, 500),
        (Op::Readdirplus, 65_536),
    ] {
        let mut all = read_all(&kernel, op, dir, size);
        let dots = [&b"."[..], b".."].map(|dot| all.remove(dot).unwrap());
        // The kernel does not look the dots up, whatever is said of them.
        let known = [0, dir, ROOT, OWN_ROOT];
        assert!(dots.iter().all(|d| d.found.is_none_or(|found| known.contains(&found))));
        let numbers: BTreeMap<_, _> = all.iter().map(|(n, r)| (n.clone(), r.node)).collect();
        assert_eq!(numbers, made, "{op:?} with {size} bytes");
        assert!(all.values().all(|r| r.found.is_none_or(|found| found == r.node)));
    }
    // Too small for any entry: nothing, and no answer that is too long.
    assert_eq!(request(&kernel, Op::Readdir, dir, 0, 8), b"");
    assert_eq!(request(&kernel, Op::Readdirplus, dir, 0, 100), b"");
}

#[test]
fn a_reading_goes_on_after_what_it_has_read_is_removed() {
    let kernel = mounted();
    let dir = kernel.mkdir(ROOT, b"dir").unwrap().node;
    for n in 0..100 {
        let (file, fh) = kernel.create(dir, format!("{n:03}").as_bytes(), O_RDWR).unwrap();
        kernel.release(file.node, fh).unwrap();
    }
    let (mut seen, mut offset) = (0, 0);
    loop {
        let part = entries(&request(&kernel, Op::Readdir, dir, offset, 512), false);
        let Some(last) = part.last() else { break };
        offset = last.next;
        for read in part.into_iter().filter(|r| r.name.len() == 3) {
            seen += 1;
            kernel.unlink(dir, &read.name).unwrap();
        }
    }
    assert_eq!(seen, 100, "as rm -r does it");
    empty(kernel.ask(Op::Rmdir, ROOT, body().name(b"dir"))).unwrap();
}

#[test]
fn places_that_no_reading_gave_end_or_fail() {
    let kernel = mounted();
    for offset in [1 << 20, u64::MAX >> 1, u64::MAX] {
        let asked = body().u64(0).u64(offset).u32(4096).u32(0).u64(0).u32(0).u32(0);
        if let Ok(answer) = kernel.ask(Op::Readdir, ROOT, asked) {
            assert!(entries(&answer, false).len() <= 3, "{offset}");
        }
    }
    let (file, _) = kernel.create(ROOT, b"file", O_RDWR).unwrap();
    let asked = body().u64(0).u64(0).u32(4096).u32(0).u64(0).u32(0).u32(0);
    assert_eq!(kernel.ask(Op::Readdir, file.node, asked.clone()), Err(ENOTDIR));
    assert_eq!(kernel.ask(Op::Readdirplus, file.node, asked), Err(ENOTDIR));
    // Directories have no handles of ours: OPENDIR and RELEASEDIR are always well.
    let opened = kernel.ask(Op::Opendir, ROOT, body().u32(0).u32(0)).unwrap();
    let fh = u64_at(&opened, 0);
    empty(kernel.ask(Op::Fsyncdir, ROOT, body().u64(fh).u32(0).u32(0))).unwrap();
    empty(kernel.ask(Op::Releasedir, ROOT, body().u64(fh).u32(0).u32(0).u64(0))).unwrap();
}
