//! POSIX access control lists: as programs hand them over (`struct posix_acl_xattr_header`, version
//! 2), as they stand on disk (`ext4_acl_header`, version 1), and what they do to permission bits.

use steadfast_vfs::FsError;

const WIRE_VERSION: u32 = 2;
const DISK_VERSION: u32 = 1;

const USER_OBJ: u16 = 0x01;
const USER: u16 = 0x02;
const GROUP_OBJ: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;

/// Who has no number: the owner, the mask ...
const NO_ID: u32 = u32::MAX;

/// Bits of a mode that an ACL is about.
const ALL: u16 = 0o777;

/// One line of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    tag: u16,
    /// Read 4, write 2, execute 1.
    perm: u16,
    /// User or group of a named entry.
    id: u32,
}

impl Entry {
    fn is_named(self) -> bool {
        matches!(self.tag, USER | GROUP)
    }
}

/// A list with at least one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acl(Vec<Entry>);

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from(half(bytes, at)) | u32::from(half(bytes, at + 2)) << 16
}

fn invalid() -> FsError {
    FsError::Invalid { what: "an access control list that makes no sense" }
}

impl Acl {
    /// The list that a program hands over; `None` if it is empty, which means: no list.
    ///
    /// # Errors
    /// EOPNOTSUPP: another version. EINVAL: not whole, entries out of order or without meaning.
    pub fn from_wire(bytes: &[u8]) -> Result<Option<Acl>, FsError> {
        if bytes.is_empty() {
            return Ok(None);
        }
        if bytes.len() < 4 {
            return Err(invalid());
        }
        if word(bytes, 0) != WIRE_VERSION {
            return Err(FsError::Unsupported {
                what: "this version of access control lists".into(),
            });
        }
        let (entries, rest) = bytes[4..].as_chunks::<8>();
        if !rest.is_empty() {
            return Err(invalid());
        }
        let read = |e: &[u8; 8]| {
            let (tag, perm, id) = (half(e, 0), half(e, 2), word(e, 4));
            let entry = Entry { tag, perm, id };
            if entry.is_named() { entry } else { Entry { id: NO_ID, ..entry } }
        };
        let acl = Acl(entries.iter().map(read).collect());
        if acl.0.is_empty() {
            return Ok(None);
        }
        if acl.is_valid() { Ok(Some(acl)) } else { Err(invalid()) }
    }

    /// As programs get it.
    pub fn to_wire(&self) -> Vec<u8> {
        self.written(WIRE_VERSION, |_| true)
    }

    fn written(&self, version: u32, has_id: impl Fn(&Entry) -> bool) -> Vec<u8> {
        let mut bytes = version.to_le_bytes().to_vec();
        for e in &self.0 {
            bytes.extend_from_slice(&e.tag.to_le_bytes());
            bytes.extend_from_slice(&e.perm.to_le_bytes());
            if has_id(e) {
                bytes.extend_from_slice(&e.id.to_le_bytes());
            }
        }
        bytes
    }

    /// The list on disk; `None` if it is empty.
    ///
    /// # Errors
    /// What makes no sense, in words.
    pub fn from_disk(bytes: &[u8]) -> Result<Option<Acl>, &'static str> {
        if bytes.len() < 4 || word(bytes, 0) != DISK_VERSION {
            return Err("an access control list of no known version");
        }
        let (mut at, mut entries) = (4, Vec::new());
        while at < bytes.len() {
            let short = bytes.get(at..at + 4).ok_or("an access control list that is cut off")?;
            let mut entry = Entry { tag: half(short, 0), perm: half(short, 2), id: NO_ID };
            at += 4;
            if entry.is_named() {
                let id = bytes.get(at..at + 4).ok_or("an access control list that is cut off")?;
                entry.id = word(id, 0);
                at += 4;
            } else if !matches!(entry.tag, USER_OBJ | GROUP_OBJ | MASK | OTHER) {
                return Err("an access control list with an entry of no known kind");
            }
            entries.push(entry);
        }
        Ok((!entries.is_empty()).then_some(Acl(entries)))
    }

    /// As it stands on disk: only named entries have a number.
    pub fn to_disk(&self) -> Vec<u8> {
        self.written(DISK_VERSION, |e| e.is_named())
    }

    /// Whether the entries are in order: owner, users, group, groups, mask, others; a mask if
    /// somebody is named (`posix_acl_valid`).
    fn is_valid(&self) -> bool {
        let (mut expected, mut needs_mask) = (USER_OBJ, false);
        for e in &self.0 {
            if e.perm & !7 != 0 || (e.is_named() && e.id == NO_ID) {
                return false;
            }
            expected = match (e.tag, expected) {
                (USER_OBJ, USER_OBJ) => USER,
                (USER, USER) => USER,
                (GROUP_OBJ, USER) => GROUP,
                (GROUP, GROUP) => GROUP,
                (MASK, GROUP) => OTHER,
                (OTHER, OTHER) => 0,
                (OTHER, GROUP) if !needs_mask => 0,
                _ => return false,
            };
            needs_mask |= e.is_named();
        }
        expected == 0
    }

    fn has_mask(&self) -> bool {
        self.0.iter().any(|e| e.tag == MASK)
    }

    /// The permission bits that the list amounts to, and whether they say all that it does
    /// (`posix_acl_equiv_mode`).
    pub fn mode(&self) -> (u16, bool) {
        let (mut mode, mut mask, mut all) = (0, None, true);
        for e in &self.0 {
            match e.tag {
                USER_OBJ => mode |= (e.perm & 7) << 6,
                GROUP_OBJ => mode |= (e.perm & 7) << 3,
                OTHER => mode |= e.perm & 7,
                MASK => (mask, all) = (Some(e.perm & 7), false),
                _ => all = false,
            }
        }
        (mask.map_or(mode, |m| mode & !0o070 | m << 3), all)
    }

    /// Gives the list the permission bits of a chmod (`__posix_acl_chmod_masq`).
    pub fn set_mode(&mut self, mode: u16) {
        let has_mask = self.has_mask();
        for e in &mut self.0 {
            match e.tag {
                USER_OBJ => e.perm = mode >> 6 & 7,
                GROUP_OBJ if !has_mask => e.perm = mode >> 3 & 7,
                MASK => e.perm = mode >> 3 & 7,
                OTHER => e.perm = mode & 7,
                _ => {}
            }
        }
    }

    /// Makes of a directory's default list that of something new in it which is to have `mode`
    /// (`posix_acl_create_masq`). Gives the mode that it has then, and whether that says all.
    pub fn inherit(&mut self, mode: u16) -> (u16, bool) {
        let has_mask = self.has_mask();
        let (mut bits, mut all) = (mode & ALL, true);
        let mut meet = |perm: &mut u16, shift: u16| {
            *perm &= bits >> shift | !7;
            bits &= *perm << shift | !(7 << shift);
        };
        for e in &mut self.0 {
            match e.tag {
                USER_OBJ => meet(&mut e.perm, 6),
                GROUP_OBJ if !has_mask => meet(&mut e.perm, 3),
                MASK => meet(&mut e.perm, 3),
                OTHER => meet(&mut e.perm, 0),
                _ => {}
            }
            all &= !e.is_named() && e.tag != MASK;
        }
        (mode & !ALL | bits & ALL, all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acl(entries: &[(u16, u16, u32)]) -> Acl {
        Acl(entries
            .iter()
            .map(|(tag, perm, id)| Entry { tag: *tag, perm: *perm, id: *id })
            .collect())
    }

    fn named() -> Acl {
        acl(&[
            (USER_OBJ, 7, NO_ID),
            (USER, 6, 1000),
            (GROUP_OBJ, 5, NO_ID),
            (MASK, 6, NO_ID),
            (OTHER, 4, NO_ID),
        ])
    }

    #[test]
    fn both_forms_go_both_ways() {
        let wire = named().to_wire();
        assert_eq!(wire.len(), 4 + 5 * 8);
        assert_eq!(Acl::from_wire(&wire), Ok(Some(named())));
        let disk = named().to_disk();
        assert_eq!(disk.len(), 4 + 4 * 4 + 8);
        assert_eq!(Acl::from_disk(&disk), Ok(Some(named())));
        for cut in 0..disk.len() {
            let _ = Acl::from_disk(&disk[..cut]);
            let _ = Acl::from_wire(&wire[..cut]);
        }
        assert_eq!(Acl::from_wire(&wire[..4]), Ok(None));
    }

    #[test]
    fn lists_out_of_order_are_refused() {
        let (mut swapped, mut no_mask) = (named(), named());
        swapped.0.swap(0, 2);
        no_mask.0.remove(3);
        for bad in [swapped, no_mask, acl(&[(USER_OBJ, 8, NO_ID)]), acl(&[(OTHER, 7, NO_ID)])] {
            assert_eq!(Acl::from_wire(&bad.to_wire()), Err(invalid()));
        }
    }

    #[test]
    fn modes_follow_and_lead() {
        assert_eq!(named().mode(), (0o764, false));
        let plain = acl(&[(USER_OBJ, 6, NO_ID), (GROUP_OBJ, 4, NO_ID), (OTHER, 0, NO_ID)]);
        assert_eq!(plain.mode(), (0o640, true));
        let mut changed = named();
        changed.set_mode(0o510);
        assert_eq!((changed.mode().0, changed.0[2].perm), (0o510, 5));
        let mut new = named();
        assert_eq!(new.inherit(0o2640), (0o2640, false));
        assert_eq!((new.0[0].perm, new.0[3].perm, new.0[4].perm), (6, 4, 0));
        assert_eq!(plain.clone().inherit(0o777), (0o640, true));
    }
}
