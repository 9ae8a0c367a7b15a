//! One task in a folder of its own: random operations on the folder and on a model of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

use rustix::io::Errno;
use steadfast_vfs::{FileSystem, HostFs, path};

use super::contents::call;
use super::random::SplitMix64;
use super::shared::SharedFile;
use crate::names::{NodeKind, Tree, look, parent};
use crate::operation::{Operation, WriteKind};

/// Calls that are listed when something is wrong.
const RECENT: usize = 30;

/// Why a task cannot go on: what it was about to do, and what it found.
pub(super) type Fault = String;

/// A task and what it knows.
pub(super) struct Task {
    pub(super) root: PathBuf,
    number: usize,
    pub(super) random: SplitMix64,
    pub(super) tree: Tree,
    pub(super) shared: SharedFile,
    /// Calls refused as not supported, by name: not faults, but reported.
    pub(super) refused: BTreeMap<String, u64>,
    recent: VecDeque<String>,
    /// Bytes of a block, as the file system says.
    pub(super) block_size: usize,
    pub(super) done: u64,
    /// Of these, on its own files: with O_DIRECT, and through a map.
    pub(super) direct: u64,
    pub(super) mapped: u64,
}

impl Task {
    pub(super) fn new(
        root: PathBuf,
        number: usize,
        shared: SharedFile,
        seed: u64,
    ) -> Result<Task, Fault> {
        let block_size = call("statvfs", rustix::fs::statvfs(&root))?.f_bsize as usize;
        Ok(Task {
            block_size,
            root,
            number,
            random: SplitMix64::new(seed),
            tree: Tree::default(),
            shared,
            refused: BTreeMap::new(),
            recent: VecDeque::new(),
            done: 0,
            direct: 0,
            mapped: 0,
        })
    }

    /// Does so many calls; each is one call or a few that belong together.
    pub(super) fn run(&mut self, operations: u64) -> Result<(), Fault> {
        let fs = call("the folder", HostFs::open(&self.root))?;
        for _ in 0..operations {
            self.one(&fs).map_err(|what| {
                let recent: Vec<String> = self.recent.iter().cloned().collect();
                format!(
                    "{}, operation {}: {what}\nbefore that:\n  {}",
                    self.root.display(),
                    self.done,
                    recent.join("\n  ")
                )
            })?;
            self.done += 1;
        }
        Ok(())
    }

    /// Whether the folder is what the model has, with all contents.
    pub(super) fn compare(&self) -> Result<(), Fault> {
        let of = |what: Fault| format!("{}: {what}", self.root.display());
        let fs = call("the folder", HostFs::open(&self.root))?;
        let views = call("look", look(&fs, fs.root())).map_err(of)?;
        self.tree.compare(&views).map_err(|what| of(what.into()))?;
        self.shared.verify()
    }

    /// Notes what is about to be done.
    pub(super) fn note(&mut self, what: String) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        // Names are long on purpose; their beginnings distinguish them.
        self.recent.push_back(what.replace(&"n".repeat(25), "~"));
    }

    fn one(&mut self, fs: &HostFs) -> Result<(), Fault> {
        let drawn = match self.random.below(100) {
            0..31 => self.draw_names(),
            31..36 => return self.list(fs),
            36..39 => return self.shared.race(&mut self.random),
            39..45 => return self.shared.ranges(&mut self.random),
            drawn => match self.pick(Some(NodeKind::File)) {
                Some(name) if drawn < 66 => return self.use_content(fs, &name),
                Some(name) => self.draw_change(name),
                None => self.draw_names(),
            },
        };
        drawn.map_or(Ok(()), |op| self.apply(fs, &op))
    }

    /// Carries it out, and on the model; or sees that it is refused as it must be.
    fn apply(&mut self, fs: &HostFs, op: &Operation) -> Result<(), Fault> {
        self.note(op.to_string());
        let (by, due) = ((self.number, self.done as usize), self.tree.names.refusal(op));
        let found = match op {
            Operation::Write { name, offset, len, how: WriteKind::Mapped } => {
                self.mapped += 1;
                self.write_mapped(name, *offset as usize, *len as usize, by)?;
                Ok(())
            }
            _ => op.apply(fs, fs.root(), by).map_err(|e| Errno::from_raw_os_error(e.errno())),
        };
        self.direct += u64::from(matches!(op, Operation::Write { how: WriteKind::Direct, .. }));
        match (found, due) {
            (Ok(()), None) => self.tree.apply(by, op),
            (Err(found), Some(due)) if found == due => {}
            (Err(errno), None) if may_be_unsupported(op, errno) => {
                let text = op.to_string();
                let mut words = text.split(' ');
                let verb = words.next().filter(|verb| *verb != "falloc");
                let name = verb.or_else(|| words.nth(1)).unwrap_or_default();
                *self.refused.entry(name.to_owned()).or_default() += 1;
            }
            (found, due) => return Err(format!("{op}: {found:?}, expected {due:?}")),
        }
        Ok(())
    }

    /// The names in a folder.
    fn list(&mut self, fs: &HostFs) -> Result<(), Fault> {
        let folder = self.pick(Some(NodeKind::Folder)).unwrap_or_default();
        self.note(format!("readdir '{folder}'"));
        let ino = call("lookup", path::resolve(fs, folder.as_bytes(), false))?.ino;
        let mut found = BTreeSet::new();
        for entry in call("readdir", path::list(fs, ino))? {
            let attr = call("lookup", fs.lookup(ino, &entry.name))?;
            let name = String::from_utf8_lossy(&entry.name).into_owned();
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let (kind, size) = (self.tree.names.kind(&path), self.tree.names.size(&path));
            if kind != NodeKind::of(attr.kind) || kind == Some(NodeKind::File) && attr.size != size
            {
                return Err(format!("{path} is {attr:?}, not {kind:?} of {size} bytes"));
            }
            if !found.insert(path) {
                return Err(format!("'{folder}' has a name twice"));
            }
        }
        let names = self.tree.names.entries.keys();
        let inside = names.filter(|name| !name.is_empty() && parent(name) == folder);
        match inside.filter(|name| !found.contains(*name)).collect::<Vec<_>>().as_slice() {
            [] => Ok(()),
            missing => Err(format!("folder '{folder}': missing {missing:?}")),
        }
    }
}

/// Whether a file system may do without this.
fn may_be_unsupported(op: &Operation, errno: Errno) -> bool {
    match op {
        Operation::Exchange { .. } if errno == Errno::INVAL => true,
        Operation::Exchange { .. }
        | Operation::SetAttribute { .. }
        | Operation::Fallocate { .. } => {
            matches!(errno, Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOTTY)
        }
        _ => false,
    }
}
