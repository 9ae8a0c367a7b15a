//! What each kind of medium breaks, for whom: the same workloads on each of our set-ups, cut on
//! each [`Media`].
//!
//! The workloads are the [known bugs](crate::corpus::KNOWN) and `IN_PLACE`, in which bytes that
//! are durable are overwritten. The judge is the corpus's.

mod setups;

use std::fmt;

use steadfast_crash::Result;
use steadfast_crash::explore::Plan;
use steadfast_crash::states::{CrashPoints, StateBound};
use steadfast_devices::filter::record::Media;

use crate::corpus::{KNOWN, Subject, Workload, try_out};

pub use setups::Setups;

/// Whether a medium keeps what file systems rely on, and why.
pub fn contract(media: Media) -> &'static str {
    match media {
        Media::Sectors => "in: what ATA, SCSI and NVMe disks are taken for",
        Media::Whole => "in: more than is asked for",
        Media::Words => "out: NVMe forbids it (AWUPF), ATA and SCSI say nothing",
        Media::Garbage => "out: NVMe forbids it (AWUPF), ATA and SCSI say nothing",
        Media::Unreadable => "out: ATA and SCSI say nothing; seen on disks",
        Media::Neighbours => "out: changes what was not written",
        Media::Fifo => "in: eMMC 5.1, FIFO flush policy",
        Media::Barrier { .. } => "out: a flush must be durable; the order is kept",
        Media::EraseBlock { .. } => "out: loses what was flushed",
        Media::Mapping { .. } => "out: loses what was flushed; the order is kept",
    }
}

/// Whether a medium keeps what file systems rely on.
pub fn in_contract(media: Media) -> bool {
    matches!(media, Media::Sectors | Media::Whole | Media::Fifo)
}

/// The rows of the table: all kinds, and lost pieces of an erase block. The workloads write less
/// than such a block holds; two pages are what a drive that maps pages may lose of one.
pub fn kinds() -> Vec<Media> {
    let all = Media::ALL.into_iter().map(|(_, media)| media);
    all.chain([Media::EraseBlock { bytes: 8 << 10 }]).collect()
}

/// Bytes that are durable are overwritten: the place to see what a cut does to them.
const IN_PLACE: [(&str, &str); 3] = [
    ("overwrite", "write foo 4096 8192; fsync foo"),
    ("overwrite of a part", "write foo 5000 600; fsync foo"),
    ("direct overwrite of a sector", "write foo 8704 512 direct; fsync foo"),
];

/// The workloads of the table.
pub fn workloads() -> Vec<Workload> {
    let known = KNOWN.iter().filter(|known| known.name != "generic/041");
    let setup = "create foo; write foo 0 65536";
    let in_place = IN_PLACE.iter().map(|(name, ops)| Workload::read(name, setup, ops));
    known.map(|known| known.workload()).chain(in_place).collect()
}

/// Which cuts and states: around every flush, up to so many states of each.
pub fn plan(states: u64) -> Plan {
    let bound = StateBound { states, drawn: 8, ..StateBound::default() };
    Plan { places: CrashPoints::Flushes, bound, use_it: true, ..Plan::EVERYWHERE }
}

/// What came of all workloads on one set-up and one medium.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    /// States that were judged.
    pub states: u64,
    /// Workloads of which at least one state is wrong.
    pub workloads: u64,
    /// States whose mount was refused, or that need manual repair.
    pub refused: u64,
    /// Damaged, though mounted.
    pub damaged: u64,
    /// Neither, but something promised is missing or stale data is exposed.
    pub broken: u64,
    /// The first wrong state, in words.
    pub first: Option<String>,
}

impl Cell {
    /// Wrong states.
    pub fn wrong(&self) -> u64 {
        self.refused + self.damaged + self.broken
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.wrong() == 0 {
            return write!(f, "0 of {}", self.states);
        }
        write!(f, "{} of {}:", self.wrong(), self.states)?;
        let parts = [(self.refused, "R"), (self.damaged, "D"), (self.broken, "B")];
        parts.iter().filter(|(n, _)| *n > 0).try_for_each(|(n, what)| write!(f, " {n}{what}"))
    }
}

/// Runs all workloads on a set-up.
///
/// # Errors
/// What failed on this machine, in words.
pub fn cell(subject: &dyn Subject, plan: &Plan) -> Result<Cell> {
    let mut cell = Cell::default();
    for workload in workloads() {
        let outcome = try_out(subject, &workload, plan)?;
        cell.states += outcome.states;
        cell.workloads += u64::from(outcome.wrong > 0);
        cell.refused += outcome.refused_mounts;
        cell.damaged += outcome.damaged;
        cell.broken += outcome.wrong - outcome.refused_mounts - outcome.damaged;
        if let (None, Some((state, wrong))) = (&cell.first, outcome.first) {
            cell.first = Some(format!("{}, state {state}: {}", workload.name, wrong.join("; ")));
        }
    }
    Ok(cell)
}
