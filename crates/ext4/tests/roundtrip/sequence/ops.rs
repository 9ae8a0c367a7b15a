//! What a sequence is drawn from. Targets are numbers that pick from what exists at that moment.

use proptest::prelude::*;
use proptest::sample::select;
use steadfast_suite::names::{Names, NodeKind};
use steadfast_suite::operation::{Operation, OperationKind, WriteKind};

/// Direct I/O is done in units of this.
const DIRECT_UNIT: u64 = 4096;

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// One operation.
    One(OperationKind),
    /// Adds many names to a directory, enough for an index.
    Crowd,
    /// Removes most names that came by `Crowd`.
    Thin,
    /// Reads a file.
    Read,
    /// Opens a file and keeps it open, whatever happens to its name.
    Hold,
    /// Writes to the file that is held, or not, and lets go of it.
    Release,
    Remount,
}

/// A step, and numbers that say which names and how much.
#[derive(Debug, Clone)]
pub struct Choice {
    pub step: Step,
    of: u16,
    dir: u16,
    name: u8,
    offset: u64,
    len: u64,
    how: WriteKind,
    secs: i64,
}

impl Choice {
    /// Whether the file that is let go of is written to before.
    pub fn writes(&self) -> bool {
        self.name.is_multiple_of(2)
    }
}

/// Names that are asked for again and again, so that operations meet.
fn name(n: u8) -> String {
    match n {
        14 => "L".repeat(255),
        15 => "sch\u{f6}n \u{1f980} \"quoted\"\n".into(),
        n => format!("n{n}"),
    }
}

fn within(dir: &str, name: &str) -> String {
    if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") }
}

fn pick<'n>(all: &[&'n String], n: u16) -> Option<&'n String> {
    all.get(usize::from(n).checked_rem(all.len())?).copied()
}

/// The file that is picked.
pub fn file<'n>(choice: &Choice, names: &'n Names) -> Option<&'n String> {
    pick(&names.of_kind(NodeKind::File), choice.of)
}

/// Operations of a step on what there is: none if it has nothing to work on.
pub fn operations(choice: &Choice, names: &Names) -> Vec<Operation> {
    use OperationKind as Kind;
    match choice.step {
        Step::One(Kind::Create | Kind::Mkdir | Kind::Symlink | Kind::Sync) => {
            one(choice, names, String::new()).into_iter().collect()
        }
        Step::One(Kind::Write | Kind::Truncate | Kind::Fsync) => {
            file(choice, names).and_then(|of| one(choice, names, of.clone())).into_iter().collect()
        }
        Step::One(kind) => {
            let attributes = matches!(kind, Kind::Chmod | Kind::Chown | Kind::SetTimes);
            // Linux cannot change the mode of a symbolic link.
            let of_link = |n: &str| attributes && names.kind(n) == Some(NodeKind::Symlink);
            let fits = |n: &&String| !n.is_empty() && !of_link(n);
            let all: Vec<&String> = names.entries.keys().filter(fits).collect();
            let of = pick(&all, choice.of);
            of.and_then(|of| one(choice, names, of.clone())).into_iter().collect()
        }
        Step::Crowd => {
            let (dir, long) = (dir(choice, names), choice.name.is_multiple_of(2));
            let crowd = (0..choice.len % 300).map(|i| {
                let tail = if long { "~".repeat(90 + i as usize % 150) } else { String::new() };
                within(dir, &format!("crowd-{i}{tail}"))
            });
            let new = crowd.filter(|name| names.kind(name).is_none());
            new.map(|name| Operation::Create { name }).collect()
        }
        Step::Thin => {
            let prefix = within(dir(choice, names), "crowd-");
            let files = names.of_kind(NodeKind::File);
            let crowd = files
                .iter()
                .filter(|name| name.strip_prefix(&prefix).is_some_and(|rest| !rest.contains('/')));
            let keep_each = 2 + usize::from(choice.name) % 4;
            let gone = crowd.enumerate().filter(|(i, _)| i % keep_each != 0);
            gone.map(|(_, name)| Operation::Unlink { name: (*name).clone() }).collect()
        }
        Step::Read | Step::Hold | Step::Release | Step::Remount => Vec::new(),
    }
}

fn dir<'n>(choice: &Choice, names: &'n Names) -> &'n str {
    pick(&names.of_kind(NodeKind::Folder), choice.dir).map_or("", String::as_str)
}

/// The operation on `of`, or of a new name.
fn one(choice: &Choice, names: &Names, of: String) -> Option<Operation> {
    use OperationKind as Kind;
    let Step::One(kind) = choice.step else { return None };
    let new = within(dir(choice, names), &name(choice.name));
    Some(match kind {
        Kind::Create => Operation::Create { name: new },
        Kind::Mkdir => Operation::Mkdir { name: new },
        // The longest target is less than a block.
        Kind::Symlink => Operation::Symlink {
            name: new,
            target: "abc/def..".chars().cycle().take(1 + choice.len as usize % 1000).collect(),
        },
        Kind::Link => Operation::Link { from: of, to: new },
        Kind::Unlink => Operation::Unlink { name: of },
        Kind::Rmdir => Operation::Rmdir { name: of },
        Kind::Rename => Operation::Rename { from: of, to: new },
        Kind::RenameNew => Operation::RenameNew { from: of, to: new },
        Kind::Exchange => Operation::Exchange { one: of, other: new },
        Kind::Write => {
            let Choice { how, offset, len, .. } = *choice;
            let (offset, len) = match how {
                WriteKind::Direct => {
                    (offset - offset % DIRECT_UNIT, len.next_multiple_of(DIRECT_UNIT))
                }
                WriteKind::Append => (names.size(&of), len),
                _ => (offset, len),
            };
            Operation::Write { name: of, offset, len, how }
        }
        Kind::Truncate => Operation::Truncate { name: of, size: choice.offset },
        Kind::Chmod => Operation::Chmod { name: of, mode: (choice.offset % 0o1000) as u16 },
        Kind::Chown => {
            let uid = (choice.secs.unsigned_abs() % (1 << 31)) as u32;
            Operation::Chown { name: of, uid, gid: choice.len as u32 % 70_000 }
        }
        Kind::SetTimes => Operation::SetTimes { name: of, secs: choice.secs },
        Kind::Fsync => Operation::Fsync { name: of, data_only: choice.name.is_multiple_of(2) },
        Kind::Sync => Operation::Sync,
        _ => return None,
    })
}

/// Offsets: the beginning, what an inode may hold, anywhere in a megabyte, or far behind the end,
/// which leaves a hole.
fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(0), 2 => 0..200_u64, 4 => 0..1_u64 << 18, 1 => 0..1_u64 << 22]
}

fn len() -> impl Strategy<Value = u64> {
    prop_oneof![2 => 1..100_u64, 3 => 1..20_000_u64, 1 => 1..200_000_u64]
}

const WRITES: [WriteKind; 12] = {
    use WriteKind::{Append, Buffered, DataSync, Direct, Sync};
    [
        Buffered, Buffered, Buffered, Buffered, Buffered, Buffered, Sync, DataSync, Direct, Direct,
        Append, Append,
    ]
};

/// Steps, each as often as its number says.
fn steps(of: &[(usize, Step)]) -> Vec<Step> {
    of.iter().flat_map(|(times, step)| vec![*step; *times]).collect()
}

/// A sequence of up to `max` steps; `only_names` leaves the contents of files alone.
pub fn sequence(max: usize, only_names: bool) -> BoxedStrategy<Vec<Choice>> {
    use OperationKind as Kind;
    use Step::One;
    let names = steps(&[
        (6, One(Kind::Create)),
        (4, One(Kind::Mkdir)),
        (2, One(Kind::Symlink)),
        (2, One(Kind::Link)),
        (2, One(Kind::Unlink)),
        (1, One(Kind::Rmdir)),
        (4, One(Kind::Rename)),
        (1, One(Kind::RenameNew)),
        (1, One(Kind::Exchange)),
        (1, Step::Crowd),
        (1, Step::Thin),
        (1, One(Kind::Chmod)),
        (1, One(Kind::Chown)),
        (1, One(Kind::SetTimes)),
        (1, Step::Remount),
    ]);
    let contents = steps(&[
        (13, One(Kind::Write)),
        (5, One(Kind::Truncate)),
        (2, One(Kind::Fsync)),
        (2, One(Kind::Sync)),
        (3, Step::Read),
        (2, Step::Hold),
        (2, Step::Release),
    ]);
    let all = if only_names { names } else { [names, contents].concat() };
    // Times from 1901 to 2310. An inode can say 2446, but e2fsck takes what is beyond for a
    // mistake.
    let secs = -(1_i64 << 31)..5_i64 << 31;
    let numbers = (any::<u16>(), any::<u16>(), 0..16_u8, offset(), len(), secs);
    let choice = (select(all), select(&WRITES[..]), numbers).prop_map(
        |(step, how, (of, dir, name, offset, len, secs))| Choice {
            step,
            of,
            dir,
            name,
            offset,
            len,
            how,
            secs,
        },
    );
    prop::collection::vec(choice, 1..max).boxed()
}
