//! Names: of volumes and slices, with or without the folder that they lie in.

use crate::command::CommandError;

/// Folders under which Solaris has its devices, block and raw.
const FOLDERS: [&str; 8] = [
    "/dev/md/dsk/",
    "/dev/md/rdsk/",
    "/dev/dsk/",
    "/dev/rdsk/",
    "/dev/ramdisk/",
    "/dev/rramdisk/",
    "md/dsk/",
    "md/rdsk/",
];
/// The last folders of a path in a host's tree.
const IN_A_TREE: [&str; 3] = ["dsk", "rdsk", "ramdisk"];

/// The plain name of what a word names: `/dev/md/dsk/d10` is `d10`.
///
/// # Errors
/// For `SET/d10`: there are no disk sets; and for what cannot be a name.
pub fn plain(word: &str) -> Result<String, CommandError> {
    let under_dev = FOLDERS.iter().find_map(|folder| word.strip_prefix(folder));
    let in_tree = word.rsplit_once('/').filter(|(folder, _)| {
        let last = folder.rsplit('/').next().unwrap_or_default();
        folder.starts_with('/') && IN_A_TREE.contains(&last)
    });
    let name = under_dev.or(in_tree.map(|(_, name)| name)).unwrap_or(word);
    if let Some((set, _)) = name.split_once('/').filter(|_| !name.starts_with('/')) {
        return Err(no_such_set(set));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:+".contains(c);
    if name.is_empty() || name.starts_with(['-', '.']) || !name.chars().all(plain) {
        refuse!(word, "illegal name");
    }
    Ok(name.to_owned())
}

/// Plain names of all words.
pub(crate) fn all_plain(words: &[String]) -> Result<Vec<String>, CommandError> {
    words.iter().map(|word| plain(word)).collect()
}

/// There is the local set only.
pub(crate) fn no_such_set(set: &str) -> CommandError {
    CommandError::about(set, "no such set: a host has its own volumes only, and no disk sets")
}

/// The drive that a slice is on: `c5t0d0s0` is on `c5t0d0`. Other names are their own drive.
fn drive(slice: &str) -> &str {
    let Some((drive, number)) = slice.rsplit_once('s') else { return slice };
    let unit = drive.rsplit_once('d').filter(|_| drive.starts_with('c'));
    let is_drive = unit.is_some_and(|(_, unit)| is_number(unit));
    if is_drive && is_number(number) { drive } else { slice }
}

/// The drive that a slice is on; the slice itself, where several of `known` are on it.
pub fn drive_or_slice<'n>(slice: &'n str, known: &[&str]) -> &'n str {
    let others = known.iter().filter(|other| drive(other) == drive(slice)).count();
    if others > 1 { slice } else { drive(slice) }
}

/// Whether a name is one of those that the volume manager gave before names could be chosen.
pub(crate) fn is_numbered(name: &str) -> bool {
    name.strip_prefix('d').is_some_and(is_number)
}

/// Whether a word is digits.
pub(crate) fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit())
}

/// What to sort names by, so that `d2` comes before `d10`.
pub fn order(name: &str) -> (String, u64, String) {
    let letters = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
    let (head, tail) = name.split_at(letters);
    let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
    (head.to_owned(), tail[..end].parse().unwrap_or(u64::MAX), name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_last_of_a_path() {
        for path in ["d10", "/dev/md/dsk/d10", "/dev/md/rdsk/d10", "/run/stack/dsk/d10"] {
            assert_eq!(plain(path).unwrap(), "d10", "{path}");
        }
        assert_eq!(plain("/dev/ramdisk/testdisk").unwrap(), "testdisk");
        assert_eq!(plain("/a/ramdisk/testdisk").unwrap(), "testdisk");
        for bad in ["", "-m", "/dev/sda", "d 1", "/x/y", "\u{e9}", "/dev/md/dsk/"] {
            assert!(plain(bad).is_err(), "{bad}");
        }
        let set = plain("blue/d10").unwrap_err();
        assert_eq!(set.about.as_deref(), Some("blue"));
    }

    #[test]
    fn a_slice_is_on_a_drive() {
        assert_eq!(drive("c5t0d0s0"), "c5t0d0");
        assert_eq!(drive("c0d1s15"), "c0d1");
        for other in ["testdisk", "cs0", "disks2", "c0d1", "s0"] {
            assert_eq!(drive(other), other);
        }
    }

    #[test]
    fn names_are_sorted_by_their_number() {
        let mut names = vec!["d10", "d2", "c1d0", "d2b", "x"];
        names.sort_by_key(|n| order(n));
        assert_eq!(names, ["c1d0", "d2", "d2b", "d10", "x"]);
    }
}
