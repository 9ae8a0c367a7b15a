//! `workload.trace` of a scenario file: the calls of a program, made again.

use std::path::{Path, PathBuf};

use steadfast_setup::table;
use steadfast_trace::replay::{ReplayPace, TraceFile};

table! {
    /// The calls of a recorded program are made again, and the power is cut in them.
    pub struct TraceSpec: "workload.trace" {
        /// A trace (`steadfast trace record`). A relative path is from this file's folder.
        file: String;
        /// The program does not think: each call is made when those before it allow.
        flat_out: bool = false;
        /// A trace that was cut off is taken as far as it goes.
        partial: bool = false;
    }
}

impl TraceSpec {
    /// A relative path is from the folder of the file that says it.
    pub(super) fn said_in(&mut self, origin: &str) {
        let folder = Path::new(origin).parent().unwrap_or(Path::new(""));
        self.file = folder.join(&self.file).to_string_lossy().into_owned();
    }

    /// The trace.
    pub fn source(&self) -> TraceFile {
        TraceFile { path: PathBuf::from(&self.file), partial: self.partial }
    }

    /// How fast its calls come.
    pub fn pace(&self) -> ReplayPace {
        if self.flat_out { ReplayPace::FlatOut } else { ReplayPace::Recorded }
    }

    /// In words, as a report shows it.
    pub fn description(&self) -> String {
        let how = if self.flat_out { "without its think times" } else { "with its think times" };
        format!("the calls of {}, {how}", self.file)
    }
}
