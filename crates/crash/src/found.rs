//! What each recovered file system held, for those who count again: whose data each sector is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use steadfast_block::pattern::{self, SECTOR, Stamp};
use steadfast_devices::filter::record::Moment;
use steadfast_vfs::{FileSystem, FileType};

use crate::account::Operation;
use crate::figures::StateFigures;
use crate::judge::Judge;
use crate::program::Call;
use crate::tree::{Tree, shown};

/// What sectors of a file hold.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SectorData {
    /// Zeros.
    Zeros,
    /// Stamped data ([`steadfast_block::pattern`]), from this stamp on.
    Stamped(Stamp),
    /// One sector of something else.
    Other(Vec<u8>),
}

/// A file as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FoundFile {
    /// Its path.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// From which byte on it holds what, ascending.
    pub runs: Vec<(u64, SectorData)>,
}

/// What was found after all cuts.
#[derive(Debug, Default)]
pub struct CutFindings {
    /// Files: one that was found several times is here once.
    pub files: Vec<FoundFile>,
    numbers: HashMap<FoundFile, usize>,
    /// The files of each recovered file system, by their numbers:
    /// [`StateFigures::found`] is an index here.
    pub trees: Vec<Vec<usize>>,
}

impl CutFindings {
    fn add(&mut self, tree: Vec<FoundFile>) -> u64 {
        let number = |file: FoundFile| {
            *self.numbers.entry(file).or_insert_with_key(|file| {
                self.files.push(file.clone());
                self.files.len() - 1
            })
        };
        let tree = tree.into_iter().map(number).collect();
        self.trees.push(tree);
        self.trees.len() as u64 - 1
    }
}

/// A judge that notes what it has seen.
pub struct Finder {
    judge: Arc<dyn Judge>,
    found: Mutex<CutFindings>,
}

impl Finder {
    /// Over this judge.
    pub fn new(judge: Arc<dyn Judge>) -> Finder {
        Finder { judge, found: Mutex::default() }
    }

    /// What was found since it was asked last.
    pub fn take(&self) -> CutFindings {
        std::mem::take(&mut self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, tree: Vec<FoundFile>, cut: &mut StateFigures) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        cut.found = Some(found.add(tree));
    }
}

impl Judge for Finder {
    fn judge(&self, fs: &dyn FileSystem, at: Moment, cut: &mut StateFigures) {
        self.judge.judge(fs, at, cut);
        let (tree, _) = Tree::look(fs, fs.root());
        let files = tree.nodes().filter(|(_, node)| node.attr.kind == FileType::Regular);
        let file = |(path, node): (&[u8], &crate::tree::Node)| FoundFile {
            path: shown(path),
            size: node.attr.size,
            runs: runs(&node.bytes(0, node.attr.size)),
        };
        self.note(files.map(file).collect(), cut);
    }

    fn judge_refused(&self, at: Moment, cut: &mut StateFigures) {
        self.judge.judge_refused(at, cut);
        self.note(Vec::new(), cut);
    }

    fn age(&self, tick: u64) -> u64 {
        self.judge.age(tick)
    }

    fn unsynced(&self) -> Vec<(u64, u64)> {
        self.judge.unsynced()
    }

    fn calls(&self) -> Vec<Call> {
        self.judge.calls()
    }

    fn operations(&self) -> Vec<(String, Operation)> {
        self.judge.operations()
    }
}

/// What some bytes are, in as few runs as there are.
fn runs(bytes: &[u8]) -> Vec<(u64, SectorData)> {
    let mut runs: Vec<(u64, SectorData)> = Vec::new();
    for (at, sector) in (0u64..).step_by(SECTOR).zip(bytes.chunks(SECTOR)) {
        let held = match pattern::stamp_of(sector) {
            _ if sector.iter().all(|b| *b == 0) => SectorData::Zeros,
            Some(stamp) => SectorData::Stamped(stamp),
            None => SectorData::Other(sector.to_vec()),
        };
        let goes_on = runs.last().is_some_and(|(from, last)| match (last, &held) {
            (SectorData::Zeros, SectorData::Zeros) => true,
            (SectorData::Stamped(first), SectorData::Stamped(stamp)) => {
                first.after((at - from) as usize) == *stamp
            }
            _ => false,
        });
        if !goes_on {
            runs.push((at, held));
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_of_one_write_are_one_run() {
        let mut bytes = pattern::bytes(7, 1024, 2048).to_vec();
        bytes.extend([0; 1024]);
        bytes.extend(pattern::bytes(8, 0, 512));
        bytes.extend([1; 512]);
        let stamp = |tag, position| SectorData::Stamped(Stamp { tag, position });
        let want = [
            (0, stamp(7, 1024)),
            (2048, SectorData::Zeros),
            (3072, stamp(8, 0)),
            (3584, SectorData::Other(vec![1; 512])),
        ];
        assert_eq!(runs(&bytes), want);
        // A jump within one write is another run.
        bytes.copy_within(1024..1536, 512);
        assert_eq!(
            runs(&bytes)[..3],
            [want[0].clone(), (512, stamp(7, 2048)), (1024, stamp(7, 2048))]
        );
    }

    #[test]
    fn a_file_that_is_found_again_is_kept_once() {
        let mut found = CutFindings::default();
        let file = |path: &str| FoundFile { path: path.into(), size: 0, runs: Vec::new() };
        assert_eq!(found.add(vec![file("a"), file("b")]), 0);
        assert_eq!(found.add(vec![file("b"), file("c")]), 1);
        assert_eq!((found.files.len(), &found.trees[1]), (3, &vec![1, 2]));
    }
}
