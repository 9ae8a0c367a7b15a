//! The 26 crash-consistency bugs that CrashMonkey's authors collected and reproduced.
//!
//! Source: Mohan, Martinez, Ponnapalli, Raju, Chidambaram: Finding Crash-Consistency Bugs with
//! Bounded Black-Box Crash Testing, OSDI 2018, and the list that is published with it. Taken from
//! there are the facts: which operations, which persistence points, on which kernel it failed. The
//! numbers of the names are those of xfstests.

use super::step::Workload;

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
    pub setup: &'static str,
    /// Recorded and cut.
    pub ops: &'static str,
}

impl KnownBug {
    /// As a workload.
    pub fn workload(&self) -> Workload {
        Workload::read(self.name, self.setup, self.ops)
    }
}

/// All of them.
pub const KNOWN: [KnownBug; 26] = [
    KnownBug {
        name: "generic/034",
        was_on: "btrfs 3.13",
        what: "a directory cannot be removed though it is empty",
        setup: "mkdir A; create A/foo",
        ops: "create A/bar; fsyncdir A",
    },
    KnownBug {
        name: "generic/039",
        was_on: "btrfs 3.13",
        what: "a removed link leaves its directory unremovable",
        setup: "mkdir A; create A/foo; link A/foo A/bar",
        ops: "unlink A/bar; fsync A/foo",
    },
    KnownBug {
        name: "generic/041",
        was_on: "btrfs 3.13",
        what: "a file with thousands of links: the mount is refused",
        setup: "create foo; link foo foo_{0..3000}",
        ops: "unlink foo_0; link foo foo_3001; link foo foo_0; fsync foo",
    },
    KnownBug {
        name: "generic/056",
        was_on: "btrfs 3.13",
        what: "a synced file that got a link is empty",
        setup: "",
        ops: "create foo; write foo 0 4096; fsync foo; link foo bar; create other; fsync other",
    },
    KnownBug {
        name: "generic/059",
        was_on: "btrfs 3.13",
        what: "a hole of part of a page is not there after fsync",
        setup: "create foo; write foo 0 16384",
        ops: "falloc foo punch_hole 8000 4096; fsync foo",
    },
    KnownBug {
        name: "generic/066",
        was_on: "btrfs 3.13",
        what: "a removed extended attribute is there again",
        setup: "create foo; setxattr foo 7",
        ops: "removexattr foo; fsync foo",
    },
    KnownBug {
        name: "generic/090",
        was_on: "btrfs 3.13",
        what: "bytes appended to a file that had got a link are lost after fsync",
        setup: "create foo; write foo 0 4096; sync; link foo bar",
        ops: "write foo 4096 4096; fsync foo",
    },
    KnownBug {
        name: "generic/104",
        was_on: "btrfs 3.13",
        what: "links of two files: their directory cannot be removed",
        setup: "mkdir A; create A/foo; create A/bar",
        ops: "link A/foo A/foo1; link A/bar A/bar1; fsync A/bar",
    },
    KnownBug {
        name: "generic/106",
        was_on: "btrfs 3.13",
        what: "a removed link, the inode evicted: its directory cannot be removed",
        setup: "mkdir A; create A/foo; link A/foo A/bar",
        ops: "unlink A/bar; fsync A/foo",
    },
    KnownBug {
        name: "generic/107",
        was_on: "btrfs 3.13",
        what: "the same with the link in another directory",
        setup: "mkdir A; create foo; link foo A/foo; link foo A/bar",
        ops: "unlink A/bar; fsync foo",
    },
    KnownBug {
        name: "generic/177",
        was_on: "btrfs 4.4",
        what: "two holes, one over the other: the old bytes are there again",
        setup: "create foo; write foo 0 32768",
        ops: "falloc foo punch_hole 24576 8192; falloc foo punch_hole 4096 61440; fsync foo",
    },
    KnownBug {
        name: "generic/321",
        was_on: "btrfs 3.13",
        what: "a file moved into a directory that is synced is under both names or gone",
        setup: "mkdir A; create foo",
        ops: "rename foo A/foo; fsyncdir A; fsync A/foo",
    },
    KnownBug {
        name: "generic/322",
        was_on: "btrfs 3.13",
        what: "a renamed and synced file is lost",
        setup: "mkdir A; create A/foo; write A/foo 0 4096",
        ops: "rename A/foo A/bar; fsync A/bar",
    },
    KnownBug {
        name: "generic/325",
        was_on: "btrfs 3.13",
        what: "of a memory map, only the range that was synced first is there",
        setup: "create foo; write foo 0 262144",
        ops: "write foo 0 4096; write foo 258048 4096; fdatasync foo; fdatasync foo",
    },
    KnownBug {
        name: "generic/335",
        was_on: "btrfs 3.13",
        what: "a file moved to another directory is lost when the old one is synced",
        setup: "mkdir A; mkdir C; create A/foo",
        ops: "rename A/foo C/foo; create A/bar; fsyncdir A",
    },
    KnownBug {
        name: "generic/336",
        was_on: "btrfs 4.4",
        what: "a file moved out of a directory is lost when a file linked there is synced",
        setup: "mkdir A; mkdir B; mkdir C; create A/foo; link A/foo B/foo; create B/bar",
        ops: "unlink B/foo; rename B/bar C/bar; fsync A/foo",
    },
    KnownBug {
        name: "generic/341",
        was_on: "btrfs 4.4",
        what: "a renamed directory and its files are lost when one of its old name is synced",
        setup: "mkdir A; create A/foo",
        ops: "rename A B; mkdir A; fsyncdir A",
    },
    KnownBug {
        name: "generic/342",
        was_on: "btrfs 4.4, F2FS 4.15",
        what: "a renamed file is lost when one of its old name is synced",
        setup: "create foo; write foo 0 4096",
        ops: "rename foo bar; create foo; write foo 0 4096; fsync foo",
    },
    KnownBug {
        name: "generic/343",
        was_on: "btrfs 4.4",
        what: "a moved directory is in both its parents",
        setup: "mkdir A; mkdir B; create A/foo; mkdir B/dir; create B/dir/file",
        ops: "link A/foo A/bar; rename B/dir A/dir; fsync A/foo",
    },
    KnownBug {
        name: "generic/348",
        was_on: "btrfs 4.4",
        what: "a symbolic link in a synced directory is empty",
        setup: "mkdir A",
        ops: "symlink A/bar foo; fsyncdir A",
    },
    KnownBug {
        name: "generic/376",
        was_on: "btrfs 4.4",
        what: "a file with the old name of a renamed one is lost when that is synced",
        setup: "mkdir A; create A/foo",
        ops: "rename A/foo A/bar; create A/foo; fsync A/bar",
    },
    KnownBug {
        name: "generic/468",
        was_on: "ext4 4.4, F2FS 4.4",
        what: "blocks allocated beyond the end of the file are lost after fdatasync",
        setup: "create foo; write foo 0 8192",
        ops: "falloc foo keep_size 8192 8192; fdatasync foo",
    },
    KnownBug {
        name: "ext4_direct_write",
        was_on: "ext4 4.15",
        what: "a direct write inside a delayed one: the file has blocks and size 0",
        setup: "create foo; create bar",
        ops: "write foo 0 16384; write foo 4096 4096 direct; fsync bar",
    },
    KnownBug {
        name: "btrfs_link_unlink",
        was_on: "btrfs 4.16",
        what: "a name of a removed link is used again: the mount is refused",
        setup: "create foo; link foo bar",
        ops: "unlink bar; create bar; fsync bar",
    },
    KnownBug {
        name: "btrfs_rename_special_file",
        was_on: "btrfs 4.16",
        what: "a renamed FIFO gets its old name as a link: the mount is refused",
        setup: "mkfifo foo; create other",
        ops: "rename foo bar; link bar foo; fsync other",
    },
    KnownBug {
        name: "btrfs_inode_eexist",
        was_on: "btrfs 4.16",
        what: "after the recovery no file can be made: EEXIST",
        setup: "",
        ops: "create foo; fsync foo",
    },
];
