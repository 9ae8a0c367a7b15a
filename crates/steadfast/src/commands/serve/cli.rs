//! `steadfast serve` and `steadfast host`: the command line.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Keep devices and volumes assembled, and offer them as files.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  steadfast serve stack.toml                 in the background
  steadfast serve -f stack.toml              as dist/steadfast.service does
  steadfast serve stack.toml --metrics 127.0.0.1:9188
  steadfast volume status --host d10
  dd if=/run/steadfast/stack/dsk/d10 of=copy.img bs=1M
  steadfast host stop

A configuration:
  [device.disk1]
  path = \"/var/lib/images/disk1.img\"
  [ramdisk.ram0]
  size = \"256m\"
  [volume.d10]
  components = [\"disk1\", \"ram0\"]
  [mount.data]
  volume = \"d10\"
  at = \"/mnt/data\"

What commands change is kept beside it (stack.state.json), and is there again
after a restart; RAM disks are recreated and resynced. SIGTERM closes all.")]
pub struct Serve {
    /// Configuration; /etc/steadfast/stack.toml, or the user's own, without it
    #[arg(value_name = "STACK.toml")]
    pub config: Option<PathBuf>,
    /// Folder for the tree of files: dsk/NAME, rdsk/NAME, ramdisk/NAME
    #[arg(long, value_name = "FOLDER")]
    pub tree: Option<PathBuf>,
    /// Control socket
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Serve Prometheus metrics: unix:PATH, or a loopback address as 127.0.0.1:9188
    #[arg(long, value_name = "PLACE")]
    pub metrics: Option<String>,
    /// Stay in the foreground, log to the standard error
    #[arg(short, long)]
    pub foreground: bool,
    /// Write the log to FILE
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Log every request
    #[arg(long)]
    pub debug: bool,
    /// This is the process in the background
    #[arg(long, hide = true)]
    pub serves_in_background: bool,
}

/// Query and change a running host.
#[derive(Debug, Args)]
pub struct HostCommand {
    /// The host's control socket; STEADFAST_SOCKET or the default one without it
    #[arg(long, value_name = "PATH", global = true)]
    pub socket: Option<PathBuf>,
    /// What to do
    #[command(subcommand)]
    pub what: HostVerb,
}

/// What to ask a host for. Volumes are `steadfast volume ... --host`.
#[derive(Debug, Subcommand)]
pub enum HostVerb {
    /// Show everything that it keeps
    #[command(after_help = "\
Examples:
  steadfast host status
  steadfast host status --json | jq '.volumes[].mirror.legs'

Exit status: 0 all is there and whole, 1 something needs attention, 2 used
wrongly.")]
    Status {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Open a file or block device under a name
    #[command(after_help = "Example:\n  steadfast host add-device disk2 /var/lib/disk2.img")]
    AddDevice {
        /// Its name from now on
        name: String,
        /// File or block device
        path: PathBuf,
        /// It does not count as keeping its contents without power
        #[arg(long)]
        volatile: bool,
    },
    /// Forget a device that nobody uses
    RemoveDevice {
        /// Its name
        name: String,
    },
    /// Make a RAM disk; the host recreates it, blank, at every start
    #[command(after_help = "Example:\n  steadfast host create-ramdisk ram0 256m")]
    CreateRamdisk {
        /// Its name
        name: String,
        /// Its size (k, m, g)
        size: String,
    },
    /// Remove a RAM disk that nobody uses
    DeleteRamdisk {
        /// Its name
        name: String,
    },
    /// Give something another name
    Alias {
        /// The other name
        name: String,
        /// What it stands for
        target: String,
    },
    /// Mount the file system that is on a volume or device
    #[command(after_help = "\
Examples:
  steadfast host mount d10 /mnt/data
  steadfast host mount d10 /mnt/data -o ro,noload
  steadfast host mount d10 /mnt/data --journal nvram
  steadfast host mount data                  a [mount.data] of the configuration

It is mounted until it is unmounted (host umount, steadfast umount), or the host
ends. What is to be there after a restart belongs into the configuration.")]
    Mount {
        /// The volume or device; or, alone, the name of a mount of the configuration
        name: String,
        /// The folder
        at: Option<PathBuf>,
        /// Options, as `steadfast mount` has them
        #[arg(short, long, value_name = "OPTIONS", default_value = "", requires = "at")]
        options: String,
        /// Its external journal: a volume or device of the host, or a path
        #[arg(long, value_name = "NAME|PATH", requires = "at")]
        journal: Option<String>,
    },
    /// Unmount it, and wait until everything is written
    #[command(after_help = "Example:\n  steadfast host umount /mnt/data")]
    Umount {
        /// Where it is mounted, or the mount's name
        name: String,
    },
    /// Make everything that was written durable
    Sync,
    /// Close everything and end the host
    Stop,
}
