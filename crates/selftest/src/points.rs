//! The promise of transaction points: what is left is exactly one of them.
//!
//! A [`Snapshot`] is everything that a program can see of a tree. [`Points`] keeps one for each
//! transaction point of a run, with the moments between which it was made; after a power cut the
//! file system must equal the last one that was finished, or one that had been begun.

use std::collections::BTreeMap;

use steadfast_crash::figures::StateFigures;
use steadfast_crash::judge::Judge;
use steadfast_crash::program::{Contents, Node, Tree, Unreadable};
use steadfast_devices::filter::record::{Moment, RecordLog};
use steadfast_runtime::Mutex;
use steadfast_vfs::{Attr, FileSystem, FileType, FsError, Ino};

/// Notes of points in the record carry this label; their details mean nothing.
const NOTE: u64 = 0x706f_696e_7473;

/// What a program sees of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ObjectView {
    attr: Attr,
    /// Of a regular file.
    contents: Contents,
    /// Of a symbolic link.
    target: Vec<u8>,
}

/// A tree as programs see it: names, attributes (without times of access, sizes of directories
/// and storage used) and contents. Names of one inode share its number, which does not count
/// otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    names: BTreeMap<Vec<u8>, ObjectView>,
}

impl Snapshot {
    /// Takes what is at `dir` and below.
    ///
    /// # Errors
    /// What could not be read.
    pub fn take(fs: &dyn FileSystem, dir: Ino) -> Result<Snapshot, Unreadable> {
        let tree = Tree::look_whole(fs, dir)?;
        let seen = |node: &Node| {
            let mut attr = node.attr;
            if attr.kind == FileType::Directory {
                attr.size = 0;
            }
            (attr.blocks_512, attr.block_size, attr.generation) = (0, 0, 0);
            (attr.atime, attr.crtime) = (attr.mtime, attr.mtime);
            ObjectView { attr, contents: node.contents(), target: node.target.clone() }
        };
        let names = tree.nodes().map(|(path, node)| ([b"/", path].concat(), seen(node))).collect();
        let mut snapshot = Snapshot { names };
        snapshot.renumber();
        Ok(snapshot)
    }

    /// Numbers inodes by their first name, so that the order in which a file system lists names
    /// does not count.
    fn renumber(&mut self) {
        let mut numbers: BTreeMap<Ino, u64> = BTreeMap::new();
        for seen in self.names.values_mut() {
            let next = numbers.len() as u64;
            seen.attr.ino = Ino(*numbers.entry(seen.attr.ino).or_insert(next));
        }
    }

    /// What is in one folder of the tree, as a snapshot of that folder.
    #[must_use]
    pub fn below(&self, folder: &[u8]) -> Snapshot {
        let prefix = [b"/", folder, b"/"].concat();
        let inside = self.names.iter().filter(|(name, _)| name.starts_with(&prefix));
        let names = inside.map(|(n, s)| (n[prefix.len() - 1..].to_vec(), s.clone())).collect();
        let mut snapshot = Snapshot { names };
        snapshot.renumber();
        snapshot
    }

    /// The first difference to another snapshot, in words; `None` if they are equal.
    pub fn difference(&self, other: &Snapshot) -> Option<String> {
        for (name, seen) in &self.names {
            let shown = String::from_utf8_lossy(name);
            match other.names.get(name) {
                None => return Some(format!("{shown} is missing")),
                Some(found) if found != seen => {
                    return Some(format!("{shown}: {found:?} instead of {seen:?}"));
                }
                Some(_) => {}
            }
        }
        let extra = other.names.keys().find(|name| !self.names.contains_key(*name))?;
        Some(format!("{} should not be there", String::from_utf8_lossy(extra)))
    }
}

struct Point {
    snapshot: Snapshot,
    begun: Moment,
    done: Option<Moment>,
}

/// The transaction points of a run by one task.
pub struct Points {
    log: RecordLog,
    points: Mutex<Vec<Point>>,
}

impl Points {
    /// No points yet; moments are in the order of `log`.
    pub fn new(log: &RecordLog) -> Self {
        Points { log: log.clone(), points: Mutex::default() }
    }

    /// Notes that the state now is about to become a point. Nobody changes the file system until
    /// [`done`](Self::done).
    ///
    /// # Errors
    /// What could not be read of the state.
    pub fn begin(&self, fs: &dyn FileSystem) -> Result<(), FsError> {
        let snapshot = Snapshot::take(fs, fs.root()).map_err(|e| e.why)?;
        let begun = self.log.note(NOTE, [0; 3]);
        self.points.lock().push(Point { snapshot, begun, done: None });
        Ok(())
    }

    /// The point that was begun last is durable.
    pub fn done(&self) {
        let done = self.log.note(NOTE, [1, 0, 0]);
        if let Some(point) = self.points.lock().last_mut() {
            point.done = Some(done);
        }
    }

    /// Makes a transaction point and notes it.
    ///
    /// # Errors
    /// As [`FileSystem::transact`].
    pub fn transact(&self, fs: &dyn FileSystem) -> Result<(), FsError> {
        self.begin(fs)?;
        fs.transact()?;
        self.done();
        Ok(())
    }

    /// Judges what a cut at tick `cut` has left. `Ok`: the number of the point that it equals.
    ///
    /// # Errors
    /// How it differs from the last finished point, in words.
    fn compare(&self, left: &Snapshot, cut: u64) -> Result<usize, String> {
        let points = self.points.lock();
        let last = points
            .iter()
            .rposition(|p| p.done.is_some_and(|d| d.tick < cut))
            .ok_or("no point was finished before the cut")?;
        let begun = points[last..].iter().take_while(|p| p.begun.tick < cut).count();
        for (i, point) in points.iter().enumerate().skip(last).take(begun) {
            if point.snapshot == *left {
                return Ok(i);
            }
        }
        let how = points[last].snapshot.difference(left).unwrap_or_default();
        Err(format!("not transaction point {last}: {how}"))
    }
}

impl Judge for Points {
    fn judge(&self, fs: &dyn FileSystem, at: Moment, cut: &mut StateFigures) {
        let left = match Snapshot::take(fs, fs.root()) {
            Ok(left) => left,
            Err(e) => {
                cut.damage.push(format!("cannot be read after recovery: {e}"));
                return;
            }
        };
        // Before the first point is finished nothing is promised.
        let finished = self.points.lock().iter().any(|p| p.done.is_some_and(|d| d.tick < at.tick));
        if finished && let Err(why) = self.compare(&left, at.tick) {
            cut.broken_promises += 1;
            cut.findings.push(why);
        }
    }

    fn age(&self, tick: u64) -> u64 {
        let before = |moment: Moment| u64::from(moment.tick < tick);
        let of = |p: &Point| before(p.begun) + p.done.map_or(0, before);
        self.points.lock().iter().map(of).sum()
    }
}
