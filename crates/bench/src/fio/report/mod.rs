//! Results as fio writes them: text for people, JSON, and the terse line.

mod json;
mod numbers;
mod terse;
mod text;

pub use json::json;
pub use terse::terse;
pub use text::{head, text};

use super::results::FioEntry;
use super::stats::JobFigures;

/// The version whose forms these are, as they call themselves.
const VERSION: &str = concat!("fio-3.33-steadfast-", env!("CARGO_PKG_VERSION"));

/// What the engine cannot know by itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunDate {
    /// Nanoseconds since 1970 when the run ended.
    pub unix_ns: u64,
    /// The same as text ("Sat Nov 28 12:52:41 2026").
    pub text: String,
}

/// What percent a part is of a whole; 0 of nothing.
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// In percent of the requests of an entry: depths, and times in ns, us and ms.
struct Shares {
    depths: [f64; 7],
    ns: [f64; 10],
    us: [f64; 10],
    ms: [f64; 12],
}

impl Shares {
    fn of(figures: &JobFigures) -> Shares {
        let all = figures.requests();
        let of = |part: &u64| percent(*part, all);
        Shares {
            depths: figures.depths.each_ref().map(of),
            ns: figures.steps.ns.each_ref().map(of),
            us: figures.steps.us.each_ref().map(of),
            ms: figures.steps.ms.each_ref().map(of),
        }
    }
}

/// In percent of the time that an entry's jobs ran: user, system.
fn processor(results: &FioEntry) -> (f64, f64) {
    let tasks = &results.figures.tasks;
    let whole = results.figures.elapsed_ns.saturating_mul(results.jobs);
    (percent(tasks.user_ns, whole), percent(tasks.system_ns, whole))
}
