//! How many states of a crash point are made, and by which rule.

/// How many states of a crash point are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateBound {
    /// By which rule.
    pub rule: Rule,
    /// At most so many. Of those that the rule names, nothing and all of what is in doubt come
    /// first, the others are drawn from the seed where they are too many.
    pub states: u64,
    /// Every combination of units, then of whole writes, is named if they are not more than this.
    pub combinations: u64,
    /// So many more are drawn from the seed where not all combinations of units are named.
    pub drawn: u64,
}

/// By which rule states are made of what is in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rule {
    /// Whole writes and single units are there or not.
    #[default]
    Writes,
    /// One state, drawn: for statistics. A third of the time each on each device: nothing in doubt
    /// is there, all of it is, each unit is or is not.
    Trial,
    /// Each unit holds what was there or what any of the writes in doubt brought; the bound for all
    /// states does not count. For runs of few requests. (On media that do more to a unit than lose
    /// it: `Writes`.)
    Versions {
        /// Beyond the combinations, writes are torn unit by unit too.
        single_units: bool,
    },
}

impl Default for StateBound {
    /// 48 states a crash point, all combinations of up to 4 units or writes, 16 drawn.
    fn default() -> Self {
        StateBound { rule: Rule::Writes, states: 48, combinations: 16, drawn: 16 }
    }
}

impl StateBound {
    /// One state a crash point, drawn.
    pub(crate) const TRIAL: StateBound =
        StateBound { rule: Rule::Trial, states: 1, combinations: 0, drawn: 0 };

    /// All states of crash points that have up to `combinations`; of others those of
    /// [`Rule::Versions`], and so many that are drawn.
    pub const fn exhaustive(combinations: u64, single_units: bool, drawn: u64) -> StateBound {
        StateBound { rule: Rule::Versions { single_units }, states: u64::MAX, combinations, drawn }
    }
}

/// How it was chosen what is there. Units and writes are numbered among those in doubt, in the
/// order of submission, device by device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// A trial.
    Trial,
    /// Of each unit a version.
    Versions,
    /// Nothing in doubt is there.
    None,
    /// All of it is.
    All,
    /// All that is in doubt on this device is there, and nothing on the others.
    Device(u32),
    /// The first so many writes are there.
    First(usize),
    /// All writes but this one.
    AllBut(usize),
    /// This write alone.
    Only(usize),
    /// Those writes whose bit is set.
    Writes(u64),
    /// Those units whose bit is set.
    Units(u64),
    /// All units but this one.
    AllButUnit(usize),
    /// This unit alone.
    OnlyUnit(usize),
    /// Each whole write is there in so many of 100 cases.
    DrawnWrites {
        /// Of the draw.
        seed: u64,
        /// Of 100.
        percent: u64,
    },
    /// Each unit is.
    DrawnUnits {
        /// Of the draw.
        seed: u64,
        /// Of 100.
        percent: u64,
    },
}
