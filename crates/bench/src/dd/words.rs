//! The words of `conv=`, `iflag=`, `oflag=` and `status=`: the flags' own names, in small letters.

bitflags::bitflags! {
    /// What is done to the data, and to the output file.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Conv: u32 {
        /// From EBCDIC to ASCII.
        const ASCII = 1;
        /// From ASCII to EBCDIC.
        const EBCDIC = 1 << 1;
        /// From ASCII to the other EBCDIC.
        const IBM = 1 << 2;
        /// Lines into records of `cbs` bytes, filled with spaces.
        const BLOCK = 1 << 3;
        /// Records of `cbs` bytes into lines.
        const UNBLOCK = 1 << 4;
        /// Lower case.
        const LCASE = 1 << 5;
        /// Upper case.
        const UCASE = 1 << 6;
        /// Pairs of bytes change places.
        const SWAB = 1 << 7;
        /// Goes on after errors of reading.
        const NOERROR = 1 << 8;
        /// The output file keeps its length.
        const NOTRUNC = 1 << 9;
        /// Short input blocks are filled up with zeros.
        const SYNC = 1 << 10;
        /// fdatasync(2) at the end.
        const FDATASYNC = 1 << 11;
        /// fsync(2) at the end.
        const FSYNC = 1 << 12;
        /// The output file must be there.
        const NOCREAT = 1 << 13;
        /// The output file must not be there.
        const EXCL = 1 << 14;
        /// Blocks of zeros are not written but leapt over.
        const SPARSE = 1 << 15;
        /// Input and output have each their own blocks (no `bs=`, or a conversion).
        const TWO_BUFFERS = 1 << 16;
    }
}

bitflags::bitflags! {
    /// How a file is opened and used.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Flags: u32 {
        /// O_APPEND.
        const APPEND = 1;
        /// O_DIRECT.
        const DIRECT = 1 << 1;
        /// O_DIRECTORY.
        const DIRECTORY = 1 << 2;
        /// O_DSYNC.
        const DSYNC = 1 << 3;
        /// O_SYNC.
        const SYNC = 1 << 4;
        /// O_NOATIME.
        const NOATIME = 1 << 5;
        /// The system's cache need not keep what went through it.
        const NOCACHE = 1 << 6;
        /// O_NONBLOCK.
        const NONBLOCK = 1 << 7;
        /// O_NOCTTY.
        const NOCTTY = 1 << 8;
        /// O_NOFOLLOW.
        const NOFOLLOW = 1 << 9;
        /// Reads go on until a block is whole.
        const FULLBLOCK = 1 << 10;
        /// `count=` counts bytes.
        const COUNT_BYTES = 1 << 11;
        /// `skip=` counts bytes.
        const SKIP_BYTES = 1 << 12;
        /// `seek=` counts bytes.
        const SEEK_BYTES = 1 << 13;
    }
}

/// What is printed at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum StatusLevel {
    /// Errors only.
    None,
    /// The records; no bytes and rates.
    NoXfer,
    /// All.
    #[default]
    Default,
    /// All, and a line every second.
    Progress,
}

/// The flag of this name, which the word has in small letters.
pub(super) fn named<F: bitflags::Flags>(word: &str) -> Option<F> {
    F::from_name(&word.to_ascii_uppercase()).filter(|_| word == word.to_ascii_lowercase())
}

pub(super) fn conv(word: &str) -> Option<Conv> {
    let conv: Conv = named(word).filter(|conv| *conv != Conv::TWO_BUFFERS)?;
    Some(match conv {
        Conv::ASCII => conv | Conv::UNBLOCK | Conv::TWO_BUFFERS,
        Conv::EBCDIC | Conv::IBM => conv | Conv::BLOCK | Conv::TWO_BUFFERS,
        Conv::BLOCK | Conv::UNBLOCK | Conv::LCASE | Conv::UCASE | Conv::SWAB => {
            conv | Conv::TWO_BUFFERS
        }
        _ => conv,
    })
}

pub(super) fn status(word: &str) -> Option<StatusLevel> {
    Some(match word {
        "none" => StatusLevel::None,
        "noxfer" => StatusLevel::NoXfer,
        "progress" => StatusLevel::Progress,
        _ => return None,
    })
}
