//! The command line: `key=value` words.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use super::errno::{Charset, Errno};
use super::number;
use super::words::{self, Conv, Flags, StatusLevel};

/// Block size without `bs=`, `ibs=` and `obs=`.
const BLOCK: usize = 512;

/// What to copy, and how.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Operands {
    /// `if=`; `None` is the standard input.
    pub input: Option<OsString>,
    /// `of=`; `None` is the standard output.
    pub output: Option<OsString>,
    /// Bytes of an input block.
    pub ibs: usize,
    /// Bytes of an output block.
    pub obs: usize,
    /// Bytes of a record of `conv=block` and `unblock`; 0: not given.
    pub cbs: usize,
    /// Whole input blocks to pass over.
    pub skip_blocks: u64,
    /// Bytes to pass over after these.
    pub skip_bytes: u64,
    /// Whole output blocks to pass over.
    pub seek_blocks: u64,
    /// Bytes to pass over after these.
    pub seek_bytes: u64,
    /// Input blocks to copy; `None`: all.
    pub count_blocks: Option<u64>,
    /// Bytes to copy after these.
    pub count_bytes: u64,
    /// `conv=`.
    pub conv: Conv,
    /// `iflag=`.
    pub iflags: Flags,
    /// `oflag=`.
    pub oflags: Flags,
    /// `status=`.
    pub status: StatusLevel,
    /// What is worth a word although it can be done.
    pub warnings: Vec<String>,
}

impl Operands {
    /// Whether the output file is cut to what lies before the place where writing begins.
    pub fn truncates(&self) -> bool {
        !self.conv.contains(Conv::NOTRUNC)
    }

    /// Where writing begins, in bytes.
    pub fn seek_offset(&self) -> Option<u64> {
        let blocks = self.seek_blocks.checked_mul(self.obs as u64)?;
        blocks.checked_add(self.seek_bytes).filter(|at| i64::try_from(*at).is_ok())
    }

    /// Whether writing begins at another place than the start of the output.
    pub fn seeks(&self) -> bool {
        self.seek_blocks > 0 || self.seek_bytes > 0
    }
}

/// A command line that cannot be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongOperand {
    /// What is wrong, and warnings that came before it.
    pub lines: Vec<String>,
    /// Whether dd points to its help behind it.
    pub point_to_help: bool,
}

impl fmt::Display for WrongOperand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}

impl std::error::Error for WrongOperand {}

/// Reads operands; sizes are 0, and what is counted is not yet in blocks, until all are read.
#[derive(Default)]
struct Reader {
    charset: Charset,
    read: Operands,
    bs: usize,
    /// Numbers, and whether of bytes.
    skip: (u64, bool),
    seek: (u64, bool),
    count: Option<(u64, bool)>,
}

/// Reads the words of a command line; `charset`: of what is said about them.
///
/// # Errors
/// The first thing that is wrong, in GNU dd's words.
pub fn parse(args: &[OsString], charset: Charset) -> Result<Operands, WrongOperand> {
    let mut reader = Reader { charset, ..Reader::default() };
    for word in args {
        if let Err((line, point_to_help)) = reader.word(word) {
            let mut lines = std::mem::take(&mut reader.read.warnings);
            lines.push(line);
            return Err(WrongOperand { lines, point_to_help });
        }
    }
    reader.finish().map_err(|line| WrongOperand { point_to_help: line.1, lines: vec![line.0] })
}

/// A message, and whether the help is pointed to.
type Wrong = (String, bool);

impl Reader {
    fn word(&mut self, word: &OsStr) -> Result<(), Wrong> {
        let bytes = word.as_bytes();
        let charset = self.charset;
        let unrecognised = || (format!("unrecognized operand {}", charset.quoted(bytes)), true);
        let at = bytes.iter().position(|b| *b == b'=').ok_or_else(unrecognised)?;
        let (key, value) = (&bytes[..at], &bytes[at + 1..]);
        match key {
            b"if" => self.read.input = Some(OsStr::from_bytes(value).to_owned()),
            b"of" => self.read.output = Some(OsStr::from_bytes(value).to_owned()),
            b"conv" => self.read.conv.extend(self.flags(value, words::conv, "conversion")?),
            b"iflag" => self.read.iflags.extend(self.flags(value, words::named, "input flag")?),
            b"oflag" => self.read.oflags.extend(self.flags(value, words::named, "output flag")?),
            b"status" => {
                // Of several the last one counts.
                let given = self.flags(value, words::status, "status level")?;
                self.read.status = given.last().copied().unwrap_or_default();
            }
            b"ibs" => self.read.ibs = self.size(value)?,
            b"obs" => self.read.obs = self.size(value)?,
            b"bs" => self.bs = self.size(value)?,
            b"cbs" => self.read.cbs = self.size(value)?,
            b"skip" | b"iseek" => self.skip = self.number(value)?,
            b"seek" | b"oseek" => self.seek = self.number(value)?,
            b"count" => self.count = Some(self.number(value)?),
            _ => return Err(unrecognised()),
        }
        Ok(())
    }

    /// A number, and whether it is of bytes.
    fn number(&mut self, value: &[u8]) -> Result<(u64, bool), Wrong> {
        let text = String::from_utf8_lossy(value);
        let number = number::read(&text).map_err(|e| self.no_number(value, e.errno()))?;
        if number.zero_product {
            let [zero, zeros] = [b"0x" as &[u8], b"00x"].map(|word| self.charset.quoted(word));
            let what = format!("{zero} is a zero multiplier; use {zeros} if that is intended");
            self.read.warnings.push(format!("warning: {what}"));
        }
        Ok((number.value, text.contains('B')))
    }

    fn size(&mut self, value: &[u8]) -> Result<usize, Wrong> {
        let size = match self.number(value)? {
            (0, _) => return Err(self.no_number(value, None)),
            (n, _) => usize::try_from(n).ok(),
        };
        // A page more is allocated than asked for.
        let size = size.filter(|s| *s < isize::MAX as usize - (1 << 16));
        size.ok_or_else(|| self.no_number(value, Some(Errno::OVERFLOW)))
    }

    fn no_number(&self, value: &[u8], errno: Option<Errno>) -> Wrong {
        let cause = errno.map(|e| format!(": {e}")).unwrap_or_default();
        (format!("invalid number: {}{cause}", self.charset.quoted(value)), false)
    }

    /// Words between commas.
    fn flags<T>(
        &self,
        value: &[u8],
        read: fn(&str) -> Option<T>,
        what: &str,
    ) -> Result<Vec<T>, Wrong> {
        let known = |word: &[u8]| {
            let known = std::str::from_utf8(word).ok().and_then(read);
            known.ok_or_else(|| (format!("invalid {what}: {}", self.charset.quoted(word)), true))
        };
        value.split(|b| *b == b',').map(known).collect()
    }

    fn finish(self) -> Result<Operands, Wrong> {
        let mut o = self.read;
        let or = |size: usize| if size == 0 { BLOCK } else { size };
        (o.ibs, o.obs) = match self.bs {
            0 => (or(o.ibs), or(o.obs)),
            bs => (bs, bs),
        };
        o.conv.set(Conv::TWO_BUFFERS, self.bs == 0 || o.conv.contains(Conv::TWO_BUFFERS));
        if o.cbs == 0 {
            o.conv -= Conv::BLOCK | Conv::UNBLOCK;
        }
        if o.oflags.contains(Flags::FULLBLOCK) {
            let word = self.charset.quoted(b"fullblock");
            return Err((format!("invalid output flag: {word}"), true));
        }
        together(o.conv, o.iflags, o.oflags)?;
        if o.oflags.contains(Flags::APPEND) && !o.conv.contains(Conv::NOTRUNC) {
            o.warnings.push("you probably want conv=notrunc with oflag=append".into());
        }
        let split = |(n, of_bytes): (u64, bool), flagged: bool, block: usize| {
            let block = if of_bytes || flagged { block as u64 } else { return (n, 0) };
            (n / block, n % block)
        };
        let (iflags, oflags) = (o.iflags, o.oflags);
        (o.skip_blocks, o.skip_bytes) = split(self.skip, iflags.contains(Flags::SKIP_BYTES), o.ibs);
        (o.seek_blocks, o.seek_bytes) = split(self.seek, oflags.contains(Flags::SEEK_BYTES), o.obs);
        if let Some(count) = self.count {
            let (blocks, bytes) = split(count, iflags.contains(Flags::COUNT_BYTES), o.ibs);
            (o.count_blocks, o.count_bytes) = (Some(blocks), bytes);
        }
        Ok(o)
    }
}

/// What does not go together.
fn together(conv: Conv, iflags: Flags, oflags: Flags) -> Result<(), Wrong> {
    let sets = [
        (Conv::ASCII | Conv::EBCDIC | Conv::IBM, "any two of {ascii,ebcdic,ibm}"),
        (Conv::BLOCK | Conv::UNBLOCK, "block and unblock"),
        (Conv::LCASE | Conv::UCASE, "lcase and ucase"),
        (Conv::EXCL | Conv::NOCREAT, "excl and nocreat"),
    ];
    for (set, names) in sets {
        if (conv & set).bits().count_ones() > 1 {
            return Err((format!("cannot combine {names}"), false));
        }
    }
    let both = Flags::DIRECT | Flags::NOCACHE;
    if iflags.contains(both) || oflags.contains(both) {
        return Err(("cannot combine direct and nocache".into(), false));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Operands, WrongOperand> {
        parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>(), Charset::Ascii)
    }

    #[test]
    fn the_published_lines() {
        let o = of("if=/dev/zero of=/mnt/testfile bs=512").unwrap();
        assert_eq!((o.ibs, o.obs, o.count_blocks), (512, 512, None));
        let o = of("if=/dev/zero of=/mnt/test.dat oflag=direct bs=4k count=1048576").unwrap();
        assert_eq!((o.ibs, o.count_blocks), (4096, Some(1_048_576)));
        assert_eq!(o.oflags, Flags::DIRECT);
        let o = of("if=/dev/zero of=largefile bs=16384 count=131072").unwrap();
        assert!(!o.conv.contains(Conv::TWO_BUFFERS) && o.truncates());
    }

    #[test]
    fn words_are_quoted_as_the_character_set_has_it() {
        let said = |word: &[u8], charset| {
            let word = OsStr::from_bytes(word).to_owned();
            parse(&[word], charset).unwrap_err().to_string()
        };
        let (ascii, utf8) = (Charset::Ascii, Charset::Utf8);
        assert_eq!(said(b"count=1\r\xff", ascii), r"invalid number: '1\r\377'");
        assert_eq!(said(b"count=1\xff", utf8), "invalid number: \u{2018}1\\377\u{2019}");
        assert_eq!(said("conv=\u{e9}'".as_bytes(), ascii), r"invalid conversion: '\303\251\''");
        let raw = said("conv=\u{e9}'\u{2019}\\".as_bytes(), utf8);
        assert_eq!(raw, "invalid conversion: \u{2018}\u{e9}'\\\u{2019}\\\\\u{2019}");
    }

    #[test]
    fn bytes_and_blocks() {
        let o = of("bs=1M count=3 iflag=count_bytes,skip_bytes skip=5").unwrap();
        assert_eq!((o.count_blocks, o.count_bytes), (Some(0), 3));
        assert_eq!((o.skip_blocks, o.skip_bytes), (0, 5));
        let o = of("bs=1000 seek=2500B").unwrap();
        assert_eq!((o.seek_blocks, o.seek_bytes, o.seek_offset()), (2, 500, Some(2500)));
    }
}
