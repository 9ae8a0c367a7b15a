//! Contents that stand in the inode itself (`inline_data`): the first 60 bytes in `i_block`, the
//! rest as the value of the attribute `system.data` behind the inode's fields. The attribute is
//! there even if its value is empty. Source: the kernel's
//! Documentation/filesystems/ext4/inlinedata.rst and fs/ext4/inline.c.

use steadfast_vfs::FileType;

use crate::error::{Ext4Error, Result};
use crate::extents::{Node, ROOT_BYTES};
use crate::ondisk::{InodeFlags, InodeNo, RawInode};

use crate::xattr::body;
use crate::xattr::entry::{Entry, Value};

/// Bytes of `i_block`: what every inline inode has room for (`EXT4_MIN_INLINE_DATA_SIZE`).
pub const INLINE_MIN: usize = ROOT_BYTES;

/// `EXT4_XATTR_INDEX_SYSTEM`.
const SYSTEM: u8 = 7;
const DATA: &[u8] = b"data";

fn attribute(value: &[u8]) -> Entry {
    Entry { index: SYSTEM, name: DATA.to_vec(), value: Value::Here(value.to_vec()) }
}

/// The attributes in the inode but `system.data`; none if they make no sense, which reading the
/// contents says.
fn others(raw: &RawInode) -> Vec<Entry> {
    let mut all = body::read(raw).unwrap_or_default();
    all.retain(|e| !e.is(SYSTEM, DATA));
    all
}

impl RawInode {
    /// Whether the contents are in the inode.
    #[inline]
    pub fn is_inline(&self) -> bool {
        self.flags().contains(InodeFlags::INLINE_DATA)
    }

    /// The contents of inode `no`, which [is inline](Self::is_inline): 60 bytes or more, of which
    /// the file may use fewer, and after which a longer file has zeros.
    ///
    /// # Errors
    /// Corrupt: no attribute, or attributes that make no sense.
    pub fn inline_contents(&self, no: InodeNo) -> Result<Vec<u8>> {
        let corrupt = |what| Ext4Error::corrupt(what, format!("inline contents of inode {no}"));
        let entries = body::read(self).map_err(corrupt)?;
        let mut contents = self.block().to_vec();
        match entries.into_iter().find(|e| e.is(SYSTEM, DATA)).map(|e| e.value) {
            Some(Value::Here(value)) => contents.extend(value),
            Some(Value::Inode { .. }) => return Err(corrupt("they are in another inode")),
            None => return Err(corrupt("the system.data attribute is missing")),
        }
        Ok(contents)
    }

    /// Most bytes of contents that the inode has room for beside its other attributes; `None` if
    /// not even the empty attribute fits.
    pub fn inline_room(&self) -> Option<usize> {
        let mut entries = others(self);
        entries.push(attribute(&[]));
        let mut fits = |words: usize| {
            *entries.last_mut().expect("just pushed") = attribute(&vec![0; words * 4]);
            body::fits(self, &entries)
        };
        if !fits(0) {
            return None;
        }
        let (mut low, mut high) = (0, self.xattr_region().len() / 4);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if fits(middle) { low = middle } else { high = middle - 1 }
        }
        Some(INLINE_MIN + low * 4)
    }

    /// Puts contents, for which there must be [room](Self::inline_room), into the inode. What was
    /// mapped must be gone.
    pub fn set_inline_contents(&mut self, contents: &[u8]) {
        let (first, rest) = contents.split_at(contents.len().min(INLINE_MIN));
        self.block_mut().fill(0);
        self.block_mut()[..first.len()].copy_from_slice(first);
        let mut entries = others(self);
        // First, as the kernel has it, so that other attributes find theirs where they were.
        entries.insert(0, attribute(rest));
        body::write(self, &entries);
        self.set_flags((self.flags() - InodeFlags::EXTENTS) | InodeFlags::INLINE_DATA);
    }

    /// The inode maps nothing and has no contents from here on; `extents`: by an empty tree.
    pub fn leave_inline(&mut self, extents: bool) {
        let entries = others(self);
        body::write(self, &entries);
        self.block_mut().fill(0);
        let mut flags = self.flags() - InodeFlags::INLINE_DATA;
        if extents {
            flags |= InodeFlags::EXTENTS;
            Node::empty(ROOT_BYTES).encode(self.block_mut());
        }
        self.set_flags(flags);
    }

    /// Whether `i_block` leads to blocks: not in short symbolic links and devices, nor where it
    /// holds contents.
    pub fn is_mapped(&self) -> bool {
        match self.file_type() {
            _ if self.is_inline() => false,
            Some(FileType::Regular | FileType::Directory) => true,
            Some(FileType::Symlink) => self.fast_symlink_target().is_none(),
            _ => false,
        }
    }

    /// Whether nothing is mapped: an empty tree or block map.
    pub fn maps_nothing(&self) -> bool {
        if self.flags().contains(InodeFlags::EXTENTS) {
            let mut empty = [0; ROOT_BYTES];
            Node::empty(ROOT_BYTES).encode(&mut empty);
            // Count and depth; the generation may be anything.
            self.block()[..8] == empty[..8]
        } else {
            !self.is_inline() && self.block().iter().all(|b| *b == 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ondisk::InodeNo;

    #[test]
    fn contents_go_in_and_out_beside_other_attributes() {
        let mut raw = RawInode::new(256, 32);
        let other = Entry { index: 1, name: b"mine".to_vec(), value: Value::Here(vec![5; 9]) };
        assert_eq!(raw.inline_room(), Some(60 + 96 - 4 - 20 - 4));
        body::write(&mut raw, std::slice::from_ref(&other));
        let room = raw.inline_room().unwrap();
        assert_eq!(room, 60 + 96 - 4 - 20 - 4 - 20 - 12);
        for len in [0, 1, 59, 60, 61, room] {
            let contents: Vec<u8> = (1..=len as u8).collect();
            raw.set_inline_contents(&contents);
            let got = raw.inline_contents(InodeNo(12)).unwrap();
            assert_eq!(&got[..len], contents);
            assert_eq!(got.len(), len.max(60));
            assert_eq!(raw.inline_room(), Some(room));
        }
        raw.leave_inline(true);
        assert!(raw.maps_nothing() && raw.inline_contents(InodeNo(12)).is_err());
        assert_eq!(body::read(&raw).unwrap(), [other]);
        assert_eq!(RawInode::new(128, 0).inline_room(), None);
    }
}
