//! Runs a sequence against a file system and the model.

use std::fmt::Debug;

use bytes::Bytes;
use steadfast_vfs::{
    Fh, FileSystem, FileType, FsError, Ino, NewNode, OpenFlags, Result, SetAttr, SetTime,
    Timestamp, path,
};

use super::model::{Model, Outcome, ROOT};
use super::ops::{Op, Way, name, target};
use super::tree::read_all;
use crate::stage::Stage;

/// Direct I/O is done in units of this.
const DIRECT_UNIT: u32 = 4096;
/// Mode of new files and directories.
const FILE_MODE: u16 = 0o640;
const DIR_MODE: u16 = 0o750;

/// Runs `ops`; panics where file system and model disagree. Returns the model at the end.
pub fn run(stage: &mut impl Stage, ops: &[Op]) -> Model {
    let mut runner = Runner { model: Model::new(), held: None, step: 0 };
    for (i, op) in ops.iter().enumerate() {
        runner.step = i as u32;
        if matches!(op, Op::Remount) {
            runner.forget_inode(stage.fs(), false);
            stage.remount();
        } else {
            runner.run(stage.fs(), op);
        }
    }
    runner.forget_inode(stage.fs(), true);
    runner.model
}

struct Runner {
    model: Model,
    /// An open file and its node.
    held: Option<(Fh, usize)>,
    step: u32,
}

/// A path picked from the model.
struct Picked {
    parent: usize,
    name: Vec<u8>,
    node: usize,
    path: Vec<u8>,
    parent_path: Vec<u8>,
}

/// Bytes that say which step wrote them where.
fn pattern(step: u32, offset: u32, len: u32) -> Bytes {
    let byte = |i: u32| (step.wrapping_mul(37) ^ (i / 256).wrapping_mul(11) ^ i) as u8 | 1;
    (offset..offset + len).map(byte).collect()
}

fn node(mode: u16) -> NewNode {
    NewNode { mode, uid: 0, gid: 0, umask: 0 }
}

impl Runner {
    /// Picks one of the paths that `wanted` lets through; the root only if `root`.
    fn pick(&self, n: u16, root: bool, wanted: impl Fn(FileType) -> bool) -> Option<Picked> {
        let paths = self.model.paths();
        let fit: Vec<_> = paths
            .iter()
            .filter(|(path, node)| (root || !path.is_empty()) && wanted(self.model.kind(*node)))
            .collect();
        let (path, node) = *fit.get(usize::from(n).checked_rem(fit.len())?)?;
        let (name, above) =
            path.split_last().map_or((Vec::new(), &[][..]), |(n, a)| (n.clone(), a));
        let parent = above.iter().fold(ROOT, |dir, name| self.model.find(dir, name).unwrap());
        let (path, parent_path) = (path.join(&b'/'), above.join(&b'/'));
        Some(Picked { parent, name, node: *node, path, parent_path })
    }

    fn dir(&self, n: u16) -> Picked {
        self.pick(n, true, |kind| kind == FileType::Directory).unwrap()
    }

    fn file(&self, n: u16) -> Option<Picked> {
        self.pick(n, false, |kind| kind == FileType::Regular)
    }

    fn any(&self, n: u16) -> Option<Picked> {
        self.pick(n, false, |_| true)
    }

    fn run(&mut self, fs: &dyn FileSystem, op: &Op) {
        let step = self.step;
        let agree = |got: Result<()>, want: Outcome| assert_agree(step, op, got, want);
        match op {
            Op::Create { dir, name: n } => {
                let (dir, name) = (self.dir(*dir), name(*n));
                let flags = OpenFlags::READ | OpenFlags::WRITE;
                let got = fs.create(ino(fs, &dir.path), &name, node(FILE_MODE), flags);
                let got = got.and_then(|(_, fh)| fs.release(fh));
                agree(got, self.model.create(dir.node, &name, FILE_MODE).map(drop));
            }
            Op::Mkdir { dir, name: n } => {
                let (dir, name) = (self.dir(*dir), name(*n));
                let got = fs.mkdir(ino(fs, &dir.path), &name, node(DIR_MODE)).map(drop);
                agree(got, self.model.mkdir(dir.node, &name, DIR_MODE).map(drop));
            }
            Op::Symlink { dir, name: n, len } => {
                let (dir, name, target) = (self.dir(*dir), name(*n), target(*len));
                // The longest target is less than a block.
                let target = &target[..target.len().min(1000)];
                let got = fs.symlink(ino(fs, &dir.path), &name, target, node(0o777)).map(drop);
                agree(got, self.model.symlink(dir.node, &name, target).map(drop));
            }
            Op::Link { of, dir, name: n } => {
                let Some(of) = self.any(*of) else { return };
                let (dir, name) = (self.dir(*dir), name(*n));
                let got = fs.link(ino(fs, &of.path), ino(fs, &dir.path), &name).map(drop);
                agree(got, self.model.link(of.node, dir.node, &name));
            }
            Op::Unlink { of } => {
                let Some(of) = self.any(*of) else { return };
                let got = fs.unlink(ino(fs, &of.parent_path), &of.name);
                agree(got, self.model.unlink(of.parent, &of.name));
            }
            Op::Rmdir { of } => {
                let Some(of) = self.any(*of) else { return };
                let got = fs.rmdir(ino(fs, &of.parent_path), &of.name);
                agree(got, self.model.rmdir(of.parent, &of.name));
            }
            Op::Rename { of, dir, name: n, flags } => {
                let Some(of) = self.any(*of) else { return };
                let (dir, name) = (self.dir(*dir), name(*n));
                let (from, to) = (ino(fs, &of.parent_path), ino(fs, &dir.path));
                let got = fs.rename(from, &of.name, to, &name, *flags);
                let (from, to) = ((of.parent, &of.name[..]), (dir.node, &name[..]));
                agree(got, self.model.rename(from, to, *flags));
            }
            Op::Crowd { dir, count, long } => self.crowd(fs, *dir, *count, *long),
            Op::Thin { dir, keep_each } => self.thin(fs, *dir, *keep_each),
            Op::Mode { .. } | Op::Owner { .. } | Op::Times { .. } => self.attributes(fs, op),
            Op::Sync => fs.sync().unwrap(),
            Op::Remount => {}
            Op::Write { .. } | Op::Truncate { .. } | Op::Fsync { .. } | Op::ReadBack { .. } => {
                self.contents(fs, op);
            }
            Op::Hold { file } => {
                let Some(file) = self.file(*file) else { return };
                self.forget_inode(fs, false);
                let flags = OpenFlags::READ | OpenFlags::WRITE;
                self.held = Some((fs.open(ino(fs, &file.path), flags).unwrap(), file.node));
            }
            Op::LetGo { write } => self.forget_inode(fs, *write),
        }
    }

    fn attributes(&mut self, fs: &dyn FileSystem, op: &Op) {
        let (of, set) = match op {
            Op::Mode { of, mode } => (of, SetAttr { mode: Some(*mode), ..SetAttr::default() }),
            Op::Owner { of, uid, gid } => {
                (of, SetAttr { uid: Some(*uid), gid: Some(*gid), ..SetAttr::default() })
            }
            Op::Times { of, secs } => {
                let time = Some(SetTime::At(Timestamp { secs: *secs, nanos: self.step }));
                (of, SetAttr { atime: time, mtime: time, ..SetAttr::default() })
            }
            _ => unreachable!("not attributes"),
        };
        // Linux cannot change the mode of a symbolic link.
        let Some(of) = self.pick(*of, false, |kind| kind != FileType::Symlink) else { return };
        let attr = fs.setattr(ino(fs, &of.path), set).unwrap();
        assert!(set.mode.is_none_or(|mode| mode == attr.mode), "{op:?}");
        assert!(set.uid.is_none_or(|uid| uid == attr.uid), "{op:?}");
        assert!(set.gid.is_none_or(|gid| gid == attr.gid), "{op:?}");
        // Inodes of 128 bytes have no time of creation, and whole seconds up to 2038.
        let seconds_only = attr.crtime == Timestamp::default();
        let is = |t: SetTime| match t {
            SetTime::At(t) if seconds_only => {
                attr.mtime == Timestamp { secs: t.secs.min(i32::MAX.into()), nanos: 0 }
            }
            t => t == SetTime::At(attr.mtime),
        };
        assert!(set.mtime.is_none_or(is), "{op:?}: {attr:?}");
        self.model.nodes[of.node].mode = attr.mode;
    }

    fn contents(&mut self, fs: &dyn FileSystem, op: &Op) {
        match op {
            Op::Write { file, offset, len, way } => {
                let Some(file) = self.file(*file) else { return };
                self.write(fs, &file, *offset, *len, *way);
            }
            Op::Truncate { file, size } => {
                let Some(file) = self.file(*file) else { return };
                let set = SetAttr { size: Some((*size).into()), ..SetAttr::default() };
                let attr = fs.setattr(ino(fs, &file.path), set).unwrap();
                assert_eq!(attr.size, u64::from(*size));
                self.model.data_mut(file.node).resize(*size as usize, 0);
            }
            Op::Fsync { file, data_only } => {
                let Some(file) = self.file(*file) else { return };
                let fh = fs.open(ino(fs, &file.path), OpenFlags::WRITE).unwrap();
                fs.fsync(fh, *data_only).unwrap();
                fs.release(fh).unwrap();
            }
            Op::ReadBack { file } => {
                let Some(file) = self.file(*file) else { return };
                let got = read_all(fs, ino(fs, &file.path));
                assert!(got == self.model.data(file.node), "step {}: {op:?}", self.step);
            }
            _ => unreachable!("an operation on names"),
        }
    }

    fn write(&mut self, fs: &dyn FileSystem, file: &Picked, offset: u32, len: u32, way: Way) {
        let mut flags = OpenFlags::WRITE;
        let (mut offset, mut len) = (offset, len);
        match way {
            Way::Buffered => {}
            Way::Sync => flags |= OpenFlags::SYNC,
            Way::Dsync => flags |= OpenFlags::DSYNC,
            Way::Direct => {
                flags |= OpenFlags::DIRECT;
                offset -= offset % DIRECT_UNIT;
                len = len.next_multiple_of(DIRECT_UNIT);
            }
            Way::Append => {
                flags |= OpenFlags::APPEND;
                offset = self.model.data(file.node).len() as u32;
            }
        }
        let bytes = pattern(self.step, offset, len);
        let fh = fs.open(ino(fs, &file.path), flags).unwrap();
        let wrote = fs.write(fh, offset.into(), bytes.clone()).unwrap();
        assert_eq!(wrote, bytes.len());
        fs.release(fh).unwrap();
        self.model.write(file.node, offset as usize, &bytes);
    }

    fn forget_inode(&mut self, fs: &dyn FileSystem, write: bool) {
        let Some((fh, node)) = self.held.take() else { return };
        if write {
            let bytes = pattern(self.step, 100, 5000);
            assert_eq!(fs.write(fh, 100, bytes.clone()).unwrap(), bytes.len());
            self.model.write(node, 100, &bytes);
        }
        let got = fs.read(fh, 0, 10_000).unwrap();
        let want = self.model.data(node);
        assert!(got[..] == want[..want.len().min(got.len())], "a held file differs");
        fs.release(fh).unwrap();
    }

    fn crowd(&mut self, fs: &dyn FileSystem, dir: u16, count: u16, long: bool) {
        let dir = self.dir(dir);
        let at = ino(fs, &dir.path);
        for i in 0..count {
            let mut name = format!("crowd-{i}").into_bytes();
            if long {
                name.resize(100 + usize::from(i) % 150, b'~');
            }
            if self.model.create(dir.node, &name, FILE_MODE).is_err() {
                continue;
            }
            let (_, fh) = fs.create(at, &name, node(FILE_MODE), OpenFlags::WRITE).unwrap();
            fs.release(fh).unwrap();
        }
    }

    fn thin(&mut self, fs: &dyn FileSystem, dir: u16, keep_each: u8) {
        let dir = self.dir(dir);
        let at = ino(fs, &dir.path);
        let entries = self.model.entries(dir.node);
        let crowd = entries.iter().filter(|(n, node)| {
            n.starts_with(b"crowd-") && self.model.kind(**node) == FileType::Regular
        });
        let crowd: Vec<_> = crowd.map(|(name, _)| name.clone()).collect();
        for (_, name) in
            crowd.into_iter().enumerate().filter(|(i, _)| i % usize::from(keep_each) != 0)
        {
            self.model.unlink(dir.node, &name).unwrap();
            fs.unlink(at, &name).unwrap();
        }
    }
}

fn ino(fs: &dyn FileSystem, at: &[u8]) -> Ino {
    path::resolve(fs, at, false).unwrap().ino
}

fn assert_agree(step: u32, op: &dyn Debug, got: Result<()>, want: Outcome) {
    let number = got.as_ref().map_err(FsError::errno);
    assert_eq!(number.copied(), want, "step {step}: {op:?}: {got:?}");
}
