//! `steadfast trace`: what can be asked.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Record and replay the file-system calls of programs.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Run a program and record what it asks of the file system
    #[command(after_help = "\
Examples:
  steadfast trace record -o app.trace -- ./my-program --input data
  steadfast trace record -o make.trace --folder ~/src/project -- make -j4
  steadfast trace record -o db.trace --direct -- sh -c 'sqlite3 db < script.sql'

The program runs as it is, with its children; what it does in the folder is
recorded, what it does elsewhere is not. No contents are kept. Needs FUSE
(package fuse3), not root. Ctrl-C ends the program; what was recorded so far is
kept. The trace is written while the program runs: if this command is killed,
what there is can be shown and compared (then `steadfast umount DIR` takes away
what it has mounted). A program that reads all of its folder may see the file
there, too: name one elsewhere (-o ../app.trace).

Exit status: that of the program; 2 where it could not be recorded, also where
the program ended with 0 and the disk of the trace was full.")]
    Record(TraceRecord),
    /// Make a trace of strace's text, of fio's logs, of blkparse's text
    #[command(after_help = "\
Examples:
  strace -f -ttt -T -y -s0 -o app.strace ./app
  steadfast trace import app.strace --folder . -o app.trace
  steadfast trace import log.fio -o log.trace
  blkparse -i sda > sda.txt; steadfast trace import sda.txt -o sda.trace

What a file is, is seen from its lines. Lines of which nothing is in the trace
are counted by their kind, with the first line of each. What fio refuses in a
log is refused; a trim becomes a punched hole.")]
    Import(TraceImport),
    /// Show what a trace holds
    #[command(after_help = "\
Examples:
  steadfast trace show app.trace
  steadfast trace show --calls app.trace | less
  steadfast trace show --json app.trace | jq .calls")]
    Show(TraceShow),
    /// Make the calls of a trace again, in a folder of this machine
    #[command(after_help = "\
Examples:
  steadfast trace replay app.trace /var/tmp
  steadfast trace replay app.trace /mnt/fast --flat-out

It works in a folder of its own below the one that is named, and removes it at
the end. `steadfast lab compare` replays a trace on modelled stacks.

Exit status: 0 all calls returned what was recorded, 1 some did not, 2 used
wrongly.")]
    Replay(TraceReplay),
}

/// How to record.
#[derive(Debug, Args)]
pub struct TraceRecord {
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Folder that is recorded [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Let no reads be answered from the kernel's page cache, so that all are seen
    #[arg(long)]
    pub direct: bool,
    /// Write a number in place of each name
    #[arg(long)]
    pub hash_names: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<String>,
}

/// What to import.
#[derive(Debug, Args)]
pub struct TraceImport {
    /// Files of one kind
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Of strace's text: the folder that counts [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Of fio's logs: the unit of their times [default: from how long they were written]
    #[arg(long)]
    pub unit: Option<TimeUnit>,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// The unit of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TimeUnit {
    /// Microseconds
    Us,
    /// Milliseconds
    Ms,
}

/// What to show.
#[derive(Debug, Args)]
pub struct TraceShow {
    /// The trace
    pub file: PathBuf,
    /// A line for each call
    #[arg(long, conflicts_with = "json")]
    pub calls: bool,
    /// Of a trace that is damaged, what is before that
    #[arg(long)]
    pub partial: bool,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// How to replay.
#[derive(Debug, Args)]
pub struct TraceReplay {
    /// The trace
    pub file: PathBuf,
    /// Folder below which it is replayed
    pub folder: PathBuf,
    /// How fast the calls come
    #[arg(long = "as", value_name = "HOW", default_value = "recorded")]
    pub pace: PaceOption,
    /// The same as --as flat-out
    #[arg(long, conflicts_with = "pace")]
    pub flat_out: bool,
    /// Of a trace that was cut off, what is there
    #[arg(long)]
    pub partial: bool,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

impl TraceReplay {
    /// How fast the calls come.
    pub fn pace(&self) -> steadfast_trace::replay::ReplayPace {
        match self.flat_out || self.pace == PaceOption::FlatOut {
            true => steadfast_trace::replay::ReplayPace::FlatOut,
            false => steadfast_trace::replay::ReplayPace::Recorded,
        }
    }
}

/// How fast the calls come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PaceOption {
    /// The program thinks as long as it did
    Recorded,
    /// The program does not think
    FlatOut,
}
