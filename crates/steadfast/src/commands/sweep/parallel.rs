//! GNU parallel: the same without a daemon, on this machine.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Stdio};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use super::engine::{self, SweepFolder};
use crate::Usage;
use crate::cli::SweepSubmit;

/// Tasks that are run by parallel.
pub struct ParallelTasks {
    child: Child,
}

impl ParallelTasks {
    /// Starts the shards.
    pub fn start(
        args: &SweepSubmit,
        folder: &SweepFolder,
        script: &Path,
        shards: &[u32],
    ) -> Result<ParallelTasks> {
        let log = File::create(folder.path.join("log/parallel.log")).context("log/parallel.log")?;
        let mut parallel = engine::command("parallel");
        parallel.current_dir(&folder.path).args(["--will-cite", "--line-buffer"]);
        parallel.args(args.jobs.map(|jobs| format!("--jobs={jobs}")));
        // Its own count is of what is run now, which need not be all shards.
        let name = script.file_name().context("a script has a name")?;
        parallel.args(["env", "--unset=PARALLEL_SEQ", "sh"]).arg(name).arg("{}");
        parallel.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
        let mut child = parallel
            .spawn()
            .map_err(|e| Usage(format!("parallel: {e}: install it (Debian's package parallel)")))?;
        let numbers: String = shards.iter().map(|shard| format!("{shard}\n")).collect();
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(numbers.as_bytes()).context("parallel")?;
        }
        Ok(ParallelTasks { child })
    }

    /// Whether it still works.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks it to end, with what runs.
    pub fn stop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // The second one makes it end its tasks. OK to ignore: it may have ended.
            for _ in 0..2 {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        drop(self.child.wait());
    }
}
