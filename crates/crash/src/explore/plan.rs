//! How a recorded run is explored.

use crate::states::{Choice, CrashPoints, StateBound};

/// How a recorded run is explored: the same for every workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// At which crash points the power goes.
    pub places: CrashPoints,
    /// Which states of each.
    pub bound: StateBound,
    /// Decides what is drawn.
    pub seed: u64,
    /// Judge every n-th recovered image with e2fsck too, where it is installed; 0: never.
    pub e2fsck_every: u64,
    /// Let the kernel recover every n-th state too, where it can be asked (root); 0: never.
    pub kernel_every: u64,
    /// Cuts of the recovery.
    pub second: SecondCuts,
    /// Once it is recovered and checked, the file system is used: a file is made in each directory,
    /// and everything is removed.
    pub use_it: bool,
}

/// When the power goes again, while the machine recovers or just after it has. (Not of a system
/// whose recovery cannot be recorded.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SecondCuts {
    /// In so many of a hundred states: they are judged after the second recovery only.
    pub percent: u64,
    /// Of every n-th state too, at an instant drawn from the seed; 0: of none.
    pub every: u64,
    /// Of every n-th state too, at each instant, three times: nothing in doubt is there, all of it
    /// is, some; 0: of none.
    pub whole_every: u64,
}

impl SecondCuts {
    /// None.
    pub const NONE: SecondCuts = SecondCuts { percent: 0, every: 0, whole_every: 0 };
}

/// What is done with a state, beside recovering from it and judging that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checks {
    /// e2fsck is asked.
    pub e2fsck: bool,
    /// So is the kernel.
    pub kernel: bool,
    /// The recovery is cut at one instant.
    pub second: bool,
    /// It is cut at each instant.
    pub everywhere: bool,
}

impl Checks {
    /// Nothing.
    pub const NOTHING: Checks =
        Checks { e2fsck: false, kernel: false, second: false, everywhere: false };
    /// e2fsck alone.
    pub const E2FSCK: Checks = Checks { e2fsck: true, ..Checks::NOTHING };
}

impl Plan {
    /// Everywhere, by rule; no other judges, one cut.
    pub const EVERYWHERE: Plan = Plan {
        places: CrashPoints::All,
        bound: StateBound::exhaustive(8, false, 1),
        seed: 1,
        e2fsck_every: 0,
        kernel_every: 0,
        second: SecondCuts::NONE,
        use_it: false,
    };

    /// One state at each of these crash points, drawn: for statistics.
    pub const fn trials(places: CrashPoints, seed: u64) -> Plan {
        Plan { places, bound: StateBound::TRIAL, seed, ..Plan::EVERYWHERE }
    }

    /// How many trials are asked for; 0 if their number is not given.
    pub fn cuts(&self) -> u64 {
        self.places.count().unwrap_or(0)
    }

    /// What else is to be done with the state of this number.
    pub fn checks(&self, number: u64) -> Checks {
        let nth = |every: u64| every > 0 && number.is_multiple_of(every);
        Checks {
            e2fsck: nth(self.e2fsck_every),
            kernel: nth(self.kernel_every),
            second: nth(self.second.every),
            everywhere: nth(self.second.whole_every),
        }
    }

    /// Which crash states are made.
    pub fn choice(&self) -> Choice {
        Choice { places: self.places, bound: self.bound, seed: self.seed }
    }
}

impl From<Choice> for Plan {
    /// These crash states, and nothing else.
    fn from(Choice { places, bound, seed }: Choice) -> Plan {
        Plan { places, bound, seed, ..Plan::EVERYWHERE }
    }
}
