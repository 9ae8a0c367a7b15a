//! Attributes in the inode itself, behind its fields. With `inline_data` the contents of a small
//! file are among them (`system.data`).

use crate::ondisk::{RawInode, XATTR_MAGIC};

use super::entry::{Entry, XattrArea};

/// The attributes in an inode; none if it has no room for any.
///
/// # Errors
/// What makes no sense, in words.
pub fn read(raw: &RawInode) -> Result<Vec<Entry>, &'static str> {
    if is_empty(raw) { Ok(Vec::new()) } else { XattrArea::BODY.parse(region(raw)) }
}

/// Whether the inode itself holds no attributes.
pub fn is_empty(raw: &RawInode) -> bool {
    region(raw).get(..4) != Some(&XATTR_MAGIC.to_le_bytes()[..])
}

/// Whether these attributes fit into the inode.
pub fn fits(raw: &RawInode, entries: &[Entry]) -> bool {
    entries.is_empty() || XattrArea::BODY.fits(entries, region(raw).len())
}

/// Puts attributes, which must [fit](fits), into the inode in place of those that it has.
pub fn write(raw: &mut RawInode, entries: &[Entry]) {
    if region(raw).len() < 4 {
        return;
    }
    let region = raw.xattr_region_mut();
    region.fill(0);
    if !entries.is_empty() {
        region[..4].copy_from_slice(&XATTR_MAGIC.to_le_bytes());
        XattrArea::BODY.write(entries, region);
    }
}

/// Where attributes may be: nowhere if the inode has no fields beyond the first 128 bytes.
fn region(raw: &RawInode) -> &[u8] {
    if raw.extra_isize() == 0 { &[] } else { raw.xattr_region() }
}
