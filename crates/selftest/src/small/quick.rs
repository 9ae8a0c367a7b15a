//! What is explored without a soak, beside the set-ups of memory: parts, each a set-up and a family
//! of sequences.
//!
//! Every set-up is explored with an operation and what makes it durable; two with all sequences of
//! two operations. The other families go where their faults can show: what fast commits can leave
//! out to an external journal with fast commits, partial checkpoints to set-ups where they are
//! small, revoked blocks to data=journal, blocks taken anew in one transaction to data=transact.

use steadfast_crash::Result;
use steadfast_crash::explore::{Plan, SecondCuts};
use steadfast_crash::states::StateBound;
use steadfast_ext4::DataMode;
use steadfast_vfs::{TransactMask, TransactPolicy};

use super::explore::{Explorer, SequenceReport};
use super::machine::SmallMachine;
use super::sequence::{Sequence, Start};
use crate::mixed::Setup;

/// How many states of a cut.
pub const BOUND: StateBound = StateBound::exhaustive(8, false, 1);
/// The same in a soak.
const SOAK_BOUND: StateBound = StateBound::exhaustive(256, true, 16);
/// Of one state in so many the recovery is cut too.
const SECOND_EVERY: u64 = 50;
/// And of one in so many everywhere.
pub const SECOND_WHOLE_EVERY: u64 = 400;
/// Bytes of the smallest blocks.
const BLOCK: u64 = 1024;

/// data=ordered on an internal journal, with the smallest blocks that there are.
pub const SMALL: Setup = Setup { block_size: BLOCK as u32, ..Setup::PLAIN };
/// The same on an external journal.
pub const EXTERNAL: Setup = Setup { external: true, ..SMALL };
/// Checkpoints begin after few transactions, and leave some in the log.
const CHECKPOINTS: u8 = 2;

/// Which sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// All of up to two operations.
    Two,
    /// An operation, and an operation and what makes it durable.
    Durable,
    /// Two operations on data, then fdatasync.
    Data,
    /// Up to two operations on data, each with an fdatasync; one in a file whose extents fill its
    /// inode.
    DataInSteps,
    /// Up to two operations on names, each with an fsync; one where a folder and an attribute's
    /// block are full.
    NamesInSteps,
    /// Both of the above.
    InSteps,
    /// An operation, what takes it back, the operation again.
    ThereAndBack,
    /// One operation on data and its fdatasync while the log goes round.
    GoingRound,
    /// An operation, and what makes it durable when the inode has left the memory.
    Forgotten,
    /// An operation on a large file.
    InSeveralTransactions,
    /// An operation on what is in inodes, made durable; and what leaves an inode and comes back.
    Inline,
}

impl Family {
    /// The sequences, in the order in which they are explored.
    pub fn sequences(self) -> Vec<Sequence> {
        match self {
            Family::Two => Sequence::all(2),
            Family::Durable => durable(),
            Family::Data => {
                [Start::Populated, Start::Sparse].map(|start| Sequence::data(start, BLOCK)).concat()
            }
            Family::DataInSteps => [
                Sequence::data_in_steps(Start::Sparse, 1, BLOCK),
                Sequence::data_in_steps(Start::Populated, 2, BLOCK),
            ]
            .concat(),
            Family::NamesInSteps => [
                Sequence::names_in_steps(Start::Crowded, 1),
                Sequence::names_in_steps(Start::Populated, 2),
            ]
            .concat(),
            Family::InSteps => {
                [Family::DataInSteps.sequences(), Family::NamesInSteps.sequences()].concat()
            }
            Family::ThereAndBack => Sequence::there_and_back(BLOCK),
            Family::GoingRound => Sequence::data_in_steps(Start::Populated, 1, BLOCK),
            Family::Forgotten => Sequence::forgotten(BLOCK),
            Family::InSeveralTransactions => Sequence::in_several_transactions(BLOCK),
            Family::Inline => [Sequence::inline(1), Sequence::inline_and_back()].concat(),
        }
    }
}

/// Of all sequences of up to two operations the single ones, and those that make something durable:
/// of an operation alone nothing is promised but by the unmount.
fn durable() -> Vec<Sequence> {
    let is_durable = |s: &Sequence| s.len() == 1 || s.to_string().contains("sync");
    Sequence::all(2).into_iter().filter(is_durable).collect()
}

/// A set-up and a family.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Of the set-up and the family.
    pub name: &'static str,
    /// What is explored.
    pub setup: Setup,
    /// With which sequences.
    pub family: Family,
}

/// What was found first.
#[derive(Debug, Clone)]
pub struct FirstFinding {
    /// In words.
    pub finding: String,
    /// The sequence that shows it.
    pub sequence: Sequence,
    /// What was explored until then.
    pub explored: SequenceReport,
}

const fn part(name: &'static str, setup: Setup, family: Family) -> Part {
    Part { name, setup, family }
}

const fn with_data(data: DataMode, on: Setup) -> Setup {
    Setup { data, ..on }
}

fn transact(points: TransactMask, on: Setup) -> Setup {
    Setup { data: DataMode::Transact, points: Some(points), ..on }
}

impl Part {
    /// All, those first that find the most in the least time.
    pub fn all() -> Vec<Part> {
        use Family::{Data, DataInSteps, Durable, GoingRound, InSteps, NamesInSteps};
        use Family::{Forgotten, InSeveralTransactions, Inline, ThereAndBack, Two};
        let fast = |on| Setup { fast_commits: true, ..on };
        let checkpoints = |on| Setup { checkpoint_percent: CHECKPOINTS, ..on };
        let (journal, writeback) = (DataMode::Journal, DataMode::Writeback);
        let asked = TransactMask::FSYNC | TransactMask::SYNC;
        let usual = TransactPolicy::default().mask;
        let forgetful = |on| Setup { small_caches: true, ..on };
        let lone = |on| Setup { lone_updates: true, ..on };
        let inline = |on| Setup { inline_data: true, ..on };
        vec![
            part("ordered, external, durable", EXTERNAL, Durable),
            part("ordered, external, fast commits, durable", fast(EXTERNAL), Durable),
            part("ordered, internal, fast commits, durable", fast(SMALL), Durable),
            part("journal, internal, durable", with_data(journal, SMALL), Durable),
            part("writeback, internal, durable", with_data(writeback, SMALL), Durable),
            part("writeback, external, durable", with_data(writeback, EXTERNAL), Durable),
            part("transact, internal, default points, durable", transact(usual, SMALL), Durable),
            part("transact, external, default points, durable", transact(usual, EXTERNAL), Durable),
            part("transact, internal, points when asked, durable", transact(asked, SMALL), Durable),
            part(
                "transact, external, points when asked, durable",
                transact(asked, EXTERNAL),
                Durable,
            ),
            part("ordered, internal, there and back", SMALL, ThereAndBack),
            part("transact, internal, there and back", transact(asked, SMALL), ThereAndBack),
            part("journal, internal, going round", with_data(journal, SMALL), GoingRound),
            part("ordered, external, data", EXTERNAL, Data),
            part(
                "journal, internal, data in steps",
                checkpoints(with_data(journal, SMALL)),
                DataInSteps,
            ),
            part("ordered, external, names in steps", checkpoints(EXTERNAL), NamesInSteps),
            part("ordered, external, fast commits, in steps", fast(EXTERNAL), InSteps),
            part("ordered, external, small caches, forgotten", forgetful(EXTERNAL), Forgotten),
            part(
                "ordered, internal, fast commits, small caches, forgotten",
                forgetful(fast(SMALL)),
                Forgotten,
            ),
            part(
                "journal, internal, lone updates, in several transactions",
                lone(with_data(journal, SMALL)),
                InSeveralTransactions,
            ),
            part("ordered, external, inline", inline(EXTERNAL), Inline),
            part("ordered, internal, inline", inline(SMALL), Inline),
            part("journal, internal, inline", inline(with_data(journal, SMALL)), Inline),
            part("journal, external, inline", inline(with_data(journal, EXTERNAL)), Inline),
            part("writeback, internal, inline", inline(with_data(writeback, SMALL)), Inline),
            part("writeback, external, inline", inline(with_data(writeback, EXTERNAL)), Inline),
            part("transact, internal, inline", inline(transact(asked, SMALL)), Inline),
            part("transact, external, inline", inline(transact(usual, EXTERNAL)), Inline),
            part("ordered, internal, two operations", SMALL, Two),
            part("journal, external, two operations", with_data(journal, EXTERNAL), Two),
        ]
    }

    /// The part of that name.
    pub fn named(name: &str) -> Option<Part> {
        Part::all().into_iter().find(|part| part.name == name)
    }

    /// The machine, formatted.
    ///
    /// # Errors
    /// In words.
    pub fn machine(&self) -> Result<SmallMachine> {
        let machine = SmallMachine::new(self.setup)?;
        Ok(match self.family {
            Family::GoingRound => machine.with_log_near_end(),
            _ => machine,
        })
    }

    /// How it is explored; every n-th state by e2fsck too.
    pub fn plan(e2fsck_every: u64) -> Plan {
        let second =
            SecondCuts { every: SECOND_EVERY, whole_every: SECOND_WHOLE_EVERY, ..SecondCuts::NONE };
        Plan { bound: BOUND, e2fsck_every, second, ..Plan::EVERYWHERE }
    }

    /// What a soak explores: of a set-up with the shortest sequences those of up to three
    /// operations.
    pub fn soak_sequences(&self) -> Vec<Sequence> {
        match self.family {
            Family::Two | Family::Durable => Sequence::all(3),
            Family::Inline => Sequence::inline(2),
            family => family.sequences(),
        }
    }

    /// How a soak explores it.
    pub fn soak_plan() -> Plan {
        Plan { bound: SOAK_BOUND, ..Part::plan(500) }
    }

    /// Explores until something is found.
    ///
    /// # Errors
    /// If a sequence could not be recorded, in words.
    pub fn first_finding(&self) -> Result<(SequenceReport, Option<FirstFinding>)> {
        let machine = self.machine()?;
        let mut explorer = Explorer::new(&machine, &Part::plan(0));
        for sequence in self.family.sequences() {
            let sequences = std::slice::from_ref(&sequence);
            let run = machine.record(sequences, None)?;
            explorer.sequences(&sequence.to_string(), sequences, run);
            if let Some(finding) = explorer.figures.findings.first().cloned() {
                let explored = explorer.figures.clone();
                return Ok((explored.clone(), Some(FirstFinding { finding, sequence, explored })));
            }
        }
        Ok((explorer.figures, None))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_parts_have_names_of_their_own_and_sequences() {
        let parts = Part::all();
        let names: BTreeSet<&str> = parts.iter().map(|part| part.name).collect();
        assert_eq!(names.len(), parts.len());
        for part in parts {
            assert!(!part.family.sequences().is_empty(), "{}", part.name);
            assert!(Part::named(part.name).is_some());
        }
    }
}
