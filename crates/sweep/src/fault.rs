//! Why results are refused.

use std::path::{Path, PathBuf};

use crate::Tools;
use crate::result_lines::Attempt;

/// What is wrong with results, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeFault {
    /// Nobody has run it, or its file was not named.
    #[error(
        "shard {shard} of {shards} is missing ({cases} cases): name its file, or run it: {run} \
         --shard {shard}"
    )]
    Missing {
        /// The command that runs a part of the plan.
        run: String,
        /// The shard.
        shard: u32,
        /// How many shards there are.
        shards: u32,
        /// Cases of it.
        cases: u64,
    },
    /// Two files have all of it.
    #[error(
        "shard {shard} is there twice, with the same results: {} and {}: name one of them",
        files[0].display(), files[1].display()
    )]
    Doubled {
        /// The shard.
        shard: u32,
        /// Both.
        files: Box<[PathBuf; 2]>,
    },
    /// It ended before its last case, or was cut off.
    #[error(
        "{}: shard {shard} did not end, or its file was cut off: {done} of {cases} cases are \
         there, and no manifest; resume it: {run} --shard {shard} -o {}",
        file.display(), folder(file)
    )]
    CutOff {
        /// The file.
        file: PathBuf,
        /// The command that runs a part of the plan.
        run: String,
        /// The shard.
        shard: u32,
        /// Whole lines.
        done: u64,
        /// As planned.
        cases: u64,
    },
    /// It was written for another plan.
    #[error(
        "{}: its plan is {found:.16}, this one is {wanted:.16}: it is of another plan",
        file.display()
    )]
    OtherPlan {
        /// The file.
        file: PathBuf,
        /// The fingerprint that it has.
        found: String,
        /// This plan's.
        wanted: String,
    },
    /// Another program has run it.
    #[error(
        "{}: it was run by program {found:.16}, the plan is for {wanted:.16}: another build may \
         give other results; run the shard with the planned one, or plan again", file.display()
    )]
    OtherProgram {
        /// The file.
        file: PathBuf,
        /// SHA-256 of the executable.
        found: String,
        /// The plan's.
        wanted: String,
    },
    /// Another machine has other programs that results depend on.
    #[error(
        "{}: {} has {}, and {} has {} ({}): what depends on it is not alike; install the same on \
         all machines, remove one of the files and run its shard again",
        file.display(), hosts[0], tools[0], hosts[1], tools[1], other.display()
    )]
    OtherTools {
        /// The file.
        file: PathBuf,
        /// The one that it is unlike; or the same, of which another machine has run a part.
        other: PathBuf,
        /// Who has run them.
        hosts: Box<[String; 2]>,
        /// What they have, in words.
        tools: Box<[String; 2]>,
    },
    /// A line is not as it was written.
    #[error("{}, line {line}: {what}; remove the file and run its shard again", file.display())]
    Altered {
        /// The file.
        file: PathBuf,
        /// From 1.
        line: u64,
        /// What shows it.
        what: String,
    },
    /// A time is before one that was earlier.
    #[error(
        "{}, line {line}: the clock of {host} went back by {back_ms} ms: the times are worth \
         nothing; set the clock, remove the file and run its shard again", file.display()
    )]
    ClockBack {
        /// The file.
        file: PathBuf,
        /// From 1.
        line: u64,
        /// Whose clock.
        host: String,
        /// By so much.
        back_ms: u64,
    },
    /// The same case, and not the same result.
    #[error(
        "DETERMINISM BUG: case '{case}' has two results: {}, line {}, and {}, line {}: both are of \
         the same program and the same plan. To see it, run this several times, on both machines: \
         {run} --case '{case}'",
        files[0].0.display(), files[0].1, files[1].0.display(), files[1].1
    )]
    Unlike {
        /// The command that runs a part of the plan.
        run: String,
        /// The case's name.
        case: String,
        /// Both, with the line.
        files: Box<[(PathBuf, u64); 2]>,
    },
}

/// The folder of a file, as a command takes it.
fn folder(file: &Path) -> String {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).display().to_string()
}

impl MergeFault {
    /// Unless both have run with the same tools.
    pub(crate) fn other_tools(
        (file, attempt): (&Path, &Attempt),
        (other, like): (&Path, &Attempt),
    ) -> Result<(), MergeFault> {
        let (own, others) = (&attempt.tools, &like.tools);
        let differs = |tool: &&String| own.get(*tool) != others.get(*tool);
        let Some(tool) = own.keys().chain(others.keys()).find(differs) else { return Ok(()) };
        let words = |tools: &Tools| match tools.get(tool) {
            Some(version) => format!("{tool} ({version})"),
            None => format!("no {tool}"),
        };
        Err(MergeFault::OtherTools {
            file: file.into(),
            other: other.into(),
            hosts: Box::new([attempt.host.clone(), like.host.clone()]),
            tools: Box::new([words(own), words(others)]),
        })
    }

    pub(crate) fn altered(file: &Path, line: u64, what: impl Into<String>) -> MergeFault {
        MergeFault::Altered { file: file.into(), line, what: what.into() }
    }
}
