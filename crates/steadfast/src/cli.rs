//! The command line: what can be asked, with examples.

mod copy;
pub mod examples;
mod image;
mod lab;
mod sweep;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

pub use copy::{Get, GetTarget, Owners, Put, PutSource, WhiteoutWay};
pub use image::{FsKind, Image, JournalCommand, Mkfs, Mount, NewJournalArgs, Reading};
pub use lab::{
    Lab, LabCalibrate, LabCompare, LabRun, LabSensitivity, LabShow, LabValidate, ListFormat,
    RunOutput, TableFormat, TableLooks,
};
pub use sweep::{Sweep, SweepMerge, SweepPlan, SweepRun, SweepStatus, SweepSubmit};

/// Fast memory in front of slow disks: measure what it gains, and what a power failure loses.
#[derive(Debug, Parser)]
#[command(
    name = "steadfast",
    version,
    about,
    max_term_width = 80,
    after_help = "\
Examples:
  steadfast lab run nvram-journal         compare journal variants, on models
  steadfast mkfs disk.img --size 64m      make an ext4 file system in an image
  steadfast put -r disk.img ./src /src    copy a tree into it
  steadfast check disk.img                check its structure
  steadfast mount disk.img /mnt/disk      use it as any other folder

Exit status: 0 good, 1 a problem was found, 2 used wrongly, 3 not supported."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run and compare storage variants
    #[command(subcommand)]
    Lab(Lab),
    /// Run many cases on many machines: plan, run, merge, submit
    #[command(subcommand)]
    Sweep(Sweep),
    /// Run IOzone's tests, with IOzone's own options
    #[command(
        disable_help_flag = true,
        override_usage = "steadfast iozone [IOZONE'S OPTIONS]",
        after_help = steadfast_bench::iozone::options::HELP
    )]
    Iozone {
        /// IOzone's options
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, num_args = 0..)]
        options: Vec<String>,
    },
    /// Run fio's job files, also in images and on models
    Fio(Box<crate::commands::fio::cli::Fio>),
    /// Copy and convert blocks, as dd does, also in images and on models
    #[command(version, disable_version_flag = true)]
    Dd(crate::commands::dd::cli::Dd),
    /// Time reads from cache and device, as hdparm -T and -t do
    Hdparm(crate::commands::hdparm::Hdparm),
    /// Make an ext2, ext3 or ext4 file system, or a journal device
    Mkfs(Mkfs),
    /// List a directory of an image
    #[command(after_help = "\
Examples:
  steadfast ls disk.img /etc
  steadfast ls -R disk.img

An entry that cannot be read is listed by its name, with question marks; then
the exit status is 1.")]
    Ls {
        /// List the folders below, too
        #[arg(short = 'R', long)]
        recursive: bool,
        #[command(flatten)]
        image: Reading,
        /// Path in the image
        #[arg(default_value = "/")]
        path: String,
    },
    /// Write a file of an image to the standard output
    #[command(after_help = "Example:\n  steadfast cat disk.img /etc/fstab")]
    Cat {
        #[command(flatten)]
        image: Reading,
        /// Path in the image
        path: String,
    },
    /// Copy a file, with -r a tree, or a tar archive into an image
    Put(Put),
    /// Copy a file, with -r a tree, out of an image, or as a tar archive
    Get(Get),
    /// Remove a file or, with -r, a tree from an image
    #[command(after_help = "Example:\n  steadfast rm -r disk.img /src")]
    Rm {
        /// Remove directories with all they hold
        #[arg(short)]
        recursive: bool,
        #[command(flatten)]
        image: Image,
        /// Path in the image
        path: String,
    },
    /// Make a directory in an image
    #[command(after_help = "Example:\n  steadfast mkdir disk.img /var")]
    Mkdir {
        #[command(flatten)]
        image: Image,
        /// Path in the image
        path: String,
    },
    /// Replay the journal of an image and delete its orphans, as a mount does
    #[command(after_help = "\
The exit status is 1 where the file system cannot be mounted afterwards.

Example:
  steadfast replay disk.img --journal journal.img")]
    Replay {
        #[command(flatten)]
        image: Image,
    },
    /// Show, attach, detach or move an unmounted file system's journal
    #[command(subcommand)]
    Journal(JournalCommand),
    /// Check the structure of an image; reads only
    #[command(after_help = "\
Examples:
  steadfast check disk.img
  steadfast check --json disk.img

Exit status: 0 clean, 1 damaged (a line for each finding), 2 used wrongly,
3 not supported: the image has a feature that Steadfast does not implement, and
was not checked.")]
    Check {
        #[command(flatten)]
        image: Reading,
        /// Print the report as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what an image holds: features, sizes, journal
    #[command(after_help = "Example:\n  steadfast info disk.img")]
    Info {
        #[command(flatten)]
        image: Image,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show where a file of an image lies
    #[command(after_help = "\
Examples:
  steadfast extents disk.img /etc/fstab
  steadfast extents --json disk.img /var/log/big | jq '.extents | length'")]
    Extents {
        #[command(flatten)]
        image: Reading,
        /// Path in the image
        path: String,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Make, show, repair and take apart mirrors, stripes and concats
    #[command(subcommand)]
    Volume(crate::commands::volume::cli::VolumeCommand),
    /// Ranges of memory as devices: NVDIMMs, and files that stand for one
    #[command(subcommand)]
    Pmem(crate::commands::pmem::cli::PmemCommand),
    /// The Solaris Volume Manager's commands, for a running host's volumes
    Svm(crate::commands::svm::cli::Svm),
    /// Rates of a running host's devices and volumes, as iostat -xn
    Iostat(crate::commands::iostat::Iostat),
    /// What a running host does, live: throughput, latency, queues, resync
    Top(crate::commands::top::Top),
    /// Keep devices and volumes assembled, and offer them as files
    Serve(crate::commands::serve::cli::Serve),
    /// Query and change a running host
    Host(crate::commands::serve::cli::HostCommand),
    /// Record the file-system calls of a program, and make them again
    #[command(subcommand)]
    Trace(crate::commands::trace::cli::TraceCommand),
    /// Cut the power of a program's run, and judge what is left
    #[command(subcommand)]
    Crash(crate::commands::crash::cli::Crash),
    /// Mount an image, a device or a scenario's variant at a folder
    Mount(Mount),
    /// Unmount, and wait until everything is written
    #[command(after_help = "\
Examples:
  steadfast umount /mnt/disk
  steadfast umount /mnt/disk --timeout 30

Exit status: 0 all is written (or it was shut down by request), 1 something
could not be written, it is in use, or the time is over, 2 used wrongly.

umount and fusermount3 -u unmount too, but return before everything is written.
A mount whose process was killed is removed; the next mount recovers what was
synced. A wait of more than a second is explained: where another mount namespace
(a container, a service) holds a copy of the mount, by its process.")]
    Umount {
        /// The mount point
        mountpoint: PathBuf,
        /// Stop waiting after this time; the unmount continues
        #[arg(long, value_name = "SECONDS")]
        timeout: Option<u64>,
    },
    /// Show what is mounted, with its state and counters
    #[command(after_help = "\
Examples:
  steadfast status
  steadfast status /mnt/disk --json | jq '.mounts[0].journal'")]
    Status {
        /// The mount point; all of this user's mounts without one
        mountpoint: Option<PathBuf>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a transaction point of a mount with data=transact
    #[command(after_help = "\
Examples:
  steadfast transact /mnt/disk
  steadfast transact /mnt/disk --mask none
  steadfast transact /mnt/disk --mask rename,fsync,timed=5s

Words of --mask: none, default, all, create, unlink, mkdir, rename, link, close,
write, fsync, truncate, volfull, sync, and timed= with s, ms or m. Unmounting
makes a point too; with no-umount it discards what came after the last one, and
says how much.")]
    Transact {
        /// The mount point
        mountpoint: PathBuf,
        /// Make no point; change when points are made automatically
        #[arg(long, value_name = "WORDS")]
        mask: Option<String>,
    },
    /// Roll a mount with data=transact back to its last point
    #[command(after_help = "\
Example:
  steadfast rollback /mnt/disk

Everything since the last point is lost. The point, and how much was lost, are
printed. Refused while files are open.")]
    Rollback {
        /// The mount point
        mountpoint: PathBuf,
    },
    /// Write the table of mount options, as Markdown, to the standard output
    #[command(hide = true)]
    MountOptions,
    /// Write the manual pages to a folder
    #[command(after_help = "\
Examples:
  steadfast man ./man
  man ./man/steadfast-mount.1
  steadfast man /usr/local/share/man/man1")]
    Man {
        /// The folder, made if it is not there
        folder: PathBuf,
    },
    /// Write a shell's completions to the standard output
    #[command(
        after_help = "Example:\n  steadfast completions bash > ~/.bash_completion.d/steadfast"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Whether it can do without the journal: `--no-replay` was not given, but could be.
    pub fn takes_no_replay(&self) -> bool {
        match self {
            Command::Ls { image, .. }
            | Command::Cat { image, .. }
            | Command::Get(Get { image, .. })
            | Command::Check { image, .. }
            | Command::Extents { image, .. } => !image.no_replay,
            _ => false,
        }
    }

    /// Whether its output is printed as it is: a file's contents, what a program has printed, and
    /// tables, which have colours and escape names themselves. All others print text, or a
    /// document, in which nothing is left that a terminal would obey ([`Harmless`]).
    ///
    /// [`Harmless`]: crate::terminal::Harmless
    pub fn prints_bytes(&self) -> bool {
        use crate::commands::crash::cli::Crash;
        matches!(
            self,
            Command::Cat { .. }
                | Command::Get(Get { tar: Some(_), .. })
                | Command::Lab(Lab::Run(_) | Lab::Show(_))
                // A plan's fingerprint is of its bytes, which are ASCII.
                | Command::Sweep(Sweep::Plan(_) | Sweep::Merge(_) | Sweep::Submit(_))
                | Command::Crash(Crash::Run(_))
        )
    }

    /// Whether it has nothing more to do once nobody reads its output (`| head`): it prints, maybe
    /// without an end. All others go on, because their exit status says what they found or did.
    pub fn ends_with_its_reader(&self) -> bool {
        use crate::commands::crash::cli::Crash;
        matches!(
            self,
            Command::Ls { .. }
                | Command::Cat { .. }
                | Command::Get(Get { tar: Some(_), .. })
                | Command::Extents { .. }
                | Command::Dd(_)
                | Command::Iozone { .. }
                | Command::Iostat(_)
                | Command::Top(_)
                | Command::Serve(_)
                | Command::Mount(_)
                // The program that it runs; what follows is judged, or was not.
                | Command::Crash(Crash::Run(_))
        )
    }
}
