//! The kinds of values that options have, and how they are read.

use super::value::{self, SizePrefixes};

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestKind {
    /// Of data.
    Read = 0,
    /// Of data.
    Write = 1,
}

impl RequestKind {
    /// Both, in the order of all tables.
    pub const ALL: [RequestKind; 2] = [RequestKind::Read, RequestKind::Write];

    /// As fio's output calls it.
    pub fn name(self) -> &'static str {
        match self {
            RequestKind::Read => "read",
            RequestKind::Write => "write",
        }
    }
}

/// Which requests a job makes, and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestMix {
    /// It reads.
    pub reads: bool,
    /// It writes.
    pub writes: bool,
    /// At random offsets.
    pub random: bool,
    /// Of requests one after the other: bytes left out between them, or if negative backwards.
    pub step: i64,
    /// Of random ones: so many follow each other before the next random offset.
    pub run: u64,
}

impl Default for RequestMix {
    fn default() -> Self {
        RequestMix { reads: true, writes: false, random: false, step: 0, run: 1 }
    }
}

impl RequestMix {
    pub(super) fn parse(text: &str) -> Result<RequestMix, String> {
        let (word, behind) = match text.split_once(':') {
            Some((word, behind)) => (word, Some(behind)),
            None => (text, None),
        };
        let (reads, writes, random) = match word {
            "read" => (true, false, false),
            "write" => (false, true, false),
            "rw" | "readwrite" => (true, true, false),
            "randread" => (true, false, true),
            "randwrite" => (false, true, true),
            "randrw" => (true, true, true),
            "trim" | "randtrim" | "trimwrite" | "randtrimwrite" => {
                return Err(format!("'{word}': trims are of block devices, and files have none"));
            }
            _ => {
                return Err(format!(
                    "'{word}' is not one of read, write, rw, randread, randwrite, randrw"
                ));
            }
        };
        let mut mix = RequestMix { reads, writes, random, ..RequestMix::default() };
        let Some(behind) = behind else { return Ok(mix) };
        if random {
            mix.run = value::within(behind, 1, 1 << 32)?;
            return Ok(mix);
        }
        let (sign, digits) = match behind.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, behind),
        };
        let step = value::int(digits, SizePrefixes::Binary)?;
        let step = i64::try_from(step).ok().filter(|step| *step < 1 << 50);
        mix.step = sign * step.ok_or_else(|| format!("'{behind}' is too large"))?;
        Ok(mix)
    }

    /// Whether it makes requests of this kind.
    pub fn has(&self, kind: RequestKind) -> bool {
        match kind {
            RequestKind::Read => self.reads,
            RequestKind::Write => self.writes,
        }
    }

    /// As fio writes it.
    pub fn name(&self) -> &'static str {
        match (self.random, self.reads, self.writes) {
            (false, true, false) => "read",
            (false, false, true) => "write",
            (false, ..) => "rw",
            (true, true, false) => "randread",
            (true, false, true) => "randwrite",
            (true, ..) => "randrw",
        }
    }
}

/// Bytes of requests of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockSizes {
    /// The smallest.
    pub least: u64,
    /// The largest.
    pub most: u64,
    /// If it is none of these alike: sizes, and how many of a hundred requests have each.
    pub split: Vec<(u64, u64)>,
}

impl Default for BlockSizes {
    fn default() -> Self {
        BlockSizes { least: 4096, most: 4096, split: Vec::new() }
    }
}

/// Sizes of a split, at most.
const SPLIT_MAX: usize = 64;

impl BlockSizes {
    pub(super) fn one(text: &str, prefixes: SizePrefixes) -> Result<BlockSizes, String> {
        match value::int(text, prefixes)? {
            0 => Err("a request of 0 bytes".into()),
            bytes => Ok(BlockSizes { least: bytes, most: bytes, split: Vec::new() }),
        }
    }

    pub(super) fn range(text: &str, prefixes: SizePrefixes) -> Result<BlockSizes, String> {
        let (least, most) = value::range(text, |text| value::int(text, prefixes))?;
        match least {
            0 => Err("a request of 0 bytes".into()),
            _ => Ok(BlockSizes { least, most, split: Vec::new() }),
        }
    }

    /// `4k/10:64k/50:32k/40`; sizes without a share have what is left, alike.
    pub(super) fn split(text: &str, prefixes: SizePrefixes) -> Result<BlockSizes, String> {
        let (mut split, mut open, mut sum) = (Vec::new(), 0u64, 0u64);
        for part in text.split(':') {
            let (size, share) = part.split_once('/').unwrap_or((part, ""));
            let size = match value::int(size, prefixes)? {
                0 => return Err("a request of 0 bytes".into()),
                size => size,
            };
            let share = match share {
                "" => None,
                share => Some(value::within(share, 0, 100)?),
            };
            open += u64::from(share.is_none());
            sum += share.unwrap_or(0);
            split.push((size, share));
        }
        if split.len() > SPLIT_MAX {
            return Err(format!("more than {SPLIT_MAX} sizes"));
        }
        if sum > 100 || (open == 0 && sum != 100) {
            return Err(format!("the shares add up to {sum} %, not to 100"));
        }
        // What does not divide goes to the last.
        let left = 100 - sum;
        let each = left.checked_div(open).unwrap_or(0);
        let mut rest = left - each * open;
        let mut shares: Vec<(u64, u64)> = Vec::new();
        for (size, share) in split.into_iter().rev() {
            let of_open = each + std::mem::take(&mut rest) * u64::from(share.is_none());
            shares.insert(0, (size, share.unwrap_or(of_open)));
        }
        let sizes = || shares.iter().filter(|(_, share)| *share > 0).map(|(size, _)| *size);
        let (least, most) = (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0));
        Ok(BlockSizes { least, most, split: shares })
    }
}

/// Bytes, or a share of what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSize {
    /// So many.
    Bytes(u64),
    /// A share in %.
    Percent(u64),
}

impl Default for FileSize {
    fn default() -> Self {
        FileSize::Bytes(0)
    }
}

impl FileSize {
    pub(super) fn parse(text: &str, prefixes: SizePrefixes) -> Result<FileSize, String> {
        match text.strip_suffix('%') {
            Some(share) => value::within(share, 0, 100).map(FileSize::Percent),
            None => value::int(text, prefixes).map(FileSize::Bytes),
        }
    }

    /// In bytes, where a hundred percent is `whole`.
    pub fn of(self, whole: u64) -> u64 {
        match self {
            FileSize::Bytes(bytes) => bytes,
            // OK to cast: at most the whole.
            FileSize::Percent(share) => (u128::from(whole) * u128::from(share) / 100) as u64,
        }
    }
}

/// How requests are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IoEngine {
    /// One call after the other.
    #[default]
    Calls,
    /// As many in flight as `iodepth` says, each in a task of its own.
    Tasks,
    /// None are made.
    Null,
}

/// Engines that fio has or had, and that are not here.
const OTHER_ENGINES: [&str; 38] = [
    "cpuio",
    "dev-dax",
    "dfs",
    "e4defrag",
    "exec",
    "external",
    "falloc",
    "filecreate",
    "filedelete",
    "filestat",
    "ftruncate",
    "gfapi",
    "gfapi_async",
    "guasi",
    "http",
    "io_uring_cmd",
    "libblkio",
    "libcufile",
    "libhdfs",
    "libiscsi",
    "libpmem",
    "libzbc",
    "mmap",
    "mtd",
    "nbd",
    "net",
    "netsplice",
    "nfs",
    "rados",
    "rbd",
    "rdma",
    "sg",
    "solarisaio",
    "splice",
    "syslet-rw",
    "windowsaio",
    "xnvme",
    "binject",
];

impl IoEngine {
    /// Whether fio has an engine of this name, and it is not here.
    pub(super) fn is_elsewhere(text: &str) -> bool {
        OTHER_ENGINES.contains(&text)
    }

    pub(super) fn parse(text: &str) -> Result<IoEngine, String> {
        match text {
            "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" => Ok(IoEngine::Calls),
            "libaio" | "linuxaio" | "posixaio" | "io_uring" => Ok(IoEngine::Tasks),
            "null" => Ok(IoEngine::Null),
            "mmap" => Err("'mmap': a file system in this process has no mappings".into()),
            other if IoEngine::is_elsewhere(other) => {
                Err(format!("the engine '{other}' of fio is not supported"))
            }
            _ => Err(format!(
                "'{text}' is not one of sync, psync, vsync, pvsync, pvsync2, libaio, posixaio, \
                 io_uring, null"
            )),
        }
    }
}

/// Which file of a job is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileOrder {
    /// One request to each in turn.
    #[default]
    RoundRobin,
    /// The next one when this one is done.
    Sequential,
    /// Any.
    Random,
}

impl FileOrder {
    pub(super) fn parse(text: &str) -> Result<FileOrder, String> {
        match text {
            "roundrobin" => Ok(FileOrder::RoundRobin),
            "sequential" => Ok(FileOrder::Sequential),
            "random" => Ok(FileOrder::Random),
            _ => Err(format!("'{text}' is not one of roundrobin, sequential, random")),
        }
    }
}

/// Whether a write is durable when it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WriteSync {
    /// It need not be.
    #[default]
    None,
    /// O_SYNC.
    All,
    /// O_DSYNC.
    Data,
}

impl WriteSync {
    pub(super) fn parse(text: &str) -> Result<WriteSync, String> {
        match text {
            "none" | "0" => Ok(WriteSync::None),
            "sync" | "1" => Ok(WriteSync::All),
            "dsync" => Ok(WriteSync::Data),
            _ => Err(format!("'{text}' is not one of none, sync, dsync")),
        }
    }
}

/// When the requests of a rate come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RatePacing {
    /// At equal distances.
    #[default]
    Linear,
    /// Each at random, independent of the others.
    Poisson,
}

impl RatePacing {
    pub(super) fn parse(text: &str) -> Result<RatePacing, String> {
        match text {
            "linear" => Ok(RatePacing::Linear),
            "poisson" => Ok(RatePacing::Poisson),
            _ => Err(format!("'{text}' is not one of linear, poisson")),
        }
    }
}

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Buffers {
    /// Noise, of which a part of every 512 bytes is new in each write.
    #[default]
    Scrambled,
    /// New noise in each write.
    Refilled,
    /// The same noise in all writes.
    Same,
    /// Zeros.
    Zeros,
}

/// How it is known that a block is the one that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verification {
    /// By a header with a checksum, and all bytes behind it.
    Blocks,
    /// Not at all: it is only read.
    Nothing,
}

impl Verification {
    /// fio's checksums all mean that each byte is compared.
    const CHECKSUMS: [&str; 21] = [
        "md5",
        "crc64",
        "crc32c",
        "crc32c-intel",
        "crc32",
        "crc16",
        "crc7",
        "xxhash",
        "sha512",
        "sha256",
        "sha1",
        "sha3-224",
        "sha3-256",
        "sha3-384",
        "sha3-512",
        "meta",
        "pattern",
        "pattern_hdr",
        "crc32c-arm64",
        "1",
        "0",
    ];

    pub(super) fn parse(text: &str) -> Result<Option<Verification>, String> {
        match text {
            "0" => Ok(None),
            "null" => Ok(Some(Verification::Nothing)),
            _ if Verification::CHECKSUMS.contains(&text) => Ok(Some(Verification::Blocks)),
            _ => Err(format!("'{text}' is no checksum of fio's")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_are_fios() {
        let mix = RequestMix::parse("read:-8k").unwrap();
        assert_eq!((mix.step, mix.random, mix.name()), (-8192, false, "read"));
        let mix = RequestMix::parse("randrw:8").unwrap();
        assert_eq!((mix.run, mix.random, mix.reads, mix.writes), (8, true, true, true));
        for text in ["randtrim", "reed", "read:x", "randread:0", "", "write:9999999p"] {
            assert!(RequestMix::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_that_are_not_said_are_alike() {
        let split = |text| BlockSizes::split(text, SizePrefixes::Binary).map(|sizes| sizes.split);
        assert_eq!(split("4k/10:64k/50:32k/40").unwrap()[1], (65536, 50));
        assert_eq!(split("4k/50:1k/:2k/").unwrap(), [(4096, 50), (1024, 25), (2048, 25)]);
        assert_eq!(split("1k:2k:3k").unwrap(), [(1024, 33), (2048, 33), (3072, 34)]);
        for text in ["4k/60:8k/60", "4k/10", "0/100", "4k/x", "", &["1k"; 65].join(":")] {
            assert!(split(text).is_err(), "{text}");
        }
    }
}
