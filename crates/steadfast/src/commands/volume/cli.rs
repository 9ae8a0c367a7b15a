//! `steadfast volume`: the command line.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use steadfast_volume::ondisk::label::LayoutKind;

/// What to do with a volume. Its members are named, in any order; it is assembled for the command.
#[derive(Debug, Subcommand)]
pub enum VolumeCommand {
    /// Make a mirror, a stripe or a concat of image files and devices
    #[command(after_help = "\
Examples:
  steadfast volume create d10 disk1.img disk2.img
  steadfast volume create d10 disk1.img --volatile /dev/ram0
  steadfast volume create d10 disk1.img disk2.img --partial /dev/ram0
  steadfast volume create d10 disk1.img disk2.img --checksums
  steadfast volume create fast a.img b.img --kind stripe --interlace 64k
  steadfast mkfs volume:disk1.img,disk2.img

A new volume reads as zeros. What takes an image takes volume:MEMBER,MEMBER
too: mkfs, mount, put, check ...")]
    Create(CreateArgs),
    /// Show volumes, their members and states; reads only
    #[command(after_help = "\
Examples:
  steadfast volume status disk1.img disk2.img
  steadfast volume status --json *.img | jq '.volumes[].mirror.legs'

Exit status: 0 whole, 1 a leg needs attention or nothing can be assembled,
2 used wrongly, 3 a label of a newer version.")]
    Status {
        #[command(flatten)]
        members: Members,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Add a leg to a mirror, or a spare, and copy everything to it
    #[command(
        visible_alias = "attach",
        after_help = "\
Examples:
  steadfast volume add disk1.img disk2.img --leg disk3.img
  steadfast volume add disk1.img disk2.img --leg /dev/ram0 --volatile
  steadfast volume add disk1.img disk2.img --leg /dev/ram1 --partial
  steadfast volume add disk1.img disk2.img --leg disk4.img --spare"
    )]
    Add {
        #[command(flatten)]
        members: Members,
        /// The new leg
        #[arg(long, value_name = "DEVICE")]
        leg: PathBuf,
        /// It does not count as keeping its contents without power
        #[arg(long, conflicts_with = "spare")]
        volatile: bool,
        /// It may be smaller than the volume: it holds the regions that are read most,
        /// and does not count as keeping its contents
        #[arg(long, conflicts_with = "spare")]
        partial: bool,
        /// It waits to take a failed leg's place
        #[arg(long)]
        spare: bool,
        /// Overwrite a file system or the label of another volume on it
        #[arg(long)]
        force: bool,
    },
    /// Remove a leg from a mirror for good, or a spare
    #[command(
        visible_alias = "detach",
        after_help = "\
Examples:
  steadfast volume remove disk1.img disk2.img --leg 1
  steadfast volume remove disk1.img --degraded --leg 1    the other one is lost
  steadfast volume remove disk1.img disk4.img --leg disk4.img      a spare

Refused for the last good copy of anything, also where the leg is not there: it
may be found again. The leg's label is wiped."
    )]
    Remove {
        #[command(flatten)]
        members: Members,
        /// The leg's place or the spare's name, as `status` shows them; of a host also
        /// the leg's name
        #[arg(long, value_name = "PLACE")]
        leg: String,
        /// Give up what this leg alone holds: it reads as zeros from then on
        #[arg(long)]
        lose_data: bool,
    },
    /// Put a device into a leg's place and copy everything to it
    #[command(after_help = "\
Examples:
  steadfast volume replace disk1.img --degraded --leg 1 --with disk3.img
  steadfast volume replace disk1.img disk2.img --leg 1    the same device")]
    Replace {
        #[command(flatten)]
        members: Members,
        /// The leg's place
        #[arg(long, value_name = "PLACE")]
        leg: String,
        /// The new device; without it, the leg's own
        #[arg(long, value_name = "DEVICE")]
        with: Option<PathBuf>,
        /// The new device does not count as keeping its contents without power;
        /// nor does it where the leg before did not
        #[arg(long, requires = "with")]
        volatile: bool,
        /// The new device counts as keeping its contents, where the leg before did not
        #[arg(long, requires = "with", conflicts_with = "volatile")]
        durable: bool,
        /// Overwrite a file system or the label of another volume on it
        #[arg(long)]
        force: bool,
        /// Give up what this leg alone holds: it reads as zeros from then on
        #[arg(long)]
        lose_data: bool,
    },
    /// Take a leg of a mirror offline; the regions it misses are recorded
    #[command(after_help = "Example:\n  steadfast volume offline disk1.img disk2.img --leg 1")]
    Offline {
        #[command(flatten)]
        members: Members,
        /// The leg's place
        #[arg(long, value_name = "PLACE")]
        leg: String,
    },
    /// Bring a leg online and copy the regions it missed
    #[command(after_help = "Example:\n  steadfast volume online disk1.img disk2.img --leg 1")]
    Online {
        #[command(flatten)]
        members: Members,
        /// The leg's place
        #[arg(long, value_name = "PLACE")]
        leg: String,
    },
    /// Copy to every leg what it lacks
    #[command(after_help = "\
Examples:
  steadfast volume resync disk1.img disk2.img
  steadfast volume resync disk1.img --degraded       go on without the other
  steadfast volume resync disk1.img disk2.img --keep UUID
  steadfast volume resync b c d --degraded --volume left    a stripe's mirror

With --keep, of legs that have diverged, the one with this UUID is used; what
was written to the others since then is lost.")]
    Resync {
        #[command(flatten)]
        members: Members,
        /// At most so many bytes a second (k, m, g)
        #[arg(long, value_name = "SIZE")]
        rate: Option<String>,
    },
    /// Read everything from every leg and compare
    #[command(after_help = "\
Examples:
  steadfast volume scrub disk1.img disk2.img
  steadfast volume scrub disk1.img disk2.img --repair --rate 50m
  steadfast volume scrub --json d10 | jq .differing

What a leg cannot read is written from another one. Where legs differ, --repair
writes what most durable legs hold to the others, and where there is no
majority, what the first one holds. Volatile legs have no vote.

Exit status: 0 all the same now, 1 legs differ or could not be repaired.")]
    Scrub {
        #[command(flatten)]
        members: Members,
        /// Repair legs that differ
        #[arg(long)]
        repair: bool,
        /// At most so many bytes a second (k, m, g)
        #[arg(long, value_name = "SIZE")]
        rate: Option<String>,
        /// Print what was found as JSON, and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Change the policies of a mirror
    #[command(after_help = "\
Example:
  steadfast volume set disk1.img disk2.img --read-policy preferred:1")]
    Set {
        #[command(flatten)]
        members: Members,
        #[command(flatten)]
        policies: PolicyArgs,
    },
    /// Make a mirror larger, when all its legs have room
    #[command(after_help = "\
Example:
  truncate -s 2g d1.img d2.img && steadfast volume grow d1.img d2.img")]
    Grow {
        #[command(flatten)]
        members: Members,
        /// The new size (k, m, g); as large as the legs allow without it
        #[arg(long, value_name = "SIZE")]
        size: Option<String>,
    },
    /// Destroy a volume: its labels are wiped, what it holds is lost
    #[command(after_help = "\
Of nested volumes the outermost is destroyed first.

Examples:
  steadfast volume destroy disk1.img disk2.img
  steadfast volume destroy --volume m1 disk1.img disk2.img disk3.img")]
    Destroy {
        #[command(flatten)]
        members: Members,
    },
    /// Make a volume of a running host a block device of the kernel
    #[command(after_help = "\
Example:
  mount $(steadfast volume attach-kernel d10) /mnt
  umount /mnt && steadfast volume detach-kernel d10

A loop device with direct I/O over the host's file of the volume. Needs root.")]
    AttachKernel {
        /// The volume
        name: String,
        /// The host's control socket
        #[arg(long, value_name = "PATH")]
        socket: Option<PathBuf>,
    },
    /// Remove that block device
    #[command(after_help = "Example:\n  steadfast volume detach-kernel d10")]
    DetachKernel {
        /// The volume
        name: String,
        /// The host's control socket
        #[arg(long, value_name = "PATH")]
        socket: Option<PathBuf>,
    },
}

/// The members of a volume.
#[derive(Debug, Args)]
pub struct Members {
    /// Image files and devices that are members, in any order
    #[arg(required = true, value_name = "MEMBER")]
    pub members: Vec<PathBuf>,
    /// Go on without legs that are missing, though they may hold newer data
    #[arg(long)]
    pub degraded: bool,
    /// Use this leg's contents where legs diverged, or where none is trusted
    #[arg(long, value_name = "UUID")]
    pub keep: Option<uuid::Uuid>,
    /// Of nested volumes the one with this name; the outermost without it
    #[arg(long, value_name = "NAME")]
    pub volume: Option<String>,
    /// MEMBER is the name of a volume that a running host keeps
    #[arg(long, value_name = "SOCKET", num_args = 0..=1, require_equals = true,
        default_missing_value = "")]
    pub host: Option<String>,
}

/// Kinds of volumes.
const KINDS: [(LayoutKind, &str); 3] = [
    (LayoutKind::Mirror, "The same on every leg"),
    (LayoutKind::Stripe, "Pieces of each component in turn"),
    (LayoutKind::Concat, "One component after the other"),
];

fn kinds() -> impl TypedValueParser<Value = LayoutKind> {
    let values = KINDS.map(|(kind, help)| PossibleValue::new(kind.name()).help(help));
    let named = |name: String| KINDS.iter().find(|(kind, _)| kind.name() == name);
    // OK to fall back: it is one of these.
    PossibleValuesParser::new(values)
        .map(move |name| named(name).map(|(kind, _)| *kind).unwrap_or_default())
}

/// A new volume.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// The volume's name
    pub name: String,
    /// Image files and devices; with --host, names that it knows
    #[arg(required = true, value_name = "DEVICE")]
    pub devices: Vec<PathBuf>,
    /// A running host makes it, of devices that it keeps
    #[arg(long, value_name = "SOCKET", num_args = 0..=1, require_equals = true,
        default_missing_value = "")]
    pub host: Option<String>,
    /// What it is
    #[arg(long, value_parser = kinds(), default_value = "mirror")]
    pub kind: LayoutKind,
    /// A further leg, which does not count as keeping its contents without power
    #[arg(long, value_name = "DEVICE")]
    pub volatile: Vec<PathBuf>,
    /// A further leg, which may be smaller than the volume: it holds the regions that
    /// are read most, and does not count as keeping its contents
    #[arg(long, value_name = "DEVICE")]
    pub partial: Option<PathBuf>,
    /// Size of the mirror (k, m, g); all that its legs have room for without it
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,
    /// Size of a mirror's regions: a power of two, 4k to 64m
    #[arg(long, value_name = "SIZE")]
    pub region: Option<String>,
    /// Keep a checksum of every 4096 bytes of a mirror: a leg that returns
    /// something else than was written is noticed and repaired
    #[arg(long)]
    pub checksums: bool,
    /// Bytes of each component in turn, of a stripe
    #[arg(long, value_name = "SIZE", default_value = "64k")]
    pub interlace: String,
    #[command(flatten)]
    pub policies: PolicyArgs,
    /// Overwrite file systems and labels of other volumes on the devices
    #[arg(long)]
    pub force: bool,
}

impl CreateArgs {
    /// All devices, in the order of their places.
    pub fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.devices.iter().chain(&self.volatile).chain(&self.partial)
    }
}

/// How a mirror reads and writes.
#[derive(Debug, Args)]
pub struct PolicyArgs {
    /// roundrobin, geometric, first, preferred:PLACE or adaptive
    #[arg(long, value_name = "POLICY")]
    pub read_policy: Option<String>,
    /// parallel, serial or write-behind (onto volatile legs)
    #[arg(long, value_name = "POLICY")]
    pub write_policy: Option<String>,
    /// Order of resyncs of several mirrors: 1 first, 9 last, 0 not automatically
    #[arg(long, value_name = "0-9")]
    pub pass: Option<u8>,
}
