//! Arguments of the commands on images: which image, and how it is made, mounted, and its journal
//! changed.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Owners, WhiteoutWay};
use crate::outcome::Usage;

/// An image and, where it has one, its external journal.
#[derive(Debug, Args)]
pub struct Image {
    /// Image file or block device
    pub image: PathBuf,
    /// The external journal: image file, block device, or a folder to look for it in
    /// [default: the block device that has its UUID]
    #[arg(long, value_name = "JOURNAL_IMAGE")]
    pub journal: Option<PathBuf>,
}

/// An image that is only read.
#[derive(Debug, Args)]
pub struct Reading {
    #[command(flatten)]
    pub image: Image,
    /// Look at the file system without what its journal holds: for a journal that is damaged or
    /// lost
    #[arg(long)]
    pub no_replay: bool,
}

impl Image {
    /// The image, and its journal if one was given.
    pub fn files(&self) -> Vec<&std::path::Path> {
        std::iter::once(&self.image).chain(&self.journal).map(PathBuf::as_path).collect()
    }

    /// The paths that were given for the journal: none or one.
    pub fn given(&self) -> &[PathBuf] {
        self.journal.as_slice()
    }
}

/// How to mount.
#[derive(Debug, Args)]
#[command(after_help = crate::mount::options::help())]
pub struct Mount {
    /// Image file or block device; with --stack, the mount point
    #[arg(value_name = "IMAGE_OR_DEVICE")]
    pub device: PathBuf,
    /// Folder to mount at
    pub mountpoint: Option<PathBuf>,
    /// Mount options
    #[arg(short = 'o', value_name = "OPTION,...")]
    pub options: Vec<String>,
    /// Stay in the foreground, log to the standard error
    #[arg(short, long)]
    pub foreground: bool,
    /// Mount this setup (TOML file) or a variant of this scenario (name or TOML file), freshly
    /// made, in real time
    #[arg(long, value_name = "FILE.toml")]
    pub stack: Option<String>,
    /// Which of the scenario's variants
    #[arg(long, value_name = "NAME", requires = "stack")]
    pub variant: Option<String>,
    /// With --stack: overwrite devices that have a path, whatever they hold
    #[arg(long, requires = "stack")]
    pub destroy: bool,
    /// Write the log to FILE
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// This is the process in the background
    #[arg(long, hide = true)]
    pub serves_in_background: bool,
}

impl Mount {
    /// Where to mount.
    pub fn mountpoint(&self) -> Result<&std::path::Path, Usage> {
        match (&self.stack, &self.mountpoint) {
            (None, Some(at)) => Ok(at),
            (Some(_), None) => Ok(&self.device),
            (None, None) => usage!("say where to mount: a folder"),
            (Some(_), Some(_)) => {
                usage!("with --stack only the mount point is given: the devices are the file's")
            }
        }
    }
}

/// What to do with a file system's journal.
#[derive(Debug, Subcommand)]
pub enum JournalCommand {
    /// Show where the journal is, who uses it, its size, and what waits in it; reads only
    #[command(after_help = "\
Examples:
  steadfast journal status disk.img
  steadfast journal status --json disk.img --journal journal.img
  steadfast journal status journal.img       a journal device: who uses it

Exit status: 0 usable, 1 there is a problem with it, 2 used wrongly,
3 not supported.")]
    Status {
        #[command(flatten)]
        image: Image,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Add a journal to a file system that has none
    #[command(after_help = "\
Examples:
  steadfast journal attach disk.img --size 64m
  steadfast journal attach disk.img --device journal.img")]
    Attach {
        /// Image file or block device
        image: PathBuf,
        #[command(flatten)]
        new: NewJournalArgs,
    },
    /// Remove the journal, which is replayed first
    #[command(after_help = "\
Examples:
  steadfast journal detach disk.img
  steadfast journal detach disk.img --journal journal.img
  steadfast journal detach disk.img --discard-unreplayed    it is lost for good

After a loss: exit status 1, what is lost is printed, and e2fsck -f should
follow.")]
    Detach {
        #[command(flatten)]
        image: Image,
        /// Discard what the journal holds, and print what that is
        #[arg(long)]
        discard_unreplayed: bool,
    },
    /// Replace the journal by another one
    #[command(after_help = "\
Examples:
  steadfast journal move disk.img --device journal.img    out of the image
  steadfast journal move disk.img --journal journal.img --size 64m   back
  steadfast journal move disk.img --journal old.img --device new.img")]
    Move {
        #[command(flatten)]
        image: Image,
        #[command(flatten)]
        new: NewJournalArgs,
    },
}

/// Which journal a file system is to have.
#[derive(Debug, Args)]
pub struct NewJournalArgs {
    /// A journal device, made with mkfs -O journal_dev: image file or block device
    #[arg(long, value_name = "JOURNAL_IMAGE", conflicts_with = "size")]
    pub device: Option<PathBuf>,
    /// A journal inside the file system, of this size (k, m, g)
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,
    /// Accept a journal device that does not keep its contents without power
    #[arg(long)]
    pub accept_volatile: bool,
}

/// Kinds of file systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FsKind {
    /// Block maps, no journal
    Ext2,
    /// Block maps and a journal
    Ext3,
    /// Extents and a journal
    Ext4,
}

/// How to make a file system.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  steadfast mkfs disk.img --size 64m
  steadfast mkfs -O journal_dev journal.img --size 16m
  steadfast mkfs -J device=journal.img disk.img --size 1g
  steadfast mkfs -O metadata_csum_seed,orphan_file disk.img --size 1g
  steadfast mkfs -d ./root disk.img --size 1g        filled with a folder
  zcat root.tar.gz | steadfast mkfs -d - disk.img --size 1g
  steadfast mkfs -d base.tar -d top.tar --whiteouts apply disk.img --size 1g
  SOURCE_DATE_EPOCH=0 steadfast mkfs -U 8d0e...f1 -d root.tar disk.img --size 1g

The options of mke2fs, as far as this version has them; others are refused by
name.
Of -E: root_owner[=UID:GID], root_perms=OCTAL, stride=, stripe_width=, resize=,
lazy_itable_init=, lazy_journal_init=, assume_storage_prezeroed=, nodiscard,
hash_seed=, encoding=utf8, encoding_flags=strict.
The root folder belongs to root, or to the user who runs mkfs.

-d takes folders as they are (see put), and tar archives (ustar, GNU, pax) as
streams, without root. The first failure ends it, and a new image is removed.
The journal stays empty. With SOURCE_DATE_EPOCH (seconds; no time is later) and
-U the same input gives the same bytes on any machine: the hash seed follows
from the UUID.")]
pub struct Mkfs {
    /// Image file or block device
    pub image: PathBuf,
    /// Make a new image file of this size (k, m, g); what exists has its own: leave it out
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,
    #[command(flatten)]
    pub table: crate::commands::mkfs::given::GivenOptions,
    /// Journal: device=PATH for an external one, size=MEGABYTES for an internal one
    #[arg(short = 'J', value_name = "KEY=VALUE,...")]
    pub journal: Vec<String>,
    /// Fill it with a folder or a tar archive, - from the standard input; may be
    /// repeated
    #[arg(short = 'd', value_name = "FOLDER|TAR|-")]
    pub sources: Vec<PathBuf>,
    /// What a container's whiteouts (.wh.NAME) in an archive do
    #[arg(long, value_name = "WAY", value_enum, default_value_t, requires = "sources")]
    pub whiteouts: WhiteoutWay,
    #[command(flatten)]
    pub owners: Owners,
    /// Label, at most 16 bytes
    #[arg(short = 'L', value_name = "LABEL")]
    pub label: Option<String>,
    /// UUID; or random, time, clear
    #[arg(short = 'U', long, value_name = "UUID")]
    pub uuid: Option<String>,
    /// Extended options, as mke2fs has them (see below)
    #[arg(short = 'E', value_name = "KEY=VALUE,...")]
    pub extended: Vec<String>,
    /// Show what would be made, and write nothing
    #[arg(short = 'n', long = "dry-run")]
    pub dry_run: bool,
    /// Say nothing unless something is wrong
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Overwrite what is there: a file system, or a journal that another file system uses
    #[arg(short = 'F', long = "force")]
    pub force: bool,
    /// Accept a journal device that does not keep its contents without power
    #[arg(long)]
    pub accept_volatile: bool,
}
