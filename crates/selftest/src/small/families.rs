//! Sequences beyond those of two operations: families by rule, each for a kind of fault that needs
//! more than two operations to show, and of those only what the kind needs.
//!
//! * [`data`](Sequence::data): two operations on what a file holds and where, then fdatasync: both
//!   in one transaction.
//! * [`data_in_steps`](Sequence::data_in_steps), [`names_in_steps`](Sequence::names_in_steps): one
//!   or two operations, each made durable by itself: transactions after each other, fast commits
//!   after each other, a log with several transactions that is checkpointed in parts.
//! * [`there_and_back`](Sequence::there_and_back): an operation, what takes it back, the operation
//!   again, in one transaction: blocks and numbers that are taken, freed and taken anew.
//! * [`forgotten`](Sequence::forgotten): an operation on a file, so many others that the file's
//!   inode leaves a small memory, and what makes the operation durable: it goes by an inode that
//!   was read anew.
//! * [`in_several_transactions`](Sequence::in_several_transactions): an operation on a file so
//!   large that one transaction does not hold it, where each update is one.
//! * [`inline`](Sequence::inline), [`inline_and_back`](Sequence::inline_and_back): contents of
//!   files and folders, and attributes, that fill an inode, leave it and come back.

use std::collections::HashSet;

use steadfast_suite::names::{NodeKind, parent};
use steadfast_suite::operation::{Operation, WriteKind};
use steadfast_vfs::Fallocate;

use super::sequence::{APPEND, ATTRIBUTE, FILES, LARGE, Sequence, Start, State, in_folder, write};

/// The file whose data changes.
const FILE: &str = "a";
/// Within a first block of 1 KiB or more: where files are cut, and where a range begins.
const CUT: u64 = 700;
const WITHIN: u64 = 500;
/// By so much a file is made longer than it is: no sector ends there.
const LONGER: u64 = 1501;
/// What the kernel writes back at a time, of a mapping.
const PAGE: u64 = 4096;

impl Sequence {
    /// Two operations on the data of one file, then fdatasync, for blocks of so many bytes.
    pub fn data(start: Start, block: u64) -> Vec<Sequence> {
        grown(start, 2, &|state| data(state, block), &|_, _| None, true)
    }

    /// Up to so many operations on the data of one file, each with an fdatasync.
    pub(crate) fn data_in_steps(start: Start, longest: usize, block: u64) -> Vec<Sequence> {
        grown(start, longest, &|state| data(state, block), &durable, false)
    }

    /// Up to so many operations on names, each with an fsync of what it concerns.
    pub(crate) fn names_in_steps(start: Start, longest: usize) -> Vec<Sequence> {
        grown(start, longest, &names, &durable, false)
    }

    /// Each operation that can be taken back: done, taken back, done again; then a sync.
    pub fn there_and_back(block: u64) -> Vec<Sequence> {
        let mut found = Vec::new();
        for start in [Start::Empty, Start::Populated] {
            let state = State::new(start);
            let mut ops = names(&state);
            ops.extend(data(&state, block));
            let mut seen = HashSet::new();
            for op in ops.into_iter().filter(|op| seen.insert(op.clone())) {
                let Some(back) = taken_back(&state, &op) else { continue };
                found.push(Sequence {
                    start,
                    operations: vec![op.clone(), back, op, Operation::Sync],
                });
            }
        }
        found
    }

    /// Each operation that changes a file's inode; files that are made after it; and what makes it
    /// durable.
    pub(crate) fn forgotten(block: u64) -> Vec<Sequence> {
        let start = Start::Populated;
        let state = State::new(start);
        let mut ops = vec![Operation::Chmod { name: FILE.into(), mode: 0o600 }];
        ops.extend(names(&state));
        ops.extend(data(&state, block));
        let mut found = Vec::new();
        for op in ops {
            let mut after = state.clone();
            after.apply(&op);
            let Some(durable) = durable(&after, &op) else { continue };
            let others = ["x", "y", "z"].map(|name| Operation::Create { name: name.into() });
            let operations = [&[op][..], &others, &[durable]].concat();
            found.push(Sequence { start, operations });
        }
        found
    }

    /// Operations on a large file that take several transactions, each made durable.
    pub(crate) fn in_several_transactions(block: u64) -> Vec<Sequence> {
        let start = Start::Large;
        let name = || FILE.to_owned();
        let cut = |size| Operation::Truncate { name: name(), size };
        let range = |what, offset, len| Operation::Fallocate { name: name(), what, offset, len };
        let whole = LARGE / block * block;
        let sequences = [
            vec![cut(0)],
            vec![cut(CUT)],
            vec![cut(LARGE / 2), cut(LARGE)],
            vec![cut(CUT), write(FILE, CUT, LARGE / 2)],
            vec![Operation::Unlink { name: name() }],
            vec![Operation::UnlinkOpen { name: name() }],
            vec![
                Operation::Create { name: "b".into() },
                Operation::Rename { from: "b".into(), to: name() },
            ],
            vec![range(Fallocate::PunchHole, WITHIN, LARGE)],
            vec![range(Fallocate::ZeroRange { keep_size: true }, WITHIN, whole)],
        ];
        let with_end = |mut operations: Vec<Operation>| {
            let mut state = State::new(start);
            operations.iter().for_each(|op| state.apply(op));
            let last = operations.last().and_then(|op| durable(&state, op));
            operations.extend(last);
            Sequence { start, operations }
        };
        sequences.into_iter().map(with_end).collect()
    }

    /// What leaves an inode, comes back and leaves it again, each time made durable.
    pub(crate) fn inline_and_back() -> Vec<Sequence> {
        let start = Start::Inline;
        let name = || FILE.to_owned();
        let fsync = || Operation::Fsync { name: name(), data_only: false };
        let size = State::new(start).names.size(FILE);
        let leave = [
            write(FILE, size, 200),
            Operation::Truncate { name: name(), size: size + 200 },
            Operation::SetAttribute { name: name(), len: ATTRIBUTE },
        ];
        let back = [Operation::Truncate { name: name(), size: 0 }, write(FILE, 0, 20)];
        let sequence = |leave: Operation| {
            let mut operations = vec![leave, fsync()];
            operations.extend(back.clone());
            operations.extend([fsync(), write(FILE, 20, 200), fsync()]);
            Sequence { start, operations }
        };
        leave.into_iter().map(sequence).collect()
    }

    /// Up to so many operations on what is in inodes, each made durable.
    pub fn inline(longest: usize) -> Vec<Sequence> {
        grown(Start::Inline, longest, &inline, &durable, false)
    }
}

/// Sequences of up to `longest` operations out of `possible`, each followed by what `after` says,
/// and all, if `synced`, by fdatasync. Only the longest, and those that cannot be longer: the
/// others are their beginnings.
fn grown(
    start: Start,
    longest: usize,
    possible: &dyn Fn(&State) -> Vec<Operation>,
    after: &dyn Fn(&State, &Operation) -> Option<Operation>,
    synced: bool,
) -> Vec<Sequence> {
    let mut begun = vec![(State::new(start), Vec::new())];
    for _ in 0..longest {
        let mut longer = Vec::new();
        for (state, operations) in begun {
            let ops = possible(&state);
            if ops.is_empty() {
                longer.push((state, operations));
                continue;
            }
            for op in ops {
                let (mut state, mut operations) = (state.clone(), operations.clone());
                state.apply(&op);
                let durable = after(&state, &op);
                durable.iter().for_each(|durable| state.apply(durable));
                operations.push(op);
                operations.extend(durable);
                longer.push((state, operations));
            }
        }
        begun = longer;
    }
    let fdatasync = Operation::Fsync { name: FILE.into(), data_only: true };
    let end = |(_, mut operations): (State, Vec<Operation>)| {
        operations.extend(synced.then(|| fdatasync.clone()));
        Sequence { start, operations }
    };
    begun.into_iter().map(end).collect()
}

/// What can be done to the data of the file.
fn data(state: &State, block: u64) -> Vec<Operation> {
    let size = state.names.size(FILE);
    if state.names.kind(FILE) != Some(NodeKind::File) || size == 0 {
        return Vec::new();
    }
    let name = || FILE.to_owned();
    let range = |what, offset, len| Operation::Fallocate { name: name(), what, offset, len };
    let mapped =
        Operation::Write { name: name(), offset: 0, len: size.min(PAGE), how: WriteKind::Mapped };
    let mut found = vec![
        mapped,
        write(FILE, size, APPEND),
        Operation::Truncate { name: name(), size: size + LONGER },
        range(Fallocate::Allocate { keep_size: true }, size.next_multiple_of(block), 2 * block),
    ];
    if size > CUT {
        found.push(Operation::Truncate { name: name(), size: CUT });
    }
    if size > WITHIN {
        // To beyond the end, which it takes with it.
        found.push(range(Fallocate::PunchHole, WITHIN, size.max(2 * block)));
        found.push(range(Fallocate::ZeroRange { keep_size: true }, WITHIN, 2 * block));
    }
    if size > block {
        found.push(range(Fallocate::CollapseRange, 0, block));
        found.push(range(Fallocate::InsertRange, block, block));
    }
    found
}

/// What can be done to names, and an append.
fn names(state: &State) -> Vec<Operation> {
    let is_first_write = |op: &Operation| matches!(op, Operation::Write { offset: 0, .. });
    let is_sync = |op: &Operation| {
        matches!(op, Operation::Fsync { .. } | Operation::FsyncDir { .. } | Operation::Sync)
    };
    let mut found = state.possible();
    found.retain(|op| !is_first_write(op) && !is_sync(op));
    let is_file = |name: &&str| state.names.kind(name) == Some(NodeKind::File);
    let files: Vec<&str> = FILES.into_iter().filter(is_file).collect();
    for name in &files {
        let node = state.names.node(name);
        if state.names.info(name).is_some_and(|info| info.attribute == 0) {
            found.push(Operation::SetAttribute { name: (*name).into(), len: ATTRIBUTE });
        }
        for other in files.iter().filter(|other| *other > name) {
            if state.names.node(other) != node {
                found.push(Operation::Exchange { one: (*name).into(), other: (*other).into() });
            }
        }
    }
    found
}

/// What can be done to contents and attributes that are in inodes: within the room that there is,
/// and beyond it.
fn inline(state: &State) -> Vec<Operation> {
    let mut found = Vec::new();
    let size = state.names.size(FILE);
    if let Some(info) = state.names.info(FILE) {
        found.extend([write(FILE, 0, 20), write(FILE, size, 20), write(FILE, size, 200)]);
        for size in [0, 10, size + 20, size + 200] {
            found.push(Operation::Truncate { name: FILE.into(), size });
        }
        if info.attribute == 0 {
            let attribute = |len| Operation::SetAttribute { name: FILE.into(), len };
            found.extend([attribute(30), attribute(ATTRIBUTE)]);
        }
        for letter in ['o', 'p'] {
            let to = in_folder(letter);
            if state.names.node(&to).is_none() {
                found.push(Operation::Link { from: FILE.into(), to });
                break;
            }
        }
        found.push(Operation::Unlink { name: FILE.into() });
    } else {
        found.push(Operation::Create { name: FILE.into() });
    }
    let named = in_folder('n');
    if state.names.node(&named).is_some() {
        found.push(Operation::Unlink { name: named });
    }
    found
}

/// What makes the operation, which was just done, durable: of a file what concerns its data, fsync
/// of what has a name still, of a folder what has come or gone in it.
fn durable(state: &State, op: &Operation) -> Option<Operation> {
    let file = |name: &str, data_only| Operation::Fsync { name: name.to_owned(), data_only };
    let durable = match op {
        Operation::Write { name, .. }
        | Operation::Truncate { name, .. }
        | Operation::Fallocate { name, .. } => file(name, true),
        Operation::Create { name }
        | Operation::Chmod { name, .. }
        | Operation::SetAttribute { name, .. }
        | Operation::Link { to: name, .. }
        | Operation::Rename { to: name, .. }
        | Operation::Exchange { one: name, .. } => file(name, false),
        Operation::Unlink { name }
        | Operation::UnlinkOpen { name }
        | Operation::Mkdir { name }
        | Operation::Rmdir { name } => Operation::FsyncDir { name: parent(name).to_owned() },
        _ => return None,
    };
    match &durable {
        Operation::Fsync { name, .. } | Operation::FsyncDir { name } => {
            state.is_dirty(name).then_some(durable)
        }
        _ => None,
    }
}

/// What takes an operation back that is about to be done.
fn taken_back(state: &State, op: &Operation) -> Option<Operation> {
    Some(match op {
        Operation::Create { name } | Operation::Link { to: name, .. } => {
            Operation::Unlink { name: name.clone() }
        }
        Operation::Mkdir { name } => Operation::Rmdir { name: name.clone() },
        Operation::Rename { from, to } if state.names.node(to).is_none() => {
            Operation::Rename { from: to.clone(), to: from.clone() }
        }
        Operation::Exchange { .. } => op.clone(),
        Operation::Write { name, offset, .. } if *offset == state.names.size(name) => {
            Operation::Truncate { name: name.clone(), size: *offset }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_families_are_what_they_say() {
        let data = Sequence::data(Start::Populated, 1024);
        assert!(data.iter().all(|s| s.len() == 3), "{data:#?}");
        let steps = Sequence::names_in_steps(Start::Populated, 2);
        let back = Sequence::there_and_back(1024);
        for family in [&data, &steps, &back] {
            let different: BTreeSet<String> = family.iter().map(ToString::to_string).collect();
            assert_eq!(different.len(), family.len());
        }
        let words: Vec<String> = back.iter().map(ToString::to_string).collect();
        assert!(words.iter().any(|s| s.contains("rmdir")), "{words:#?}");
        assert!(words.iter().any(|s| s.contains("truncate")), "{words:#?}");
    }
}
