//! Names of attributes: a prefix, which is a code on disk, and the rest.

use steadfast_vfs::FsError;

/// Longest name with its prefix (`XATTR_NAME_MAX`).
pub const NAME_MAX: usize = 255;

/// Code of "system.posix_acl_access" (`EXT4_XATTR_INDEX_POSIX_ACL_ACCESS`).
pub const ACL_ACCESS: u8 = 2;
/// Code of "system.posix_acl_default" (`EXT4_XATTR_INDEX_POSIX_ACL_DEFAULT`).
pub const ACL_DEFAULT: u8 = 3;
/// Code of "security." (`EXT4_XATTR_INDEX_SECURITY`).
pub const SECURITY: u8 = 6;
/// Code of "user." (`EXT4_XATTR_INDEX_USER`).
pub const USER: u8 = 1;

/// The prefixes that programs see. Others (`system.data`, encryption contexts) are the file
/// system's own.
const PREFIXES: [(u8, &[u8]); 4] =
    [(USER, b"user."), (4, b"trusted."), (SECURITY, b"security."), (10, b"gnu.")];

/// The two that are whole names.
const WHOLE: [(u8, &[u8]); 2] =
    [(ACL_ACCESS, b"system.posix_acl_access"), (ACL_DEFAULT, b"system.posix_acl_default")];

/// A full name as code and rest.
///
/// # Errors
/// ERANGE: no name at all, or longer than 255 bytes. EINVAL: nothing behind the prefix.
/// EOPNOTSUPP: no such prefix.
pub fn split(full: &[u8]) -> Result<(u8, &[u8]), FsError> {
    if full.is_empty() || full.len() > NAME_MAX {
        return Err(FsError::Range { what: "an attribute's name has 1 to 255 bytes" });
    }
    if let Some((code, _)) = WHOLE.iter().find(|(_, name)| *name == full) {
        return Ok((*code, b""));
    }
    let known = PREFIXES.iter().find_map(|(code, p)| Some((*code, full.strip_prefix(*p)?)));
    match known {
        Some((_, b"")) => Err(FsError::Invalid { what: "an attribute's name without a name" }),
        Some((_, rest)) if rest.contains(&0) => {
            Err(FsError::Invalid { what: "NUL in an attribute's name" })
        }
        Some(found) => Ok(found),
        None => {
            let shown = String::from_utf8_lossy(full);
            Err(FsError::Unsupported { what: format!("extended attributes like \"{shown}\"") })
        }
    }
}

/// The full name; `None` for what is not shown to programs.
pub fn join(code: u8, rest: &[u8]) -> Option<Vec<u8>> {
    let whole = WHOLE.iter().find(|(c, _)| *c == code && rest.is_empty());
    if let Some((_, name)) = whole {
        return Some(name.to_vec());
    }
    let (_, prefix) = PREFIXES.iter().find(|(c, _)| *c == code)?;
    (!rest.is_empty()).then(|| [prefix, rest].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways_and_others_are_refused() {
        for full in
            [&b"user.a"[..], b"trusted.b.c", b"security.selinux", b"system.posix_acl_access"]
        {
            let (code, rest) = split(full).unwrap();
            assert_eq!(join(code, rest).unwrap(), full);
        }
        assert!(matches!(split(b""), Err(FsError::Range { .. })));
        assert!(matches!(split(&[b'u'; 256]), Err(FsError::Range { .. })));
        assert!(matches!(split(b"user."), Err(FsError::Invalid { .. })));
        for unknown in [&b"system.data"[..], b"system.posix_acl_accessx", b"foo", b"USER.x"] {
            assert!(matches!(split(unknown), Err(FsError::Unsupported { .. })));
        }
        assert_eq!(join(7, b"data"), None);
    }
}
