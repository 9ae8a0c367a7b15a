//! `steadfast sweep`: what can be asked.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

use super::lab::RunOutput;

/// Run many cases on many machines.
#[derive(Debug, Subcommand)]
pub enum Sweep {
    /// Write a plan: all cases, and the shard of each
    #[command(after_help = "\
Examples:
  steadfast sweep plan SWEEP.toml --shards 20 > plan.json
  steadfast sweep plan SWEEP.toml --shards 20 --times results/ > plan.json

SWEEP.toml has one table, which says what is swept:

  [lab-run]                    as `steadfast lab run` does it
  scenario = \"nvram-journal\"   a scenario's name, or its file beside this one
  seeds = 50                   so many seeds, from `seed` (1) on
  cuts = 20                    power cuts for each variant
  full = false                 at the published size

  [lab-compare]                as `steadfast lab compare` does it
  trace = \"app.trace\"          from this file's folder, as is
  stacks = \"my-stacks.toml\"    a catalogue, if it is not the program's
  only, budget, flat_out, seeds, cuts: as the command's options

  [lab-sensitivity]            as `steadfast lab sensitivity` does it
  scenario, size, full, seed, only: as the command's options

  [crash-run]                  a recording, judged as `steadfast crash run` does
  recording = \"run.crash\"    that `crash run --record` made, from this folder
  judge = \"/usr/bin/check\"   its command, if it was recorded with one
  judge_prints, judge_limit, judge_namespaces, judge_files, model,
  ignore_status: as the options of `crash run`; owners: of `crash show`

Each part (speed, cuts) of each variant or stack with each seed is a case; of a
recording, each instant at which the power is cut. The plan has a fingerprint
over its cases, this program and the files that they read (a judge's too, as far
as its command names them): what was run for another plan, or by another build,
is not merged (docs/many-machines.md).")]
    Plan(SweepPlan),
    /// Run one shard of a plan
    #[command(after_help = "\
Examples:
  steadfast sweep run --plan plan.json --shard 3 -o results
  sbatch --array=0-19 --wrap 'steadfast sweep run --plan plan.json -o results'
  seq 20 | parallel -N0 steadfast sweep run --plan plan.json -o results
  steadfast sweep run --plan plan.json --case 'internal/cuts/seed-7'

Without --shard the number is taken from SLURM_ARRAY_TASK_ID,
JOB_COMPLETION_INDEX, HQ_TASK_ID, TEST_SHARD_INDEX, or from PARALLEL_SEQ and
CI_NODE_INDEX, which count from 1. Two that disagree are refused. A line for
each case is written as it ends: a run that was killed is resumed by the same
command, on any machine. A shard that is whole is not run again.

Exit status: 0 the shard is whole, 1 a case failed or results disagree, 2 used
wrongly. Whether a sweep is good, only `sweep merge` says.")]
    Run(SweepRun),
    /// Verify the results of all shards, and print what one machine would print
    #[command(after_help = "\
Examples:
  steadfast sweep merge plan.json results/
  steadfast sweep merge plan.json results/ --json - | jq .summary
  steadfast sweep merge plan.json node1/*.jsonl node2/*.jsonl --report page.html

Refused are shards that are missing, there twice, cut off, of another plan or of
another build, lines that were changed, and clocks that went back. A case with
two unlike results is a determinism bug, and is reported with both files and the
command that shows it. All other output is that of the command that was swept,
byte for byte.

Exit status: 0 good, 1 the results are refused, or what was swept has found a
problem, 2 used wrongly.")]
    Merge(SweepMerge),
    /// Show how far a sweep is, from its files alone
    #[command(after_help = "\
Examples:
  steadfast sweep status plan.json results/
  steadfast sweep status plan.json results/ --json | jq .seconds_left
  steadfast sweep status plan.json results/ --report sweep.html

Exit status: 0 all shards are whole, 1 not yet, 2 used wrongly.")]
    Status(SweepStatus),
    /// Plan a sweep, run it with Slurm or GNU parallel, and merge it
    #[command(
        override_usage = "steadfast sweep submit [OPTIONS] --shards <N> -o <DIR>\n       \
        <--slurm|--parallel> <SWEEP.toml>",
        after_help = "\
Examples:
  steadfast sweep submit SWEEP.toml --shards 8 --parallel --jobs 4 -o out
  steadfast sweep submit SWEEP.toml --shards 200 --slurm -o /shared/out \\
    --partition short --account lab42 --sbatch=--time=30

In the folder are plan.json, the script of a task (shard.sh), logs, and results.
It is on a file system that all machines see, as this program is. The same
command once more resumes: only shards that are not whole are run. Ctrl-C leaves
Slurm's tasks running. Whatever the engine says of its tasks, the merge decides.

Exit status: that of `sweep merge`; 2 used wrongly."
    )]
    Submit(SweepSubmit),
}

/// What to plan.
#[derive(Debug, Args)]
pub struct SweepPlan {
    /// What is swept
    #[arg(value_name = "SWEEP.toml")]
    pub file: PathBuf,
    /// How many shards; the runner only says which one it runs
    #[arg(long, value_name = "N")]
    pub shards: u32,
    /// Results of a former run, files or folders: shards take about equally long
    #[arg(long, value_name = "RESULTS", num_args = 1..)]
    pub times: Vec<PathBuf>,
}

/// What to run.
#[derive(Debug, Args)]
pub struct SweepRun {
    /// The plan
    #[arg(long, value_name = "FILE")]
    pub plan: PathBuf,
    /// Which shard, from 0 [default: what the engine's environment says]
    #[arg(long, value_name = "K", conflicts_with = "case")]
    pub shard: Option<u32>,
    /// Where the results go; made if it is not there
    #[arg(short, long, value_name = "DIR", default_value = ".", conflicts_with = "case")]
    pub output: PathBuf,
    /// Run one case only, and print its result as JSON
    #[arg(long, value_name = "NAME")]
    pub case: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// What to merge.
#[derive(Debug, Args)]
pub struct SweepMerge {
    /// The plan
    pub plan: PathBuf,
    /// Files of results, and folders with such
    #[arg(required = true)]
    pub results: Vec<PathBuf>,
    #[command(flatten)]
    pub output: RunOutput,
}

/// What to look at.
#[derive(Debug, Args)]
pub struct SweepStatus {
    /// The plan
    pub plan: PathBuf,
    /// The folder of the results
    pub results: PathBuf,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
    /// Write a page with the progress and a map of all cases to FILE
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// What to submit, and to whom.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("engine").required(true).args(["slurm", "parallel"])))]
pub struct SweepSubmit {
    /// What is swept
    #[arg(value_name = "SWEEP.toml")]
    pub file: PathBuf,
    /// How many shards: of a minute or more each, and no more than Slurm's MaxArraySize
    #[arg(long, value_name = "N")]
    pub shards: u32,
    /// A folder that all machines see
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub folder: PathBuf,
    /// As an array of Slurm's
    #[arg(long)]
    pub slurm: bool,
    /// By GNU parallel, on this machine
    #[arg(long)]
    pub parallel: bool,
    /// With --parallel: shards at a time [default: one a processor]
    #[arg(long, value_name = "N", requires = "parallel")]
    pub jobs: Option<u32>,
    /// Start shards that did not end so many times more
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub retries: u32,
    /// With --slurm: the partition
    #[arg(long, value_name = "NAME", requires = "slurm")]
    pub partition: Option<String>,
    /// With --slurm: the account
    #[arg(long, value_name = "NAME", requires = "slurm")]
    pub account: Option<String>,
    /// With --slurm: processors of a task
    #[arg(long, value_name = "N", requires = "slurm", default_value_t = 1)]
    pub cpus: u32,
    /// With --slurm: memory of a task, as sbatch takes it
    #[arg(long, value_name = "SIZE", requires = "slurm")]
    pub mem: Option<String>,
    /// With --slurm: one more option of sbatch; several times for several
    #[arg(long, value_name = "OPTION", requires = "slurm", allow_hyphen_values = true)]
    pub sbatch: Vec<String>,
    /// Results of a former run: shards take about equally long
    #[arg(long, value_name = "RESULTS", num_args = 1..)]
    pub times: Vec<PathBuf>,
    #[command(flatten)]
    pub output: RunOutput,
}
