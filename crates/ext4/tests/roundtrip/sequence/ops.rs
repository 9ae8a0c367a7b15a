//! What a sequence is made of. Targets are numbers that pick from what exists at that moment.

use proptest::prelude::*;
use steadfast_vfs::RenameFlags;

/// How bytes are written.
#[derive(Debug, Clone, Copy)]
pub enum Way {
    Buffered,
    Sync,
    Dsync,
    Direct,
    Append,
}

/// One operation.
#[derive(Debug, Clone)]
pub enum Op {
    Create {
        dir: u16,
        name: u8,
    },
    Mkdir {
        dir: u16,
        name: u8,
    },
    Symlink {
        dir: u16,
        name: u8,
        len: u16,
    },
    Link {
        of: u16,
        dir: u16,
        name: u8,
    },
    Unlink {
        of: u16,
    },
    Rmdir {
        of: u16,
    },
    Rename {
        of: u16,
        dir: u16,
        name: u8,
        flags: RenameFlags,
    },
    /// Adds many names to a directory, enough for an index.
    Crowd {
        dir: u16,
        count: u16,
        long: bool,
    },
    /// Removes most names that came by `Crowd`.
    Thin {
        dir: u16,
        keep_each: u8,
    },
    Write {
        file: u16,
        offset: u32,
        len: u32,
        way: Way,
    },
    Truncate {
        file: u16,
        size: u32,
    },
    Mode {
        of: u16,
        mode: u16,
    },
    Owner {
        of: u16,
        uid: u32,
        gid: u32,
    },
    /// Sets mtime and atime, in seconds.
    Times {
        of: u16,
        secs: i64,
    },
    Fsync {
        file: u16,
        data_only: bool,
    },
    Sync,
    ReadBack {
        file: u16,
    },
    /// Opens a file and keeps it open, whatever happens to its name.
    Hold {
        file: u16,
    },
    /// Writes to the file that is held, and lets go of it.
    LetGo {
        write: bool,
    },
    Remount,
}

/// Names that are asked for again and again, so that operations meet.
pub fn name(n: u8) -> Vec<u8> {
    match n % 16 {
        14 => vec![b'L'; 255],
        15 => "sch\u{f6}n \u{1f980} \"quoted\"\n".into(),
        n => format!("n{n}").into_bytes(),
    }
}

/// The target of a symbolic link, of this length.
pub fn target(len: u16) -> Vec<u8> {
    (0..len).map(|i| b"abc/def.."[usize::from(i) % 9]).collect()
}

fn way() -> impl Strategy<Value = Way> {
    prop_oneof![
        6 => Just(Way::Buffered),
        1 => Just(Way::Sync),
        1 => Just(Way::Dsync),
        2 => Just(Way::Direct),
        2 => Just(Way::Append),
    ]
}

/// Offsets: the beginning, what an inode may hold, anywhere in a megabyte, or far behind the end,
/// which leaves a hole.
fn offset() -> impl Strategy<Value = u32> {
    prop_oneof![3 => Just(0), 2 => 0..200_u32, 4 => 0..1_u32 << 18, 1 => 0..1_u32 << 22]
}

fn len() -> impl Strategy<Value = u32> {
    prop_oneof![2 => 1..100_u32, 3 => 1..20_000_u32, 1 => 1..200_000_u32]
}

fn flags() -> impl Strategy<Value = RenameFlags> {
    prop_oneof![
        6 => Just(RenameFlags::empty()),
        1 => Just(RenameFlags::NO_REPLACE),
        2 => Just(RenameFlags::EXCHANGE),
    ]
}

fn names() -> BoxedStrategy<Op> {
    let pick = any::<u16>;
    let n = || 0..16_u8;
    prop_oneof![
        6 => (pick(), n()).prop_map(|(dir, name)| Op::Create { dir, name }),
        4 => (pick(), n()).prop_map(|(dir, name)| Op::Mkdir { dir, name }),
        2 => (pick(), n(), prop_oneof![1..80_u16, 1..1100_u16])
            .prop_map(|(dir, name, len)| Op::Symlink { dir, name, len }),
        2 => (pick(), pick(), n()).prop_map(|(of, dir, name)| Op::Link { of, dir, name }),
        2 => pick().prop_map(|of| Op::Unlink { of }),
        1 => pick().prop_map(|of| Op::Rmdir { of }),
        6 => (pick(), pick(), n(), flags())
            .prop_map(|(of, dir, name, flags)| Op::Rename { of, dir, name, flags }),
        1 => (pick(), 1..300_u16, any::<bool>())
            .prop_map(|(dir, count, long)| Op::Crowd { dir, count, long }),
        1 => (pick(), 2..6_u8).prop_map(|(dir, keep_each)| Op::Thin { dir, keep_each }),
        1 => (pick(), 0..0o1000_u16).prop_map(|(of, mode)| Op::Mode { of, mode }),
        1 => (pick(), prop_oneof![0..70_000_u32, any::<u32>()], 0..70_000_u32)
            .prop_map(|(of, uid, gid)| Op::Owner { of, uid: uid & !(1 << 31), gid }),
        // From 1901 to 2310. An inode can say 2446, but e2fsck takes what is beyond for a mistake.
        1 => (pick(), -(1_i64 << 31)..5_i64 << 31)
            .prop_map(|(of, secs)| Op::Times { of, secs }),
    ]
    .boxed()
}

fn contents() -> BoxedStrategy<Op> {
    let pick = any::<u16>;
    prop_oneof![
        8 => (pick(), offset(), len(), way())
            .prop_map(|(file, offset, len, way)| Op::Write { file, offset, len, way }),
        3 => (pick(), offset()).prop_map(|(file, size)| Op::Truncate { file, size }),
        1 => (pick(), any::<bool>()).prop_map(|(file, data_only)| Op::Fsync { file, data_only }),
        1 => Just(Op::Sync),
        2 => pick().prop_map(|file| Op::ReadBack { file }),
        1 => pick().prop_map(|file| Op::Hold { file }),
        1 => any::<bool>().prop_map(|write| Op::LetGo { write }),
    ]
    .boxed()
}

/// A sequence of up to `max` operations; `only_names` leaves the contents of files alone.
pub fn sequence(max: usize, only_names: bool) -> BoxedStrategy<Vec<Op>> {
    let op = if only_names {
        prop_oneof![30 => names(), 1 => Just(Op::Remount)].boxed()
    } else {
        prop_oneof![14 => names(), 14 => contents(), 1 => Just(Op::Remount)].boxed()
    };
    prop::collection::vec(op, 1..max).boxed()
}
