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
