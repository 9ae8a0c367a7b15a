//! A list of attributes as it stands in an inode or in a block: entries from the front, values
//! from the back, four zero bytes between them.

use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::ondisk::{InodeNo, XattrEntry, xattr_entry_hash};

/// Bytes of an entry before its name.
const HEADER: usize = size_of::<XattrEntry>();

/// Four zero bytes after the last entry.
const END: usize = 4;

/// Where a value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Beside its entry.
    Here(Vec<u8>),
    /// In an inode of its own.
    Inode {
        /// That inode.
        no: InodeNo,
        /// Bytes.
        size: u32,
        /// Hash of name and the inode's checksum (`e_hash`).
        hash: u32,
    },
}

impl Value {
    /// Bytes that it takes beside its entry.
    pub fn padded_len(&self) -> usize {
        match self {
            Value::Here(bytes) => bytes.len().next_multiple_of(4),
            Value::Inode { .. } => 0,
        }
    }
}

/// An attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Code of the name's prefix.
    pub index: u8,
    /// The name without the prefix.
    pub name: Vec<u8>,
    /// The value, or where it is.
    pub value: Value,
}

impl Entry {
    /// Bytes of the entry with its name.
    fn len(&self) -> usize {
        (HEADER + self.name.len()).next_multiple_of(4)
    }

    /// The order in blocks: what the kernel's search relies on.
    fn rank(&self) -> (u8, usize, &[u8]) {
        (self.index, self.name.len(), &self.name)
    }

    /// Whether it has this name.
    pub fn is(&self, index: u8, name: &[u8]) -> bool {
        self.index == index && self.name == name
    }

    /// The hash that the entry has in a block.
    pub fn hash(&self) -> u32 {
        match &self.value {
            Value::Here(bytes) => xattr_entry_hash(&self.name, bytes, false),
            Value::Inode { hash, .. } => *hash,
        }
    }
}

/// Which kind of list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XattrArea {
    /// Where the first entry is, in bytes.
    first: usize,
    /// What values' offsets count from.
    base: usize,
    /// Entries are sorted and have hashes.
    block: bool,
}

impl XattrArea {
    /// In an inode, after a header of 4 bytes.
    pub(crate) const BODY: XattrArea = XattrArea { first: 4, base: 4, block: false };
    /// In a block, after a header of 32 bytes.
    pub const BLOCK: XattrArea = XattrArea { first: 32, base: 0, block: true };

    /// Reads a list. The values together are no longer than the region.
    ///
    /// # Errors
    /// What makes no sense, in words.
    pub fn parse(self, region: &[u8]) -> Result<Vec<Entry>, &'static str> {
        let mut entries = Vec::new();
        let mut at = self.first;
        let mut left = region.len();
        loop {
            let rest = region.get(at..).unwrap_or(&[]);
            let Some(head) = rest.first_chunk::<END>() else {
                return Err("attributes without an end");
            };
            if *head == [0; END] {
                return Ok(entries);
            }
            let Ok((raw, behind)) = XattrEntry::read_from_prefix(rest) else {
                return Err("attributes without an end");
            };
            let Some(name) = behind.get(..usize::from(raw.name_len)) else {
                return Err("an attribute's name reaches beyond its place");
            };
            let size = raw.value_size.get();
            let value = if raw.value_inode.get() != 0 {
                let no = InodeNo(raw.value_inode.get());
                Value::Inode { no, size, hash: raw.hash.get() }
            } else {
                Value::Here(self.value(region, &raw)?)
            };
            let entry = Entry { index: raw.name_index, name: name.to_vec(), value };
            let Some(now_left) = left.checked_sub(entry.value.padded_len()) else {
                return Err("attributes' values overlap");
            };
            left = now_left;
            at += entry.len();
            entries.push(entry);
        }
    }

    fn value(self, region: &[u8], raw: &XattrEntry) -> Result<Vec<u8>, &'static str> {
        let size = raw.value_size.get() as usize;
        if size == 0 {
            return Ok(Vec::new());
        }
        let start = self.base + usize::from(raw.value_offset.get());
        let value = start.checked_add(size).and_then(|end| region.get(start..end));
        value.map(<[u8]>::to_vec).ok_or("an attribute's value reaches beyond its place")
    }

    /// Puts entries into the order that they have in such a list.
    pub fn sort(self, entries: &mut [Entry]) {
        if self.block {
            entries.sort_by(|a, b| a.rank().cmp(&b.rank()));
        }
    }

    /// Whether a list fits into a region of so many bytes.
    pub fn fits(self, entries: &[Entry], region: usize) -> bool {
        let each = entries.iter().map(|e| e.len() + e.value.padded_len());
        self.first + each.sum::<usize>() + END <= region
    }

    /// Writes a list, which must [fit](Self::fits), behind the header.
    pub fn write(self, entries: &[Entry], region: &mut [u8]) {
        debug_assert!(self.fits(entries, region.len()));
        let mut sorted = entries.to_vec();
        self.sort(&mut sorted);
        region[self.first..].fill(0);
        let (mut at, mut value_at) = (self.first, region.len());
        for entry in &sorted {
            let mut raw = XattrEntry::new_zeroed();
            // OK to cast: a name has at most 255 bytes, a region at most 64 KiB.
            raw.name_len = entry.name.len() as u8;
            raw.name_index = entry.index;
            if self.block || matches!(entry.value, Value::Inode { .. }) {
                raw.hash.set(entry.hash());
            }
            match &entry.value {
                Value::Here(bytes) => {
                    raw.value_size.set(bytes.len() as u32);
                    if !bytes.is_empty() {
                        value_at -= entry.value.padded_len();
                        raw.value_offset.set((value_at - self.base) as u16);
                        region[value_at..value_at + bytes.len()].copy_from_slice(bytes);
                    }
                }
                Value::Inode { no, size, .. } => {
                    raw.value_inode.set(no.0);
                    raw.value_size.set(*size);
                }
            }
            region[at..at + HEADER].copy_from_slice(raw.as_bytes());
            region[at + HEADER..at + HEADER + entry.name.len()].copy_from_slice(&entry.name);
            at += entry.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(index: u8, name: &[u8], value: &[u8]) -> Entry {
        Entry { index, name: name.to_vec(), value: Value::Here(value.to_vec()) }
    }

    #[test]
    fn blocks_are_sorted_and_what_does_not_fit_is_known() {
        let list = [entry(6, b"b", b"xyz"), entry(1, b"longer", b""), entry(1, b"z", &[7; 8])];
        let needed = 32 + (20 + 24 + 20) + (4 + 8) + 4;
        assert!(!XattrArea::BLOCK.fits(&list, needed - 1) && XattrArea::BLOCK.fits(&list, needed));
        let mut region = vec![0xff; needed];
        XattrArea::BLOCK.write(&list, &mut region);
        let back = XattrArea::BLOCK.parse(&region).unwrap();
        assert_eq!(back, [list[2].clone(), list[1].clone(), list[0].clone()]);
        let mut region = vec![0; needed - 28];
        XattrArea::BODY.write(&list, &mut region);
        assert_eq!(XattrArea::BODY.parse(&region).unwrap(), list);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(
            mut bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            for form in [XattrArea::BODY, XattrArea::BLOCK] {
                if let Ok(entries) = form.parse(&bytes) {
                    let fits = form.fits(&entries, bytes.len() * 2 + 64);
                    prop_assert!(fits || bytes.len() < 64);
                }
            }
            bytes.truncate(40);
            let _ = XattrArea::BLOCK.parse(&bytes);
        }
    }
}
