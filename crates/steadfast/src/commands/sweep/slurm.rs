//! Slurm: one array, a shard a task.
//!
//! `sbatch --wait` notices the end of a lost task late, and its status is the worst of the tasks':
//! so the files are looked at, and the queue only for whether anybody still works.

use std::path::Path;

use anyhow::Result;

use super::engine::{self, SweepFolder};
use crate::cli::SweepSubmit;
use crate::{Usage, terminal};

const PACKAGE: &str = "slurm-client";

/// An array that was submitted.
pub struct SlurmArray {
    id: String,
}

impl SlurmArray {
    /// Submits the shards.
    pub fn submit(
        args: &SweepSubmit,
        folder: &SweepFolder,
        script: &Path,
        shards: &[u32],
    ) -> Result<SlurmArray> {
        let most = max_array_size()?;
        if let Some(last) = shards.iter().max().filter(|last| **last >= most) {
            usage!(
                "--shards {}: this cluster has arrays of at most {most} tasks (MaxArraySize), and \
                 there is no task {last}; ask for fewer shards: each has several cases",
                args.shards
            );
        }
        let mut sbatch = engine::command("sbatch");
        sbatch.current_dir(&folder.path).args(["--parsable", "--requeue", "--open-mode=append"]);
        sbatch.args(["--job-name=steadfast-sweep", "--output=log/shard-%a.log"]);
        sbatch.arg(format!("--array={}", ranges(shards)));
        sbatch.arg(format!("--cpus-per-task={}", args.cpus));
        let named =
            [("partition", &args.partition), ("account", &args.account), ("mem", &args.mem)];
        for (option, value) in named {
            sbatch.args(value.iter().map(|value| format!("--{option}={value}")));
        }
        sbatch.args(&args.sbatch).arg(script);
        let said = engine::output(&mut sbatch, PACKAGE)?;
        // JOB or JOB;CLUSTER.
        let id = said.trim().split(';').next().unwrap_or_default().to_owned();
        if id.is_empty() || !id.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Usage(format!("sbatch: it has printed no job: {said}")).into());
        }
        let number = shards.len();
        terminal::note(&format!("Slurm's job {id}: {number} tasks; scancel {id} ends it"));
        Ok(SlurmArray { id })
    }

    /// Whether the queue still has tasks of it. A queue that does not answer may have.
    pub fn is_queued(&self) -> bool {
        let mut squeue = engine::command("squeue");
        let ran = squeue.args(["--noheader", "--jobs", &self.id]).output();
        let Ok(ran) = ran else { return true };
        match ran.status.success() {
            true => !ran.stdout.trim_ascii().is_empty(),
            // It has forgotten the job.
            false => !String::from_utf8_lossy(&ran.stderr).contains("Invalid job id"),
        }
    }

    /// As people name it.
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// One more than the greatest number of a task.
fn max_array_size() -> Result<u32> {
    let config = engine::output(engine::command("scontrol").args(["show", "config"]), PACKAGE)?;
    let line = config.lines().find_map(|line| line.strip_prefix("MaxArraySize"));
    let size = line.and_then(|line| line.trim_start_matches([' ', '=']).trim().parse().ok());
    // Slurm's own default.
    Ok(size.unwrap_or(1001))
}

/// Numbers as `--array` takes them: 0-3,5.
fn ranges(numbers: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let words = ranges.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    words.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_a_range() {
        assert_eq!(ranges(&[0, 1, 2, 3, 5, 7, 8]), "0-3,5,7-8");
        assert_eq!(ranges(&[4]), "4");
    }
}
