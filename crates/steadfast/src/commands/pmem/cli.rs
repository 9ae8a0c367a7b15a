//! `steadfast pmem`: the command line.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use steadfast_devices::filter::btt::Version;
use steadfast_devices::filter::fsdax::Map;
use steadfast_devices::source::pmem::Mode;

/// What to do with ranges of memory.
#[derive(Debug, Subcommand)]
pub enum PmemCommand {
    /// Make an emulated range: a file in this machine's memory that stands for an NVDIMM
    #[command(after_help = "\
Examples:
  steadfast pmem create --emulate 1g /dev/shm/x
  steadfast mkfs /dev/shm/x
  steadfast mount -o dax=always /dev/shm/x /mnt/x
  steadfast pmem create --emulate 1g --mode sector /dev/shm/y
  steadfast pmem create --emulate 1g --mode fsdax --align 4k /dev/shm/z

The range is not persistent: it outlives the programs that use it, not the
machine. Its last 128 KiB are its label, by which other commands recognise it.
On a disk's file system, not in memory, it is slower, and no safer.

Modes: raw, the range as it is, of which a power cut keeps words of 8 bytes
whole, and files can be used in place (dax); sector, a block translation table
(BTT): sectors never tear, and nothing can be used in place; fsdax, what a
kernel needs for files in place: its data begins after an info block, and with
--map dev after room for the kernel's structures of its pages, which takes 64
bytes for each 4096.")]
    Create {
        /// Bytes, with k, m, g, t
        #[arg(long, value_name = "SIZE", required = true)]
        emulate: String,
        /// What is made of it
        #[arg(long, value_enum, default_value_t = ModeName::Raw)]
        mode: ModeName,
        /// Bytes of a sector, 512 or 4096, with --mode sector [default: 4096]
        #[arg(long, value_name = "BYTES")]
        sector: Option<u32>,
        /// Bytes of the pages it is to be mapped with: 4k, 2m or 1g, with --mode fsdax
        /// [default: 2m]
        #[arg(long, value_name = "SIZE")]
        align: Option<String>,
        /// Where a kernel is to have its structures of the pages, with --mode fsdax
        /// [default: dev]
        #[arg(long, value_enum)]
        map: Option<MapName>,
        /// A name for the label, up to 63 bytes
        #[arg(long, default_value = "")]
        name: String,
        /// The file
        path: PathBuf,
    },
    /// List ranges: the kernel's, and files with a label
    #[command(after_help = "\
Examples:
  steadfast pmem list
  steadfast pmem list /dev/shm ~/ranges
  steadfast pmem list --json | jq '.ranges[].promise'

Without folders: /dev/shm and the current one.")]
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
        /// Where to look for files
        folders: Vec<PathBuf>,
    },
    /// Say what a range promises, and how it is written to
    #[command(after_help = "\
Examples:
  steadfast pmem info /dev/shm/x
  steadfast pmem info /dev/pmem0

Promises: persistent; persistent after flush of CPU caches; persistent after
msync (the kernel's page cache is mapped, not the memory); not persistent.")]
    Info {
        /// Print as JSON
        #[arg(long)]
        json: bool,
        /// A file, /dev/pmemN or /dev/daxN.M
        path: PathBuf,
    },
    /// Check the tables of a sector or fsdax namespace; changes nothing without --repair
    #[command(after_help = "\
Examples:
  steadfast pmem check /dev/shm/y
  steadfast pmem check --repair /dev/shm/y

Of a sector namespace the block translation table, all of it; of an fsdax
namespace its info block, of which there is no copy.

--repair writes an info block that is damaged or lost anew from its copy, and a
copy from its info block: as ndctl check-namespace --repair does. Nothing else
is changed; what a flog or map names wrongly has to come from a backup.

A copy whose info block is lost altogether may also be of a namespace that was
destroyed. Where a file system or something else is in its place it is refused,
unless --force says that the namespace is wanted and that is not.

Exit status: 0 good, or all was repaired; 1 a problem was found, or is left;
2 used wrongly; 3 not supported.")]
    Check {
        /// Write damaged or lost info blocks anew from their copies
        #[arg(short = 'R', long)]
        repair: bool,
        /// With --repair: also where something else is by now, which is lost
        #[arg(short, long, requires = "repair")]
        force: bool,
        /// A file, or /dev/pmemN in raw mode
        path: PathBuf,
    },
    /// Remove an emulated range with all that it holds
    #[command(after_help = "\
Example:
  steadfast pmem destroy /dev/shm/x

Refused while it is in use, and for what holds a file system without --force.
Of an NVDIMM ndctl destroy-namespace takes namespaces away.")]
    Destroy {
        /// Also with a file system on it, which is lost
        #[arg(short, long)]
        force: bool,
        /// The file
        path: PathBuf,
    },
}

/// What a range is made into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ModeName {
    /// The range as it is
    Raw,
    /// Sectors that never tear
    Sector,
    /// Direct access to files (DAX), also for a kernel
    Fsdax,
}

/// Where a kernel's structures of pages are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MapName {
    /// In the range itself
    Dev,
    /// In ordinary memory
    Mem,
}

impl From<MapName> for Map {
    fn from(map: MapName) -> Map {
        match map {
            MapName::Dev => Map::Device,
            MapName::Mem => Map::Memory,
        }
    }
}

impl From<ModeName> for Mode {
    fn from(mode: ModeName) -> Mode {
        match mode {
            ModeName::Raw => Mode::Raw,
            // The layout that Linux makes where it sees no label.
            ModeName::Sector => Mode::Sector(Version::V1_1),
            ModeName::Fsdax => Mode::Fsdax,
        }
    }
}
