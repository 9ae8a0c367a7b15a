//! The command line: `key=value` words.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use super::number;
use super::words::{self, Conv, Flags, StatusLevel};

/// Block size without `bs=`, `ibs=` and `obs=`.
const BLOCK: usize = 512;

/// What to copy, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// A word in the quotation marks of messages about the command line.
fn quoted(word: &[u8]) -> String {
    let mut text = String::from("'");
    for b in word {
        match b {
            b'\'' | b'\\' => text.extend(['\\', char::from(*b)]),
            b'\n' => text += "\\n",
            b'\t' => text += "\\t",
            b' '..=b'~' => text.push(char::from(*b)),
            b => text += &format!("\\{b:03o}"),
        }
    }
    text + "'"
}

#[derive(Default)]
struct Reader {
    warnings: Vec<String>,
    input: Option<OsString>,
    output: Option<OsString>,
    ibs: usize,
    obs: usize,
    bs: usize,
    cbs: usize,
    skip: u64,
    seek: u64,
    count: Option<u64>,
    skip_b: bool,
    seek_b: bool,
    count_b: bool,
    conv: Option<Conv>,
    iflags: Flags,
    oflags: Flags,
    status: StatusLevel,
}

/// Reads the words of a command line.
///
/// # Errors
/// The first thing that is wrong, in GNU dd's words.
pub fn parse(args: &[OsString]) -> Result<Operands, WrongOperand> {
    let mut reader = Reader::default();
    for word in args {
        if let Err((line, point_to_help)) = reader.word(word) {
            let mut lines = std::mem::take(&mut reader.warnings);
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
        let unrecognised = || (format!("unrecognized operand {}", quoted(bytes)), true);
        let at = bytes.iter().position(|b| *b == b'=').ok_or_else(unrecognised)?;
        let (key, value) = (&bytes[..at], &bytes[at + 1..]);
        match key {
            b"if" => self.input = Some(OsStr::from_bytes(value).to_owned()),
            b"of" => self.output = Some(OsStr::from_bytes(value).to_owned()),
            b"conv" => {
                let given = flags(value, words::conv, "invalid conversion")?;
                let conv = self.conv.get_or_insert(Conv::empty());
                given.into_iter().for_each(|c| *conv |= c);
            }
            b"iflag" => {
                let given = flags(value, words::flag, "invalid input flag")?;
                given.into_iter().for_each(|f| self.iflags |= f);
            }
            b"oflag" => {
                let given = flags(value, words::flag, "invalid output flag")?;
                given.into_iter().for_each(|f| self.oflags |= f);
            }
            b"status" => {
                // Of several the last one counts.
                let given = flags(value, words::status, "invalid status level")?;
                self.status = given.last().copied().unwrap_or_default();
            }
            _ => return self.number(key, value).ok_or_else(unrecognised)?,
        }
        Ok(())
    }

    /// The keys with a number; `None` if it is none of them.
    fn number(&mut self, key: &[u8], value: &[u8]) -> Option<Result<(), Wrong>> {
        let sizes: [&[u8]; 4] = [b"ibs", b"obs", b"bs", b"cbs"];
        let is_size = sizes.contains(&key);
        let counts: [&[u8]; 6] = [b"skip", b"iseek", b"seek", b"oseek", b"count", b""];
        if !is_size && !counts[..5].contains(&key) {
            return None;
        }
        let wrong = |errno: Option<super::Errno>| {
            let cause = errno.map(|e| format!(": {e}")).unwrap_or_default();
            (format!("invalid number: {}{cause}", quoted(value)), false)
        };
        let text = String::from_utf8_lossy(value);
        let number = match number::read(&text) {
            Ok(number) => number,
            Err(e) => return Some(Err(wrong(e.errno()))),
        };
        if number.zero_product {
            let warning = "warning: '0x' is a zero multiplier; use '00x' if that is intended";
            self.warnings.push(warning.into());
        }
        if is_size && number.value == 0 {
            return Some(Err(wrong(None)));
        }
        let n = number.value;
        let bytes = text.contains('B');
        // A page more is allocated than asked for.
        let size = usize::try_from(n).ok().filter(|s| *s < isize::MAX as usize - (1 << 16));
        if is_size && size.is_none() {
            return Some(Err(wrong(Some(super::Errno::OVERFLOW))));
        }
        let size = size.unwrap_or_default();
        match key {
            b"ibs" => self.ibs = size,
            b"obs" => self.obs = size,
            b"bs" => self.bs = size,
            b"cbs" => self.cbs = size,
            b"skip" | b"iseek" => (self.skip, self.skip_b) = (n, bytes),
            b"seek" | b"oseek" => (self.seek, self.seek_b) = (n, bytes),
            _ => (self.count, self.count_b) = (Some(n), bytes),
        }
        Some(Ok(()))
    }

    fn finish(mut self) -> Result<Operands, Wrong> {
        let mut conv = self.conv.unwrap_or(Conv::empty());
        let or = |size: usize| if size == 0 { BLOCK } else { size };
        let (ibs, obs) = match self.bs {
            0 => {
                conv |= Conv::TWO_BUFFERS;
                (or(self.ibs), or(self.obs))
            }
            bs => (bs, bs),
        };
        if self.cbs == 0 {
            conv -= Conv::BLOCK | Conv::UNBLOCK;
        }
        if self.oflags.contains(Flags::FULLBLOCK) {
            return Err(("invalid output flag: 'fullblock'".into(), true));
        }
        together(conv, self.iflags, self.oflags)?;
        if self.oflags.contains(Flags::APPEND) && !conv.contains(Conv::NOTRUNC) {
            self.warnings.push("you probably want conv=notrunc with oflag=append".into());
        }
        let split = |n: u64, by_bytes: bool, block: usize| match by_bytes {
            true => (n / block as u64, n % block as u64),
            false => (n, 0),
        };
        let skip_b = self.skip_b || self.iflags.contains(Flags::SKIP_BYTES);
        let seek_b = self.seek_b || self.oflags.contains(Flags::SEEK_BYTES);
        let count_b = self.count_b || self.iflags.contains(Flags::COUNT_BYTES);
        let (skip_blocks, skip_bytes) = split(self.skip, skip_b, ibs);
        let (seek_blocks, seek_bytes) = split(self.seek, seek_b, obs);
        let (count_blocks, count_bytes) = match self.count {
            Some(count) => {
                let (blocks, bytes) = split(count, count_b, ibs);
                (Some(blocks), bytes)
            }
            None => (None, 0),
        };
        Ok(Operands {
            input: self.input,
            output: self.output,
            ibs,
            obs,
            cbs: self.cbs,
            skip_blocks,
            skip_bytes,
            seek_blocks,
            seek_bytes,
            count_blocks,
            count_bytes,
            conv,
            iflags: self.iflags,
            oflags: self.oflags,
            status: self.status,
            warnings: self.warnings,
        })
    }
}

/// Words between commas.
fn flags<T>(value: &[u8], read: fn(&str) -> Option<T>, wrong: &str) -> Result<Vec<T>, Wrong> {
    value
        .split(|b| *b == b',')
        .map(|word| {
            let known = std::str::from_utf8(word).ok().and_then(read);
            known.ok_or_else(|| (format!("{wrong}: {}", quoted(word)), true))
        })
        .collect()
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
        parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
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
    fn bytes_and_blocks() {
        let o = of("bs=1M count=3 iflag=count_bytes,skip_bytes skip=5").unwrap();
        assert_eq!((o.count_blocks, o.count_bytes), (Some(0), 3));
        assert_eq!((o.skip_blocks, o.skip_bytes), (0, 5));
        let o = of("bs=1000 seek=2500B").unwrap();
        assert_eq!((o.seek_blocks, o.seek_bytes, o.seek_offset()), (2, 500, Some(2500)));
    }
}
