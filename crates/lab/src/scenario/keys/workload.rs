//! The keys of what is run.

use super::Need::{Default, Optional, Required};
use super::{Key, Table, key};

pub(super) const KEYS: &[Key] = &[
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
        "Cuts of each control for every four cuts of a variant (docs/risk.md).",
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
    key(Table::Files, "seconds", Default("90.0"), "How long calls are made: 0.1 to 3600."),
    key(Table::Files, "rounds_least", Default("0"), "Rounds of each program at the least."),
    key(Table::Files, "pause_ms", Default("10.0"), "Mean pause after a call, in ms: to 10000."),
    key(Table::Files, "log_kb", Default("256"), "Size of a full log, in KiB: 8 to 65536."),
    key(Table::Files, "logs_kept", Default("4"), "Logs that are kept: 1 to 1000."),
    key(Table::Files, "table_kb", Default("1024"), "The table, in KiB: 16 to 65536."),
    key(Table::Files, "configs", Default("4"), "Configurations: 1 to 1000."),
    key(
        Table::Files,
        "letters_kept",
        Default("1000"),
        "Letters that are kept; the oldest beyond are removed: 1 to 100000. If they go before a \
         file system's timer has written them, the age of what is lost is the workload's.",
    ),
    key(
        Table::Files,
        "letters_synced_percent",
        Default("50"),
        "Of a hundred letters, so many are synced.",
    ),
    key(
        Table::Files,
        "downloads_kept",
        Default("3"),
        "Downloads of 1 MiB that are kept, 1 to 1000. Most of the bytes that a cut takes are \
         theirs: the more are kept, the more it can take before a file system's timer has written \
         them.",
    ),
    key(
        Table::ReadUnderWrite,
        "storm",
        Required,
        "The writer, which is run repeatedly: `dd if=/dev/zero of=NAME bs=BYTES count=N`.",
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
    key(Table::Legs, "flush_every", Default("8"), "Each task flushes after this number of writes."),
    key(
        Table::Legs,
        "area_kb",
        Default("4096"),
        "KiB that are written, from the start of the disk: 256 to 1048576.",
    ),
    key(Table::Dd, "test", Required, "What its row is called: `write`, `read` ..."),
    key(Table::Dd, "operands", Required, "dd's operands; `device:NAME` is a device by itself."),
    key(Table::Dd, "quick", Optional("`operands`"), "The operands without `--full`."),
    key(
        Table::Dd,
        "before",
        Default("[]"),
        "Operands of copies that are made before and not timed. Those of a variant run one after \
         the other on one file system.",
    ),
    key(Table::Dd, "cold", Default("true"), "The page cache is dropped before the copy."),
    key(
        Table::Dd,
        "variants",
        Default("[]"),
        "Names of the variants that run it; if there are none, all that are measured.",
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
        "Names of the variants that run it; if there are none, all that are measured.",
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
];
