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

use std::collections::{BTreeMap, BTreeSet};

use steadfast_vfs::Fallocate;

use super::step::{Op, Path, Range, Workload, WriteMode};

const FILES: [Path; 2] = ["foo", "A/foo"];
const SECOND_FILES: [Path; 2] = ["bar", "A/bar"];
/// What an append adds.
const APPENDED: u64 = 32_768;

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

fn parent(path: Path) -> Path {
    path.rfind('/').map_or("", |cut| &path[..cut])
}

/// What may be made durable after operations on these files.
fn related(cores: &[Core]) -> Vec<Point> {
    let used: BTreeSet<Path> = cores.iter().flat_map(|core| core.files()).collect();
    let all = used.iter().flat_map(|path| [*path, sibling(path), parent(path)]);
    let all: BTreeSet<Path> = all.collect();
    all.into_iter().map(Point::Fsync).chain([Point::Sync]).collect()
}

/// What there is while a workload is written down.
#[derive(Default)]
struct Writer {
    /// Files with their lengths.
    files: BTreeMap<Path, u64>,
    /// Of files that have had bytes.
    filled: BTreeSet<Path>,
    folders: BTreeSet<Path>,
    ops: Vec<Op>,
}

impl Writer {
    fn need_parent(&mut self, path: Path) {
        let folder = parent(path);
        if !folder.is_empty() && self.folders.insert(folder) {
            self.ops.push(Op::Mkdir(folder));
        }
    }

    fn need_file(&mut self, path: Path) {
        self.need_parent(path);
        if !self.files.contains_key(path) {
            self.files.insert(path, 0);
            self.ops.push(Op::Creat(path));
        }
    }

    fn need_bytes(&mut self, path: Path) {
        self.need_file(path);
        if !self.filled.contains(path) {
            let range = self.range(path, Part::Append);
            self.ops.push(Op::Write(path, range, WriteMode::Buffered));
        }
    }

    fn no_file(&mut self, path: Path) {
        if self.files.remove(path).is_some() {
            self.filled.remove(path);
            self.ops.push(Op::Unlink(path));
        }
    }

    fn no_folder(&mut self, folder: Path) {
        if self.folders.remove(folder) {
            let inside: Vec<Path> =
                self.files.keys().copied().filter(|path| parent(path) == folder).collect();
            inside.into_iter().for_each(|path| self.no_file(path));
            self.ops.push(Op::Rmdir(folder));
        }
    }

    /// Where a part of a file is, and the file's length after it was written.
    fn range(&mut self, path: Path, part: Part) -> Range {
        let len = self.files.get(path).copied().unwrap_or(0);
        let range = match part {
            Part::Append => Range { at: len, len: APPENDED },
            Part::OverlapStart(bytes) => Range { at: 0, len: bytes },
            Part::OverlapExtend => Range { at: len.saturating_sub(2000), len: 5000 },
        };
        self.files.insert(path, len.max(range.at + range.len));
        self.filled.insert(path);
        range
    }

    fn core(&mut self, core: Core) {
        match core {
            Core::Creat(path) => {
                self.need_parent(path);
                self.no_file(path);
                self.need_file(path);
            }
            Core::Mkdir(path) => {
                self.no_folder(path);
                self.folders.insert(path);
                self.ops.push(Op::Mkdir(path));
            }
            Core::Falloc(path, what, part) => {
                self.need_bytes(path);
                let len = self.files[path];
                let range = self.range(path, part);
                let keeps = matches!(
                    what,
                    Fallocate::PunchHole
                        | Fallocate::Allocate { keep_size: true }
                        | Fallocate::ZeroRange { keep_size: true }
                );
                if keeps {
                    self.files.insert(path, len);
                }
                self.ops.push(Op::Falloc(path, what, range));
            }
            Core::Write(path, part) => {
                self.written(path, part, |range| Op::Write(path, range, WriteMode::Buffered));
            }
            Core::Direct(path, part) => {
                self.written(path, part, |range| Op::Write(path, range, WriteMode::Direct));
            }
            Core::Map(path, part) => self.written(path, part, |range| Op::MapWrite(path, range)),
            Core::Link(old, new) => {
                self.need_file(old);
                self.need_parent(new);
                self.no_file(new);
                self.same(old, new);
                self.ops.push(Op::Link(old, new));
            }
            Core::Unlink(path) | Core::Remove(path) => {
                self.need_file(path);
                self.files.remove(path);
                self.filled.remove(path);
                let removes = matches!(core, Core::Remove(_));
                self.ops.push(if removes { Op::Remove(path) } else { Op::Unlink(path) });
            }
            Core::Rename("A", new) => {
                self.no_folder(new);
                self.need_parent("A/foo");
                self.folders.remove("A");
                self.folders.insert(new);
                for (old, new) in [("A/foo", "B/foo"), ("A/bar", "B/bar")] {
                    self.same(old, new);
                    self.files.remove(old);
                    self.filled.remove(old);
                }
                self.ops.push(Op::Rename("A", new));
            }
            Core::Rename(old, new) => {
                self.need_file(old);
                self.need_parent(new);
                self.same(old, new);
                self.files.remove(old);
                self.filled.remove(old);
                self.ops.push(Op::Rename(old, new));
            }
            Core::SetXattr(path) => {
                self.need_file(path);
                self.ops.push(Op::SetXattr(path));
            }
            Core::RemoveXattr(path) => {
                self.need_file(path);
                self.ops.extend([Op::SetXattr(path), Op::RemoveXattr(path)]);
            }
            Core::Truncate(path, size) => {
                self.need_bytes(path);
                self.files.insert(path, size);
                self.ops.push(Op::Truncate(path, size));
            }
            Core::Fdatasync(path) => {
                self.need_file(path);
                self.ops.push(Op::Fdatasync(path));
            }
        }
    }

    fn written(&mut self, path: Path, part: Part, op: impl Fn(Range) -> Op) {
        if part == Part::Append {
            self.need_file(path);
        } else {
            self.need_bytes(path);
        }
        let range = self.range(path, part);
        self.ops.push(op(range));
    }

    /// `new` is what `old` is.
    fn same(&mut self, old: Path, new: Path) {
        match self.files.get(old).copied() {
            Some(len) => drop(self.files.insert(new, len)),
            None => drop(self.files.remove(new)),
        }
        match self.filled.contains(old) {
            true => self.filled.insert(new),
            false => self.filled.remove(new),
        };
    }

    fn point(&mut self, point: Point) {
        match point {
            Point::None => {}
            Point::Sync => self.ops.push(Op::Sync),
            Point::Fsync(path) => {
                match path {
                    "" => {}
                    "A" | "B" => {
                        if self.folders.insert(path) {
                            self.ops.push(Op::Mkdir(path));
                        }
                    }
                    _ => self.need_file(path),
                }
                self.ops.push(Op::Fsync(path));
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

/// Every `every`th workload of two operations, from the first on.
pub fn seq2(every: usize) -> impl Iterator<Item = Workload> {
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
    let chosen = all.enumerate().step_by(every.max(1));
    chosen.map(|(number, steps)| workload(format!("seq-2/{number}"), &steps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spaces_have_their_size() {
        assert_eq!(cores().len(), 78);
        assert_eq!(seq1().count(), 318);
        assert_eq!(seq2(1).count(), 223_384);
    }

    #[test]
    fn what_is_needed_is_done_before() {
        let all: Vec<String> = seq1().map(|workload| workload.to_string()).collect();
        let has = |text: &str| all.iter().any(|line| line.ends_with(text));
        assert!(has(": mkdir A; creat A/foo; unlink A/foo; fsync A"), "{all:#?}");
        assert!(has(": creat foo; setxattr foo; removexattr foo; fsync foo"), "{all:#?}");
        assert!(has(": creat foo; write foo 0+32768; truncate foo 2500; sync"), "{all:#?}");
        assert!(has(": creat foo; mkdir A; link foo A/bar; fsync A"), "{all:#?}");
    }
}
