//! `steadfast pmem`: the command line.

use std::path::PathBuf;

use clap::Subcommand;

/// What to do with ranges of memory.
#[derive(Debug, Subcommand)]
pub enum PmemCommand {
    /// Make an emulated range: a file in this machine's memory that stands for an NVDIMM
    #[command(after_help = "\
Examples:
  steadfast pmem create --emulate 1g /dev/shm/x
  steadfast mkfs /dev/shm/x
  steadfast mount -o dax=always /dev/shm/x /mnt/x

The range is not persistent: it outlives the programs that use it, not the
machine. Its last 128 KiB are its label, by which other commands know it for
what it is. A file system that is on a disk makes it slower, and no safer.")]
    Create {
        /// Bytes, with k, m, g, t
        #[arg(long, value_name = "SIZE", required = true)]
        emulate: String,
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
