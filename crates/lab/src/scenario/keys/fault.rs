//! Keys of `fault`, in `[device.NAME]`.

use super::Need::{Default, Optional, Required};
use super::{Key, Table, key};

pub(super) const KEYS: &[Key] = &[
    key(
        Table::Fault,
        "effect",
        Required,
        "What happens to a request: `fail`, it is not done and fails; `fail-after`, it is done and \
         fails; `torn`, of a write only the beginning is done, and it fails; `lost`, a write or \
         flush is not done and succeeds; `corrupt`, a read returns a bit of each block turned \
         over; `delay`; `gone`, it and all later ones fail.",
    ),
    key(
        Table::Fault,
        "on",
        Default("'all'"),
        "Which requests: `read`, `write`, `flush`, `discard` or `all`.",
    ),
    key(Table::Fault, "skip", Default("0"), "So many of them pass first, counted from each mount."),
    key(Table::Fault, "count", Optional("all"), "So many are hit after that: 1 or more."),
    key(Table::Fault, "from_s", Default("0.0"), "Seconds from the mount on in which none is hit."),
    key(
        Table::Fault,
        "at_kb",
        Default("0"),
        "Only requests that touch what begins here, in KiB ...",
    ),
    key(Table::Fault, "kb", Optional("to the end"), "... and is so long, in KiB: 1 or more."),
    key(
        Table::Fault,
        "torn_bytes",
        Default("0"),
        "With `torn`: so many bytes are done, rounded down to whole blocks.",
    ),
    key(
        Table::Fault,
        "delay_ms",
        Default("100.0"),
        "With `delay`: the answer comes so much later.",
    ),
];
