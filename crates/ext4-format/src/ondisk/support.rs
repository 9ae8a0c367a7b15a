//! Which features this version implements. What it does not is refused by name.

use crate::error::{Ext4Error, Result, refused, unsupported};
use crate::ondisk::{Compat, Features, HashVersion, Incompat, RoCompat, Superblock};

/// Compatible features that are implemented, or that need nothing done.
const COMPAT: Compat = Compat::DIR_PREALLOC
    .union(Compat::HAS_JOURNAL)
    .union(Compat::EXT_ATTR)
    .union(Compat::RESIZE_INODE)
    .union(Compat::DIR_INDEX)
    .union(Compat::STABLE_INODES)
    .union(Compat::SPARSE_SUPER2)
    .union(Compat::FAST_COMMIT)
    .union(Compat::ORPHAN_FILE);

const INCOMPAT: Incompat = Incompat::FILETYPE
    .union(Incompat::NEEDS_RECOVERY)
    .union(Incompat::EXTENT)
    .union(Incompat::BIT64)
    .union(Incompat::FLEX_BG)
    .union(Incompat::META_BG)
    .union(Incompat::EA_INODE)
    .union(Incompat::CSUM_SEED)
    .union(Incompat::LARGE_DIR)
    .union(Incompat::INLINE_DATA)
    .union(Incompat::ENCRYPT)
    .union(Incompat::CASEFOLD)
    .union(Incompat::MMP);

/// `EXT4_ENC_UTF8_12_1`
pub const ENCODING_UTF8_12_1: u16 = 1;

const RO_COMPAT: RoCompat = RoCompat::SPARSE_SUPER
    .union(RoCompat::LARGE_FILE)
    .union(RoCompat::HUGE_FILE)
    .union(RoCompat::GDT_CSUM)
    .union(RoCompat::DIR_NLINK)
    .union(RoCompat::EXTRA_ISIZE)
    .union(RoCompat::METADATA_CSUM)
    .union(RoCompat::VERITY)
    .union(RoCompat::QUOTA)
    .union(RoCompat::PROJECT)
    .union(RoCompat::ORPHAN_PRESENT)
    .union(RoCompat::BIGALLOC);

/// All features that are implemented.
pub fn implemented() -> Features {
    Features { compat: COMPAT, incompat: INCOMPAT, ro_compat: RO_COMPAT }
}

/// Refuses a file system that uses anything that is not implemented.
///
/// # Errors
/// [`Ext4Error::Unsupported`] names the features; a journal device is [`Ext4Error::Refused`].
pub fn check_supported_filesystem(sb: &Superblock) -> Result<()> {
    let f = sb.features();
    if f.incompat.contains(Incompat::JOURNAL_DEV) {
        return Err(Ext4Error::Refused {
            what: format!(
                "this is a journal device (UUID {}), not a file system; name it as the journal",
                uuid::Uuid::from_bytes(sb.uuid)
            ),
        });
    }
    if sb.revision.get() > 1 {
        return unsupported(format!("ext4 revision {}", sb.revision.get()));
    }
    let missing = f.without(Features { compat: COMPAT, incompat: INCOMPAT, ro_compat: RO_COMPAT });
    if missing != Features::default() {
        let names = missing.names().join(", ");
        return unsupported(format!("the file system uses {names}"));
    }
    if f.incompat.contains(Incompat::CASEFOLD) {
        check_encoding(sb)?;
    }
    if f.incompat.contains(Incompat::EA_INODE) && f.ro_compat.contains(RoCompat::QUOTA) {
        // Each user of a shared value is charged for it: not counted here yet.
        return unsupported("quota together with ea_inode");
    }
    // The kernel's ext4_hash_info_init.
    if f.compat.contains(Compat::DIR_INDEX)
        && HashVersion::from_code(sb.default_hash_version).is_none()
    {
        let version = sb.default_hash_version;
        return unsupported(format!("directory hash version {version}"));
    }
    Ok(())
}

/// Refuses character sets that are not known, and names that are folded and encrypted: their
/// hashes stand beside them in the directory.
fn check_encoding(sb: &Superblock) -> Result<()> {
    let encoding = sb.encoding.get();
    if encoding != ENCODING_UTF8_12_1 {
        return unsupported(format!("casefold with the character set {encoding}"));
    }
    if sb.features().incompat.contains(Incompat::ENCRYPT) {
        return unsupported("casefold together with encrypt");
    }
    Ok(())
}

/// As [`check_supported_filesystem`], and refuses what is implemented for reading only.
///
/// # Errors
/// As that.
pub fn check_writable_filesystem(sb: &Superblock) -> Result<()> {
    check_supported_filesystem(sb)?;
    let f = sb.features();
    if f.ro_compat.contains(RoCompat::BIGALLOC) && !f.incompat.contains(Incompat::EXTENT) {
        return unsupported("writing with bigalloc but without extents: mount it with ro");
    }
    Ok(())
}

/// Refuses what is not an external journal's device, or one with features that a journal device
/// cannot have.
///
/// # Errors
/// [`Ext4Error::Refused`] says what the device is instead; [`Ext4Error::Unsupported`] names
/// features.
pub fn check_supported_journal_device(sb: &Superblock) -> Result<()> {
    let f = sb.features();
    if !f.incompat.contains(Incompat::JOURNAL_DEV) {
        return refused(
            "the device holds a file system, not a journal; make a journal on it with \
                   mkfs -O journal_dev",
        );
    }
    let known = Features {
        compat: COMPAT,
        incompat: INCOMPAT | Incompat::JOURNAL_DEV,
        ro_compat: RO_COMPAT,
    };
    let missing = f.without(known);
    if missing != Features::default() {
        return unsupported(format!("the journal device uses {}", missing.names().join(", ")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sb(f: &[&str]) -> Superblock {
        let mut sb = Superblock::zeroed();
        sb.revision.set(1);
        let all = f.iter().map(|n| Features::by_name(n).unwrap());
        sb.set_features(all.fold(Features::default(), Features::union));
        sb
    }

    /// The list in docs/mount.md is that of the constants above.
    #[test]
    fn the_documentation_lists_what_is_refused() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mount.md");
        let page = std::fs::read_to_string(page).unwrap();
        let (_, list) = page.split_once("* the features ").unwrap();
        let (list, _) = list.split_once(", and all features without a name").unwrap();
        let mut listed: Vec<&str> = list.split(',').map(str::trim).collect();
        listed.sort_unstable();
        let refused = |name: &&str| check_supported_filesystem(&sb(&[name])).is_err();
        let mut names: Vec<&str> = Features::all_names().into_iter().filter(refused).collect();
        // Refused for another reason: it is no file system; without an encoding.
        names.retain(|name| !["journal_dev", "casefold"].contains(name));
        names.sort_unstable();
        assert_eq!(listed, names);
    }

    #[test]
    fn features_are_refused_by_name() {
        let base = ["has_journal", "extent", "filetype", "64bit", "metadata_csum"];
        assert_eq!(check_supported_filesystem(&sb(&base)), Ok(()));
        for name in ["compression", "dirdata"] {
            let mut with = base.to_vec();
            with.push(name);
            let error = check_supported_filesystem(&sb(&with)).unwrap_err();
            assert!(matches!(error, Ext4Error::Unsupported { .. }));
            assert!(error.to_string().contains(name), "{error}");
        }
        let mut casefold = sb(&["filetype", "casefold"]);
        let error = check_supported_filesystem(&casefold).unwrap_err();
        assert!(error.to_string().contains("casefold"), "{error}");
        casefold.encoding.set(ENCODING_UTF8_12_1);
        assert_eq!(check_supported_filesystem(&casefold), Ok(()));
        let mut both = sb(&["filetype", "casefold", "encrypt"]);
        both.encoding.set(ENCODING_UTF8_12_1);
        assert!(check_supported_filesystem(&both).unwrap_err().to_string().contains("encrypt"));
        assert_eq!(check_supported_filesystem(&sb(&["has_journal", "filetype"])), Ok(()));
        assert_eq!(check_supported_filesystem(&sb(&[])), Ok(()));
        let journal = check_supported_filesystem(&sb(&["journal_dev"])).unwrap_err();
        assert!(journal.to_string().contains("journal device"), "{journal}");
        assert_eq!(check_supported_journal_device(&sb(&["journal_dev"])), Ok(()));
        assert!(check_supported_journal_device(&sb(&base)).is_err());
    }
}
