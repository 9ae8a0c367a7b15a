//! Access control lists as the kernel takes them in extended attributes (acl(5); the layout is
//! that of the kernel's `posix_acl_xattr.h`), to and from the short text that setfacl(1) has.

const VERSION: u32 = 2;
const NO_ID: u32 = u32::MAX;

/// Tag, and how it is written.
const TAGS: [(u16, &str); 4] = [(0x01, "u"), (0x04, "g"), (0x10, "m"), (0x20, "o")];
const NAMED_USER: u16 = 0x02;
const NAMED_GROUP: u16 = 0x08;

/// `u::rwx,u:1001:r-x,g::---,m::r--,o::r--` as an attribute's value; none if it is no list.
pub(super) fn to_bytes(text: &str) -> Option<Vec<u8>> {
    let mut bytes = VERSION.to_le_bytes().to_vec();
    for entry in text.split(',') {
        let fields: Vec<&str> = entry.split(':').collect();
        let [kind, id, rights] = fields[..] else { return None };
        let id = if id.is_empty() { NO_ID } else { id.parse().ok()? };
        let tag = match (kind, id) {
            ("u", i) if i != NO_ID => NAMED_USER,
            ("g", i) if i != NO_ID => NAMED_GROUP,
            _ => TAGS.iter().find(|(_, k)| *k == kind)?.0,
        };
        let bit = |c, b| if rights.contains(c) { b } else { 0u16 };
        let rights = bit('r', 4) | bit('w', 2) | bit('x', 1);
        bytes.extend(tag.to_le_bytes());
        bytes.extend(rights.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    Some(bytes)
}

/// The other way round; what is no list is shown as numbers.
pub(super) fn to_text(bytes: &[u8]) -> String {
    let Some((version, entries)) = bytes.split_first_chunk::<4>() else {
        return format!("{bytes:?}");
    };
    if u32::from_le_bytes(*version) != VERSION || entries.len() % 8 != 0 {
        return format!("{bytes:?}");
    }
    let entry = |e: &[u8]| {
        let tag = u16::from_le_bytes([e[0], e[1]]);
        let rights = u16::from_le_bytes([e[2], e[3]]);
        let id = u32::from_le_bytes([e[4], e[5], e[6], e[7]]);
        let kind = match tag {
            NAMED_USER => "u",
            NAMED_GROUP => "g",
            _ => TAGS.iter().find(|(t, _)| *t == tag).map_or("?", |(_, k)| k),
        };
        let id = if id == NO_ID { String::new() } else { id.to_string() };
        let letter = |bit, c| if rights & bit != 0 { c } else { '-' };
        format!("{kind}:{id}:{}{}{}", letter(4, 'r'), letter(2, 'w'), letter(1, 'x'))
    };
    entries.chunks_exact(8).map(entry).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let text = "u::rwx,u:1001:r-x,g::---,g:7:-w-,m::r--,o::--x";
        assert_eq!(to_text(&to_bytes(text).unwrap()), text);
        assert_eq!(to_bytes("u:x"), None);
        assert_eq!(to_bytes("z::rwx"), None);
    }
}
