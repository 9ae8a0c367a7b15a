//! The words of `conv=`, `iflag=`, `oflag=` and `status=`.

bitflags::bitflags! {
    /// What is done to the data, and to the output file.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

pub(super) fn conv(word: &str) -> Option<Conv> {
    Some(match word {
        "ascii" => Conv::ASCII | Conv::UNBLOCK | Conv::TWO_BUFFERS,
        "ebcdic" => Conv::EBCDIC | Conv::BLOCK | Conv::TWO_BUFFERS,
        "ibm" => Conv::IBM | Conv::BLOCK | Conv::TWO_BUFFERS,
        "block" => Conv::BLOCK | Conv::TWO_BUFFERS,
        "unblock" => Conv::UNBLOCK | Conv::TWO_BUFFERS,
        "lcase" => Conv::LCASE | Conv::TWO_BUFFERS,
        "ucase" => Conv::UCASE | Conv::TWO_BUFFERS,
        "swab" => Conv::SWAB | Conv::TWO_BUFFERS,
        "sparse" => Conv::SPARSE,
        "noerror" => Conv::NOERROR,
        "notrunc" => Conv::NOTRUNC,
        "sync" => Conv::SYNC,
        "fdatasync" => Conv::FDATASYNC,
        "fsync" => Conv::FSYNC,
        "nocreat" => Conv::NOCREAT,
        "excl" => Conv::EXCL,
        _ => return None,
    })
}

pub(super) fn flag(word: &str) -> Option<Flags> {
    Some(match word {
        "append" => Flags::APPEND,
        "direct" => Flags::DIRECT,
        "directory" => Flags::DIRECTORY,
        "dsync" => Flags::DSYNC,
        "sync" => Flags::SYNC,
        "noatime" => Flags::NOATIME,
        "nocache" => Flags::NOCACHE,
        "nonblock" => Flags::NONBLOCK,
        "noctty" => Flags::NOCTTY,
        "nofollow" => Flags::NOFOLLOW,
        "fullblock" => Flags::FULLBLOCK,
        "count_bytes" => Flags::COUNT_BYTES,
        "skip_bytes" => Flags::SKIP_BYTES,
        "seek_bytes" => Flags::SEEK_BYTES,
        _ => return None,
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
