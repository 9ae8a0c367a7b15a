//! Options that have no effect here, those that are not taken, and why.

use super::table::{OptionRow, also, without_effect};

/// Options that are taken and have no effect.
pub(super) const WITHOUT_EFFECT: &[OptionRow] = &[
    also(&["threads"], without_effect("thread", "jobs are tasks of this process")),
    without_effect(
        "create_serialize",
        "files are laid out one after the other before the jobs run",
    ),
    without_effect("openfiles", "all files of a job are open"),
    without_effect("random_generator", "the generator is our own"),
    without_effect("softrandommap", "a map that is too large is refused"),
    without_effect("allow_file_create", "files are made where they are missing"),
    without_effect("allow_mounted_write", "only files are written, never devices"),
    without_effect("gtod_reduce", "all times are taken"),
    without_effect("disable_lat", "all times are taken"),
    without_effect("disable_clat", "all times are taken"),
    without_effect("disable_slat", "all times are taken"),
    also(&["disable_bw"], without_effect("disable_bw_measurement", "all times are taken")),
    without_effect("slat_percentiles", "the time until a call is made is not the system's"),
    without_effect("clocksource", "there is one clock"),
    also(&["iomem"], without_effect("mem", "there is one kind of memory")),
    without_effect("io_submit_mode", "each request in flight has a task of its own"),
    also(
        &["iodepth_batch_submit"],
        without_effect("iodepth_batch", "each request is a call of its own"),
    ),
    also(
        &["iodepth_batch_complete_min"],
        without_effect("iodepth_batch_complete", "each request is a call of its own"),
    ),
    without_effect("iodepth_batch_complete_max", "each request is a call of its own"),
    without_effect("iodepth_low", "a request follows each that is done"),
    without_effect("read_iolog_chunked", "the log is read before the run"),
    without_effect("per_job_logs", "there are no logs"),
    without_effect("disk_util", "the use of devices is not noted"),
    without_effect("stats", "figures are always given"),
    without_effect("verify_fatal", "a job ends with the first wrong block"),
    without_effect("verify_dump", "the message says what is wrong"),
    without_effect("verify_async", "blocks are looked at by the task that read them"),
    without_effect("verify_interval", "every 512 bytes say where they belong"),
    without_effect("verify_pattern", "blocks say where they belong, and hold no pattern"),
    without_effect("error_dump", "messages are always given"),
    without_effect("bwavgtime", "rates are taken over 500 ms"),
    without_effect("iopsavgtime", "rates are taken over 500 ms"),
    without_effect("unique_filename", "there are no clients"),
    without_effect("cpus_allowed_policy", "tasks are not bound to processors"),
    without_effect("prioclass", "requests have no priority"),
    without_effect("prio", "requests have no priority"),
    without_effect("unit_base", "rates are in bytes"),
    without_effect("significant_figures", "figures have four digits"),
];

/// Of logs of another kind.
const MERGE: &str = "logs of blktrace are not read; steadfast trace import reads blkparse's text";

/// Options that are not taken, and what is to be said of them.
pub(super) const NOT: &[(&str, &str)] = &[
    ("write_bw_log", "no logs are written; --output-format=json has the figures"),
    ("write_lat_log", "no logs are written; --output-format=json has the figures"),
    ("write_iops_log", "no logs are written; --output-format=json has the figures"),
    ("write_hist_log", "no logs are written; --output-format=json has the figures"),
    ("write_iolog", "steadfast trace record notes the calls of a program"),
    ("merge_blktrace_file", MERGE),
    ("merge_blktrace_scalars", MERGE),
    ("merge_blktrace_iters", MERGE),
    ("exec_prerun", "no programs are run"),
    ("exec_postrun", "no programs are run"),
    ("zonemode", "files have no zones"),
    ("flow", "jobs do not wait for each other's requests"),
    ("steadystate", "a run ends by size or time"),
    ("ss", "a run ends by size or time"),
    ("latency_target", "the depth does not change"),
    ("opendir", "files are named"),
    ("profile", "there are no built-in jobs"),
    ("cpuload", "it is of the engine cpuio, which makes no requests"),
    ("verify_backlog", "blocks are read back when all are written"),
    ("experimental_verify", "blocks are read back when all are written"),
    ("cpus_allowed", "tasks are not bound to processors; taskset binds the process"),
    ("unified_rw_reporting", "reads and writes are reported apart"),
];

/// Why an option is not taken, where more can be said than that it is not.
pub(super) fn why_not(name: &str) -> Option<&'static str> {
    NOT.iter().find(|(not, _)| *not == name).map(|(_, why)| *why)
}
