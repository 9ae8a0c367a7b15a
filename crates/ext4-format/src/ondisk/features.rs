//! The three sets of features, with the names that dumpe2fs prints.
//!
//! A system that meets an unknown *compat* bit may go on, an unknown *ro_compat* bit may read, an
//! unknown *incompat* bit must stop. Bits without a name here are kept and printed as e2fsprogs
//! does: `FEATURE_C12`, `FEATURE_I5`, `FEATURE_R20`.

bitflags::bitflags! {
    /// Compatible features (`s_feature_compat`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Compat: u32 {
        /// `dir_prealloc`: directories get blocks in advance.
        const DIR_PREALLOC = 0x1;
        /// `imagic_inodes`: AFS server inodes.
        const IMAGIC_INODES = 0x2;
        /// `has_journal`: a journal, in the file system or on a device of its own.
        const HAS_JOURNAL = 0x4;
        /// `ext_attr`: extended attributes.
        const EXT_ATTR = 0x8;
        /// `resize_inode`: descriptor blocks reserved for growth.
        const RESIZE_INODE = 0x10;
        /// `dir_index`: hashed directories.
        const DIR_INDEX = 0x20;
        /// `lazy_bg`: uninitialised groups (never merged).
        const LAZY_BG = 0x40;
        /// `snapshot_bitmap`: exclude bitmaps (never merged).
        const SNAPSHOT_BITMAP = 0x100;
        /// `sparse_super2`: at most two backup superblocks.
        const SPARSE_SUPER2 = 0x200;
        /// `fast_commit`: an area for fast commits in the journal.
        const FAST_COMMIT = 0x400;
        /// `stable_inodes`: inode numbers and the UUID must not change.
        const STABLE_INODES = 0x800;
        /// `orphan_file`: orphans are kept in a file rather than a list.
        const ORPHAN_FILE = 0x1000;
        const _ = !0;
    }
}

bitflags::bitflags! {
    /// Incompatible features (`s_feature_incompat`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Incompat: u32 {
        /// `compression` (never merged).
        const COMPRESSION = 0x1;
        /// `filetype`: directory entries hold the file's type.
        const FILETYPE = 0x2;
        /// `needs_recovery`: the journal must be replayed.
        const NEEDS_RECOVERY = 0x4;
        /// `journal_dev`: this device is a journal, not a file system.
        const JOURNAL_DEV = 0x8;
        /// `meta_bg`: group descriptors spread over the groups.
        const META_BG = 0x10;
        /// `extent`: files mapped by extents.
        const EXTENT = 0x40;
        /// `64bit`: more than 2^32 blocks.
        const BIT64 = 0x80;
        /// `mmp`: protection against two hosts mounting.
        const MMP = 0x100;
        /// `flex_bg`: bitmaps and inode tables of several groups together.
        const FLEX_BG = 0x200;
        /// `ea_inode`: attribute values in inodes.
        const EA_INODE = 0x400;
        /// `dirdata`: data in directory entries (never merged).
        const DIRDATA = 0x1000;
        /// `metadata_csum_seed`: the checksum seed is in the superblock.
        const CSUM_SEED = 0x2000;
        /// `large_dir`: directories over 2 GiB, three levels of index.
        const LARGE_DIR = 0x4000;
        /// `inline_data`: small files in the inode.
        const INLINE_DATA = 0x8000;
        /// `encrypt`: encrypted files.
        const ENCRYPT = 0x10000;
        /// `casefold`: directories that ignore case.
        const CASEFOLD = 0x20000;
        const _ = !0;
    }
}

bitflags::bitflags! {
    /// Features that allow reading by those who do not know them (`s_feature_ro_compat`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct RoCompat: u32 {
        /// `sparse_super`: backups only in groups 0, 1 and powers of 3, 5 and 7.
        const SPARSE_SUPER = 0x1;
        /// `large_file`: a file of 2 GiB or more exists.
        const LARGE_FILE = 0x2;
        /// `btree_dir` (never used).
        const BTREE_DIR = 0x4;
        /// `huge_file`: files counted in blocks rather than sectors.
        const HUGE_FILE = 0x8;
        /// `uninit_bg`: group descriptors have crc16 checksums and uninitialised marks.
        const GDT_CSUM = 0x10;
        /// `dir_nlink`: directories may have more than 64,998 subdirectories.
        const DIR_NLINK = 0x20;
        /// `extra_isize`: room for the fields beyond 128 bytes is guaranteed.
        const EXTRA_ISIZE = 0x40;
        /// `snapshot` (never merged).
        const HAS_SNAPSHOT = 0x80;
        /// `quota`: quota files are hidden inodes.
        const QUOTA = 0x100;
        /// `bigalloc`: allocation in clusters of blocks.
        const BIGALLOC = 0x200;
        /// `metadata_csum`: all metadata has crc32c checksums.
        const METADATA_CSUM = 0x400;
        /// `replica` (never merged).
        const REPLICA = 0x800;
        /// `read-only`: not to be changed.
        const READONLY = 0x1000;
        /// `project`: project quota.
        const PROJECT = 0x2000;
        /// `shared_blocks`: blocks claimed more than once, hence read-only.
        const SHARED_BLOCKS = 0x4000;
        /// `verity`: verified files.
        const VERITY = 0x8000;
        /// `orphan_present`: the orphan file is not empty.
        const ORPHAN_PRESENT = 0x10000;
        const _ = !0;
    }
}

const COMPAT_NAMES: &[(u32, &str)] = &[
    (0x1, "dir_prealloc"),
    (0x2, "imagic_inodes"),
    (0x4, "has_journal"),
    (0x8, "ext_attr"),
    (0x10, "resize_inode"),
    (0x20, "dir_index"),
    (0x40, "lazy_bg"),
    (0x100, "snapshot_bitmap"),
    (0x200, "sparse_super2"),
    (0x400, "fast_commit"),
    (0x800, "stable_inodes"),
    (0x1000, "orphan_file"),
];

const INCOMPAT_NAMES: &[(u32, &str)] = &[
    (0x1, "compression"),
    (0x2, "filetype"),
    (0x4, "needs_recovery"),
    (0x8, "journal_dev"),
    (0x10, "meta_bg"),
    (0x40, "extent"),
    (0x80, "64bit"),
    (0x100, "mmp"),
    (0x200, "flex_bg"),
    (0x400, "ea_inode"),
    (0x1000, "dirdata"),
    (0x2000, "metadata_csum_seed"),
    (0x4000, "large_dir"),
    (0x8000, "inline_data"),
    (0x10000, "encrypt"),
    (0x20000, "casefold"),
];

const RO_COMPAT_NAMES: &[(u32, &str)] = &[
    (0x1, "sparse_super"),
    (0x2, "large_file"),
    (0x4, "btree_dir"),
    (0x8, "huge_file"),
    (0x10, "uninit_bg"),
    (0x20, "dir_nlink"),
    (0x40, "extra_isize"),
    (0x80, "snapshot"),
    (0x100, "quota"),
    (0x200, "bigalloc"),
    (0x400, "metadata_csum"),
    (0x800, "replica"),
    (0x1000, "read-only"),
    (0x2000, "project"),
    (0x4000, "shared_blocks"),
    (0x8000, "verity"),
    (0x10000, "orphan_present"),
];

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
