//! Names as they come from a disk, which may hold any bytes.

use std::fmt::Write;

/// Longest name in bytes.
const NAME_MAX: usize = 255;

/// For messages and listings: a name or path as text. Control characters, which a terminal would
/// obey, and bytes that are no UTF-8 are shown in octal, as `ls -b` does.
pub fn shown(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for part in path.utf8_chunks() {
        for c in part.valid().chars() {
            if c.is_control() {
                let mut bytes = [0; 4];
                octal(&mut text, c.encode_utf8(&mut bytes).as_bytes());
            } else {
                text.push(c);
            }
        }
        octal(&mut text, part.invalid());
    }
    text
}

fn octal(text: &mut String, bytes: &[u8]) {
    for b in bytes {
        // OK to ignore: a String takes everything.
        let _ = write!(text, "\\{b:03o}");
    }
}

/// A path one name longer; the path itself without one.
pub(super) fn joined(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = dir.to_vec();
    if name.is_empty() {
        return path;
    }
    if !path.is_empty() && path.last() != Some(&b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// The last name of a path; none for a root, "." and "..".
pub(super) fn last(path: &[u8]) -> Option<&[u8]> {
    let name = path.split(|b| *b == b'/').rfind(|n| !n.is_empty())?;
    (!matches!(name, b"." | b"..")).then_some(name)
}

/// Why these bytes are no name of one object in its folder, if they are none.
pub(super) fn why_refused(name: &[u8]) -> Option<&'static str> {
    match name {
        b"" => Some("an empty name: refused"),
        b"." | b".." => Some("one more entry of this name: refused"),
        _ if name.contains(&b'/') => Some("a name with '/' in it: refused"),
        _ if name.contains(&0) => Some("a name with NUL in it: refused"),
        _ if name.len() > NAME_MAX => Some("a name of more than 255 bytes: refused"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_told_nothing() {
        assert_eq!(shown("gr\u{fc}n".as_bytes()), "gr\u{fc}n");
        assert_eq!(shown(b"a\x1b[2Jb\nc"), "a\\033[2Jb\\012c");
        assert_eq!(shown(b"\xff\xc3"), "\\377\\303");
        assert_eq!(shown("\u{9b}".as_bytes()), "\\302\\233");
    }

    #[test]
    fn names_stay_in_their_folder() {
        for bad in [&b""[..], b".", b"..", b"../x", b"/etc", b"a/b", b"a\0", &[b'n'; 256]] {
            assert!(why_refused(bad).is_some(), "{bad:?}");
        }
        for good in [&b"a"[..], b"...", b"..a", b" ", b"-rf", &[0xff; 255]] {
            assert_eq!(why_refused(good), None, "{good:?}");
        }
        assert_eq!(last(b"/a/b//"), Some(&b"b"[..]));
        assert_eq!((last(b"/"), last(b"/a/.."), last(b".")), (None, None, None));
    }
}
