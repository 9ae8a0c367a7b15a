//! The workloads of ACE, the Automatic Crash Explorer: its operations, files and persistence
//! points, one operation (seq-1) or two (seq-2).
//!
//! Source: the OSDI 2018 paper named in `known.rs`, and what ACE publishes of its bounds. Of an
//! operation there is every choice of arguments over the files `foo`, `bar`, `A/foo`, `A/bar` and
//! the directories `A`, `B`; after it nothing (not after the last), sync, or fsync of a file that
//! is used, its neighbour in the same directory, or its directory. What an operation needs is done
//! before it, not durable.
//!
//! Other than ACE's: after fdatasync, and after a write to a memory map (with msync), which make
//! something durable themselves, there is no second persistence point, so that these workloads come
//! once and not once for each point; a directory that was renamed takes its files with it. What
//! follows when a needed name is in the way is here: it is removed first.

use std::collections::BTreeSet;

use steadfast_suite::names::{Names, Node, NodeKind, parent};
use steadfast_suite::operation::{Operation, WriteKind};
use steadfast_vfs::Fallocate;

use super::step::Workload;

/// A path below the root, without a leading '/'; empty: the root.
type Path = &'static str;

const FILES: [Path; 2] = ["foo", "A/foo"];
const SECOND_FILES: [Path; 2] = ["bar", "A/bar"];
/// What an append adds.
const APPENDED: u64 = 32_768;
/// Bytes of an attribute.
const ATTRIBUTE: usize = 7;

/// Which part of a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Append,
    OverlapStart(u64),
    OverlapExtend,
}

/// An operation with its arguments, before it is known how long files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Core {
    Creat(Path),
    Mkdir(Path),
    Falloc(Path, Fallocate, Part),
    Write(Path, Part),
    Direct(Path, Part),
    Map(Path, Part),
    Link(Path, Path),
    Unlink(Path),
    Remove(Path),
    Rename(Path, Path),
    SetXattr(Path),
    RemoveXattr(Path),
    Truncate(Path, u64),
    Fdatasync(Path),
}

/// What follows an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Point {
    None,
    Sync,
    Fsync(Path),
}

/// All operations.
fn cores() -> Vec<Core> {
    let mut cores = Vec::new();
    let allocations = [
        Fallocate::ZeroRange { keep_size: false },
        Fallocate::ZeroRange { keep_size: true },
        Fallocate::PunchHole,
        Fallocate::Allocate { keep_size: true },
        Fallocate::Allocate { keep_size: false },
    ];
    let written = [Part::Append, Part::OverlapStart(5000), Part::OverlapExtend];
    let whole_pages = [Part::Append, Part::OverlapStart(8192)];
    let all = || FILES.into_iter().chain(SECOND_FILES);
    let pairs = || {
        let pairs = all().flat_map(|old| SECOND_FILES.map(|new| (old, new)));
        pairs.filter(|(old, new)| old != new)
    };
    cores.extend(FILES.map(Core::Creat));
    cores.push(Core::Mkdir("A"));
    for file in FILES {
        for what in allocations {
            cores.extend(written.map(|part| Core::Falloc(file, what, part)));
        }
    }
    cores.extend(FILES.iter().flat_map(|file| written.map(|part| Core::Write(file, part))));
    cores.extend(FILES.iter().flat_map(|file| whole_pages.map(|part| Core::Direct(file, part))));
    cores.extend(FILES.iter().flat_map(|file| whole_pages.map(|part| Core::Map(file, part))));
    cores.extend(pairs().map(|(old, new)| Core::Link(old, new)));
    cores.extend(all().map(Core::Unlink));
    cores.extend(all().map(Core::Remove));
    cores.extend(pairs().map(|(old, new)| Core::Rename(old, new)));
    cores.push(Core::Rename("A", "B"));
    cores.extend(FILES.map(Core::SetXattr));
    cores.extend(FILES.map(Core::RemoveXattr));
    cores.extend(FILES.iter().flat_map(|file| [0, 2500].map(|size| Core::Truncate(file, size))));
    cores.extend(FILES.map(Core::Fdatasync));
    cores
}

impl Core {
    fn files(self) -> Vec<Path> {
        match self {
            Core::Link(old, new) | Core::Rename(old, new) => vec![old, new],
            Core::Creat(path)
            | Core::Mkdir(path)
            | Core::Falloc(path, ..)
            | Core::Write(path, _)
            | Core::Direct(path, _)
            | Core::Map(path, _)
            | Core::Unlink(path)
            | Core::Remove(path)
            | Core::SetXattr(path)
            | Core::RemoveXattr(path)
            | Core::Truncate(path, _)
            | Core::Fdatasync(path) => vec![path],
        }
    }

    /// Whether it makes something durable itself.
    fn persists(self) -> bool {
        matches!(self, Core::Map(..) | Core::Fdatasync(_))
    }
}

fn sibling(path: Path) -> Path {
    match path {
        "foo" => "bar",
        "bar" => "foo",
        "A/foo" => "A/bar",
        "A/bar" => "A/foo",
        "A" => "B",
        "B" => "A",
        other => other,
    }
}

/// What may be made durable after operations on these files.
fn related(cores: &[Core]) -> Vec<Point> {
    let used: BTreeSet<Path> = cores.iter().flat_map(|core| core.files()).collect();
    let all = used.iter().flat_map(|path| [*path, sibling(path), parent(path)]);
    let all: BTreeSet<Path> = all.collect();
    all.into_iter().map(Point::Fsync).chain([Point::Sync]).collect()
}

/// A workload while it is written down, and what there is after it.
#[derive(Default)]
struct Writer {
    names: Names,
    /// Files that have had bytes.
    filled: BTreeSet<Node>,
    ops: Vec<Operation>,
}

impl Writer {
    fn push(&mut self, op: Operation) {
        self.names.apply(self.ops.len(), &op);
        self.ops.push(op);
    }

    fn need_folder(&mut self, folder: &str) {
        if self.names.kind(folder).is_none() {
            self.push(Operation::Mkdir { name: folder.into() });
        }
    }

    fn need_file(&mut self, path: Path) {
        self.need_folder(parent(path));
        if self.names.kind(path).is_none() {
            self.push(Operation::Create { name: path.into() });
        }
    }

    fn need_bytes(&mut self, path: Path) {
        self.need_file(path);
        if !self.names.node(path).is_some_and(|node| self.filled.contains(&node)) {
            self.write(path, Part::Append, WriteKind::Buffered);
        }
    }

    fn no_file(&mut self, path: &str) {
        if self.names.kind(path).is_some() {
            self.push(Operation::Unlink { name: path.into() });
        }
    }

    fn no_folder(&mut self, folder: Path) {
        if self.names.kind(folder) == Some(NodeKind::Folder) {
            let inside = self.names.entries.keys().filter(|path| parent(path) == folder).cloned();
            inside.collect::<Vec<_>>().iter().for_each(|path| self.no_file(path));
            self.push(Operation::Rmdir { name: folder.into() });
        }
    }

    /// Where a part of a file is.
    fn range(&mut self, path: Path, part: Part) -> (u64, u64) {
        let len = self.names.size(path);
        self.filled.extend(self.names.node(path));
        match part {
            Part::Append => (len, APPENDED),
            Part::OverlapStart(bytes) => (0, bytes),
            Part::OverlapExtend => (len.saturating_sub(2000), 5000),
        }
    }

    fn write(&mut self, path: Path, part: Part, how: WriteKind) {
        let (offset, len) = self.range(path, part);
        self.push(Operation::Write { name: path.into(), offset, len, how });
    }

    fn core(&mut self, core: Core) {
        match core {
            Core::Creat(path) => {
                self.need_folder(parent(path));
                self.no_file(path);
                self.need_file(path);
            }
            Core::Mkdir(path) => {
                self.no_folder(path);
                self.need_folder(path);
            }
            Core::Falloc(path, what, part) => {
                self.need_bytes(path);
                let (offset, len) = self.range(path, part);
                self.push(Operation::Fallocate { name: path.into(), what, offset, len });
            }
            Core::Write(path, part) => self.written(path, part, WriteKind::Buffered),
            Core::Direct(path, part) => self.written(path, part, WriteKind::Direct),
            // What reaches the file system of a changed map and its msync.
            Core::Map(path, part) => {
                self.written(path, part, WriteKind::Buffered);
                self.push(Operation::Fsync { name: path.into(), data_only: true });
            }
            Core::Link(old, new) => {
                self.need_file(old);
                self.need_folder(parent(new));
                self.no_file(new);
                self.push(Operation::Link { from: old.into(), to: new.into() });
            }
            Core::Unlink(path) | Core::Remove(path) => {
                self.need_file(path);
                self.no_file(path);
            }
            Core::Rename(old, new) => {
                match old {
                    "A" => {
                        self.no_folder(new);
                        self.need_folder(old);
                    }
                    _ => {
                        self.need_file(old);
                        self.need_folder(parent(new));
                    }
                }
                self.push(Operation::Rename { from: old.into(), to: new.into() });
            }
            Core::SetXattr(path) | Core::RemoveXattr(path) => {
                self.need_file(path);
                self.push(Operation::SetAttribute { name: path.into(), len: ATTRIBUTE });
                if core == Core::RemoveXattr(path) {
                    self.push(Operation::RemoveAttribute { name: path.into() });
                }
            }
            Core::Truncate(path, size) => {
                self.need_bytes(path);
                self.push(Operation::Truncate { name: path.into(), size });
            }
            Core::Fdatasync(path) => {
                self.need_file(path);
                self.push(Operation::Fsync { name: path.into(), data_only: true });
            }
        }
    }

    fn written(&mut self, path: Path, part: Part, how: WriteKind) {
        match part {
            Part::Append => self.need_file(path),
            _ => self.need_bytes(path),
        }
        self.write(path, part, how);
    }

    fn point(&mut self, point: Point) {
        match point {
            Point::None => {}
            Point::Sync => self.push(Operation::Sync),
            Point::Fsync(path @ ("" | "A" | "B")) => {
                self.need_folder(path);
                self.push(Operation::FsyncDir { name: path.into() });
            }
            Point::Fsync(path) => {
                self.need_file(path);
                self.push(Operation::Fsync { name: path.into(), data_only: false });
            }
        }
    }
}

fn workload(name: String, steps: &[(Core, Point)]) -> Workload {
    let mut writer = Writer::default();
    for (core, point) in steps {
        writer.core(*core);
        writer.point(*point);
    }
    Workload { name, setup: Vec::new(), ops: writer.ops }
}

/// The points that may follow an operation: not after one that is a point itself.
fn points_after(core: Core, related: &[Point], last: bool) -> Vec<Point> {
    if core.persists() {
        return vec![Point::None];
    }
    let none = (!last).then_some(Point::None);
    related.iter().copied().chain(none).collect()
}

/// Every workload of one operation.
pub fn seq1() -> impl Iterator<Item = Workload> {
    let all = cores().into_iter().flat_map(|core| {
        let points = points_after(core, &related(&[core]), true);
        points.into_iter().map(move |point| (core, point))
    });
    all.enumerate().map(|(number, step)| workload(format!("seq-1/{number}"), &[step]))
}

/// Every `every`th workload of two operations, from this one on.
pub fn seq2(first: usize, every: usize) -> impl Iterator<Item = Workload> {
    let cores = cores();
    let pairs: Vec<(Core, Core)> =
        cores.iter().flat_map(|one| cores.iter().map(|two| (*one, *two))).collect();
    let all = pairs.into_iter().flat_map(|(one, two)| {
        let related = related(&[one, two]);
        let (first, second) =
            (points_after(one, &related, false), points_after(two, &related, true));
        first.into_iter().flat_map(move |p| {
            let second = second.clone();
            second.into_iter().map(move |q| [(one, p), (two, q)])
        })
    });
    let chosen = all.enumerate().skip(first).step_by(every.max(1));
    chosen.map(|(number, steps)| workload(format!("seq-2/{number}"), &steps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spaces_have_their_size() {
        assert_eq!(cores().len(), 78);
        assert_eq!(seq1().count(), 318);
        assert_eq!(seq2(0, 1).count(), 223_384);
    }

    #[test]
    fn what_is_needed_is_done_before() {
        let all: Vec<String> = seq1().map(|workload| workload.to_string()).collect();
        let has = |text: &str| all.iter().any(|line| line.ends_with(text));
        assert!(has(": mkdir A; create A/foo; unlink A/foo; fsyncdir A"), "{all:#?}");
        assert!(has(": create foo; setxattr foo 7; removexattr foo; fsync foo"), "{all:#?}");
        assert!(has(": create foo; write foo 0 32768; truncate foo 2500; sync"), "{all:#?}");
        assert!(has(": create foo; mkdir A; link foo A/bar; fsyncdir A"), "{all:#?}");
    }
}
