//! The keys of a scenario file: the one list that the reader, its messages and docs/lab.md go by.
//!
//! A new key is an entry here, a field of the structure that holds it, and the line in `read` that
//! takes it from the one to the other.

use std::fmt::Write;

use crate::wrap::wrapped;

/// A table of a scenario file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// The file itself.
    Top,
    /// `[source]`.
    Source,
    /// `[machine]`.
    Machine,
    /// `[workload]`.
    Workload,
    /// `workload.files`.
    Files,
    /// `workload.legs`.
    Legs,
    /// `[[workload.dd]]`.
    Dd,
    /// `[[workload.hdparm]]`.
    Hdparm,
    /// `[[workload.random_read]]`.
    RandomRead,
    /// `workload.read_under_write`.
    ReadUnderWrite,
    /// `[workload.configuration.NAME]`.
    Configuration,
    /// `[device.NAME]`; the rest of its keys are the parameters of its kind.
    Device,
    /// `[volume.NAME]`.
    Volume,
    /// `[scheduler.NAME]`.
    Scheduler,
    /// `[[variant]]`.
    Variant,
    /// `[[published]]`.
    Published,
    /// `[medium]`.
    Medium,
    /// `[[sentence]]`.
    Sentence,
    /// `[band]`.
    Band,
    /// `machine` of a `[[variant]]`: the keys of `[machine]`.
    VariantMachine,
}

impl Table {
    /// All of them, in the order of the documentation.
    pub const ALL: [Table; 19] = [
        Table::Top,
        Table::Source,
        Table::Machine,
        Table::Workload,
        Table::Files,
        Table::Legs,
        Table::Dd,
        Table::Hdparm,
        Table::RandomRead,
        Table::ReadUnderWrite,
        Table::Configuration,
        Table::Device,
        Table::Volume,
        Table::Scheduler,
        Table::Variant,
        Table::Published,
        Table::Medium,
        Table::Sentence,
        Table::Band,
    ];

    /// As a file writes it.
    pub fn title(self) -> &'static str {
        match self {
            Table::Top => "the file",
            Table::Source => "[source]",
            Table::Machine => "[machine]",
            Table::Workload => "[workload]",
            Table::Files => "workload.files",
            Table::Legs => "workload.legs",
            Table::Dd => "[[workload.dd]]",
            Table::Hdparm => "[[workload.hdparm]]",
            Table::RandomRead => "[[workload.random_read]]",
            Table::ReadUnderWrite => "workload.read_under_write",
            Table::Configuration => "[workload.configuration.NAME]",
            Table::Device => "[device.NAME]",
            Table::Volume => "[volume.NAME]",
            Table::Scheduler => "[scheduler.NAME]",
            Table::Variant => "[[variant]]",
            Table::Published => "[[published]]",
            Table::Medium => "[medium]",
            Table::Sentence => "[[sentence]]",
            Table::Band => "[band]",
            Table::VariantMachine => "machine of [[variant]]",
        }
    }
}

/// Whether a key must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Always.
    Required,
    /// If it is not, it is this, as TOML writes it.
    Default(&'static str),
    /// No; what it means not to be there.
    Optional(&'static str),
}

/// A key of a table.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Where it stands.
    pub table: Table,
    /// Its name.
    pub name: &'static str,
    /// Whether it must be there.
    pub need: Need,
    /// What it means, in Markdown.
    pub text: &'static str,
}

const fn key(table: Table, name: &'static str, need: Need, text: &'static str) -> Key {
    Key { table, name, need, text }
}

use Need::{Default, Optional, Required};

/// All keys.
pub const KEYS: &[Key] = &[
    key(Table::Top, "version", Required, "Layout of the file: 2 (1 is read too)."),
    key(Table::Top, "name", Required, "Short name: letters, digits, `-`; the report is NAME.html."),
    key(Table::Top, "title", Required, "One line for people."),
    key(Table::Top, "about", Default("''"), "What it shows, for `lab list`."),
    key(
        Table::Top,
        "source",
        Optional("none; needed with `[[published]]`"),
        "Table: where published figures are from. In version 1 a text.",
    ),
    key(Table::Top, "machine", Optional("its defaults"), "Table: the simulated machine."),
    key(Table::Top, "workload", Required, "Table: what is run."),
    key(Table::Top, "device", Required, "Tables: the devices, by name."),
    key(Table::Top, "volume", Optional("none"), "Tables: volumes made of devices, by name."),
    key(Table::Top, "scheduler", Optional("none"), "Tables: request schedulers, by name."),
    key(
        Table::Top,
        "variant",
        Required,
        "Tables: what is compared; the first that is measured is the baseline of the ratios.",
    ),
    key(Table::Top, "published", Optional("none"), "Tables: published figures, one for each test."),
    key(
        Table::Top,
        "medium",
        Optional("needed with sentences about its speed"),
        "Table: what the source says that its medium is capable of.",
    ),
    key(Table::Top, "sentence", Optional("none"), "Tables: what the source says, to be checked."),
    key(Table::Top, "band", Optional("none"), "Table: drives that a device may have been."),
    key(Table::Source, "title", Required, "Title of the page or paper."),
    key(Table::Source, "author", Required, "Who wrote it."),
    key(Table::Source, "year", Required, "When it was published."),
    key(Table::Source, "address", Required, "Where it is: an address, or the journal or book."),
    key(Table::Machine, "cpus", Default("4"), "Processors."),
    key(
        Table::Machine,
        "page_cache_per_data",
        Default("0.5"),
        "Page cache as a share of all the benchmark's files together: above 0, at most 100.",
    ),
    key(
        Table::Machine,
        "file_window_mb",
        Default("8"),
        "Free space kept behind a growing file, in MiB at most: 1 to 128.",
    ),
    key(
        Table::Machine,
        "memory_mb",
        Optional("`page_cache_per_data`"),
        "Page cache in MiB: 4 to 1048576.",
    ),
    key(
        Table::Machine,
        "read_ahead_kb",
        Default("128"),
        "Largest window that is read ahead of a sequential reader, in KiB: to 65536; 0 for none.",
    ),
    key(
        Table::Machine,
        "request_kb",
        Default("1024"),
        "Largest request of write-back, a commit and a checkpoint, in KiB: 4 to 65536.",
    ),
    key(
        Table::Machine,
        "bdflush",
        Optional("today's `vm.dirty_*`"),
        "The nine numbers of Linux 2.4's `/proc/sys/vm/bdflush`, in quotes: of them the first, \
         fifth, sixth and seventh count; what is on its way is bounded by the scheduler only.",
    ),
    key(
        Table::Machine,
        "checkpoint_kb",
        Default("32768"),
        "Home writes of a checkpoint that are on their way at once, in KiB: 4 to 1048576.",
    ),
    key(
        Table::Machine,
        "checkpoint_from_percent",
        Default("50.0"),
        "A checkpoint begins by itself when more than so much of the log is in use: 0 to 100; at \
         100 when somebody waits for room.",
    ),
    key(
        Table::Machine,
        "checkpoint_to_percent",
        Default("0.0"),
        "It ends when at most so much is.",
    ),
    key(
        Table::Machine,
        "dd_device_us",
        Default("0.0"),
        "Processor time of a record that dd copies from or to a device, beside the driver, in us.",
    ),
    key(
        Table::Machine,
        "dd_file_us",
        Default("0.0"),
        "The same of a file, beside the file system's.",
    ),
    key(
        Table::Workload,
        "iozone",
        Optional("another workload is run"),
        "IOzone's command line, as published, without the program's name.",
    ),
    key(
        Table::Workload,
        "files",
        Optional("another workload is run"),
        "Table: the workload of files with names (docs/risk.md); `{}` for its defaults. Beside \
         `read_under_write` it is what is cut.",
    ),
    key(
        Table::Workload,
        "legs",
        Optional("another workload is run"),
        "Table: tasks write blocks of the disk, a volume, without a file system; `{}` for its \
         defaults. It is cut, also with one disk or only the RAM disk lost.",
    ),
    key(
        Table::Workload,
        "read_under_write",
        Optional("another workload is run"),
        "Table: a file is read while another is written flat out.",
    ),
    key(
        Table::Workload,
        "dd",
        Optional("none"),
        "Tables: copies by dd, timed; beside any other kind. The power is not cut in them.",
    ),
    key(
        Table::Workload,
        "hdparm",
        Optional("none"),
        "Tables: timings by hdparm; beside any other kind.",
    ),
    key(
        Table::Workload,
        "random_read",
        Optional("none"),
        "Tables: reads of the disk at random places, without a file system; beside any other kind.",
    ),
    key(
        Table::Workload,
        "configuration",
        Optional("`iozone` is run"),
        "Tables by name: several matrices of single or auto mode; each variant names its own.",
    ),
    key(
        Table::Workload,
        "quick_iozone",
        Optional("needed with `iozone` in single or auto mode"),
        "The whole command line of a run without `--full`.",
    ),
    key(
        Table::Workload,
        "risk_iozone",
        Optional("needed with `iozone` in single or auto mode"),
        "The whole command line of the run that is cut.",
    ),
    key(
        Table::Workload,
        "peers_iozone",
        Optional("needed with these and `kernel`"),
        "The whole command line of the runs with `--peers`, in real time.",
    ),
    key(
        Table::Workload,
        "quick_size",
        Optional("needed with `iozone -t`"),
        "IOzone's `-s` of a run without `--full`.",
    ),
    key(
        Table::Workload,
        "risk_size",
        Optional("needed with `iozone -t`"),
        "IOzone's `-s` of the run that is cut.",
    ),
    key(
        Table::Workload,
        "quick_scales_disks",
        Default("false"),
        "With `iozone`: without `--full` the capacity of `hdd` devices shrinks with the files, \
         so that seeks between them take as long as at the full size.",
    ),
    key(
        Table::Workload,
        "peers_size",
        Optional("needed with `iozone -t` and `kernel`"),
        "IOzone's `-s` of the runs with `--peers`, in real time.",
    ),
    key(
        Table::Workload,
        "peers_scale",
        Default("64"),
        "With `--peers`: the capacity of `hdd` devices is divided by this: 1 to 4096.",
    ),
    key(
        Table::Workload,
        "cuts",
        Required,
        "Power cuts of a variant unless `--cuts` says otherwise.",
    ),
    key(
        Table::Workload,
        "quick_cuts",
        Optional("`cuts`"),
        "With `iozone`: cuts of a variant without `--full`; of the measured run a quarter.",
    ),
    key(
        Table::Workload,
        "lying_cuts_per_4",
        Default("1"),
        "For four cuts of a variant so many of each of its controls (docs/risk.md).",
    ),
    key(
        Table::Workload,
        "loss_cuts",
        Default("24"),
        "With `iozone`: cuts of the measured run itself, while something acknowledged is unsynced \
         (docs/risk.md).",
    ),
    key(
        Table::Workload,
        "speed_runs",
        Default("5"),
        "With variants of the kernel's: runs in real time of each for its speed, by turns: 1 to \
         1000.",
    ),
    key(
        Table::Workload,
        "speed_seconds",
        Default("2.0"),
        "How long each of these runs makes calls.",
    ),
    key(
        Table::Workload,
        "kernel_cuts",
        Optional("`cuts`"),
        "Cuts of a variant with `kernel`, each of which is a mount in real time.",
    ),
    key(Table::Files, "seconds", Default("12.0"), "How long calls are made: 0.1 to 3600."),
    key(Table::Files, "rounds_least", Default("0"), "Rounds of each program at the least."),
    key(Table::Files, "pause_ms", Default("10.0"), "Mean pause after a call, in ms: to 10000."),
    key(Table::Files, "log_kb", Default("256"), "A log is full at so many KiB: 8 to 65536."),
    key(Table::Files, "logs_kept", Default("4"), "Logs that are kept: 1 to 1000."),
    key(Table::Files, "table_kb", Default("1024"), "The table, in KiB: 16 to 65536."),
    key(Table::Files, "configs", Default("4"), "Configurations: 1 to 1000."),
    key(
        Table::ReadUnderWrite,
        "storm",
        Required,
        "The writer, which is run again and again: `dd if=/dev/zero of=NAME bs=BYTES count=N`.",
    ),
    key(Table::ReadUnderWrite, "file_mb", Default("16"), "File that is read, in MiB: 1 to 4096."),
    key(
        Table::ReadUnderWrite,
        "read_kb",
        Default("4"),
        "What a read(2) asks for, in KiB: 4 to 16384; how far is read ahead is the machine's.",
    ),
    key(
        Table::ReadUnderWrite,
        "places",
        Default("['other']"),
        "Where that file is: `other`, an ext2 on the other half of the disk, `same`, the file \
         system that is written to, or both.",
    ),
    key(
        Table::ReadUnderWrite,
        "trials",
        Default("20"),
        "Reads in each place under the writer, each of a file that nobody has read.",
    ),
    key(Table::ReadUnderWrite, "quick_trials", Optional("`trials`"), "As many without `--full`."),
    key(Table::ReadUnderWrite, "idle_trials", Default("3"), "Reads before there is a writer."),
    key(
        Table::ReadUnderWrite,
        "settle_s",
        Default("10.0"),
        "Seconds of writing before the first read.",
    ),
    key(
        Table::ReadUnderWrite,
        "pause_s",
        Default("1.0"),
        "Mean pause before each read, in seconds.",
    ),
    key(Table::Legs, "seconds", Default("4.0"), "How long they write: 0.1 to 3600."),
    key(Table::Legs, "writers", Default("3"), "Tasks: 1 to 64."),
    key(
        Table::Legs,
        "pause_ms",
        Default("5.0"),
        "Mean pause of each before a write of 4 KiB, in ms: 0.01 to 10000.",
    ),
    key(Table::Legs, "flush_every", Default("8"), "Each flushes after so many writes."),
    key(
        Table::Legs,
        "area_kb",
        Default("4096"),
        "The first so many KiB of the disk are written: 256 to 1048576.",
    ),
    key(Table::Dd, "test", Required, "What its row is called: `write`, `read` ..."),
    key(Table::Dd, "operands", Required, "dd's operands; `device:NAME` is a device by itself."),
    key(Table::Dd, "quick", Optional("`operands`"), "Others, without `--full`."),
    key(
        Table::Dd,
        "before",
        Default("[]"),
        "Operands of copies that are made before and not timed. Those of a variant run one after \
         the other on one file system.",
    ),
    key(Table::Dd, "cold", Default("true"), "The page cache is let go of before the copy."),
    key(
        Table::Dd,
        "variants",
        Default("[]"),
        "Names of the variants that run it; without any, all that are measured.",
    ),
    key(Table::RandomRead, "test", Required, "What its row is called."),
    key(
        Table::RandomRead,
        "distribution",
        Default("'random'"),
        "Where the reads go, as fio's random_distribution: `random`; `zipf:THETA`; \
         `zoned:80/20:20/80`, 80 % of them to the first 20 % of the disk.",
    ),
    key(Table::RandomRead, "bytes", Default("4096"), "Bytes of a read: a power of two."),
    key(Table::RandomRead, "reads", Required, "How many are timed."),
    key(Table::RandomRead, "quick_reads", Optional("`reads`"), "How many without `--full`."),
    key(
        Table::RandomRead,
        "warm_up_percent",
        Default("100"),
        "How many are made before, in % of those that are timed.",
    ),
    key(Table::RandomRead, "tasks", Default("1"), "Tasks that read beside each other."),
    key(
        Table::RandomRead,
        "variants",
        Default("[]"),
        "Names of the variants that run it; without any, all that are measured.",
    ),
    key(
        Table::Hdparm,
        "line",
        Required,
        "Command line without the program's name: devices by name, each timed by itself, or files \
         (`/f`) of every variant.",
    ),
    key(
        Table::Hdparm,
        "before",
        Default("[]"),
        "dd's operands: copies that are made before files are timed.",
    ),
    key(
        Table::Device,
        "kind",
        Required,
        "Kind of device, as `steadfast lab devices` lists them. Beside it any of the kind's \
         parameters that differ from its defaults.",
    ),
    key(
        Table::Device,
        "driver_us",
        Default("0.0"),
        "Processor time that its driver takes for a request, in us.",
    ),
    key(
        Table::Device,
        "driver_mb_per_s",
        Optional("the device moves its data"),
        "Rate in MB/s at which the driver copies them: of a RAM disk.",
    ),
    key(
        Table::Device,
        "namespace",
        Default("'fsdax'"),
        "How a device that is memory (`nvdimm`, `ram`) is used: `fsdax`, files in place with \
         `mount = \"dax=always\"`; `raw`, blocks only; `sector`, blocks that do not tear \
         (docs/memory.md).",
    ),
    key(Table::Volume, "kind", Required, "`mirror`, `stripe` or `concat` (docs/mirrors.md)."),
    key(
        Table::Volume,
        "members",
        Required,
        "Names of devices and other volumes: of a mirror its legs, 1 to 4, in their order.",
    ),
    key(
        Table::Volume,
        "volatile",
        Default("[]"),
        "Legs of a mirror that do not count as durable; those that say so of themselves, as `ram`, \
         need not be named.",
    ),
    key(
        Table::Volume,
        "partial",
        Default("[]"),
        "The leg of a mirror that may be smaller than it, and holds the regions that are read \
         most; it does not count as durable. One at most.",
    ),
    key(
        Table::Volume,
        "size",
        Optional("all that its legs have room for"),
        "Size of a mirror (k, m, g).",
    ),
    key(
        Table::Volume,
        "read",
        Default("'roundrobin'"),
        "Which leg answers a read: `roundrobin`, `geometric`, `first`, `preferred:LEG` or \
         `adaptive`.",
    ),
    key(
        Table::Volume,
        "write",
        Default("'parallel'"),
        "How a write goes to the legs: `parallel`, `serial`, `write-behind`.",
    ),
    key(
        Table::Volume,
        "region_kb",
        Optional("a 16384th of the size, 64 to 1024"),
        "Region of a mirror in KiB: a power of two from 4 to 65536.",
    ),
    key(
        Table::Volume,
        "model",
        Optional("Steadfast's own mirror"),
        "A model of somebody else's mirror instead: `svm`, `svm-recreated`, `md`, \
         `write-back-cache`, `plain`, `control-late-map`, `control-volatile-source`.",
    ),
    key(
        Table::Volume,
        "interlace_kb",
        Default("64"),
        "What a stripe puts on a member in turn, in KiB: a multiple of 4, 4 to 102400.",
    ),
    key(
        Table::Scheduler,
        "policy",
        Default("'fifo'"),
        "`fifo`, as they come, or `deadline`, by Linux's mq-deadline.",
    ),
    key(
        Table::Scheduler,
        "depth",
        Default("32"),
        "Requests that the device has at once: 1 to 1048576.",
    ),
    key(
        Table::Scheduler,
        "queue_kb",
        Default("32768"),
        "What may wait or be with the device in each direction before who asks must wait, in KiB: \
         4 to 1073741824.",
    ),
    key(
        Table::Scheduler,
        "read_expire_ms",
        Default("500.0"),
        "With `deadline`: a read that has waited so long is served first.",
    ),
    key(
        Table::Scheduler,
        "write_expire_ms",
        Default("5000.0"),
        "With `deadline`: the same of a write.",
    ),
    key(
        Table::Scheduler,
        "writes_starved",
        Default("2"),
        "With `deadline`: batches of reads that may go before waiting writes.",
    ),
    key(
        Table::Scheduler,
        "fifo_batch",
        Default("16"),
        "With `deadline`: requests of one direction that are served one after the other.",
    ),
    key(
        Table::Scheduler,
        "anticipation_ms",
        Default("0.0"),
        "With `deadline`: how long after a read no write is begun, as the next read may follow; \
         for `writes_starved` batches at most. Linux 2.6's anticipatory scheduler: 6 to 7.",
    ),
    key(
        Table::Scheduler,
        "wbt_lat_ms",
        Optional("no throttling"),
        "Writeback throttling: in how many milliseconds reads are to be answered; fewer writes are \
         let in while they are not. Linux: 75 where seeks cost time, else 2.",
    ),
    key(
        Table::Scheduler,
        "wbt_window_ms",
        Default("100.0"),
        "With `wbt_lat_ms`: how long is looked before the number of writes is changed.",
    ),
    key(Table::Variant, "name", Required, "Short name, different from the others'."),
    key(Table::Variant, "label", Required, "One line for people."),
    key(Table::Variant, "disk", Required, "The device or volume that holds the file system."),
    key(
        Table::Variant,
        "journal",
        Optional("on the disk"),
        "The device or volume that holds an external journal.",
    ),
    key(
        Table::Variant,
        "scheduler",
        Optional("none"),
        "The request scheduler before the disk, a `[scheduler.NAME]`.",
    ),
    key(
        Table::Variant,
        "machine",
        Optional("`[machine]`"),
        "Table: keys of `[machine]` that are others for this variant.",
    ),
    key(
        Table::Variant,
        "kernel",
        Optional("Steadfast's ext4"),
        "The kernel's `ext2`, `ext3`, `ext4`, `xfs` or `btrfs` instead, in real time, as root: \
         with `files` left out without; with `iozone` run only with `--peers`.",
    ),
    key(
        Table::Variant,
        "mkfs",
        Default("''"),
        "Options of `steadfast mkfs`, separated by spaces; with `kernel`, of its own mkfs.",
    ),
    key(
        Table::Variant,
        "mount",
        Default("''"),
        "Mount options of the file system, separated by commas (docs/mount.md); with `kernel`, \
         words for mount(8).",
    ),
    key(
        Table::Variant,
        "baseline",
        Optional("the first that is measured"),
        "The variant that it is compared with.",
    ),
    key(
        Table::Variant,
        "run",
        Default("'both'"),
        "`both`, `speed` or `risk`: what is measured, the power cuts, or both; not with `files` \
         alone.",
    ),
    key(
        Table::Variant,
        "cut",
        Default("'power'"),
        "What its cuts are: `power`, or `reset`: the machine is reset and its drives keep their \
         power, which takes the caches only of those with `cache_at_reset = \"lost\"`.",
    ),
    key(
        Table::Published,
        "test",
        Required,
        "The test: of IOzone `initial write`, `rewrite` ...; with `read_under_write` `read, other \
         file system` and `read, same file system`.",
    ),
    key(Table::Medium, "read_mb_per_s", Required, "Reading, in MB/s of 1000000 bytes."),
    key(Table::Medium, "write_mb_per_s", Required, "Writing, the same."),
    key(Table::Sentence, "name", Required, "Short, for the table."),
    key(Table::Sentence, "said", Required, "The source's words."),
    key(
        Table::Sentence,
        "check",
        Required,
        "What must hold: `comparable` (the fastest of `variants` is at most `factor` times the \
         slowest), `ahead` (each is at least `factor` times as fast as each of `over`), `above`, \
         `below` (each is at least, at most `factor` times as fast as the medium).",
    ),
    key(Table::Sentence, "variants", Required, "Names of variants."),
    key(Table::Sentence, "over", Default("[]"), "With `ahead`: of whom they are."),
    key(Table::Sentence, "tests", Required, "Tests of IOzone's matrix: `write`, `random read` ..."),
    key(Table::Sentence, "file_min", Optional("all"), "Files of at least this size."),
    key(Table::Sentence, "file_max", Optional("all"), "Files of at most this size."),
    key(Table::Sentence, "factor", Required, "By which factor."),
    key(Table::Sentence, "share", Required, "In this share of the cells, to 1."),
    key(Table::Sentence, "reason", Required, "Why these numbers: decided before measuring."),
    key(
        Table::Sentence,
        "explained",
        Optional("nothing is said"),
        "Printed where the figures say otherwise: why, as it was tested.",
    ),
    key(Table::Configuration, "label", Required, "One line for people."),
    key(
        Table::Configuration,
        "iozone",
        Required,
        "IOzone's command line in single or auto mode, as published.",
    ),
    key(Table::Configuration, "quick_iozone", Required, "That of a run without `--full`."),
    key(Table::Configuration, "risk_iozone", Required, "That of the run that is cut."),
    key(
        Table::Configuration,
        "peers_iozone",
        Optional("needed with `kernel`"),
        "That of the runs with `--peers`, in real time.",
    ),
    key(
        Table::Variant,
        "configuration",
        Optional("needed with `workload.configuration`"),
        "Which configuration of the benchmark it is run with.",
    ),
    key(
        Table::Published,
        "figure",
        Default("'children'"),
        "Which of IOzone's two sums is quoted: `children` or `parent`.",
    ),
    key(
        Table::Published,
        "kb_per_s",
        Optional("`seconds` is there"),
        "Table: speed in kB/s (of 1024 bytes) by variant.",
    ),
    key(
        Table::Published,
        "seconds",
        Optional("`kb_per_s` is there"),
        "Table: how long it took, in seconds, by variant: with `read_under_write`.",
    ),
    key(Table::Band, "device", Required, "The device of which the source names no model."),
    key(
        Table::Band,
        "drives",
        Required,
        "Names of drives that it may have been (`steadfast lab drives`): `lab sensitivity` puts \
         each in its place.",
    ),
];

/// The keys of a table.
pub fn of(table: Table) -> impl Iterator<Item = &'static Key> {
    let listed = if table == Table::VariantMachine { Table::Machine } else { table };
    KEYS.iter().filter(move |key| key.table == listed)
}

/// One key; the reader asks only for those that are in the list.
pub fn find(table: Table, name: &str) -> Option<&'static Key> {
    of(table).find(|key| key.name == name)
}

/// All keys, for a terminal.
pub fn text() -> String {
    let mut text = String::new();
    for table in Table::ALL {
        text += &format!("{}\n", table.title());
        for key in of(table) {
            let without = match key.need {
                Required => "required".to_owned(),
                Default(value) => format!("default: {value}"),
                Optional(what) => format!("without it: {what}"),
            };
            text += &wrapped(&format!("{} ({without})", key.name), 2);
            text += &wrapped(key.text, 6);
        }
        text.push('\n');
    }
    text.replace('`', "")
}

/// The table of docs/lab.md.
pub fn markdown() -> String {
    let mut text = String::from("| table | key | without it | meaning |\n|---|---|---|---|\n");
    for table in Table::ALL {
        for key in of(table) {
            let without = match key.need {
                Required => "**required**".to_owned(),
                Default(value) => format!("`{value}`"),
                Optional(what) => what.to_owned(),
            };
            let (title, name, meaning) = (table.title(), key.name, key.text);
            // OK to ignore: writing to a string does not fail.
            let _ = writeln!(text, "| {title} | `{name}` | {without} | {meaning} |");
        }
    }
    text
}
