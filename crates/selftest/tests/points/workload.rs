//! What tasks do between points: everything that changes a tree, at random.

use steadfast_block::rng::Rng;
use steadfast_ext4::Ext4;
use steadfast_suite::operation::{Operation, WriteKind};
use steadfast_vfs::{Fallocate, FsError, Ino};

const FILES: u64 = 7;
const LONGEST: u64 = 60_000;
const PAGE: u64 = 4096;

/// A task in a folder of its own.
pub struct Worker<'a> {
    pub dir: Ino,
    rng: Rng,
    task: usize,
    done: usize,
    /// Told before and after each operation.
    watch: &'a mut dyn FnMut(&Ext4, Ino, bool),
}

impl<'a> Worker<'a> {
    pub fn new(dir: Ino, seed: u64, watch: &'a mut dyn FnMut(&Ext4, Ino, bool)) -> Self {
        Worker { dir, rng: Rng::new(seed), task: seed as usize, done: 0, watch }
    }

    fn name(&mut self) -> String {
        format!("file{}", self.rng.below(FILES))
    }

    /// One operation, or a few that belong together.
    pub fn step(&mut self, fs: &Ext4) {
        self.draw().iter().for_each(|op| self.apply(fs, op));
    }

    /// That a name is not there, or there already, is as good as any outcome.
    fn apply(&mut self, fs: &Ext4, op: &Operation) {
        (self.watch)(fs, self.dir, false);
        let outcome = op.apply(fs, self.dir, (self.task, self.done));
        (self.watch)(fs, self.dir, true);
        self.done += 1;
        match outcome {
            Ok(()) | Err(FsError::NotFound | FsError::Exists | FsError::NotEmpty) => {}
            Err(FsError::IsDirectory | FsError::NotDirectory | FsError::Invalid { .. }) => {}
            // Not in files that are mapped by indirect blocks.
            Err(FsError::Unsupported { .. }) if matches!(op, Operation::Fallocate { .. }) => {}
            Err(e) => panic!("{op}: {e}"),
        }
    }

    fn draw(&mut self) -> Vec<Operation> {
        let (name, other) = (self.name(), self.name());
        let create = || Operation::Create { name: name.clone() };
        let write = |offset, len, how| {
            vec![create(), Operation::Write { name: name.clone(), offset, len, how }]
        };
        let inside = || "sub/inside".to_owned();
        match self.rng.below(24) {
            0..=6 => {
                let at = self.rng.below(LONGEST);
                write(at, 1 + self.rng.below(LONGEST / 4), WriteKind::Buffered)
            }
            7..=9 => write(self.rng.below(LONGEST / PAGE) * PAGE, 2 * PAGE, WriteKind::Direct),
            10 => write(0, self.rng.below(5000) + 1, WriteKind::Append),
            11..=12 => vec![Operation::Truncate { name, size: self.rng.below(LONGEST) }],
            13 => vec![Operation::Unlink { name }],
            14 => vec![Operation::Rename { from: name, to: other }],
            15 => vec![Operation::Link { from: name, to: other }],
            16 => vec![Operation::Symlink { name, target: "x".repeat(90) }],
            17 => vec![
                Operation::Mkdir { name: "sub".into() },
                Operation::Create { name: inside() },
                Operation::Write { name: inside(), offset: 0, len: 3000, how: WriteKind::Buffered },
            ],
            18 => {
                vec![Operation::Unlink { name: inside() }, Operation::Rmdir { name: "sub".into() }]
            }
            19..=22 => vec![self.draw_fallocate(name)],
            _ => {
                let mut all = write(0, 9000, WriteKind::Buffered);
                all.push(Operation::UnlinkOpen { name });
                all
            }
        }
    }

    /// Allocates, punches, zeroes, or shifts a part of a file.
    fn draw_fallocate(&mut self, name: String) -> Operation {
        let keep_size = self.rng.percent(50);
        let what = match self.rng.below(6) {
            0 => Fallocate::Allocate { keep_size },
            1..=2 => Fallocate::PunchHole,
            3 => Fallocate::ZeroRange { keep_size },
            4 => Fallocate::CollapseRange,
            _ => Fallocate::InsertRange,
        };
        let (mut offset, mut len) = (self.rng.below(LONGEST), 1 + self.rng.below(LONGEST / 4));
        if matches!(what, Fallocate::CollapseRange | Fallocate::InsertRange) {
            (offset, len) = (offset / PAGE * PAGE, len.next_multiple_of(PAGE));
        }
        Operation::Fallocate { name, what, offset, len }
    }
}
