//! One task in a folder of its own: random calls on the folder and on a model of it.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, RenameFlags, XattrFlags};
use rustix::io::Errno;

use super::model::{FileId, Node, TreeModel};
use super::random::SplitMix64;
use super::shared::SharedFile;
use super::{contents, verify};

/// More names than this are not made.
const NAMES_MAX: usize = 60;
/// Calls that are listed when something is wrong.
const RECENT: usize = 30;

/// Why a task cannot go on: what it was about to do, and what it found.
pub(super) type Fault = String;

/// A task and what it knows.
pub(super) struct Task {
    pub(super) root: PathBuf,
    pub(super) random: SplitMix64,
    pub(super) model: TreeModel,
    pub(super) shared: SharedFile,
    /// Calls refused as not supported, by name: not faults, but reported.
    pub(super) refused: BTreeMap<&'static str, u64>,
    recent: VecDeque<String>,
    /// Bytes of a block, as the file system says.
    block_size: usize,
    pub(super) done: u64,
    /// Of these, on its own files: with O_DIRECT, and through a map.
    pub(super) direct: u64,
    pub(super) mapped: u64,
}

impl Task {
    pub(super) fn new(root: PathBuf, shared: SharedFile, seed: u64) -> Result<Task, Fault> {
        let block_size = call("statvfs", rustix::fs::statvfs(&root))?.f_bsize as usize;
        Ok(Task {
            block_size,
            root,
            random: SplitMix64::new(seed),
            model: TreeModel::default(),
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
        for _ in 0..operations {
            self.one().map_err(|what| {
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

    /// Notes what is about to be done.
    pub(super) fn note(&mut self, what: String) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        // Names are long on purpose; their beginnings distinguish them.
        self.recent.push_back(what.replace(&"n".repeat(25), "~"));
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Whether a call that may be unsupported was done.
    pub(super) fn unless_refused(
        &mut self,
        name: &'static str,
        result: Result<(), Errno>,
    ) -> Result<bool, Fault> {
        match result {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOTTY) => {
                *self.refused.entry(name).or_default() += 1;
                Ok(false)
            }
            Err(errno) => Err(format!("{name}: {errno}")),
        }
    }

    fn one(&mut self) -> Result<(), Fault> {
        match self.random.below(100) {
            0..8 => self.create(),
            8..10 => self.mkdir(),
            10..12 => self.symlink(),
            12..15 => self.link(),
            15..21 => self.remove(),
            21..26 => self.rename(),
            26..28 => self.exchange(),
            28..30 => self.list(),
            30..33 => self.look(),
            33..36 => self.attribute(),
            36..39 => self.shared.race(&mut self.random),
            39..45 => self.shared.ranges(&mut self.random),
            _ => match self.model.pick_file(&mut self.random) {
                Some((path, id)) => contents::operate(self, &path, id),
                None => self.create(),
            },
        }
    }

    /// A name that is not taken, in some folder.
    fn new_name(&mut self) -> String {
        let folder = match self.random.one_in(2) {
            true => self.model.pick(&mut self.random, |n| *n == Node::Folder),
            false => None,
        };
        loop {
            let len = [1, 5, 30, 255][self.random.below(4)];
            let number = format!("{:x}", self.random.next() % 4096);
            let name = format!("{number}{}", "n".repeat(len)).chars().take(255).collect::<String>();
            let path = match &folder {
                // Paths must not become too long for a call.
                Some(folder) if folder.len() < 1000 => format!("{folder}/{name}"),
                _ => name,
            };
            if !self.model.names.contains_key(&path) {
                return path;
            }
        }
    }

    fn create(&mut self) -> Result<(), Fault> {
        if self.model.names.len() >= NAMES_MAX {
            return self.remove();
        }
        let name = self.new_name();
        self.note(format!("create {name}"));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        call("create", rustix::fs::open(self.path(&name), flags, Mode::from_raw_mode(0o644)))?;
        self.model.create(&name);
        Ok(())
    }

    fn mkdir(&mut self) -> Result<(), Fault> {
        if self.model.names.len() >= NAMES_MAX {
            return self.remove();
        }
        let name = self.new_name();
        self.note(format!("mkdir {name}"));
        call("mkdir", rustix::fs::mkdir(self.path(&name), Mode::from_raw_mode(0o755)))?;
        self.model.names.insert(name, Node::Folder);
        Ok(())
    }

    fn symlink(&mut self) -> Result<(), Fault> {
        if self.model.names.len() >= NAMES_MAX {
            return self.remove();
        }
        let name = self.new_name();
        let len = [1, 59, 60, 200, 3000][self.random.below(5)];
        // It must fit into a block.
        let len = len.min(self.block_size - 1);
        let target = "t".repeat(len);
        self.note(format!("symlink of {len} bytes {name}"));
        call("symlink", rustix::fs::symlink(&target, self.path(&name)))?;
        self.model.names.insert(name, Node::Symlink(target));
        Ok(())
    }

    fn link(&mut self) -> Result<(), Fault> {
        let Some((old, id)) = self.model.pick_file(&mut self.random) else { return Ok(()) };
        if self.model.names.len() >= NAMES_MAX {
            return self.remove();
        }
        let new = self.new_name();
        self.note(format!("link {old} {new}"));
        call("link", rustix::fs::link(self.path(&old), self.path(&new)))?;
        self.model.names.insert(new, Node::File(id));
        Ok(())
    }

    fn remove(&mut self) -> Result<(), Fault> {
        let Some(name) = self.model.pick(&mut self.random, |_| true) else { return Ok(()) };
        self.note(format!("remove {name}"));
        if self.model.names[&name] != Node::Folder {
            call("unlink", rustix::fs::unlink(self.path(&name)))?;
            self.model.remove(&name);
        } else {
            let result = rustix::fs::rmdir(self.path(&name));
            if self.model.is_empty_folder(&name) {
                call("rmdir", result)?;
                self.model.remove(&name);
            } else if result != Err(Errno::NOTEMPTY) {
                return Err(format!("rmdir of a folder with entries: {result:?}"));
            }
        }
        Ok(())
    }

    fn rename(&mut self) -> Result<(), Fault> {
        let Some(old) = self.model.pick(&mut self.random, |_| true) else { return Ok(()) };
        let over = match self.random.one_in(2) {
            true => self.model.pick(&mut self.random, |_| true),
            false => None,
        };
        let new = over.unwrap_or_else(|| self.new_name());
        self.note(format!("rename {old} {new}"));
        let result = rustix::fs::rename(self.path(&old), self.path(&new));
        let expected = self.rename_error(&old, &new);
        match (result, expected) {
            (Ok(()), None) => {
                self.model.rename(&old, &new);
                Ok(())
            }
            (Err(errno), Some(expected)) if expected.contains(&errno) => Ok(()),
            (result, expected) => Err(format!("rename: {result:?}, expected {expected:?}")),
        }
    }

    /// What is wrong with a rename; any one of several errors may be returned.
    fn rename_error(&self, old: &str, new: &str) -> Option<Vec<Errno>> {
        let is_folder = |path: &str| self.model.names.get(path) == Some(&Node::Folder);
        let mut errors = Vec::new();
        if is_folder(old) && new.starts_with(&format!("{old}/")) {
            errors.push(Errno::INVAL);
        }
        if old.starts_with(&format!("{new}/")) {
            errors.push(Errno::NOTEMPTY);
        }
        if old != new && self.model.names.contains_key(new) {
            match (is_folder(old), is_folder(new)) {
                (true, false) => errors.push(Errno::NOTDIR),
                (false, true) => errors.push(Errno::ISDIR),
                (true, true) if !self.model.is_empty_folder(new) => errors.push(Errno::NOTEMPTY),
                _ => {}
            }
        }
        (!errors.is_empty()).then_some(errors)
    }

    fn exchange(&mut self) -> Result<(), Fault> {
        let any = |_: &Node| true;
        let (Some(a), Some(b)) =
            (self.model.pick(&mut self.random, any), self.model.pick(&mut self.random, any))
        else {
            return Ok(());
        };
        let inside = |a: &str, b: &str| b.starts_with(&format!("{a}/"));
        if a == b || inside(&a, &b) || inside(&b, &a) {
            return Ok(());
        }
        self.note(format!("exchange {a} {b}"));
        let (from, to) = (self.path(&a), self.path(&b));
        let result = rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::EXCHANGE);
        let result = if result == Err(Errno::INVAL) { Err(Errno::OPNOTSUPP) } else { result };
        if self.unless_refused("exchange", result)? {
            self.model.exchange(&a, &b);
        }
        Ok(())
    }

    fn list(&mut self) -> Result<(), Fault> {
        let folder = self.model.pick(&mut self.random, |n| *n == Node::Folder);
        let folder = folder.unwrap_or_default();
        self.note(format!("readdir '{folder}'"));
        verify::folder(&self.root, &self.model, &folder)
    }

    fn look(&mut self) -> Result<(), Fault> {
        let Some(name) = self.model.pick(&mut self.random, |_| true) else { return Ok(()) };
        self.note(format!("look at {name}"));
        verify::name(&self.root, &self.model, &name, false)
    }

    fn attribute(&mut self) -> Result<(), Fault> {
        let Some((path, id)) = self.model.pick_file(&mut self.random) else { return Ok(()) };
        // So must all attributes of a file.
        let len = [0, 10, 300, 3000][self.random.below(4)].min(self.block_size * 3 / 4 - 32);
        let value = self.random.bytes(len);
        self.note(format!("attribute of {len} bytes, {path}"));
        let file = self.path(&path);
        let none = XattrFlags::empty();
        let result = rustix::fs::setxattr(&file, "user.stress", &value, none);
        if self.unless_refused("setxattr", result)? {
            self.file(id).attribute = Some(value);
        }
        Ok(())
    }

    pub(super) fn file(&mut self, id: FileId) -> &mut super::model::File {
        // A file has an entry as long as it has a name, and callers come from a name.
        self.model.files.entry(id).or_default()
    }
}

/// The value of a call that has to succeed.
pub(super) fn call<T>(name: &str, result: Result<T, Errno>) -> Result<T, Fault> {
    result.map_err(|errno| format!("{name}: {errno}"))
}

/// Opens a file that has to be there.
pub(super) fn open(path: &Path, flags: OFlags) -> Result<rustix::fd::OwnedFd, Fault> {
    call("open", rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()))
}
