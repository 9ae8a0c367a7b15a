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

/// A name in quotation marks, so that a shell would read it as it is.
pub fn always_quoted(name: &[u8]) -> String {
    let plain = |b: &u8| (b' '..=b'~').contains(b);
    let text = String::from_utf8_lossy(name);
    let shell_plain = !text.contains(['"', '$', '`', '\\', '!']);
    if text.contains('\'') && shell_plain && name.iter().all(plain) {
        return format!("\"{text}\"");
    }
    if std::str::from_utf8(name).is_ok_and(|t| !t.contains(char::is_control)) {
        return format!("'{}'", text.replace('\'', "'\\''"));
    }
    escaped(name)
}

/// Runs of plain bytes in single quotes, all others as `$'\n'`.
fn escaped(name: &[u8]) -> String {
    let mut text = String::from("'");
    for b in name {
        match b {
            b'\'' => text += "'\\''",
            b' '..=b'~' => text.push(char::from(*b)),
            b => {
                let letter = match b {
                    7 => "a".to_owned(),
                    8 => "b".to_owned(),
                    b'\t' => "t".to_owned(),
                    b'\n' => "n".to_owned(),
                    11 => "v".to_owned(),
                    12 => "f".to_owned(),
                    b'\r' => "r".to_owned(),
                    b => format!("{b:03o}"),
                };
                // Two escapes in a row share their quotation marks.
                match text.strip_suffix("''").filter(|t| t.contains("$'")) {
                    Some(open) => text = format!("{open}\\{letter}''"),
                    None => text += &format!("'$'\\{letter}''"),
                }
            }
        }
    }
    text + "'"
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
        ] {
            assert_eq!(always_quoted(name.as_bytes()), quoted, "{name}");
        }
        assert_eq!(quoted_if_needed(b"/tmp/f1"), "/tmp/f1");
        assert_eq!(quoted_if_needed(b"standard input"), "'standard input'");
    }

    #[test]
    fn words_are_the_systems() {
        assert_eq!(Errno::NOSPC.to_string(), "No space left on device");
    }
}
