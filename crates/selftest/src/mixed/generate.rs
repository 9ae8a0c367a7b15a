//! Draws operations that can succeed.

use steadfast_block::rng::Rng;
use steadfast_suite::names::{Names, NodeKind, is_inside};
use steadfast_suite::operation::{Operation, OperationIndex, WriteKind};

/// Files grow to about this size.
const SIZE_MAX: u64 = 96 << 10;
/// Direct writes are aligned to this.
const ALIGN: u64 = 4096;

/// Draws the operations of one task.
pub(super) struct Generator {
    rng: Rng,
    names: Names,
    next: OperationIndex,
    like: WorkloadMix,
}

/// What a workload is like.
#[derive(Debug, Clone, Copy, Default)]
pub struct WorkloadMix {
    /// Transaction points are asked for.
    pub transact: bool,
    /// Mostly operations that a fast commit can record: one that it cannot makes the next fsyncs of
    /// all tasks full commits.
    pub fast_commits: bool,
    /// More names and blocks go and come anew.
    pub churn: bool,
}

impl Generator {
    pub fn new(seed: u64, like: WorkloadMix) -> Self {
        Generator { rng: Rng::new(seed), names: Names::new(), next: 0, like }
    }

    fn pick(&mut self, kind: NodeKind) -> Option<String> {
        let of_kind = self.names.of_kind(kind);
        let count = of_kind.len() as u64;
        (count > 0).then(|| of_kind[self.rng.below(count) as usize].clone())
    }

    /// A name in some folder that may or may not be there.
    fn name(&mut self, words: &[&str]) -> String {
        let folder = self.pick(NodeKind::Folder).unwrap_or_default();
        let word = words[self.rng.below(words.len() as u64) as usize];
        if folder.is_empty() { word.to_owned() } else { format!("{folder}/{word}") }
    }

    fn new_name(&mut self, words: &[&str]) -> Option<String> {
        let name = self.name(words);
        self.names.node(&name).is_none().then_some(name)
    }

    /// The next operation.
    pub fn next(&mut self) -> Operation {
        let op = loop {
            if let Some(op) = self.draw() {
                break op;
            }
        };
        self.names.apply(self.next, &op);
        self.next += 1;
        op
    }

    fn draw(&mut self) -> Option<Operation> {
        const FILES: [&str; 6] = ["a", "b", "c", "d", "e", "a-name-that-takes-some-room"];
        const FOLDERS: [&str; 3] = ["p", "q", "r"];
        let kind = match self.rng.below(100) {
            // What frees and takes anew: names that go, files that are cut, folders.
            drawn if self.like.churn && drawn >= 60 => {
                [46, 46, 78, 71, 75, 86, 100][self.rng.below(7) as usize]
            }
            drawn => drawn,
        };
        if self.like.fast_commits && matches!(kind, 44..53 | 67..82) && self.rng.percent(85) {
            return None;
        }
        Some(match kind {
            0..30 => return self.write(),
            30..44 => Operation::Create { name: self.new_name(&FILES)? },
            44..51 => Operation::Unlink { name: self.pick(NodeKind::File)? },
            100 => Operation::UnlinkOpen { name: self.pick(NodeKind::File)? },
            51..53 => Operation::Unlink { name: self.pick(NodeKind::Symlink)? },
            53..63 => return self.rename(&FILES),
            63..67 => {
                Operation::Link { from: self.pick(NodeKind::File)?, to: self.new_name(&FILES)? }
            }
            67..70 => {
                let target = "t".repeat(1 + self.rng.below(120) as usize);
                Operation::Symlink { name: self.new_name(&["l", "m"])?, target }
            }
            70..74 => {
                let name = self.new_name(&FOLDERS).filter(|n| n.len() < 6)?;
                Operation::Mkdir { name }
            }
            74..76 => Operation::Rmdir { name: self.empty_folder()? },
            76..82 => {
                let size = self.rng.below(SIZE_MAX);
                Operation::Truncate { name: self.pick(NodeKind::File)?, size }
            }
            82..85 => {
                let mode = 0o400 | self.rng.below(0o400) as u16;
                Operation::Chmod { name: self.pick(NodeKind::File)?, mode }
            }
            85..92 => Operation::Fsync { name: self.pick(NodeKind::File)?, data_only: kind > 90 },
            92..95 => Operation::FsyncDir { name: self.pick(NodeKind::Folder)? },
            95 => Operation::Sync,
            _ if self.like.transact => Operation::Transact,
            _ => return None,
        })
    }

    fn write(&mut self) -> Option<Operation> {
        let name = self.pick(NodeKind::File)?;
        let size = self.names.size(&name);
        let how = match self.rng.below(20) {
            0..12 => WriteKind::Buffered,
            12..14 => WriteKind::Sync,
            14..16 => WriteKind::DataSync,
            _ if self.like.fast_commits && self.rng.percent(80) => WriteKind::Sync,
            _ => WriteKind::Direct,
        };
        let align = if how == WriteKind::Direct { ALIGN } else { 1 };
        let append = self.rng.percent(50);
        let offset = if append { size } else { self.rng.below(SIZE_MAX) };
        let offset = offset.min(SIZE_MAX) / align * align;
        let longest = if self.rng.percent(20) { 40_000 } else { 6_000 };
        let len = (1 + self.rng.below(longest)).next_multiple_of(align);
        Some(Operation::Write { name, offset, len, how })
    }

    fn rename(&mut self, files: &[&str]) -> Option<Operation> {
        let kind = if self.rng.percent(75) { NodeKind::File } else { NodeKind::Folder };
        let from = self.pick(kind).filter(|n| !n.is_empty())?;
        let to = self.name(if kind == NodeKind::File { files } else { &["p", "q", "s"] });
        let into_itself = to == from || is_inside(&to, &from);
        let deep = kind == NodeKind::Folder && to.len() > 5;
        if self.like.fast_commits && self.names.kind(&to).is_some() && self.rng.percent(85) {
            return None;
        }
        let fits = match self.names.kind(&to) {
            None => true,
            Some(NodeKind::Folder) => kind == NodeKind::Folder && self.names.is_empty(&to),
            Some(_) => kind != NodeKind::Folder,
        };
        (!into_itself && !deep && fits && !is_inside(&from, &to))
            .then_some(Operation::Rename { from, to })
    }

    fn empty_folder(&mut self) -> Option<String> {
        self.pick(NodeKind::Folder).filter(|n| !n.is_empty() && self.names.is_empty(n))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use steadfast_suite::operation::OperationKind;
    use strum::VariantArray;

    use super::*;

    /// Whoever adds an operation draws it, or says here that only the smallest sequences have it.
    #[test]
    fn every_operation_is_drawn_or_named() {
        use OperationKind as Sort;
        const NOT_DRAWN: [Sort; 8] = [
            Sort::Mkfifo,
            Sort::RenameNew,
            Sort::Exchange,
            Sort::Fallocate,
            Sort::SetAttribute,
            Sort::RemoveAttribute,
            Sort::Chown,
            Sort::SetTimes,
        ];
        let mut drawn: HashSet<OperationKind> = HashSet::new();
        for like in [
            WorkloadMix { transact: true, ..WorkloadMix::default() },
            WorkloadMix { churn: true, ..WorkloadMix::default() },
        ] {
            let mut generator = Generator::new(1, like);
            drawn.extend((0..3000).map(|_| Sort::from(generator.next())));
        }
        for sort in Sort::VARIANTS {
            assert_ne!(drawn.contains(sort), NOT_DRAWN.contains(sort), "{sort:?}");
        }
    }
}
