//! The 26 crash-consistency bugs that CrashMonkey's authors collected and reproduced.
//!
//! Source: Mohan, Martinez, Ponnapalli, Raju, Chidambaram: Finding Crash-Consistency Bugs with
//! Bounded Black-Box Crash Testing, OSDI 2018, and the list that is published with it. Taken from
//! there are the facts: which operations, which persistence points, on which kernel it failed. The
//! numbers of the names are those of xfstests.

use steadfast_vfs::Fallocate;

use super::step::{Op, Path, Range, Workload, WriteMode};

/// A known bug.
#[derive(Debug, Clone, Copy)]
pub struct KnownBug {
    /// By which it is known.
    pub name: &'static str,
    /// Where it was: file systems and kernels.
    pub was_on: &'static str,
    /// What went wrong there.
    pub what: &'static str,
    /// Done before and durable.
    pub setup: &'static [Op],
    /// Recorded and cut.
    pub ops: &'static [Op],
}

impl KnownBug {
    /// As a workload.
    pub fn workload(&self) -> Workload {
        Workload { name: self.name.into(), setup: self.setup.to_vec(), ops: self.ops.to_vec() }
    }
}

const KIB: u64 = 1 << 10;

const fn range(at: u64, len: u64) -> Range {
    Range { at, len }
}

const fn write(path: Path, at: u64, len: u64) -> Op {
    Op::Write(path, range(at, len), WriteMode::Buffered)
}

const fn punch(path: Path, at: u64, len: u64) -> Op {
    Op::Falloc(path, Fallocate::PunchHole, range(at, len))
}

/// All of them.
pub const KNOWN: [KnownBug; 26] = [
    KnownBug {
        name: "generic/034",
        was_on: "btrfs 3.13",
        what: "a directory cannot be removed though it is empty",
        setup: &[Op::Mkdir("A"), Op::Creat("A/foo")],
        ops: &[Op::Creat("A/bar"), Op::Fsync("A")],
    },
    KnownBug {
        name: "generic/039",
        was_on: "btrfs 3.13",
        what: "a removed link leaves its directory unremovable",
        setup: &[Op::Mkdir("A"), Op::Creat("A/foo"), Op::Link("A/foo", "A/bar")],
        ops: &[Op::Unlink("A/bar"), Op::Fsync("A/foo")],
    },
    KnownBug {
        name: "generic/041",
        was_on: "btrfs 3.13",
        what: "a file with thousands of links: the mount is refused",
        setup: &[Op::Creat("foo"), Op::Links("foo", "foo_", 3000)],
        ops: &[
            Op::Unlink("foo_0"),
            Op::Link("foo", "foo_3001"),
            Op::Link("foo", "foo_0"),
            Op::Fsync("foo"),
        ],
    },
    KnownBug {
        name: "generic/056",
        was_on: "btrfs 3.13",
        what: "a synced file that got a link is empty",
        setup: &[],
        ops: &[
            Op::Creat("foo"),
            write("foo", 0, 4 * KIB),
            Op::Fsync("foo"),
            Op::Link("foo", "bar"),
            Op::Creat("other"),
            Op::Fsync("other"),
        ],
    },
    KnownBug {
        name: "generic/059",
        was_on: "btrfs 3.13",
        what: "a hole of part of a page is not there after fsync",
        setup: &[Op::Creat("foo"), write("foo", 0, 16 * KIB)],
        ops: &[punch("foo", 8000, 4 * KIB), Op::Fsync("foo")],
    },
    KnownBug {
        name: "generic/066",
        was_on: "btrfs 3.13",
        what: "a removed extended attribute is there again",
        setup: &[Op::Creat("foo"), Op::SetXattr("foo")],
        ops: &[Op::RemoveXattr("foo"), Op::Fsync("foo")],
    },
    KnownBug {
        name: "generic/090",
        was_on: "btrfs 3.13",
        what: "bytes appended to a file that had got a link are lost after fsync",
        setup: &[Op::Creat("foo"), write("foo", 0, 4 * KIB), Op::Sync, Op::Link("foo", "bar")],
        ops: &[write("foo", 4 * KIB, 4 * KIB), Op::Fsync("foo")],
    },
    KnownBug {
        name: "generic/104",
        was_on: "btrfs 3.13",
        what: "links of two files: their directory cannot be removed",
        setup: &[Op::Mkdir("A"), Op::Creat("A/foo"), Op::Creat("A/bar")],
        ops: &[Op::Link("A/foo", "A/foo1"), Op::Link("A/bar", "A/bar1"), Op::Fsync("A/bar")],
    },
    KnownBug {
        name: "generic/106",
        was_on: "btrfs 3.13",
        what: "a removed link, the inode evicted: its directory cannot be removed",
        setup: &[Op::Mkdir("A"), Op::Creat("A/foo"), Op::Link("A/foo", "A/bar")],
        ops: &[Op::Unlink("A/bar"), Op::Fsync("A/foo")],
    },
    KnownBug {
        name: "generic/107",
        was_on: "btrfs 3.13",
        what: "the same with the link in another directory",
        setup: &[
            Op::Mkdir("A"),
            Op::Creat("foo"),
            Op::Link("foo", "A/foo"),
            Op::Link("foo", "A/bar"),
        ],
        ops: &[Op::Unlink("A/bar"), Op::Fsync("foo")],
    },
    KnownBug {
        name: "generic/177",
        was_on: "btrfs 4.4",
        what: "two holes, one over the other: the old bytes are there again",
        setup: &[Op::Creat("foo"), write("foo", 0, 32 * KIB)],
        ops: &[punch("foo", 24 * KIB, 8 * KIB), punch("foo", 4 * KIB, 60 * KIB), Op::Fsync("foo")],
    },
    KnownBug {
        name: "generic/321",
        was_on: "btrfs 3.13",
        what: "a file moved into a directory that is synced is under both names or gone",
        setup: &[Op::Mkdir("A"), Op::Creat("foo")],
        ops: &[Op::Rename("foo", "A/foo"), Op::Fsync("A"), Op::Fsync("A/foo")],
    },
    KnownBug {
        name: "generic/322",
        was_on: "btrfs 3.13",
        what: "a renamed and synced file is lost",
        setup: &[Op::Mkdir("A"), Op::Creat("A/foo"), write("A/foo", 0, 4 * KIB)],
        ops: &[Op::Rename("A/foo", "A/bar"), Op::Fsync("A/bar")],
    },
    KnownBug {
        name: "generic/325",
        was_on: "btrfs 3.13",
        what: "of a memory map, only the range that was synced first is there",
        setup: &[Op::Creat("foo"), write("foo", 0, 256 * KIB)],
        ops: &[
            write("foo", 0, 4 * KIB),
            write("foo", 252 * KIB, 4 * KIB),
            Op::Fdatasync("foo"),
            Op::Fdatasync("foo"),
        ],
    },
    KnownBug {
        name: "generic/335",
        was_on: "btrfs 3.13",
        what: "a file moved to another directory is lost when the old one is synced",
        setup: &[Op::Mkdir("A"), Op::Mkdir("C"), Op::Creat("A/foo")],
        ops: &[Op::Rename("A/foo", "C/foo"), Op::Creat("A/bar"), Op::Fsync("A")],
    },
    KnownBug {
        name: "generic/336",
        was_on: "btrfs 4.4",
        what: "a file moved out of a directory is lost when a file linked there is synced",
        setup: &[
            Op::Mkdir("A"),
            Op::Mkdir("B"),
            Op::Mkdir("C"),
            Op::Creat("A/foo"),
            Op::Link("A/foo", "B/foo"),
            Op::Creat("B/bar"),
        ],
        ops: &[Op::Unlink("B/foo"), Op::Rename("B/bar", "C/bar"), Op::Fsync("A/foo")],
    },
    KnownBug {
        name: "generic/341",
        was_on: "btrfs 4.4",
        what: "a renamed directory and its files are lost when one of its old name is synced",
        setup: &[Op::Mkdir("A"), Op::Creat("A/foo")],
        ops: &[Op::Rename("A", "B"), Op::Mkdir("A"), Op::Fsync("A")],
    },
    KnownBug {
        name: "generic/342",
        was_on: "btrfs 4.4, F2FS 4.15",
        what: "a renamed file is lost when one of its old name is synced",
        setup: &[Op::Creat("foo"), write("foo", 0, 4 * KIB)],
        ops: &[
            Op::Rename("foo", "bar"),
            Op::Creat("foo"),
            write("foo", 0, 4 * KIB),
            Op::Fsync("foo"),
        ],
    },
    KnownBug {
        name: "generic/343",
        was_on: "btrfs 4.4",
        what: "a moved directory is in both its parents",
        setup: &[
            Op::Mkdir("A"),
            Op::Mkdir("B"),
            Op::Creat("A/foo"),
            Op::Mkdir("B/dir"),
            Op::Creat("B/dir/file"),
        ],
        ops: &[Op::Link("A/foo", "A/bar"), Op::Rename("B/dir", "A/dir"), Op::Fsync("A/foo")],
    },
    KnownBug {
        name: "generic/348",
        was_on: "btrfs 4.4",
        what: "a symbolic link in a synced directory is empty",
        setup: &[Op::Mkdir("A")],
        ops: &[Op::Symlink("foo", "A/bar"), Op::Fsync("A")],
    },
    KnownBug {
        name: "generic/376",
        was_on: "btrfs 4.4",
        what: "a file with the old name of a renamed one is lost when that is synced",
        setup: &[Op::Mkdir("A"), Op::Creat("A/foo")],
        ops: &[Op::Rename("A/foo", "A/bar"), Op::Creat("A/foo"), Op::Fsync("A/bar")],
    },
    KnownBug {
        name: "generic/468",
        was_on: "ext4 4.4, F2FS 4.4",
        what: "blocks allocated beyond the end of the file are lost after fdatasync",
        setup: &[Op::Creat("foo"), write("foo", 0, 8 * KIB)],
        ops: &[
            Op::Falloc("foo", Fallocate::Allocate { keep_size: true }, range(8 * KIB, 8 * KIB)),
            Op::Fdatasync("foo"),
        ],
    },
    KnownBug {
        name: "ext4_direct_write",
        was_on: "ext4 4.15",
        what: "a direct write inside a delayed one: the file has blocks and size 0",
        setup: &[Op::Creat("foo"), Op::Creat("bar")],
        ops: &[
            write("foo", 0, 16 * KIB),
            Op::Write("foo", range(4 * KIB, 4 * KIB), WriteMode::Direct),
            Op::Fsync("bar"),
        ],
    },
    KnownBug {
        name: "btrfs_link_unlink",
        was_on: "btrfs 4.16",
        what: "a name of a removed link is used again: the mount is refused",
        setup: &[Op::Creat("foo"), Op::Link("foo", "bar")],
        ops: &[Op::Unlink("bar"), Op::Creat("bar"), Op::Fsync("bar")],
    },
    KnownBug {
        name: "btrfs_rename_special_file",
        was_on: "btrfs 4.16",
        what: "a renamed FIFO gets its old name as a link: the mount is refused",
        setup: &[Op::Fifo("foo"), Op::Creat("other")],
        ops: &[Op::Rename("foo", "bar"), Op::Link("bar", "foo"), Op::Fsync("other")],
    },
    KnownBug {
        name: "btrfs_inode_eexist",
        was_on: "btrfs 4.16",
        what: "after the recovery no file can be made: EEXIST",
        setup: &[],
        ops: &[Op::Creat("foo"), Op::Fsync("foo")],
    },
];
