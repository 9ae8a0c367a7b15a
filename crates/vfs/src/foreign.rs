//! Text that somebody else chose: names on a disk, paths of another user's mount, what a socket
//! answers, what a program prints. This is the one way by which it reaches a terminal, a log, a
//! table, a page or a document: what a reader would obey, or cannot see, is escaped.
//!
//! ```
//! use steadfast_vfs::foreign::{Foreign, json, lines};
//!
//! assert_eq!(Foreign::new("a\x1b[2J\n").to_string(), "a\\033[2J\\012");
//! assert_eq!(Foreign::new(r"a\033").to_string(), r"a\\033");
//! assert_eq!(lines("a\x1b[2J\n"), "a\\033[2J\n");
//! assert_eq!(json("\"a\u{202e}b\"".into()), "\"a\\u202eb\"");
//! ```

use std::fmt::{self, Write};

/// Text of others, which cannot be printed as it is: on one line, with octal escapes for
/// all that [`is_escaped`] and for bytes that are no UTF-8. A backslash is doubled, so that no two
/// texts look the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Foreign<'a>(&'a [u8]);

impl<'a> Foreign<'a> {
    /// These bytes.
    pub fn new(text: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Foreign(text.as_ref())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Foreign<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&shown(self.0))
    }
}

impl fmt::Debug for Foreign<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Characters that are no text: controls (C0, DEL and C1), which a terminal obeys, ends of lines
/// and paragraphs, and what turns the direction of writing or cannot be seen (Unicode's category
/// Cf, and the tags).
pub fn is_escaped(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
            | '\u{890}' | '\u{891}' | '\u{8e2}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e007f}')
}

/// The same as [`Foreign`] prints.
pub fn shown(text: &[u8]) -> String {
    escaped(text, "\\\\")
}

/// Text on one line that has been put together, with names of others in it that are escaped
/// already: its backslashes stay.
pub fn line(text: &[u8]) -> String {
    escaped(text, "\\")
}

fn escaped(text: &[u8], backslash: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for part in text.utf8_chunks() {
        for c in part.valid().chars() {
            if is_escaped(c) {
                octal(&mut out, c.encode_utf8(&mut [0; 4]).as_bytes());
            } else if c == '\\' {
                out.push_str(backslash);
            } else {
                out.push(c);
            }
        }
        octal(&mut out, part.invalid());
    }
    out
}

fn octal(out: &mut String, bytes: &[u8]) {
    for b in bytes {
        // OK to ignore: a String takes everything.
        let _ = write!(out, "\\{b:03o}");
    }
}

/// Text of several lines that has text of others in it: its ends of lines, tabs and backslashes
/// stay.
pub fn lines(text: &str) -> String {
    let pieces = text.split_inclusive(['\n', '\t']).map(|piece| {
        let end = piece.len() - usize::from(piece.ends_with(['\n', '\t']));
        line(&piece.as_bytes()[..end]) + &piece[end..]
    });
    pieces.collect()
}

/// A JSON document with the same characters escaped as JSON does it (`\u202e`). They stand in
/// strings alone, and those of ASCII but DEL are escaped already.
pub fn json(document: String) -> String {
    if !document.chars().any(is_escaped_json) {
        return document;
    }
    let mut out = String::with_capacity(document.len() + 64);
    for c in document.chars() {
        if is_escaped_json(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // OK to ignore: a String takes everything.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

fn is_escaped_json(c: char) -> bool {
    c >= '\u{7f}' && is_escaped(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reader_would_obey_or_cannot_see_is_escaped() {
        assert_eq!(shown("gr\u{fc}n \u{5d0}\u{1f600}".as_bytes()), "gr\u{fc}n \u{5d0}\u{1f600}");
        assert_eq!(shown(b"a\x1b[2Jb\nc\x7f"), "a\\033[2Jb\\012c\\177");
        assert_eq!(shown(b"\xff\xc3"), "\\377\\303");
        // The four characters, and the one that they are the escape of.
        assert_eq!((shown(br"\033"), shown(b"\x1b")), (r"\\033".into(), r"\033".into()));
        assert_eq!(line(shown(br"a\b").as_bytes()), r"a\\b");
        assert_eq!(shown("\u{9b}".as_bytes()), "\\302\\233");
        for c in ['\u{ad}', '\u{61c}', '\u{200f}', '\u{2028}', '\u{2029}', '\u{202e}', '\u{2066}'] {
            assert!(shown(c.to_string().as_bytes()).is_ascii(), "{c:?}");
        }
        assert_eq!(shown("\u{202e}".as_bytes()), "\\342\\200\\256");
        assert_eq!(shown("\u{e0041}".as_bytes()), "\\363\\240\\201\\201");
        assert_eq!(format!("{:>4}|{:?}", Foreign::new("ab"), Foreign::new("\t")), "  ab|\\011");
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(lines("a\n  b\tgr\u{fc}n\n"), "a\n  b\tgr\u{fc}n\n");
        assert_eq!(lines("(\x1b[31mE)\r\n\u{9b}"), "(\\033[31mE)\\015\n\\302\\233");
        assert_eq!(lines("a\u{2028}b"), "a\\342\\200\\250b");
        assert_eq!(lines(""), "");
    }

    #[test]
    fn a_document_stays_the_same_document() {
        assert_eq!(json("[\n\t\"gr\u{fc}n\"\n]".into()), "[\n\t\"gr\u{fc}n\"\n]");
        let text = "\"\u{7f}\u{9b}\u{2029}\u{feff}\u{e0041}x\"";
        assert_eq!(json(text.into()), "\"\\u007f\\u009b\\u2029\\ufeff\\udb40\\udc41x\"");
    }
}
