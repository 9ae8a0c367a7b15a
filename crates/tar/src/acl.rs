//! Access control lists: as text in an archive (`SCHILY.acl.access`), and as the kernel has them
//! in an attribute: a version, then entries of tag, permissions and id (posix_acl_xattr.h).

/// The attribute of the list that holds for an object.
pub const ACCESS_ACL: &[u8] = b"system.posix_acl_access";
/// The attribute of the list that new objects of a folder get.
pub const DEFAULT_ACL: &[u8] = b"system.posix_acl_default";

const VERSION: [u8; 4] = [2, 0, 0, 0];
const OWNER: u16 = 1;
const USER: u16 = 2;
const OWNING_GROUP: u16 = 4;
const GROUP: u16 = 8;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;
const NO_ID: u32 = u32::MAX;

/// An entry.
struct Entry {
    tag: u16,
    bits: u16,
    id: u32,
}

/// The kernel's form of a list in words.
///
/// # Errors
/// What of it cannot be: names of users are known to the machine that has written them only.
pub(crate) fn from_text(text: &[u8]) -> Result<Vec<u8>, String> {
    let text = std::str::from_utf8(text).map_err(|_| "its list is no text".to_owned())?;
    let mut entries = Vec::new();
    for line in text.split([',', '\n']) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            entries.push(entry(line.strip_prefix("default:").unwrap_or(line))?);
        }
    }
    // The kernel wants them in this order.
    entries.sort_by_key(|entry| (entry.tag, entry.id));
    let mut value = VERSION.to_vec();
    for Entry { tag, bits, id } in entries {
        value.extend(tag.to_le_bytes());
        value.extend(bits.to_le_bytes());
        value.extend(id.to_le_bytes());
    }
    Ok(value)
}

fn entry(line: &str) -> Result<Entry, String> {
    let wrong = || format!("its list has the entry '{line}'");
    let mut fields = line.split(':').map(str::trim);
    let mut next = || fields.next();
    let (tag, who, bits, number) = (next(), next(), next(), next());
    let who = who.ok_or_else(wrong)?;
    let (tag, bits) = match (tag.ok_or_else(wrong)?, bits) {
        ("user" | "u", Some(bits)) => (if who.is_empty() { OWNER } else { USER }, bits),
        ("group" | "g", Some(bits)) => (if who.is_empty() { OWNING_GROUP } else { GROUP }, bits),
        ("mask" | "m", Some(bits)) => (MASK, bits),
        ("other" | "o", Some(bits)) => (OTHER, bits),
        // Solaris leaves the empty field out.
        ("mask" | "m", None) => (MASK, who),
        ("other" | "o", None) => (OTHER, who),
        _ => return Err(wrong()),
    };
    let bits = bits_of(bits).ok_or_else(wrong)?;
    let id = match tag {
        USER | GROUP => {
            let known = number.and_then(|n| n.parse().ok()).or_else(|| who.parse().ok());
            known
                .ok_or_else(|| format!("its list names '{who}', whose number is not known here"))?
        }
        _ => NO_ID,
    };
    Ok(Entry { tag, bits, id })
}

fn bits_of(letters: &str) -> Option<u16> {
    letters.bytes().try_fold(0, |all, letter| match letter {
        b'r' => Some(all | 4),
        b'w' => Some(all | 2),
        b'x' => Some(all | 1),
        b'-' => Some(all),
        _ => None,
    })
}

/// What a list in words gives the owning group, also one that cannot be kept. Without the list the
/// group's bits of the mode, which are its mask, would give it more.
pub(crate) fn group_of_text(text: &[u8]) -> Option<u16> {
    let mut entries = std::str::from_utf8(text).ok()?.split([',', '\n']).map(str::trim);
    entries.find_map(|entry| {
        let letters = entry.strip_prefix("group::").or_else(|| entry.strip_prefix("g::"))?;
        bits_of(letters.get(..3)?)
    })
}

/// The entries of a list in the kernel's form; `None` if it is none.
fn entries(value: &[u8]) -> Option<Vec<Entry>> {
    let rest = value.strip_prefix(&VERSION)?;
    if !rest.len().is_multiple_of(8) {
        return None;
    }
    let entry = |e: &[u8]| Entry {
        tag: u16::from_le_bytes([e[0], e[1]]),
        bits: u16::from_le_bytes([e[2], e[3]]),
        id: u32::from_le_bytes([e[4], e[5], e[6], e[7]]),
    };
    Some(rest.chunks_exact(8).map(entry).collect())
}

/// A list in words, with numbers for users and groups; `None` if it is none.
pub(crate) fn to_text(value: &[u8]) -> Option<String> {
    let words = entries(value)?.into_iter().map(|Entry { tag, bits, id }| {
        let (kind, who) = match tag {
            OWNER => ("user", String::new()),
            USER => ("user", id.to_string()),
            OWNING_GROUP => ("group", String::new()),
            GROUP => ("group", id.to_string()),
            MASK => ("mask", String::new()),
            OTHER => ("other", String::new()),
            _ => return None,
        };
        let letter = |bit: u16, letter: char| if bits & bit != 0 { letter } else { '-' };
        Some(format!("{kind}:{who}:{}{}{}", letter(4, 'r'), letter(2, 'w'), letter(1, 'x')))
    });
    Some(words.collect::<Option<Vec<String>>>()?.join(","))
}

/// Puts other numbers into a list in the kernel's form; what is none stays.
pub fn map_ids(value: &mut [u8], uid: impl Fn(u32) -> u32, gid: impl Fn(u32) -> u32) {
    let Some(entries) = entries(value) else { return };
    for (entry, place) in entries.iter().zip(value[VERSION.len()..].chunks_exact_mut(8)) {
        let id = match entry.tag {
            USER => uid(entry.id),
            GROUP => gid(entry.id),
            _ => continue,
        };
        place[4..].copy_from_slice(&id.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_the_kernels_form() {
        let text = "user::rw-\nuser:1001:rw-\ngroup::r-x\nmask::rw-\nother::---\n";
        let mut value = from_text(text.as_bytes()).unwrap();
        let words = "user::rw-,user:1001:rw-,group::r-x,mask::rw-,other::---";
        assert_eq!(to_text(&value).unwrap(), words);
        assert_eq!(from_text(words.as_bytes()).unwrap(), value);
        map_ids(&mut value, |id| id + 1, |_| 0);
        assert!(to_text(&value).unwrap().contains("user:1002:rw-"));
        // star's fourth field says the number.
        let star = from_text(b"user::rw-,user:lisa:r--:502,group::r--,mask::r--,other::r--");
        assert!(to_text(&star.unwrap()).unwrap().contains("user:502:r--"));
        let named = from_text(b"user::rw-,user:lisa:r--,group::r--").unwrap_err();
        assert!(named.contains("lisa"), "{named}");
        let named = b"user::rw-\nuser:lisa:rw-\ngroup::r-- #effective\nmask::rw-";
        assert_eq!(group_of_text(named), Some(4));
    }

    #[test]
    fn nonsense_is_no_list() {
        for bad in ["user", "user:1", "what::rwx", "user::rwz", "\u{ff}"] {
            assert!(from_text(bad.as_bytes()).is_err(), "{bad}");
        }
        assert_eq!(to_text(&[2, 0, 0, 0, 1]), None);
        assert_eq!(to_text(&[9, 9, 9, 9]), None);
    }
}
