//! The keys of what is compared: variants, published figures, sentences of the source.

use super::Need::{Default, Optional, Required};
use super::{Key, Table, key};

pub(super) const KEYS: &[Key] = &[
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
