//! Error numbers in the system's words, and names as GNU's tools quote them.

use std::fmt;

use steadfast_block::BlockError;
use steadfast_vfs::FsError;

/// An error number of a system call, or what would be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// Invalid argument.
    pub const INVAL: Errno = Errno(22);
    /// Is a directory.
    pub const ISDIR: Errno = Errno(21);
    /// Not a directory.
    pub const NOTDIR: Errno = Errno(20);
    /// No space left on device.
    pub const NOSPC: Errno = Errno(28);
    /// Function not implemented.
    pub const NOSYS: Errno = Errno(38);
    /// Too many levels of symbolic links.
    pub const LOOP: Errno = Errno(40);
    /// Value too large for defined data type.
    pub const OVERFLOW: Errno = Errno(75);
    /// Read-only file system.
    pub const ROFS: Errno = Errno(30);
    /// File exists.
    pub const EXIST: Errno = Errno(17);
    /// Input/output error.
    pub const IO: Errno = Errno(5);
}

impl fmt::Display for Errno {
    /// strerror(3)'s words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = std::io::Error::from_raw_os_error(self.0).to_string();
        f.write_str(text.split(" (os error").next().unwrap_or(&text))
    }
}

impl From<FsError> for Errno {
    fn from(e: FsError) -> Errno {
        Errno(e.errno())
    }
}

impl From<rustix::io::Errno> for Errno {
    fn from(e: rustix::io::Errno) -> Errno {
        Errno(e.raw_os_error())
    }
}

impl From<BlockError> for Errno {
    fn from(e: BlockError) -> Errno {
        match e {
            BlockError::Misaligned { .. } => Errno::INVAL,
            BlockError::OutOfRange { .. } => Errno::NOSPC,
            BlockError::ReadOnly { .. } => Errno::ROFS,
            _ => Errno::IO,
        }
    }
}

/// A name in quotation marks, so that a shell would read it as it is: what is no text stands in
/// `$'\377'`.
pub fn always_quoted(name: &[u8]) -> String {
    let plain = |b: &u8| (b' '..=b'~').contains(b);
    let text = String::from_utf8_lossy(name);
    let shell_plain = !text.contains(['"', '$', '`', '\\', '!']);
    if text.contains('\'') && shell_plain && name.iter().all(plain) {
        return format!("\"{text}\"");
    }
    let (mut text, mut in_escapes) = (String::from("'"), false);
    for c in characters(name, Charset::Utf8) {
        match &c {
            Ok('\'') => text += "'\\''",
            Ok(c) if in_escapes => text.extend(['\'', '\'', *c]),
            Ok(c) => text.push(*c),
            Err(escape) if in_escapes => text += escape,
            Err(escape) => text += &format!("'$'{escape}"),
        }
        in_escapes = c.is_err();
    }
    text + "'"
}

/// The characters that can be shown; others, and what is no text, as a C string has them.
fn characters(bytes: &[u8], charset: Charset) -> impl Iterator<Item = Result<char, String>> {
    let escaped = |b: &u8| match b {
        b @ 7..=13 => format!("\\{}", char::from(b"abtnvfr"[usize::from(b - 7)])),
        b => format!("\\{b:03o}"),
    };
    let shown = move |c: char| match c.is_control() || charset == Charset::Ascii && !c.is_ascii() {
        true => Err(c.to_string().bytes().map(|b| escaped(&b)).collect()),
        false => Ok(c),
    };
    bytes.utf8_chunks().flat_map(move |chunk| {
        let rest = chunk.invalid().iter().map(move |b| Err(escaped(b)));
        chunk.valid().chars().map(shown).chain(rest)
    })
}

/// The character set of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Charset {
    /// ASCII, or another one: `'x'`.
    #[default]
    Ascii,
    /// UTF-8: `‘x’`.
    Utf8,
}

impl Charset {
    /// A word in the quotation marks of messages about the command line.
    pub(super) fn quoted(self, word: &[u8]) -> String {
        let (open, close) = match self {
            Charset::Ascii => ('\'', '\''),
            Charset::Utf8 => ('\u{2018}', '\u{2019}'),
        };
        let shown = |c: Result<char, String>| match c {
            Ok(c) if c == close || c == '\\' => format!("\\{c}"),
            Ok(c) => c.to_string(),
            Err(escape) => escape,
        };
        format!("{open}{}{close}", characters(word, self).map(shown).collect::<String>())
    }
}

/// A name as it is, or in quotation marks where a shell or a reader could misunderstand it.
pub(crate) fn quoted_if_needed(name: &[u8]) -> String {
    let safe = |b: &u8| b.is_ascii_alphanumeric() || b"%+,-./@_".contains(b);
    match name {
        [] => "''".into(),
        name if name.iter().all(safe) => String::from_utf8_lossy(name).into_owned(),
        name => always_quoted(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted() {
        for (name, quoted) in [
            ("f1", "'f1'"),
            ("a b", "'a b'"),
            ("it's", "\"it's\""),
            ("it's $5", "'it'\\''s $5'"),
            ("a\nb", "'a'$'\\n''b'"),
            ("a\n\tb", "'a'$'\\n\\t''b'"),
            ("a\n'b", "'a'$'\\n'\\''b'"),
            ("\u{e9}\u{85}", "'\u{e9}'$'\\302\\205'"),
        ] {
            assert_eq!(always_quoted(name.as_bytes()), quoted, "{name}");
        }
        assert_eq!(always_quoted(b"/\xc3\xa9\xff"), "'/\u{e9}'$'\\377'");
        assert_eq!(quoted_if_needed(b"/tmp/f1"), "/tmp/f1");
        assert_eq!(quoted_if_needed(b"standard input"), "'standard input'");
    }

    #[test]
    fn words_are_the_systems() {
        assert_eq!(Errno::NOSPC.to_string(), "No space left on device");
    }
}
