//! Names in directories that ignore case (`casefold`).
//!
//! Two names are one if they are equal after folding: full case folding and canonical
//! decomposition (NFD), as of Unicode 12.1, without the code points that are to be ignored by
//! default. The index hashes the folded name; the entry keeps the name as it was given. What is
//! no text (no UTF-8, or code points that Unicode 12.1 does not know) has no folding: it is a row
//! of bytes like any name elsewhere, or refused where the file system is strict.
//!
//! The tables of the crates used here are of a later Unicode. That changes nothing: decomposition
//! and folding of a code point never change once it is assigned, and those assigned later are
//! turned away first. Source: the kernel's fs/unicode; e2fsck and debugfs fold as it does.
//!
//! Kernel 6.12 (and others that took over its change) kept the code points that are to be ignored
//! and so filed names with them elsewhere. As the kernel since, we look through all leaves for a
//! name that its hash does not lead to, unless the superblock says that there are none of those.

mod unassigned;

use std::cmp::Ordering;

use caseless::Caseless;
use unicode_normalization::UnicodeNormalization;

use unassigned::UNASSIGNED;

/// A name to look for.
#[derive(Debug)]
pub(crate) struct CaselessName<'n> {
    name: &'n [u8],
    folded: Option<Vec<u8>>,
}

impl<'n> CaselessName<'n> {
    pub fn new(name: &'n [u8]) -> Self {
        CaselessName { name, folded: fold(name) }
    }

    /// The name as it was given.
    pub fn name(&self) -> &'n [u8] {
        self.name
    }

    /// Whether it is text, which has a folding.
    pub fn is_text(&self) -> bool {
        self.folded.is_some()
    }

    /// Whether the name on disk is this one.
    pub fn is(&self, other: &[u8]) -> bool {
        if self.name == other {
            return true;
        }
        let Some(folded) = &self.folded else { return false };
        if other.is_ascii() {
            return folded.eq_ignore_ascii_case(other);
        }
        // Most names differ in the first letter, which costs nothing to see.
        if let (Some(a), Some(b)) = (self.name.first(), other.first())
            && a.is_ascii()
            && b.is_ascii()
            && !a.eq_ignore_ascii_case(b)
        {
            return false;
        }
        fold(other).as_ref() == Some(folded)
    }
}

/// What all spellings of a name have in common; `None` if it is no text.
pub(crate) fn fold(name: &[u8]) -> Option<Vec<u8>> {
    if name.is_ascii() {
        return Some(name.to_ascii_lowercase());
    }
    let text = std::str::from_utf8(name).ok()?;
    if text.chars().any(|c| !c.is_ascii() && !is_ignored(c) && is_unassigned(c)) {
        return None;
    }
    let folded: String =
        text.chars().filter(|c| !is_ignored(*c)).default_case_fold().nfd().collect();
    Some(folded.into_bytes())
}

/// Whether there are code points in a name that its folding lacks.
pub(crate) fn has_ignored(name: &[u8]) -> bool {
    !name.is_ascii() && std::str::from_utf8(name).is_ok_and(|text| text.chars().any(is_ignored))
}

/// What kernel 6.12 hashed for a name: the folding with what is to be ignored. `None` if that was
/// no text to it.
pub(crate) fn fold_as_6_12(name: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(name).ok()?;
    if text.chars().any(|c| is_unassigned(c) || is_ignored_unassigned(c)) {
        return None;
    }
    let folded: String = text.chars().default_case_fold().nfd().collect();
    Some(folded.into_bytes())
}

/// What will be ignored by default if it is ever assigned.
fn is_ignored_unassigned(c: char) -> bool {
    matches!(u32::from(c),
        0x2065 | 0xfff0..=0xfff8 | 0xe_0000 | 0xe_0002..=0xe_001f | 0xe_0080..=0xe_00ff
        | 0xe_01f0..=0xe_0fff)
}

fn is_unassigned(c: char) -> bool {
    let code = u32::from(c);
    let place = UNASSIGNED.binary_search_by(|(first, last)| match () {
        () if *last < code => Ordering::Less,
        () if *first > code => Ordering::Greater,
        () => Ordering::Equal,
    });
    place.is_ok()
}

/// `Default_Ignorable_Code_Point` of Unicode 12.1: joiners, variation selectors and the like.
fn is_ignored(c: char) -> bool {
    matches!(u32::from(c),
        0xad | 0x34f | 0x61c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180e
        | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f | 0xfeff
        | 0xffa0 | 0xfff0..=0xfff8 | 0x1_bca0..=0x1_bca3 | 0x1_d173..=0x1_d17a
        | 0xe_0000..=0xe_0fff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn same(a: &str, b: &str) -> bool {
        CaselessName::new(a.as_bytes()).is(b.as_bytes())
    }

    #[test]
    fn spellings_of_one_name() {
        assert!(same("README", "readme") && same("README", "ReadMe"));
        assert!(same("Straße", "STRASSE") && same("Å", "å") && same("Å", "A\u{30a}"));
        assert!(same("\u{3a3}", "\u{3c2}"), "all forms of sigma");
        assert!(same("ﬀ", "FF") && same("a\u{200d}b", "AB") && same("\u{feff}x", "X"));
        assert!(same("q\u{307}\u{323}", "Q\u{323}\u{307}"), "order of marks");
        assert!(!same("a", "ä") && !same("readme", "read me") && !same("ı", "i"));
        assert!(!same("é", "e") && !same("x", "\u{301}x"));
    }

    #[test]
    fn what_is_no_text_is_its_bytes() {
        let bad = CaselessName::new(b"A\xff");
        assert!(bad.is(b"A\xff") && !bad.is(b"a\xff"));
        // Assigned by Unicode 13; unassigned still.
        for late in ["\u{1fad6}", "\u{378}"] {
            assert_eq!(fold(late.as_bytes()), None);
        }
        assert_eq!(fold(b"\xed\xa0\x80"), None, "a surrogate");
    }

    #[test]
    fn what_kernel_6_12_kept() {
        let name = "A\u{200d}\u{c4}\u{2065}".as_bytes();
        assert!(has_ignored(name) && !has_ignored("Ä".as_bytes()) && !has_ignored(b"a\xff"));
        assert_eq!(fold(name).unwrap(), "aa\u{308}".as_bytes());
        assert_eq!(fold_as_6_12(name), None, "unassigned");
        let folded = fold_as_6_12("A\u{200d}\u{c4}".as_bytes()).unwrap();
        assert_eq!(folded, "a\u{200d}a\u{308}".as_bytes());
        let all = ('\0'..=char::MAX).filter(|c| is_ignored_unassigned(*c));
        assert_eq!(all.filter(|c| !is_ignored(*c)).count(), 0);
    }

    /// debugfs's hash of names; `options` choose whether it folds them.
    fn hashes(options: &str, names: &[Vec<u8>]) -> Vec<String> {
        let mut script = Vec::new();
        for name in names {
            script.extend(format!("dx_hash -h half_md4 {options} \"").as_bytes());
            script.extend(name);
            script.extend(b"\"\n");
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("script");
        std::fs::write(&file, script).unwrap();
        let out = Command::new("debugfs").arg("-f").arg(&file).output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let hashes = text.lines().filter_map(|line| line.rsplit_once(" is 0x"));
        hashes.map(|(_, hash)| hash.to_owned()).collect()
    }

    /// Every code point that has a folding or decomposition, some of the others, both sides of
    /// every border between assigned and unassigned: e2fsprogs folds them as we do.
    #[test]
    fn e2fsprogs_folds_the_same() {
        let soak = std::env::var("STEADFAST_SOAK").is_ok();
        let borders: Vec<u32> =
            UNASSIGNED.iter().flat_map(|(a, b)| [a - 1, *a, *b, b + 1]).collect();
        let chosen = |c: &char| {
            let code = u32::from(*c);
            let plain = c.to_string().into_bytes();
            let changes = fold(&plain).is_some_and(|folded| folded != plain);
            let hangul_or_tag = (0xac00..0xd7a4).contains(&code) || code >= 0xe_0000;
            soak || (changes && (!hangul_or_tag || code % 61 == 0))
                || code % 997 == 0
                || borders.contains(&code)
        };
        let codes = ('\u{80}'..=char::MAX).filter(chosen);
        let names: Vec<Vec<u8>> = codes.map(|c| format!("a{c}b").into_bytes()).collect();
        assert!(names.len() > 4000);
        let folded: Vec<Vec<u8>> =
            names.iter().map(|n| fold(n).unwrap_or_else(|| n.clone())).collect();
        let (theirs, ours) = (hashes("-c -e utf8-12.1", &names), hashes("", &folded));
        assert_eq!((theirs.len(), ours.len()), (names.len(), names.len()));
        let differ: Vec<String> = (0..names.len())
            .filter(|i| theirs[*i] != ours[*i])
            .map(|i| String::from_utf8_lossy(&names[i]).escape_unicode().to_string())
            .collect();
        assert!(differ.is_empty(), "{differ:?}");
    }
}
