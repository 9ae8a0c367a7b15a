//! The keys of the file itself, of the machine, its devices and its volumes.

use super::Need::{Default, Optional, Required};
use super::{Key, Table, key};

pub(super) const KEYS: &[Key] = &[
    key(Table::Top, "version", Required, "Layout of the file: 2 (1 is read too)."),
    key(Table::Top, "name", Required, "Short name: letters, digits, `-`."),
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
        "Page cache in MiB: 4 to 1048576. Blocks in the log that are not home count, and are \
         written home at the limit of dirty memory.",
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
        Optional("`dirty_expire_s`, `dirty_writeback_s`"),
        "The nine numbers of Linux 2.4's `/proc/sys/vm/bdflush`, in quotes: of them the first, \
         fifth, sixth and seventh count; what is on its way is bounded by the scheduler only.",
    ),
    key(
        Table::Machine,
        "dirty_expire_s",
        Optional("the mount's `commit=`, as `steadfast mount` has it"),
        "What has been dirty for so many seconds is written: 0.1 to 86400. Linux: 30 \
         (`vm.dirty_expire_centisecs`). Of no effect with `bdflush`.",
    ),
    key(
        Table::Machine,
        "dirty_writeback_s",
        Optional("half of the mount's `commit=`"),
        "How often it is looked for, in seconds: 0.1 to 86400. Linux: 5 \
         (`vm.dirty_writeback_centisecs`). Of no effect with `bdflush`.",
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
        "A checkpoint begins automatically when more than this share of the log is in use: 0 to \
         100; with 100, when a task waits for room.",
    ),
    key(
        Table::Machine,
        "checkpoint_to_percent",
        Default("0.0"),
        "It ends when at most this share is in use.",
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
        Table::Device,
        "kind",
        Optional("`path`"),
        "Kind of device, as `steadfast lab devices` lists them. Beside it any of the kind's \
         parameters that differ from its defaults.",
    ),
    key(
        Table::Device,
        "path",
        Optional("`kind`"),
        "A file, a block device, a range of memory (`pmem:PATH`) or a volume (`volume:A,B`) of \
         this machine instead of a model: for `mount --stack`, and `dd`, `iozone` and `hdparm` \
         with `--stack --real-time`. What it holds is overwritten with `--destroy` only.",
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
    key(
        Table::Device,
        "fault",
        Optional("none"),
        "Table: requests that it does not answer well, from the mount on.",
    ),
    key(
        Table::Device,
        "media",
        Default("'sectors'"),
        "What a power cut does to it, as `crash run --media`: `sectors`, `whole`, `words`, \
         `garbage`, `unreadable`, `neighbours`, `fifo`, `barrier`, `erase-block`, `mapping`; of \
         the last three a size in KiB may follow, as `mapping=64` (docs/risk.md).",
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
        "Legs of a mirror that do not count as durable; devices that are volatile anyway, such as \
         `ram`, need not be named.",
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
        "A model of another software's mirror instead: `svm`, `svm-recreated`, `md`, \
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
        "Most data that is queued or at the device in each direction, in KiB: 4 to 1073741824; \
         beyond it the caller waits.",
    ),
    key(
        Table::Scheduler,
        "read_expire_ms",
        Default("500.0"),
        "With `deadline`: a read that has waited this long is served first.",
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
];
