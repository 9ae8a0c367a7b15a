//! What tasks do between points: everything that changes a tree, at random.

use bytes::Bytes;
use steadfast_block::rng::Rng;
use steadfast_ext4::Ext4;
use steadfast_vfs::{
    Fallocate, FileSystem, FsError, Ino, NewNode, OpenFlags, RenameFlags, Result, SetAttr,
};

const RW: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);
const FILES: u64 = 7;
const LONGEST: u64 = 60_000;

/// A task in a folder of its own.
pub struct Worker<'a> {
    pub dir: Ino,
    rng: Rng,
    version: u64,
    /// Told before and after each call that may change something.
    watch: &'a mut dyn FnMut(&Ext4, Ino, bool),
}

fn contents(version: u64, len: u64) -> Bytes {
    (0..len).map(|at| ((version.wrapping_mul(0x9e37_79b9) + at / 5) >> 3) as u8 | 1).collect()
}

impl<'a> Worker<'a> {
    pub fn new(dir: Ino, seed: u64, watch: &'a mut dyn FnMut(&Ext4, Ino, bool)) -> Self {
        Worker { dir, rng: Rng::new(seed), version: seed << 32, watch }
    }

    /// Makes one call.
    fn call<T>(&mut self, fs: &Ext4, call: impl FnOnce(Ino) -> Result<T>) -> Result<T> {
        (self.watch)(fs, self.dir, false);
        let outcome = call(self.dir);
        (self.watch)(fs, self.dir, true);
        outcome
    }

    fn name(&mut self) -> Vec<u8> {
        format!("file{}", self.rng.below(FILES)).into_bytes()
    }

    fn open(&mut self, fs: &Ext4, name: &[u8], flags: OpenFlags) -> Result<steadfast_vfs::Fh> {
        match self.call(fs, |dir| fs.create(dir, name, NewNode::default(), flags)) {
            Ok((_, fh)) => Ok(fh),
            Err(FsError::Exists) => fs.open(fs.lookup(self.dir, name)?.ino, flags),
            Err(e) => Err(e),
        }
    }

    /// One operation. That a name is not there, or there already, is as good as any outcome.
    pub fn step(&mut self, fs: &Ext4) {
        match self.change(fs) {
            Ok(()) | Err(FsError::NotFound | FsError::Exists | FsError::NotEmpty) => {}
            Err(FsError::IsDirectory | FsError::NotDirectory | FsError::Invalid { .. }) => {}
            Err(e) => panic!("{e}"),
        }
    }

    fn change(&mut self, fs: &Ext4) -> Result<()> {
        self.version += 1;
        let (name, other) = (self.name(), self.name());
        match self.rng.below(24) {
            0..=6 => {
                let at = self.rng.below(LONGEST);
                let len = 1 + self.rng.below(LONGEST / 4);
                self.write(fs, &name, RW, at, len)
            }
            7..=9 => {
                let at = self.rng.below(LONGEST / 4096) * 4096;
                self.write(fs, &name, RW | OpenFlags::DIRECT, at, 8192)
            }
            10 => {
                let len = self.rng.below(5000) + 1;
                self.write(fs, &name, RW | OpenFlags::APPEND, 0, len)
            }
            11..=12 => {
                let ino = fs.lookup(self.dir, &name)?.ino;
                let size = Some(self.rng.below(LONGEST));
                let set = SetAttr { size, ..SetAttr::default() };
                self.call(fs, |_| fs.setattr(ino, set)).map(drop)
            }
            13 => self.call(fs, |dir| fs.unlink(dir, &name)),
            14 => self.call(fs, |dir| fs.rename(dir, &name, dir, &other, RenameFlags::empty())),
            15 => {
                let ino = fs.lookup(self.dir, &name)?.ino;
                self.call(fs, |dir| fs.link(ino, dir, &other)).map(drop)
            }
            16 => {
                let node = NewNode::default();
                self.call(fs, |dir| fs.symlink(dir, &name, &[b'x'; 90], node)).map(drop)
            }
            17 => {
                let node = NewNode::default();
                let sub = self.call(fs, |dir| fs.mkdir(dir, b"sub", node))?.ino;
                let (_, fh) = self.call(fs, |_| fs.create(sub, b"inside", node, RW))?;
                let data = contents(self.version, 3000);
                self.call(fs, |_| fs.write(fh, 0, data))?;
                fs.release(fh)
            }
            18 => {
                let sub = fs.lookup(self.dir, b"sub")?.ino;
                self.call(fs, |_| fs.unlink(sub, b"inside"))?;
                self.call(fs, |dir| fs.rmdir(dir, b"sub"))
            }
            19..=22 => self.reshape(fs, &name),
            _ => {
                // Unlinked while it is open, and written to.
                let fh = self.open(fs, &name, RW)?;
                self.call(fs, |dir| fs.unlink(dir, &name))?;
                let data = contents(self.version, 9000);
                self.call(fs, |_| fs.write(fh, 0, data))?;
                fs.release(fh)
            }
        }
    }

    /// Allocates, punches, zeroes, or shifts a part of a file.
    fn reshape(&mut self, fs: &Ext4, name: &[u8]) -> Result<()> {
        let keep_size = self.rng.percent(50);
        let what = match self.rng.below(6) {
            0 => Fallocate::Allocate { keep_size },
            1..=2 => Fallocate::PunchHole,
            3 => Fallocate::ZeroRange { keep_size },
            4 => Fallocate::CollapseRange,
            _ => Fallocate::InsertRange,
        };
        let (mut at, mut len) = (self.rng.below(LONGEST), 1 + self.rng.below(LONGEST / 4));
        if matches!(what, Fallocate::CollapseRange | Fallocate::InsertRange) {
            (at, len) = (at / 4096 * 4096, len.next_multiple_of(4096));
        }
        let fh = fs.open(fs.lookup(self.dir, name)?.ino, RW)?;
        let done = self.call(fs, |_| fs.fallocate(fh, what, at, len));
        fs.release(fh)?;
        match done {
            // Not in files that are mapped by indirect blocks.
            Err(FsError::Unsupported { .. }) => Ok(()),
            done => done,
        }
    }

    fn write(&mut self, fs: &Ext4, name: &[u8], flags: OpenFlags, at: u64, len: u64) -> Result<()> {
        let fh = self.open(fs, name, flags)?;
        let data = contents(self.version, len);
        let written = self.call(fs, |_| fs.write(fh, at, data));
        fs.release(fh)?;
        assert_eq!(written? as u64, len);
        Ok(())
    }
}
