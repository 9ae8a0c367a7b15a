//! The three sets of features, with the names that dumpe2fs prints.
//!
//! A system that meets an unknown *compat* bit may go on, an unknown *ro_compat* bit may read, an
//! unknown *incompat* bit must stop. Bits without a name here are kept and printed as e2fsprogs
//! does: `FEATURE_C12`, `FEATURE_I5`, `FEATURE_R20`.

/// A set of features and the table of their names, both from one list: constant, bit, name, and
/// what is said of it behind the name.
macro_rules! feature_set {
    ($(#[$of:meta])* $set:ident, $names:ident:
     $($constant:ident = $bit:literal, $name:literal, $what:literal;)*) => {
        bitflags::bitflags! {
            $(#[$of])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
            pub struct $set: u32 {
                $(#[doc = concat!("`", $name, "`", $what)] const $constant = $bit;)*
                const _ = !0;
            }
        }

        const $names: &[(u32, &str)] = &[$(($bit, $name)),*];
    };
}

feature_set! {
    /// Compatible features (`s_feature_compat`).
    Compat, COMPAT_NAMES:
    DIR_PREALLOC = 0x1, "dir_prealloc", ": directories get blocks in advance.";
    IMAGIC_INODES = 0x2, "imagic_inodes", ": AFS server inodes.";
    HAS_JOURNAL = 0x4, "has_journal", ": a journal, in the file system or on a device of its own.";
    EXT_ATTR = 0x8, "ext_attr", ": extended attributes.";
    RESIZE_INODE = 0x10, "resize_inode", ": descriptor blocks reserved for growth.";
    DIR_INDEX = 0x20, "dir_index", ": hashed directories.";
    LAZY_BG = 0x40, "lazy_bg", ": uninitialised groups (never merged).";
    SNAPSHOT_BITMAP = 0x100, "snapshot_bitmap", ": exclude bitmaps (never merged).";
    SPARSE_SUPER2 = 0x200, "sparse_super2", ": at most two backup superblocks.";
    FAST_COMMIT = 0x400, "fast_commit", ": an area for fast commits in the journal.";
    STABLE_INODES = 0x800, "stable_inodes", ": inode numbers and the UUID must not change.";
    ORPHAN_FILE = 0x1000, "orphan_file", ": orphans are kept in a file rather than a list.";
}

feature_set! {
    /// Incompatible features (`s_feature_incompat`).
    Incompat, INCOMPAT_NAMES:
    COMPRESSION = 0x1, "compression", " (never merged).";
    FILETYPE = 0x2, "filetype", ": directory entries hold the file's type.";
    NEEDS_RECOVERY = 0x4, "needs_recovery", ": the journal must be replayed.";
    JOURNAL_DEV = 0x8, "journal_dev", ": this device is a journal, not a file system.";
    META_BG = 0x10, "meta_bg", ": group descriptors spread over the groups.";
    EXTENT = 0x40, "extent", ": files mapped by extents.";
    BIT64 = 0x80, "64bit", ": more than 2^32 blocks.";
    MMP = 0x100, "mmp", ": protection against two hosts mounting.";
    FLEX_BG = 0x200, "flex_bg", ": bitmaps and inode tables of several groups together.";
    EA_INODE = 0x400, "ea_inode", ": attribute values in inodes.";
    DIRDATA = 0x1000, "dirdata", ": data in directory entries (never merged).";
    CSUM_SEED = 0x2000, "metadata_csum_seed", ": the checksum seed is in the superblock.";
    LARGE_DIR = 0x4000, "large_dir", ": directories over 2 GiB, three levels of index.";
    INLINE_DATA = 0x8000, "inline_data", ": small files in the inode.";
    ENCRYPT = 0x10000, "encrypt", ": encrypted files.";
    CASEFOLD = 0x20000, "casefold", ": directories that ignore case.";
}

feature_set! {
    /// Features that allow reading by those who do not know them (`s_feature_ro_compat`).
    RoCompat, RO_COMPAT_NAMES:
    SPARSE_SUPER = 0x1, "sparse_super", ": backups only in groups 0, 1 and powers of 3, 5 and 7.";
    LARGE_FILE = 0x2, "large_file", ": a file of 2 GiB or more exists.";
    BTREE_DIR = 0x4, "btree_dir", " (never used).";
    HUGE_FILE = 0x8, "huge_file", ": files counted in blocks rather than sectors.";
    GDT_CSUM = 0x10, "uninit_bg", ": group descriptors have crc16 sums and uninitialised marks.";
    DIR_NLINK = 0x20, "dir_nlink", ": directories may have more than 64,998 subdirectories.";
    EXTRA_ISIZE = 0x40, "extra_isize", ": room for the fields beyond 128 bytes is guaranteed.";
    HAS_SNAPSHOT = 0x80, "snapshot", " (never merged).";
    QUOTA = 0x100, "quota", ": quota files are hidden inodes.";
    BIGALLOC = 0x200, "bigalloc", ": allocation in clusters of blocks.";
    METADATA_CSUM = 0x400, "metadata_csum", ": all metadata has crc32c checksums.";
    REPLICA = 0x800, "replica", " (never merged).";
    READONLY = 0x1000, "read-only", ": not to be changed.";
    PROJECT = 0x2000, "project", ": project quota.";
    SHARED_BLOCKS = 0x4000, "shared_blocks", ": blocks claimed more than once, hence read-only.";
    VERITY = 0x8000, "verity", ": verified files.";
    ORPHAN_PRESENT = 0x10000, "orphan_present", ": the orphan file is not empty.";
}

fn names(bits: u32, known: &[(u32, &str)], letter: char, out: &mut Vec<String>) {
    for bit in (0..32).map(|i| 1u32 << i).filter(|b| bits & b != 0) {
        out.push(match known.iter().find(|(b, _)| *b == bit) {
            Some((_, name)) => (*name).to_string(),
            None => format!("FEATURE_{letter}{}", bit.trailing_zeros()),
        });
    }
}

fn bit_named(name: &str, known: &[(u32, &str)]) -> Option<u32> {
    known.iter().find(|(_, n)| *n == name).map(|(b, _)| *b)
}

/// All features of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// Compatible.
    pub compat: Compat,
    /// Incompatible.
    pub incompat: Incompat,
    /// Read-only compatible.
    pub ro_compat: RoCompat,
}

impl Features {
    /// Names in the order of dumpe2fs: compat, incompat, ro_compat, each by rising bit.
    pub fn names(&self) -> Vec<String> {
        let mut out = Vec::new();
        names(self.compat.bits(), COMPAT_NAMES, 'C', &mut out);
        names(self.incompat.bits(), INCOMPAT_NAMES, 'I', &mut out);
        names(self.ro_compat.bits(), RO_COMPAT_NAMES, 'R', &mut out);
        out
    }

    /// The names of all features, as dumpe2fs prints them.
    pub fn all_names() -> Vec<&'static str> {
        let all = [COMPAT_NAMES, INCOMPAT_NAMES, RO_COMPAT_NAMES];
        all.into_iter().flatten().map(|(_, name)| *name).collect()
    }

    /// The feature with a name as dumpe2fs prints it, alone; also mke2fs's other names.
    pub fn by_name(name: &str) -> Option<Features> {
        let name = match name {
            "extents" => "extent",
            "uninit_groups" => "uninit_bg",
            "resize_inodes" => "resize_inode",
            other => other,
        };
        let compat = bit_named(name, COMPAT_NAMES).map(Compat::from_bits_retain);
        let incompat = bit_named(name, INCOMPAT_NAMES).map(Incompat::from_bits_retain);
        let ro_compat = bit_named(name, RO_COMPAT_NAMES).map(RoCompat::from_bits_retain);
        (compat.is_some() || incompat.is_some() || ro_compat.is_some()).then(|| Features {
            compat: compat.unwrap_or_default(),
            incompat: incompat.unwrap_or_default(),
            ro_compat: ro_compat.unwrap_or_default(),
        })
    }

    /// Both sets together.
    pub fn union(self, other: Features) -> Features {
        Features {
            compat: self.compat | other.compat,
            incompat: self.incompat | other.incompat,
            ro_compat: self.ro_compat | other.ro_compat,
        }
    }

    /// This set without the other's members.
    pub fn without(self, other: Features) -> Features {
        Features {
            compat: self.compat.difference(other.compat),
            incompat: self.incompat.difference(other.incompat),
            ro_compat: self.ro_compat.difference(other.ro_compat),
        }
    }

    /// Group descriptors have checksums, of either kind, and so UNINIT marks are valid.
    pub fn group_checksums(&self) -> bool {
        self.ro_compat.intersects(RoCompat::GDT_CSUM | RoCompat::METADATA_CSUM)
    }

    /// All metadata has crc32c checksums.
    pub fn metadata_csum(&self) -> bool {
        self.ro_compat.contains(RoCompat::METADATA_CSUM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_bits_are_kept_and_named() {
        let f = Features {
            compat: Compat::from_bits_retain(0x4 | 1 << 20),
            incompat: Incompat::from_bits_retain(0x20 | 0x80),
            ro_compat: RoCompat::from_bits_retain(1 << 31),
        };
        let expected = ["has_journal", "FEATURE_C20", "FEATURE_I5", "64bit", "FEATURE_R31"];
        assert_eq!(f.names(), expected);
        assert_eq!(f.compat.bits(), 0x4 | 1 << 20);
    }

    #[test]
    fn names_are_found_again() {
        let all = Features {
            compat: Compat::HAS_JOURNAL,
            incompat: Incompat::EXTENT,
            ro_compat: RoCompat::METADATA_CSUM,
        };
        let found = all.names().into_iter().map(|n| Features::by_name(&n).unwrap());
        assert_eq!(found.fold(Features::default(), Features::union), all);
        assert_eq!(Features::by_name("nonsense"), None);
    }
}
