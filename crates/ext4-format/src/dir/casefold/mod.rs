//! Names in directories that ignore case (`casefold`).
//!
//! Two names are one if they are equal after folding: full case folding and canonical
//! decomposition (NFD), as of Unicode 12.1, without the code points that are to be ignored by
//! default. Code points that 12.1 does not know are themselves. The index hashes the folded name;
//! the entry keeps the name as it was given. What is no text (no UTF-8) has no folding: it is a
//! row of bytes like any name in another directory, or refused where the file system is strict.
//! Only bytes that would continue a code point are let through as they are where there is none,
//! except in front.
//!
//! The tables of the crates used here are of a later Unicode. That changes nothing: decomposition,
//! folding and combining class of a code point never change once it is assigned, and those
//! assigned later are kept away from them. Source: the kernel's fs/unicode; e2fsck and debugfs
//! fold as it does.
//!
//! Kernel 6.12 (and others that took over its change) kept the code points that are to be ignored
//! and so put such names into other leaves. As the kernel since, we look through all leaves for a
//! name that its hash does not lead to, unless the superblock says that there are none of those.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use caseless::Caseless;
use unicode_normalization::char::{canonical_combining_class, decompose_canonical};

// `UNASSIGNED`, made by `build.rs`: first and last of each run of code points that Unicode 12.1
// does not know, in order.
include!(concat!(env!("OUT_DIR"), "/unassigned.rs"));

/// The combining class of what is no mark.
const STARTER: u8 = 0;
/// Foldings as long as this are none, to the kernel.
const PATH_MAX: usize = 4096;

/// A name to look for.
#[derive(Debug)]
pub(crate) struct CaselessName<'n> {
    name: &'n [u8],
    folded: Option<Vec<u8>>,
}

impl<'n> CaselessName<'n> {
    /// The name as it was given.
    pub fn new(name: &'n [u8]) -> Self {
        CaselessName { name, folded: fold(name) }
    }

    /// The name as it was given.
    pub fn name(&self) -> &'n [u8] {
        self.name
    }

    /// Whether it has a folding.
    pub(crate) fn is_folded(&self) -> bool {
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
pub fn fold(name: &[u8]) -> Option<Vec<u8>> {
    if name.is_ascii() {
        return Some(name.to_ascii_lowercase());
    }
    fold_without(name, &is_ignored)
}

/// What kernel 6.12 hashed for a name: the folding with what is to be ignored. `None` if it is no
/// text.
pub(crate) fn fold_as_6_12(name: &[u8]) -> Option<Vec<u8>> {
    fold_without(name, &|_| false)
}

/// Whether there are code points in a name that its folding lacks.
pub(crate) fn has_ignored(name: &[u8]) -> bool {
    !name.is_ascii()
        && Pieces(name).any(|piece| matches!(piece, Some(Piece::Letter(c)) if is_ignored(c)))
}

fn fold_without(name: &[u8], is_ignored: &dyn Fn(char) -> bool) -> Option<Vec<u8>> {
    if let Some(0x80..0xc0) = name.first() {
        return None;
    }
    let mut folded = Vec::with_capacity(name.len());
    for piece in Pieces(name) {
        match piece? {
            Piece::Stray(byte) => folded.push(FoldedChar::Stray(byte)),
            Piece::Letter(c) if is_ignored(c) => folded.push(FoldedChar::Ignored),
            Piece::Letter(c) if is_unassigned(c) => folded.push(FoldedChar::Letter(c, STARTER)),
            Piece::Letter(c) => std::iter::once(c).default_case_fold().for_each(|c| {
                decompose_canonical(c, |c| {
                    folded.push(FoldedChar::Letter(c, canonical_combining_class(c)));
                });
            }),
        }
    }
    let bytes = in_order(&folded);
    (bytes.len() < PATH_MAX).then_some(bytes)
}

/// A part of a name.
enum Piece {
    Letter(char),
    /// A byte that should continue a code point, behind none that it could.
    Stray(u8),
}

/// The parts of a name; `None` where it is no text.
struct Pieces<'n>(&'n [u8]);

impl Iterator for Pieces<'_> {
    type Item = Option<Piece>;

    fn next(&mut self) -> Option<Self::Item> {
        let (len, stray) = match self.0.first()? {
            0..0x80 => (1, false),
            0x80..0xc0 => (1, true),
            0xc0..0xe0 => (2, false),
            0xe0..0xf0 => (3, false),
            0xf0.. => (4, false),
        };
        let Some((piece, rest)) = self.0.split_at_checked(len) else {
            self.0 = &[];
            return Some(None);
        };
        self.0 = rest;
        if stray {
            return Some(Some(Piece::Stray(piece[0])));
        }
        let letter = std::str::from_utf8(piece).ok().and_then(|text| text.chars().next());
        Some(letter.map(Piece::Letter))
    }
}

/// A part of a folded name.
enum FoldedChar {
    /// With its canonical combining class.
    Letter(char, u8),
    Stray(u8),
    /// Nothing, but marks do not pass it.
    Ignored,
}

/// Puts marks into the order of their classes. Stray bytes among them come once for each walk over
/// them, as the kernel has it: one to find the classes, then one for each.
fn in_order(folded: &[FoldedChar]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(folded.len());
    let mut rest = folded;
    while let Some(first) = rest.first() {
        let is_mark =
            |f: &FoldedChar| matches!(f, FoldedChar::Letter(_, class) if *class != STARTER);
        let marks = if is_mark(first) {
            let end = rest.iter().position(|f| !is_mark(f) && !matches!(f, FoldedChar::Stray(_)));
            end.unwrap_or(rest.len())
        } else {
            0
        };
        let (walked, behind) = rest.split_at(marks.max(1));
        rest = behind;
        let classes: BTreeSet<u8> = walked.iter().filter_map(FoldedChar::class).collect();
        let to_find_them = (marks > 0).then_some(STARTER);
        for class in to_find_them.into_iter().chain(classes.iter().copied()) {
            put(walked, class, &mut bytes);
        }
        if classes.is_empty() {
            put(walked, STARTER, &mut bytes);
        }
    }
    bytes
}

impl FoldedChar {
    fn class(&self) -> Option<u8> {
        match self {
            FoldedChar::Letter(_, class) => Some(*class),
            FoldedChar::Stray(_) | FoldedChar::Ignored => None,
        }
    }
}

/// Adds the letters of one class, and stray bytes.
fn put(folded: &[FoldedChar], class: u8, bytes: &mut Vec<u8>) {
    for part in folded {
        match part {
            FoldedChar::Letter(c, its) if *its == class => {
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            FoldedChar::Stray(byte) => bytes.push(*byte),
            FoldedChar::Letter(..) | FoldedChar::Ignored => {}
        }
    }
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

    #[test]
    fn the_table_ends_with_unicode_12_1() {
        // New in 12.1, and new in 13.0; a private one, and one that no text has been given.
        for (code, is) in [('\u{32ff}', false), ('\u{8be}', true), ('\u{e000}', false)] {
            assert_eq!(is_unassigned(code), is, "{code:?}");
        }
        assert!(is_unassigned('\u{378}') && !is_unassigned('A') && !is_unassigned('\u{10fffd}'));
        let in_order = UNASSIGNED.windows(2).all(|two| two[0].1 < two[1].0);
        assert!(in_order && UNASSIGNED.iter().all(|(first, last)| first <= last));
    }

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
        for bytes in [&b"\xc3"[..], b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe9t\xe9"]
        {
            assert_eq!(fold(&[b"A", bytes].concat()), None);
        }
        assert_eq!(fold(b"A\x96B").unwrap(), b"a\x96b", "a stray byte");
    }

    #[test]
    fn what_kernel_6_12_kept() {
        let name = "A\u{200d}\u{c4}\u{2065}".as_bytes();
        assert!(has_ignored(name) && !has_ignored("Ä".as_bytes()) && !has_ignored(b"a\xff"));
        assert_eq!(fold(name).unwrap(), "aa\u{308}".as_bytes());
        assert_eq!(fold_as_6_12(name).unwrap(), "a\u{200d}a\u{308}\u{2065}".as_bytes());
    }

    #[test]
    fn what_is_not_known_stays_as_it_is() {
        // A capital letter of Unicode 13, a mark of 14, a code point that is unassigned still.
        assert_eq!(fold("A\u{a7c7}".as_bytes()).unwrap(), "a\u{a7c7}".as_bytes());
        let marks = "\u{301}\u{1dfa}\u{316}\u{301}";
        assert_eq!(fold(marks.as_bytes()).unwrap(), "\u{301}\u{1dfa}\u{316}\u{301}".as_bytes());
        assert!(same("Ä\u{378}Ö", "ä\u{378}ö") && !same("\u{378}", "\u{379}"));
        // Marks keep their side of what is ignored.
        assert!(!same("a\u{301}\u{34f}\u{316}", "a\u{316}\u{301}"));
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
        let codes: Vec<char> = ('\u{80}'..=char::MAX).filter(chosen).collect();
        let mut names: Vec<Vec<u8>> = codes.iter().map(|c| format!("A{c}B").into_bytes()).collect();
        assert!(names.len() > 4000);
        // Beside each other, marks get an order.
        let marks: Vec<char> = ('\u{300}'..='\u{36f}').chain('\u{1dc0}'..='\u{1dff}').collect();
        names.extend((0..4000).map(|i| {
            let (c, d) = (codes[i * 7919 % codes.len()], codes[i * 104_729 % codes.len()]);
            let (m, n) = (marks[i * 31 % marks.len()], marks[i * 57 % marks.len()]);
            format!("A{m}{n}{c}{n}{d}{m}").into_bytes()
        }));
        for name in [
            "A\u{316}\u{301}*B",
            "A\u{301}*\u{316}*B",
            "A\u{301}\u{316}\u{301}**",
            "Ä*\u{316}",
            "*Ä",
        ] {
            let stray = name.bytes().map(|b| if b == b'*' { 0x96 } else { b });
            names.push(stray.collect());
        }
        names.push("\u{200d}".into());
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
