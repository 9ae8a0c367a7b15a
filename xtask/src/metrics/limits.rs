//! What the metrics may be: the goal of each, and what is above it today.
//!
//! A value may not become worse than its entry here, and an entry is made as small as the value
//! when that is better; at the goal it goes. What has no entry must keep the goal.

/// Files of the largest cycle of a crate.
pub const CYCLE: usize = 5;
pub const CYCLES: &[(&str, usize)] = &[];

/// Cycles that stay: the files are one state machine behind one lock. Other files may not join.
pub const ONE_LOCK: &[OneLock] = &[OneLock {
    of: "pagecache",
    files: &[
        "cache.rs",
        "failed.rs",
        "flush.rs",
        "flusher.rs",
        "frames.rs",
        "load.rs",
        "state.rs",
        "store.rs",
        "throttle.rs",
    ],
    why: "pages, dirty limits and the flusher wait for each other under the lock of `State`",
}];

/// Files of a crate that may be one cycle, and why.
#[derive(Debug)]
pub struct OneLock {
    pub of: &'static str,
    pub files: &'static [&'static str],
    pub why: &'static str,
}

/// Thousandths of all type names that are declared more than once.
pub const SHARED_PER_MILLE: usize = 80;
pub const SHARED: &[(&str, usize)] = &[];
/// So much better may the share be before its entry follows: a new type moves it a little.
pub const SHARED_SLACK: usize = 5;

/// Types that are called by a participle, a pronoun or a word for anything.
pub const NAMES_NOTHING: usize = 0;
pub const NAMES_NOTHING_TODAY: &[(&str, usize)] = &[];

/// Functions of a type.
pub const FUNCTIONS: usize = 60;
pub const FUNCTIONS_TODAY: &[(&str, usize)] = &[("ext4::mounted::Ext4", 97)];
