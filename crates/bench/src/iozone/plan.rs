//! Which tests run, and what each child does in them.
//!
//! What a test does with the file that is there (IOzone 3.487, the throughput functions):
//!
//! | test | the file | timed |
//! |---|---|---|
//! | initial write | created; one that is there is emptied (not with -+N) | allocates all |
//! | rewrite | overwritten in place | no allocation |
//! | random read, mixed readers | read | |
//! | random write, mixed writers | overwritten in place | no allocation |
//! | pwrite, pwritev | emptied with creat(2) before the start | allocation again |
//! | fwrite | overwritten in place ("r+"); created if missing | through the page cache |
//!
//! So pwrite costs what the initial write costs, and not what a rewrite costs. The emptying
//! happens before the children are ready and is not timed.

use serde::Serialize;
use steadfast_vfs::OpenFlags;

use super::options::Options;

/// A test of throughput mode, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// -i 0: sequential writes to a new file.
    InitialWrite,
    /// -i 0: sequential writes over the file.
    Rewrite,
    /// -i 1: sequential reads.
    Read,
    /// -i 1: the same again.
    Reread,
    /// -i 3: from the last record to the first.
    ReverseRead,
    /// -i 5: every 17th record, and round again.
    StrideRead,
    /// -i 2: every record once, shuffled.
    RandomRead,
    /// -i 8: some children read at random, the others write at random.
    Mixed,
    /// -i 2: every record once, shuffled.
    RandomWrite,
    /// -i 9: pwrite(2) in order to an emptied file.
    Pwrite,
    /// -i 10: pread(2) in order.
    Pread,
    /// -i 11: pwritev(2) of up to 16 records a call to an emptied file.
    Pwritev,
    /// -i 12: preadv(2) of up to 16 records a call.
    Preadv,
    /// -i 6: fwrite(3).
    Fwrite,
    /// -i 7: fread(3).
    Fread,
}

/// Of each test the number of -i, its name, who runs in IOzone's words, its name in the -R report,
/// and its files of -Q without ".dat": IOzone's, or a name like them where it makes none.
const TESTS: [(Test, u8, &str, &str, &str, &str); 15] = [
    (Test::InitialWrite, 0, "initial write", "initial writers", "Initial write", "wol"),
    (Test::Rewrite, 0, "rewrite", "rewriters", "Rewrite", "rwol"),
    (Test::Read, 1, "read", "readers", "Read", "rol"),
    (Test::Reread, 1, "reread", "re-readers", "Re-read", "rrol"),
    (Test::ReverseRead, 3, "reverse read", "reverse readers", "Reverse Read", "revol"),
    (Test::StrideRead, 5, "stride read", "stride readers", "Stride read", "strideol"),
    (Test::RandomRead, 2, "random read", "random readers", "Random read", "ranrol"),
    (Test::Mixed, 8, "mixed", "mixed workload", "Mixed workload", "mix"),
    (Test::RandomWrite, 2, "random write", "random writers", "Random write", "ranwol"),
    (Test::Pwrite, 9, "pwrite", "pwrite writers", "Pwrite", "pwol"),
    (Test::Pread, 10, "pread", "pread readers", "Pread", "prol"),
    (Test::Pwritev, 11, "pwritev", "pwritev writers", "Pwritev", "pwvol"),
    (Test::Preadv, 12, "preadv", "preadv readers", "Preadv", "prvol"),
    (Test::Fwrite, 6, "fwrite", "fwriters", "Fwrite", "fwol"),
    (Test::Fread, 7, "fread", "freaders", "Fread", "frol"),
];

impl Test {
    /// All tests, as they run.
    pub fn all() -> impl Iterator<Item = Test> {
        TESTS.iter().map(|row| row.0)
    }

    /// The number that -i selects it with.
    pub fn number(self) -> u8 {
        TESTS[self as usize].1
    }

    /// Its name in words: "random read".
    pub fn name(self) -> &'static str {
        TESTS[self as usize].2
    }

    /// Who runs, in IOzone's words: "initial writers".
    pub fn label(self) -> &'static str {
        TESTS[self as usize].3
    }

    /// The test's name in the -R report.
    pub fn title(self) -> &'static str {
        TESTS[self as usize].4
    }

    /// A child's file of -Q, without "Child_N_" and ".dat".
    pub(super) fn latency_file(self) -> &'static str {
        TESTS[self as usize].5
    }
}

/// The tests that a command line selects. Without -i they are IOzone's own; the vector tests,
/// which IOzone on Linux leaves out, run only if named.
pub fn tests(options: &Options) -> Vec<Test> {
    let selected = |test: &Test| match &options.tests {
        Some(tests) => tests.contains(&test.number()),
        None => !matches!(test, Test::Pwritev | Test::Preadv),
    };
    let is_repeat = |test: &Test| matches!(test, Test::Rewrite | Test::Reread);
    Test::all().filter(|t| selected(t) && !(options.no_retest && is_repeat(t))).collect()
}

/// The order in which a child goes through its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordOrder {
    Forward,
    Backward,
    Stride,
    Shuffled,
    /// Always the first record.
    Same,
}

/// What is done at the stonewall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wall {
    /// Freezes count and time (after fsync, and close where `close`), then goes on uncounted;
    /// sets the flag before its own fsync. So that readers find whole files.
    Freeze {
        /// Whether -c counts at the freezing too: IOzone closes and reopens in the sequential
        /// write only.
        close: bool,
    },
    /// Stops; sets the flag after its own fsync and close.
    Stop,
    /// Knows no stonewall (the stdio tests).
    None,
}

/// How a child opens its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenMode {
    /// The file must be there.
    Existing,
    /// Created if missing.
    Create,
    /// Emptied, or created.
    Empty,
}

/// What one child does in one test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Role {
    /// Shown in the results: "random_read" of a mixed test's reader.
    pub(super) name: &'static str,
    pub(super) writes: bool,
    pub(super) order: RecordOrder,
    pub(super) opening: OpenMode,
    pub(super) wall: Wall,
    /// Through stdio: neither O_SYNC nor O_DIRECT.
    pub(super) stdio: bool,
    /// Records in a call, at most.
    pub(super) vector: u64,
}

impl Role {
    /// How the file is opened.
    pub(super) fn flags(&self, o: &Options) -> OpenFlags {
        let mut flags = OpenFlags::READ;
        flags.set(OpenFlags::WRITE, self.writes);
        flags.set(OpenFlags::SYNC, o.sync && !self.stdio);
        flags.set(OpenFlags::DSYNC, o.dsync && !self.stdio && self.writes);
        flags.set(OpenFlags::DIRECT, o.direct && !self.stdio);
        flags
    }

    /// Whether a write that has returned is durable.
    pub(super) fn writes_are_durable(&self, o: &Options) -> bool {
        self.flags(o).intersects(OpenFlags::SYNC | OpenFlags::DSYNC)
    }
}

/// Vector length of pwritev and preadv (IOzone's PVECMAX).
const VECTOR_MAX: u64 = 16;

const READ: Role = Role {
    name: "read",
    writes: false,
    order: RecordOrder::Forward,
    opening: OpenMode::Existing,
    wall: Wall::Stop,
    stdio: false,
    vector: 1,
};

const WRITE: Role = Role {
    name: "write",
    writes: true,
    opening: OpenMode::Create,
    wall: Wall::Freeze { close: true },
    ..READ
};

/// What `child` of `children` does in a test.
pub(super) fn role(test: Test, child: usize, children: usize, options: &Options) -> Role {
    let vector = VECTOR_MAX.min(super::options::RECORD_BYTES_MAX / options.record_bytes).max(1);
    let freeze = Wall::Freeze { close: false };
    let emptied = Role { opening: OpenMode::Empty, ..WRITE };
    let random_read = Role { name: "random_read", order: RecordOrder::Shuffled, ..READ };
    let random_write =
        Role { name: "random_write", order: RecordOrder::Shuffled, wall: freeze, ..WRITE };
    match test {
        Test::InitialWrite if options.no_truncate => WRITE,
        Test::InitialWrite => emptied,
        Test::Rewrite => {
            Role { name: "rewrite", opening: OpenMode::Existing, wall: Wall::Stop, ..WRITE }
        }
        Test::Read | Test::Reread => READ,
        Test::ReverseRead => Role { name: "reverse_read", order: RecordOrder::Backward, ..READ },
        Test::StrideRead => Role { name: "stride_read", order: RecordOrder::Stride, ..READ },
        Test::RandomRead => random_read,
        Test::RandomWrite => random_write,
        Test::Mixed => match (reads_in_mix(child, children, options), options.mixed_sequential) {
            (true, true) => READ,
            (true, false) => random_read,
            (false, true) => WRITE,
            (false, false) => random_write,
        },
        Test::Pwrite => Role { name: "pwrite", wall: freeze, ..emptied },
        Test::Pread => Role { name: "pread", ..READ },
        Test::Pwritev => Role { name: "pwritev", wall: freeze, vector, ..emptied },
        Test::Preadv => Role { name: "preadv", vector, ..READ },
        Test::Fwrite => Role { name: "fwrite", wall: Wall::None, stdio: true, ..WRITE },
        Test::Fread => Role { name: "fread", wall: Wall::None, stdio: true, ..READ },
    }
}

/// Readers and writers of the mixed test: a share of the children (-+p), a number (-+K), or else
/// every other child, the first one reading.
fn reads_in_mix(child: usize, children: usize, options: &Options) -> bool {
    match (options.mixed_readers_percent, options.mixed_readers) {
        (Some(percent), _) => child < percent as usize * children / 100,
        (None, Some(readers)) => child < readers as usize,
        (None, None) => child.is_multiple_of(2),
    }
}

/// Where the stride test reads: every so many records; near the end of the file round again,
/// each time one record further in.
#[derive(Default)]
pub(super) struct Stride {
    position: u64,
    wraps: u64,
}

impl Stride {
    /// The record to read now.
    fn next(&mut self, records: u64, stride: u64) -> u64 {
        let now = self.position;
        if now + 1 + stride >= records - 1 {
            self.wraps += 1;
            self.position = if records <= stride { 0 } else { self.wraps % records };
        } else {
            self.position += stride;
        }
        now
    }

    /// Offset and length of call `i` of a role, in bytes.
    pub(super) fn call(
        &mut self,
        i: u64,
        role: &Role,
        o: &Options,
        shuffled: &[u64],
    ) -> (u64, u64) {
        let records = o.records();
        let (first, count) = match role.order {
            RecordOrder::Forward => {
                let first = i * role.vector;
                (first, role.vector.min(records - first))
            }
            RecordOrder::Backward => (records - 1 - i, 1),
            RecordOrder::Shuffled => (shuffled[i as usize], 1),
            RecordOrder::Stride => (self.next(records, o.stride), 1),
            RecordOrder::Same => (0, 1),
        };
        (first * o.record_bytes, count * o.record_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(numbers: &[u8]) -> Options {
        Options { tests: Some(numbers.to_vec()), ..Options::default() }
    }

    #[test]
    fn the_published_selection_in_print_order() {
        let names: Vec<_> =
            tests(&select(&[0, 2, 6, 8, 9, 11])).into_iter().map(Test::label).collect();
        assert_eq!(
            names,
            [
                "initial writers",
                "rewriters",
                "random readers",
                "mixed workload",
                "random writers",
                "pwrite writers",
                "pwritev writers",
                "fwriters"
            ]
        );
    }

    #[test]
    fn the_table_is_in_the_order_of_the_tests() {
        assert!(TESTS.iter().enumerate().all(|(i, row)| row.0 as usize == i));
    }

    #[test]
    fn without_a_selection_iozones_own_tests_run() {
        assert_eq!(tests(&Options::default()).len(), 13);
        let once = Options { no_retest: true, ..Options::default() };
        assert_eq!(tests(&once).len(), 11);
    }

    #[test]
    fn who_reads_in_the_mix() {
        let readers = |o: &Options| -> Vec<bool> {
            (0..4).map(|i| !role(Test::Mixed, i, 4, o).writes).collect()
        };
        let mut o = Options::default();
        assert_eq!(readers(&o), [true, false, true, false]);
        o.mixed_readers = Some(3);
        assert_eq!(readers(&o), [true, true, true, false]);
        o.mixed_readers_percent = Some(30);
        assert_eq!(readers(&o), [true, false, false, false]);
    }

    #[test]
    fn vectors_fit_the_buffer() {
        for (record, expected) in [(256 << 10, 16), (4 << 20, 4), (16 << 20, 1)] {
            let o = Options { record_bytes: record, ..Options::default() };
            assert_eq!(role(Test::Pwritev, 0, 1, &o).vector, expected);
        }
    }

    #[test]
    fn strides_wrap_one_record_further_in() {
        let mut s = Stride::default();
        let records: Vec<u64> = (0..9).map(|_| s.next(64, 17)).collect();
        assert_eq!(records, [0, 17, 34, 51, 1, 18, 35, 52, 2]);
        let mut short = Stride::default();
        assert_eq!([short.next(16, 17), short.next(16, 17)], [0, 0]);
        assert_eq!(Stride::default().next(1, 17), 0);
    }
}
