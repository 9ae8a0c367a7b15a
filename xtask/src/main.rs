//! The project's own chores: `cargo xtask help` lists them.

/// The standard library's, but that nobody reads is no fault: the work goes on for its status.
macro_rules! print {
    ($($what:tt)*) => { crate::print(format_args!($($what)*)) };
}
macro_rules! println {
    () => { print!("\n") };
    ($($what:tt)*) => { print!("{}\n", format_args!($($what)*)) };
}

mod answers;
mod arguments;
mod bench;
mod binaries;
mod btt;
mod claims;
mod conformance;
mod deb;
mod fresh;
mod fuzz;
mod gallery;
mod guest;
mod layers;
mod metrics;
mod packages;
mod pages;
mod programs;
mod publish;
mod release;
mod soak;
mod step;
mod stress;
mod string_errors;
mod tables;
mod tally;
mod targets;
mod test;
mod tidy;
mod tools;
mod traps;
mod unused;
mod uring;
mod validate;

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use arguments::{no_more, root, value};

const HELP: &str = "\
Usage: cargo xtask COMMAND

  test      what CI runs: installs what the tests need (as root, by apt), then
            formatting, lints, documentation, layers, tidiness and all tests;
            ends with one line 'N passed, N failed, N skipped'
              --filter S   no checks, and only tests whose name contains S
  soak      the same tests with many more cases, optimised; then the planted
            bugs and btt
              --factor N   N times as many cases (default 20)
              --filter S   only tests whose name contains S
            or, with plan, run, merge, status or case: long explorations as a
            sweep, for a night or for many machines ('soak help')
  fuzz      feeds damaged bytes to the decoders, guided by coverage
              TARGET       only this target (default: all, one after the other)
              --seconds N  for so long each (default 60)
              --list       names the targets and does nothing
  conformance
            the same POSIX cases on the kernel's ext4 and on others, as root;
            says what differs and fails if it is not listed, or listed and does
            not differ
              --on KIND    steadfast (default: built now; steadfast:PATH is a
                           program that is there), fuse2fs, kernel; may be given
                           several times
              --filter S   only cases whose name contains S
              --show       prints the kernel's transcript of each case, and all
                           differing steps
  stress    random operations with a model by four tasks, remounts, e2fsck, as
            root
              --ops N      operations in each mode (default 1000000)
              --seed N     another beginning (default 1)
              --mke2fs W   arguments of mke2fs, such as '-b 1024 -O ^extents'
              --mode M     writeback, ordered, journal, transact (default: all);
                           several times
              --journal P  internal, external (default: both)
              --on KIND    steadfast (default), fuse2fs, kernel
  programs  git, sqlite3, tar, cargo and fio on a mount by each of its
            transports, as root
              --on KIND    steadfast (default), fuse2fs, kernel
              --options O  mount options, such as data=journal
              --filter S   only programs whose name contains S
  gallery   real programs under power cuts, by the files in gallery/, as root:
            installs what is missing, runs each setting and a control without
            syncs, keeps what is reported in gallery/results and makes
            docs/gallery.md and gallery/README.md of it
              NAME...      only these, by their folders (default: all)
              --on steadfast:PATH  a program that is there
              --show T     prints a table of what is kept: answers, found,
                           settings, findings, versions
  bench fs  how fast mounted file systems are, side by side, as root
              --on KIND    as of conformance; the first is compared with the
                           others (default: steadfast, fuse2fs, kernel,
                           kernel-zram; of the kernel's two the better counts,
                           row by row)
              --rounds N   times that everything is measured (default 7)
              --options O  mount options
              --mounted    leaves out the comparison in one process
              --json       figures instead of a table
              --quick      next to nothing, to try it
  bench durable
            small writes, new files and names, each made durable: ours in place
            on memory, and on a disk with its journal on memory, in one process
            and through a mount, beside the kernel's best set-ups (zram, loop,
            fast_commit), as root; about half an hour on two quiet processors,
            of which --part mount takes ten minutes
              --part P     memory, disk, external, full or mount alone (mount:
                           also mount-disk, which can be had alone too)
              --steadfast B  the program that mounts (default: built)
              --folder D   where the disk's files are (default: target/bench; 2
                           GB)
              --rounds N   turns of each (default 7)
              --wide       a table for each part, as the document has it
              --json       each turn instead of tables
              --quick      next to nothing, to try it
              --bounds     instead: what our calls in memory spend their time
                           with, by perf
  bench crash
            how many power cuts are judged a minute, beside a kernel mount and
            e2fsck of the same states (as root), and what recording costs
              --json       figures instead of tables
              --quick      next to nothing, to try it
  bench sim
            what the simulated experiment nvram-journal costs at the published
            size: wall time, processor time and peak memory
              --rounds N   runs of each program, by turns (default 3)
              --against P  another build of steadfast, whose figures must be the
                           same
              --quick      the reduced size
              --json       each run instead of a table
  bench iozone
            IOzone's -i0 -i1 -i2 -e on a folder of this machine: ours, by turns
            with the program itself where it is there (Debian: non-free) and
            with fio's jobs
              --folder D   where the file is (default: target/bench)
              --iozone P   the program, if it is not in PATH
              --rounds N   runs of each (default 7)
              --json       each run instead of a table
  bench volume
            mirrors beside what they are made of, in one process: reads with a
            preferred leg in memory, writes to two legs, what the region map
            costs
              --folder D   where the image files are (default: target/bench; 2
                           GB)
              --rounds N   turns of each (default 7)
              --md         instead: the kernel's md raid1 and our mirror beside
                           each other in a guest (QEMU; packages by apt, as
                           root)
  tables    makes the tables of README.md and docs anew, by the commands above
            them
              --check      writes nothing; fails if one is not what the program
                           prints
              --quick      only those that take seconds, as CI does
              --full       first runs what is kept in docs/results anew: half an
                           hour and more, as root for the kernel's file systems
              --filter S   only those whose command contains S; with --full,
                           results
              --built      with the program and this one as they are in target
              --kept       prints the list of the results that are kept, and
                           does nothing
              --answers    prints README's table: published figures beside those
                           of the kept results
  traps     what becomes of an external journal that is lost, swapped, shared or
            of another time: e2fsprogs and the kernel beside steadfast, as root;
            fails if steadfast does not do what docs/external-journals.md says
              --filter S   only traps whose name contains S
              --json       what was run and seen, as JSON
              --markdown   the rows of the document
              --on steadfast:PATH  a program that is there
  validate  replays traces of real drives on the disk model: how far its times
            are off, beside DiskSim's, and the curves as target/validation.svg;
            then the other models beside published figures of parts
              FOLDER       of these drives (default: those of the tests)
  metrics   the sources in numbers, the worst first: lines without tests, cycles
            of files and what would cut them, names that mean several types,
            types with many functions; test fails if one becomes worse
  audit     licences, versions and sources of what is depended on, as in test,
            and its known faults, which are on the network; by cargo-deny
            (deny.toml)
  deb       a Debian package: program, manual pages, completions, helpers of
            mount(8), units of systemd; needs dpkg-dev and binutils
              --program P  of this program, stripped (default: built now,
                           optimised)
              --folder D   where it is made (default: target/debian)
  publish-check
            what crates.io needs to know of every crate, and whether all can be
            packaged in order
              --verify     builds each from its package, as 'cargo publish
                           --dry-run' does
  packages  installs what the tests need, as root
              --size       how much that is on a fresh Debian: at most 200 MB
  release   all that a release consists of, made and looked at: crates, Debian
            package, a static program (by rustup's musl target), bill of
            materials, checksums
              --dry-run    must be given: nothing is published
              --folder D   where it is made (default: target/release-files)
  msrv      the oldest compiler that Cargo.toml names takes all of it; rustup
            fetches it
  btt       sector namespaces of ours in the kernel's hands and the kernel's in
            ours, each in a guest with an NVDIMM; ndctl and e2fsck look at them
            too. Two minutes; part of soak
  guest SCRIPT
            runs a shell script with Debian's kernel in an emulated machine, for
            what this kernel lacks; the first time as root, for QEMU and busybox
              --module M   inserts it and what it needs, such as 'brd rd_nr=2';
                           may be given several times
              --program P  takes an installed program, or a path, along; may be
                           given several times
              --memory N   MiB of memory (default 1024)
              --processors N  (default 2)
              --minutes N  the longest that it may take (default 10)
              --nvdimm F   has an NVDIMM with this file behind it, as /dev/pmem0
              --nvdimm-mib N  its size (default 256)
              --nvdimm-as-it-is  does not make it a namespace for DAX
  help      this text";

/// Prints by way of the macros above.
fn print(what: std::fmt::Arguments<'_>) {
    if cfg!(test) {
        // What a test prints is kept from the tally of the run that it is part of.
        return std::print!("{what}");
    }
    match std::io::stdout().write_fmt(what) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => panic!("standard output: {e}"),
        _ => {}
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("", &[][..]),
    };
    let done = match command {
        "test" => test::run(&root(), rest),
        "soak" => soak::run(&root(), rest),
        "fuzz" => fuzz::run(&root(), rest),
        "conformance" => conformance::run(&root(), rest),
        "stress" => stress::run(&root(), rest),
        "programs" => programs::run(&root(), rest),
        "gallery" => gallery::run(&root(), rest),
        "bench" => bench::run(&root(), rest),
        "deb" => deb::run(&root(), rest),
        "btt" => no_more(rest).and_then(|()| btt::run(&root())),
        "guest" => guest::run(&root(), rest),
        "publish-check" => publish::run(&root(), rest),
        "packages" => fresh::run(&root(), rest),
        "release" => release::run(&root(), rest),
        "msrv" => no_more(rest).and_then(|()| publish::msrv(&root())),
        "tables" => tables::run(&root(), rest),
        "metrics" => no_more(rest).and_then(|()| metrics::run(&root())),
        "traps" => traps::run(&root(), rest),
        "validate" => validate::run(&root(), rest),
        "audit" => no_more(rest).and_then(|()| tools::audit(&root())),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(true)
        }
        _ => {
            eprintln!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask {command}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_fits_a_terminal_of_80_columns() {
        let wide: Vec<&str> = HELP.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{wide:#?}");
    }
}
