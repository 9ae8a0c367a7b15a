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

impl Test {
    /// All tests, as they run.
    pub const ALL: [Test; 15] = [
        Test::InitialWrite,
        Test::Rewrite,
        Test::Read,
        Test::Reread,
        Test::ReverseRead,
        Test::StrideRead,
        Test::RandomRead,
        Test::Mixed,
        Test::RandomWrite,
        Test::Pwrite,
        Test::Pread,
        Test::Pwritev,
        Test::Preadv,
        Test::Fwrite,
        Test::Fread,
    ];

    /// The number that -i selects it with.
    pub fn number(self) -> u8 {
        match self {
            Test::InitialWrite | Test::Rewrite => 0,
            Test::Read | Test::Reread => 1,
            Test::RandomRead | Test::RandomWrite => 2,
            Test::ReverseRead => 3,
            Test::StrideRead => 5,
            Test::Fwrite => 6,
            Test::Fread => 7,
            Test::Mixed => 8,
            Test::Pwrite => 9,
            Test::Pread => 10,
            Test::Pwritev => 11,
            Test::Preadv => 12,
        }
    }

    /// Who runs, in IOzone's words: "initial writers".
    pub fn label(self) -> &'static str {
        match self {
            Test::InitialWrite => "initial writers",
            Test::Rewrite => "rewriters",
            Test::Read => "readers",
            Test::Reread => "re-readers",
            Test::ReverseRead => "reverse readers",
            Test::StrideRead => "stride readers",
            Test::RandomRead => "random readers",
            Test::Mixed => "mixed workload",
            Test::RandomWrite => "random writers",
            Test::Pwrite => "pwrite writers",
            Test::Pread => "pread readers",
            Test::Pwritev => "pwritev writers",
            Test::Preadv => "preadv readers",
            Test::Fwrite => "fwriters",
            Test::Fread => "freaders",
        }
    }

    /// The test's name in the -R report.
    pub fn title(self) -> &'static str {
        match self {
            Test::InitialWrite => "Initial write",
            Test::Rewrite => "Rewrite",
            Test::Read => "Read",
            Test::Reread => "Re-read",
            Test::ReverseRead => "Reverse Read",
            Test::StrideRead => "Stride read",
            Test::RandomRead => "Random read",
            Test::Mixed => "Mixed workload",
            Test::RandomWrite => "Random write",
            Test::Pwrite => "Pwrite",
            Test::Pread => "Pread",
            Test::Pwritev => "Pwritev",
            Test::Preadv => "Preadv",
            Test::Fwrite => "Fwrite",
            Test::Fread => "Fread",
        }
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
    Test::ALL.into_iter().filter(|t| selected(t) && !(options.no_retest && is_repeat(t))).collect()
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
}
