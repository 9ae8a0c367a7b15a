//! Names as they come from a disk, which may hold any bytes.

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

#[cfg(test)]
mod tests {
    use steadfast_vfs::path::why_refused;

    use super::*;

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
