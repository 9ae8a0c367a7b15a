//! What can be asked.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use steadfast_selftest::soak::SPACES;

/// Explore for a night, or on many machines.
#[derive(Debug, Parser)]
#[command(name = "soak", bin_name = "cargo xtask soak", max_term_width = 80)]
pub struct Soak {
    #[command(subcommand)]
    pub command: SoakCommand,
}

#[derive(Debug, Subcommand)]
pub enum SoakCommand {
    /// Write a plan: all cases, and the shard of each
    #[command(after_help = format!("\
Examples:
  cargo xtask soak plan schedules preemptions=3 --shards 100 > plan.json
  cargo xtask soak plan sequences part=journal --shards 20 > plan.json
  cargo xtask soak plan corpus seq-2 every=10 --shards 20 > plan.json

Spaces, and their words:
{}  all       [every=N]: one case of N

Without a mode or a journal: all of them, but for writeback. Without a list of
the corpus: known and seq-1.", words()))]
    Plan(PlanArgs),
    /// Run one shard of a plan, or as much of it as a budget allows
    #[command(after_help = "\
Examples:
  cargo xtask soak run --plan plan.json --shard 3 -o results
  cargo xtask soak run --plan plan.json --budget 8h --jobs 4 -o results
  cargo xtask soak --plan plan.json --budget 8h -o results

On a cluster the program itself is run, target/release/soak: cargo would build.
Without --shard the number is the engine's, as of `steadfast sweep run`. With
--budget and no number the shards are run in turn, as many as there is time
for; no case is begun after that, and the next run goes on where this one ended.

Each failing case is a line of failures.jsonl in the folder of the results, with
commit, case, seed, seconds and command; failing.jsonl has the newest and the
quickest of each kind. With --record another folder has them: of many nights.

Exit status: 0 nothing was found, 1 something was, 2 used wrongly.")]
    Run(RunArgs),
    /// Verify the results of all shards, and print what they found
    #[command(after_help = "\
Examples:
  cargo xtask soak merge plan.json results/

It is refused what `steadfast sweep merge` refuses.

Exit status: 0 nothing was found, 1 something was, or the results are refused,
2 used wrongly.")]
    Merge(ResultArgs),
    /// Show how far it is, from the files alone
    #[command(after_help = "\
Examples:
  cargo xtask soak status plan.json results/

Exit status: 0 all shards are whole, 1 not yet, 2 used wrongly.")]
    Status(ResultArgs),
    /// Run one case without a plan: what a failure names as its command
    #[command(after_help = "\
Examples:
  cargo xtask soak case schedules --seed 1 \\
    --case 'ordered-internal/preemptions-2/pairs-0120'")]
    Case(CaseArgs),
}

fn words() -> String {
    SPACES.map(|(name, words)| format!("  {name:9} {words}\n")).concat()
}

/// What is explored.
#[derive(Debug, Args)]
pub struct SpaceArgs {
    /// schedules, sequences or corpus
    pub space: String,
    /// Which of them
    pub words: Vec<String>,
    /// Decides what is drawn, where not all is explored
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// What is planned.
#[derive(Debug, Args)]
pub struct PlanArgs {
    #[command(flatten)]
    pub space: SpaceArgs,
    /// How many shards; the runner only says which one it runs
    #[arg(long, value_name = "N")]
    pub shards: u32,
    /// Results of a former run, files or folders: shards take about equally long
    #[arg(long, value_name = "RESULTS", num_args = 1..)]
    pub times: Vec<PathBuf>,
    /// Which sources this program is of [xtask: as git says]
    #[arg(long, value_name = "TEXT")]
    pub commit: Option<String>,
}

/// What is run.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The plan
    #[arg(long, value_name = "FILE")]
    pub plan: PathBuf,
    /// Which shard, from 0 [default: what the engine's environment says]
    #[arg(long, value_name = "K", conflicts_with = "case")]
    pub shard: Option<u32>,
    /// Where the results go; made if it is not there
    #[arg(short, long, value_name = "DIR", default_value = ".", conflicts_with = "case")]
    pub output: PathBuf,
    /// Begin no case after this time: 90s, 30m, 8h, 2d
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "case")]
    pub budget: Option<Duration>,
    /// With a budget: shards at a time
    #[arg(long, value_name = "N", default_value_t = 1, requires = "budget",
        value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: u16,
    /// Where failures.jsonl is [default: in the folder of the results]
    #[arg(long, value_name = "DIR", conflicts_with = "case")]
    pub record: Option<PathBuf>,
    /// Run one case only, and print its result as JSON
    #[arg(long, value_name = "NAME")]
    pub case: Option<String>,
}

/// What is merged or looked at.
#[derive(Debug, Args)]
pub struct ResultArgs {
    /// The plan
    pub plan: PathBuf,
    /// Files of results, and folders with such
    #[arg(required = true)]
    pub results: Vec<PathBuf>,
}

/// A case without a plan.
#[derive(Debug, Args)]
pub struct CaseArgs {
    #[command(flatten)]
    pub space: SpaceArgs,
    /// Its name
    #[arg(long, value_name = "NAME")]
    pub case: String,
}

/// A number and its unit.
fn duration(text: &str) -> Result<Duration, String> {
    let units = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)];
    let read = units.iter().find_map(|(unit, seconds)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(*seconds)
    });
    read.map(Duration::from_secs).ok_or_else(|| "a time is as 90s, 30m, 8h or 2d".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("8h"), Ok(Duration::from_secs(8 * 3600)));
        for wrong in ["", "8", "h", "-1s", "1.5h", "99999999999999999999s", "999999999999999999d"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_help_fits_a_terminal_of_80_columns() {
        use clap::CommandFactory;
        for command in Soak::command().get_subcommands() {
            let help = command.clone().term_width(80).render_help().to_string();
            let wide: Vec<&str> = help.lines().filter(|line| line.chars().count() > 80).collect();
            assert!(wide.is_empty(), "{wide:#?}");
        }
    }
}
