//! dd's command line, apart from its operands.

use std::ffi::OsString;

use clap::{ArgAction, Args};

use crate::commands::site::SiteArgs;

/// Copies blocks.
#[derive(Debug, Args)]
#[command(
    infer_long_args = true,
    after_help = "\
Examples:
  steadfast dd if=/dev/zero of=file bs=4k count=1024 oflag=direct
  steadfast dd --image disk.img if=/dev/zero of=/largefile bs=16384 count=1024
  steadfast dd --image disk.img if=/etc/fstab of=host:fstab.copy
  steadfast dd --stack nvram-journal --variant external \\
      if=/dev/zero of=/file bs=64k count=256 conv=fsync
  steadfast dd --stack nvram-journal --variant external \\
      --first 'if=/dev/zero of=/f bs=1M count=16' if=/f of=/dev/null bs=1M
  steadfast dd --stack nvram-journal if=device:disk of=/dev/null count=1000

Operands, as GNU dd 9.1 has them:
  if= of=         files [default: standard input and output]
  bs= ibs= obs=   bytes of a block (512)   cbs=  of a record of conv=block
  count= skip= seek=  in blocks, with a B at the end in bytes
  conv=           ascii ebcdic ibm block unblock lcase ucase swab sparse
                  noerror notrunc sync fdatasync fsync nocreat excl
  iflag= oflag=   append direct directory dsync sync noatime nocache nonblock
                  noctty nofollow; iflag=fullblock; count_bytes skip_bytes
                  seek_bytes
  status=         none noxfer progress
  Numbers take c=1 w=2 b=512 kB=1000 K=1024 MB M GB G ... and products: 2x80K.

With --image and --stack, paths are of the file system there, except /dev/zero,
/dev/null, /dev/urandom, host:PATH (a file of this machine) and, with --stack,
device:NAME (a device of the scenario). In virtual time the work of this machine
takes no time, and the same seed gives the same seconds.
SIGUSR1 prints the counts so far.

Exit status: 0 all is copied, 1 it is not, or an operand is wrong or an option
unknown (as dd has it), 2 an option such as --image is wrong, 3 not supported."
)]
pub struct Dd {
    #[command(flatten)]
    pub site: SiteArgs,
    /// First run this dd silently, and drop the page cache
    #[arg(long, value_name = "OPERANDS")]
    pub first: Vec<String>,
    /// Print version
    #[arg(long, alias = "v", action = ArgAction::Version)]
    pub version: Option<bool>,
    /// key=value words, as listed below
    #[arg(value_name = "OPERAND")]
    pub operands: Vec<OsString>,
}
