//! The command line of `steadfast crash`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::budget::Budget;
use super::ci::args::ReportArgs;
use super::devices::Disk;
use super::judge_files::JudgeFiles;
use super::judge_namespaces::JudgeNamespaces;

/// The power cuts' commands.
#[derive(Debug, Subcommand)]
pub enum Crash {
    /// Run a program on a recorded file system, cut the power everywhere, judge what is left
    Run(Box<CrashRun>),
    /// Reproduce one crash state of a recording, and describe it
    Show(Box<CrashShow>),
}

/// How to run and cut.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  steadfast crash run -o noauto_da_alloc --setup 'echo old > conf' \\
      --judge 'grep -qx \"old\\|new\" conf' -- sh -c 'echo new > tmp; mv tmp conf'
  steadfast crash run -- ./update
  steadfast crash run -o data=writeback,noauto_da_alloc --cuts all -- ./update
  steadfast crash run --judge \"sqlite3 db 'pragma integrity_check'\" \\
      --judge-prints ok -- ./app
  steadfast crash run --fs kernel-ext4:noauto_da_alloc,xfs,btrfs -- ./update
  steadfast crash run --stack nvram-journal:external -- ./update
  steadfast crash run --stack wal=nvram-journal:external -- ./database
  steadfast crash run --stacks -- ./update    (built with -g)
  steadfast crash run --client put-rows --ready 'curl -s localhost:8080' \\
      --judge check-rows -- ./server --port 8080

The first one finds that a cut can leave conf empty: the new file is not synced
before it is renamed. With 'echo new > tmp; sync tmp; mv tmp conf' it finds
nothing.

The program runs in the mounted folder (also in STEADFAST_MOUNT). What it prints
is shown and recorded: each line is a promise. The judge is
run by sh -c in each recovered tree (also in STEADFAST_TREE); the lines printed
before the cut are in the file STEADFAST_PRINTED. Status 0 says that the tree is
good. Without a judge, what all programs may expect is judged: what was synced
is there, what was renamed over a file is whole, the file system is undamaged.

With --client the program is a server: once it is ready (--ready) the client is
run, in the same folder, and what the client prints are the promises. When the
client has ended, the server is sent SIGTERM, after --linger. A judge may start
the server on the recovered tree: nothing that a judge leaves running outlives
it, and in namespaces of its own (--judge-namespaces) each judge has all ports
to itself.

A program, or its test, may say more at the socket STEADFAST_CONTROL, a line
each: 'mark TEXT' (a promise), 'cut' (cut here, densely), 'begin' and 'end' (of
what is explored), 'unsynced' (what would be lost now?), 'fail next fsync of
PATH' (see docs/control.md).

Exit status: 0 nothing found that --baseline does not know, 1 something found
(each with the command that shows it), 2 used wrongly, or the test itself
failed (as on a full disk, or where the program has ended with an error), 3 not
supported, 130 stopped before anything was found.

Ctrl-C ends --setup, or the program, then the waiting, then the judging; what
was found until then is reported.")]
pub struct CrashRun {
    /// File system: ext2, ext3, ext4 (Steadfast's); kernel-ext2, kernel-ext3, kernel-ext4, xfs,
    /// btrfs, f2fs (the kernel's, as root). Of several the program is run on each; what this
    /// machine's kernel does not have is skipped. Mount options of one of them may follow it, as
    /// kernel-ext4:noauto_da_alloc:commit=1
    #[arg(long, value_name = "FS,...", value_delimiter = ',', default_value = "ext4")]
    pub fs: Vec<String>,
    /// A setup (file) or a variant of a scenario (name or file; see `lab list`) instead: its
    /// volumes, memory, external journal and scheduler, with its mount options before those of -o.
    /// With a folder before it, another file system that is mounted there and loses power at the
    /// same instant, as wal=nvram-journal:external (may be said several times)
    #[arg(long, value_name = "[FOLDER=]FILE[:VARIANT]")]
    pub stack: Vec<String>,
    /// Mount options, as of `steadfast mount` or, for the kernel's, mount(8)
    #[arg(short = 'o', value_name = "OPTION,...")]
    pub options: Vec<String>,
    /// Where the journal is: internal, or nvram (a card of its own)
    #[arg(long, value_name = "WHERE", default_value = "internal")]
    pub journal: String,
    /// Model of the disk, with a volatile cache, in real time (see `lab devices`)
    #[arg(
        long,
        value_name = "MODEL",
        default_value = "ssd",
        value_parser = clap::builder::PossibleValuesParser::new(Disk::names())
    )]
    pub device: String,
    /// Size of the disk (k, m, g) [default: 64m; btrfs 128m, XFS 300m; on hdd 1g]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,
    /// What a power cut does to the disk: sectors, whole, words, garbage, unreadable, neighbours,
    /// fifo, barrier, erase-block, mapping (see docs/risk.md); of the last three a size in KiB may
    /// follow, as mapping=64
    #[arg(long, value_name = "KIND", default_value = "sectors")]
    pub media: String,
    /// Where to cut: a number of instants, flushes, all, none [default: 200; the kernel's 40]
    #[arg(long, value_name = "N|flushes|all|none")]
    pub cuts: Option<String>,
    /// States at each cut, at most [default: 48; the kernel's 4]
    #[arg(long, value_name = "N")]
    pub states: Option<u64>,
    /// Judge the calls alone, too, by what a file system promises of them, without its states:
    /// posix, ext4, ext4-noauto-da-alloc, ext4-writeback, ext4-journal, xfs, btrfs, ext2, or none
    #[arg(long, value_name = "MODEL,...", value_delimiter = ',', default_value = "posix")]
    pub model: Vec<String>,
    /// Name the source lines of the calls that findings are about: each call that changes something
    /// is stopped for a moment on its way back (ptrace), and its stack is taken
    #[arg(long)]
    pub stacks: bool,
    /// Seed of every random choice
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// States that are recovered and judged at the same time; 1 for a judge that needs something of
    /// which there is one, as a file outside of its tree [default: one a processor; the kernel's 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub jobs: Option<u64>,
    /// How long states and models are explored, at about most (90s, 5m, 1h30m), after the program
    /// has run and what it left is written: what is most likely to show something first
    #[arg(long, value_name = "TIME")]
    pub budget: Option<Budget>,
    /// How long to go on recording after the program has ended: what it left is written then
    #[arg(long, value_name = "SECONDS", default_value_t = 7.0)]
    pub linger: f64,
    /// The program's own exit status does not matter [default: where nothing is found, a program
    /// that fails is a test that failed, status 2; not where a call of it was made to fail]
    #[arg(long)]
    pub ignore_status: bool,
    #[command(flatten)]
    pub judge: JudgeArgs,
    #[command(flatten)]
    pub client: ClientArgs,
    /// Shell command that is run in the mounted folder before recording begins
    #[arg(long, value_name = "CMD")]
    pub setup: Option<String>,
    /// Keep the recording in FILE [default: in the temporary folder, if something is found]; of
    /// several file systems in FILE with their names before its ending, as run-xfs.crash
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// How judges get the files: served (from memory; a judge is not run again where it would read
    /// what it has read before), copied (and it is run for each tree), auto (served, where this
    /// machine lets us mount)
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub judge_files: JudgeFiles,
    /// Print all findings, each with the command that shows it, and what was judged
    #[arg(long)]
    pub wide: bool,
    /// Print the report as JSON; the program's own output goes to the standard error
    #[arg(long, conflicts_with = "wide")]
    pub json: bool,
    #[command(flatten)]
    pub reports: ReportArgs,
    /// The program and its arguments; with --client, the server
    #[arg(trailing_var_arg = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<String>,
}

/// Who judges a recovered tree.
#[derive(Debug, Clone, Args)]
pub struct JudgeArgs {
    /// Shell command that judges a recovered tree: status 0 is good
    #[arg(long = "judge", value_name = "CMD")]
    pub command: Option<String>,
    /// What the judge must print, and nothing else
    #[arg(long = "judge-prints", value_name = "TEXT", requires = "command")]
    pub prints: Option<String>,
    /// Seconds after which a judge is killed
    #[arg(long = "judge-limit", value_name = "SECONDS", default_value_t = 60.0)]
    pub limit: f64,
    /// Run each judge in pid, network (loopback alone), ipc and mount namespaces of its own: auto
    /// (where this machine lets us), always, never (for one that needs the network)
    #[arg(long = "judge-namespaces", value_name = "WHEN", default_value = "auto")]
    pub namespaces: JudgeNamespaces,
}

/// Who drives a server.
#[derive(Debug, Args)]
pub struct ClientArgs {
    /// Shell command that drives the program, a server: what the command prints is acknowledged,
    /// and its end is that of the run
    #[arg(long, value_name = "CMD")]
    pub client: Option<String>,
    /// Shell command that is run again and again until it ends with status 0: then the server is
    /// ready, and the client is begun [default: at once]
    #[arg(long, value_name = "CMD", requires = "client")]
    pub ready: Option<String>,
    /// Seconds within which the server must be ready
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, requires = "ready")]
    pub ready_limit: f64,
    /// Seconds after which a client is ended
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0, requires = "client")]
    pub client_limit: f64,
}

/// Which state to show.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  steadfast crash show run.crash                       what was recorded
  steadfast crash show run.crash --cut 17              what happened in state 17
  steadfast crash show run.crash --cut 17 --shrink     the fewest writes
  steadfast crash show run.crash --cut 17 --tree after/ --image crashed.img
  e2fsck -fn crashed.img
  steadfast crash show run.crash --model posix --cut 40 --tree after/
  steadfast crash show data-at-risk --variant ordered --cut 17

Exit status: 0 nothing is wrong with the state, 1 something is, 2 used wrongly,
or the test itself failed, 3 not supported.")]
pub struct CrashShow {
    /// A recording of `crash run`; with --variant, a scenario of `lab run`
    pub recording: PathBuf,
    /// Number of the state
    #[arg(long, value_name = "N")]
    pub cut: Option<u64>,
    /// Show a state that this model allows of the calls alone (posix, ext4, xfs, ...): N is the
    /// number that `crash run` has given it
    #[arg(
        long,
        value_name = "MODEL",
        requires = "cut",
        conflicts_with_all = ["variant", "shrink", "image", "kernel"]
    )]
    pub model: Option<String>,
    /// Show a cut of a scenario's variant: run again, with the same seed it is the same
    #[arg(long, value_name = "NAME", requires = "cut", conflicts_with_all = ["command", "shrink"])]
    pub variant: Option<String>,
    /// With --variant: the seed that `lab run` had
    #[arg(long, value_name = "S", requires = "variant", default_value_t = 1)]
    pub seed: u64,
    /// With --variant: how many cuts `lab run` made [default: as the scenario says]
    #[arg(long, value_name = "N", requires = "variant")]
    pub cuts: Option<u64>,
    /// With --variant: a cut of its control on drives that ignore flushes
    #[arg(long, requires = "variant")]
    pub lying: bool,
    /// With --variant: a cut of its control in which no flush was asked for
    #[arg(long, requires = "variant", conflicts_with = "lying")]
    pub flushes_omitted: bool,
    #[command(flatten)]
    pub judge: JudgeArgs,
    /// Find the fewest writes that must be lost, or must survive, for the state to be wrong
    #[arg(long, requires = "cut")]
    pub shrink: bool,
    /// Copy the recovered tree to DIR, which is made: as your files, without set-id bits
    #[arg(long, value_name = "DIR", requires = "cut")]
    pub tree: Option<PathBuf>,
    /// Keep owners and set-id bits in --tree DIR, and set-id bits for the judge
    #[arg(long, requires = "cut")]
    pub owners: bool,
    /// Let this machine's kernel mount the state, as root, if it is of one of the kernel's own file
    /// systems: only if you trust who has made the recording
    #[arg(long, requires = "cut")]
    pub kernel: bool,
    /// Write what the cut left on the disk to FILE, before any recovery (an external journal to
    /// FILE.journal)
    #[arg(long, value_name = "FILE", requires = "cut")]
    pub image: Option<PathBuf>,
    /// How many calls before the cut are printed
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub calls: usize,
}
