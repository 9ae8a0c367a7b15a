//! The list of the options that are taken, and reasons why others are not.

use std::time::Duration;

use super::JobOptions;
use super::shape::{
    BlockSizes, Buffers, Engine, FileOrder, FileSize, RatePacing, RequestMix, Sync, Verification,
};
use super::value::{self, SizePrefixes};
use crate::places::Distribution;

/// Files of a job, at most.
const FILES_MAX: u64 = 1 << 16;
/// Jobs, at most: fio's own limit.
pub(in super::super) const JOBS_MAX: u64 = 4096;
/// Requests in flight of a job, at most.
const DEPTH_MAX: u64 = 4096;
/// How often a job is done, at most.
const LOOPS_MAX: u64 = 1 << 32;
/// Percentiles, at most: fio's own limit.
const PERCENTILES_MAX: usize = 20;
/// Bytes of a name.
const NAME_MAX: usize = 4096;
/// In nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// Takes a value in.
type SetOption = fn(&mut JobOptions, &str) -> Result<(), String>;

/// An option of fio's.
#[derive(Debug)]
pub struct OptionRow {
    /// As fio's manual calls it.
    pub name: &'static str,
    /// Its other names.
    pub aliases: &'static [&'static str],
    /// What its value is.
    pub form: &'static str,
    /// What it does; of one that has no effect here, why.
    pub help: &'static str,
    /// It may stand without a value, and is 1 then.
    pub(super) takes_nothing: bool,
    /// `None`: it has no effect here.
    pub(super) set: Option<SetOption>,
}

impl OptionRow {
    /// Whether it changes anything here.
    pub fn has_effect(&self) -> bool {
        self.set.is_some()
    }
}

const fn row(
    name: &'static str,
    form: &'static str,
    help: &'static str,
    set: SetOption,
) -> OptionRow {
    OptionRow { name, aliases: &[], form, help, takes_nothing: false, set: Some(set) }
}

const fn flag(
    name: &'static str,
    form: &'static str,
    help: &'static str,
    set: SetOption,
) -> OptionRow {
    OptionRow { takes_nothing: true, ..row(name, form, help, set) }
}

const fn without_effect(name: &'static str, help: &'static str) -> OptionRow {
    OptionRow { name, aliases: &[], form: "any", help, takes_nothing: true, set: None }
}

const fn also(aliases: &'static [&'static str], row: OptionRow) -> OptionRow {
    OptionRow { aliases, ..row }
}

/// All options that are taken.
pub const ROWS: &[OptionRow] = &[
    row("name", "a name", "name of the job instead of the section's", |o, v| {
        o.name = text(v)?;
        Ok(())
    }),
    row("description", "a text", "text for people", |o, v| {
        o.description = Some(v.to_owned());
        Ok(())
    }),
    row(
        "kb_base",
        "1024 or 1000",
        "1024: k is 1024 and ki 1000; 1000: k is 1000 and ki 1024",
        |o, v| {
            o.prefixes = match v {
                "1024" => SizePrefixes::Binary,
                "1000" => SizePrefixes::Standard,
                _ => return Err(format!("'{v}' is not 1024 or 1000")),
            };
            Ok(())
        },
    ),
    row("filename", "names", "files of the job, with : between them", |o, v| {
        o.filename = names(v)?;
        Ok(())
    }),
    row(
        "directory",
        "folders",
        "folders of the files, with : between them; made if they are not there",
        |o, v| {
            o.directory = names(v)?;
            Ok(())
        },
    ),
    row(
        "filename_format",
        "a name",
        "how files without a name are called, with $jobname, $jobnum, $filenum",
        |o, v| {
            o.filename_format = text(v)?;
            Ok(())
        },
    ),
    also(
        &["nr_files"],
        row("nrfiles", "a number", "files of a job, where they have no name", |o, v| {
            o.nrfiles = value::within(v, 1, FILES_MAX)?;
            Ok(())
        }),
    ),
    row(
        "file_service_type",
        "roundrobin, sequential, random",
        "which of the files is next",
        |o, v| {
            o.file_order = FileOrder::parse(v)?;
            Ok(())
        },
    ),
    also(
        &["readwrite"],
        row(
            "rw",
            "read, write, rw, randread, randwrite, randrw",
            "requests, with :STEP or of random ones :RUN behind",
            |o, v| {
                o.mix = RequestMix::parse(v)?;
                Ok(())
            },
        ),
    ),
    row("rwmixread", "0 to 100", "of a hundred requests of a mix so many are reads", |o, v| {
        o.read_percent = value::within(v, 0, 100)?;
        Ok(())
    }),
    row("rwmixwrite", "0 to 100", "of a hundred requests of a mix so many are writes", |o, v| {
        o.read_percent = 100 - value::within(v, 0, 100)?;
        Ok(())
    }),
    also(
        &["blocksize"],
        row("bs", "sizes", "bytes of a request: reads,writes", |o, v| {
            let p = o.prefixes;
            o.sizes = value::by_direction(v, &o.sizes[0], |one| BlockSizes::one(one, p))?;
            Ok(())
        }),
    ),
    also(
        &["blocksize_range"],
        row("bsrange", "ranges", "bytes of a request, from and to", |o, v| {
            let p = o.prefixes;
            o.sizes = value::by_direction(v, &o.sizes[0], |one| BlockSizes::range(one, p))?;
            Ok(())
        }),
    ),
    row(
        "bssplit",
        "SIZE/SHARE:...",
        "sizes of requests, and how many of a hundred have each",
        |o, v| {
            let p = o.prefixes;
            o.sizes = value::by_direction(v, &o.sizes[0], |one| BlockSizes::split(one, p))?;
            Ok(())
        },
    ),
    also(
        &["blocksize_unaligned"],
        flag(
            "bs_unaligned",
            "1 or 0",
            "lengths in a range need not be multiples of its start",
            |o, v| {
                o.bs_unaligned = value::boolean(v)?;
                Ok(())
            },
        ),
    ),
    also(
        &["ba"],
        row("blockalign", "sizes", "random offsets are multiples of this", |o, v| {
            let p = o.prefixes;
            o.align = value::by_direction(v, &None, |one| Ok(Some(value::int(one, p)?.max(1))))?;
            Ok(())
        }),
    ),
    row("size", "a size, or a share in %", "bytes of all files of the job", |o, v| {
        o.size = Some(FileSize::parse(v, o.prefixes)?);
        Ok(())
    }),
    also(
        &["io_limit"],
        row(
            "io_size",
            "a size, or a share in %",
            "bytes that are read and written, where that is not size",
            |o, v| {
                o.io_size = Some(FileSize::parse(v, o.prefixes)?);
                Ok(())
            },
        ),
    ),
    row("filesize", "a size, or two", "bytes of each file", |o, v| {
        let p = o.prefixes;
        o.filesize = Some(value::range(v, |one| value::int(one, p))?);
        Ok(())
    }),
    also(
        &["fileoffset"],
        row("offset", "a size, or a share in %", "where in each file requests begin", |o, v| {
            o.offset = FileSize::parse(v, o.prefixes)?;
            Ok(())
        }),
    ),
    row(
        "offset_increment",
        "a size, or a share in %",
        "each further job of numjobs begins so much later",
        |o, v| {
            o.offset_increment = FileSize::parse(v, o.prefixes)?;
            Ok(())
        },
    ),
    row("number_ios", "a number", "requests at most", |o, v| {
        o.number_ios = Some(value::int(v, o.prefixes)?);
        Ok(())
    }),
    row("loops", "a number", "how often all of it is done", |o, v| {
        o.loops = value::within(v, 1, LOOPS_MAX)?;
        Ok(())
    }),
    row(
        "ioengine",
        "an engine",
        "how requests are made; libaio, posixaio and io_uring are tasks here",
        |o, v| {
            o.engine = Engine::parse(v)?;
            o.engine_name = v.to_owned();
            Ok(())
        },
    ),
    row("iodepth", "a number", "requests in flight, with an engine that has several", |o, v| {
        o.iodepth = value::within(v, 1, DEPTH_MAX)?;
        Ok(())
    }),
    flag("direct", "1 or 0", "past the page cache (O_DIRECT)", |o, v| {
        o.direct = value::boolean(v)?;
        Ok(())
    }),
    flag("buffered", "1 or 0", "the opposite of direct", |o, v| {
        o.direct = !value::boolean(v)?;
        Ok(())
    }),
    flag(
        "sync",
        "none, sync, dsync",
        "writes return when they are durable (O_SYNC, O_DSYNC)",
        |o, v| {
            o.sync = Sync::parse(v)?;
            Ok(())
        },
    ),
    row("fsync", "a number", "an fsync after so many writes", |o, v| {
        o.fsync = value::int(v, o.prefixes)?;
        Ok(())
    }),
    row("fdatasync", "a number", "an fdatasync after so many writes", |o, v| {
        o.fdatasync = value::int(v, o.prefixes)?;
        Ok(())
    }),
    flag("end_fsync", "1 or 0", "an fsync at the end, in the job's time", |o, v| {
        o.end_fsync = value::boolean(v)?;
        Ok(())
    }),
    flag(
        "fsync_on_close",
        "1 or 0",
        "an fsync before files are closed, in the job's time",
        |o, v| {
            o.fsync_on_close = value::boolean(v)?;
            Ok(())
        },
    ),
    flag("create_fsync", "1 or 0", "an fsync of files that are laid out", |o, v| {
        o.create_fsync = value::boolean(v)?;
        Ok(())
    }),
    flag("overwrite", "1 or 0", "files that are only written are laid out before", |o, v| {
        o.overwrite = value::boolean(v)?;
        Ok(())
    }),
    row(
        "fallocate",
        "none, native, posix, keep, truncate",
        "files that are only written get their space before",
        |o, v| {
            o.fallocate = match v {
                "none" | "0" | "truncate" => false,
                "native" | "posix" | "keep" | "1" => true,
                _ => {
                    return Err(format!("'{v}' is not one of none, native, posix, keep, truncate"));
                }
            };
            Ok(())
        },
    ),
    flag(
        "invalidate",
        "1 or 0",
        "the host's page cache forgets a file when it is opened",
        |o, v| {
            o.invalidate = value::boolean(v)?;
            Ok(())
        },
    ),
    also(
        &["fadvise"],
        flag(
            "fadvise_hint",
            "none, 0, 1, sequential, random",
            "the host is told whether offsets are random",
            |o, v| {
                o.fadvise_hint = match v {
                    "0" | "none" => false,
                    "1" | "sequential" | "random" => true,
                    _ => return Err(format!("'{v}' is not one of none, 0, 1, sequential, random")),
                };
                Ok(())
            },
        ),
    ),
    flag("unlink", "1 or 0", "files are removed at the end", |o, v| {
        o.unlink = value::boolean(v)?;
        Ok(())
    }),
    also(
        &["timeout"],
        row("runtime", "a time", "a job ends after this time", |o, v| {
            o.runtime = Some(seconds(v)?).filter(|time| !time.is_zero());
            Ok(())
        }),
    ),
    flag("time_based", "1 or 0", "a job goes on until runtime is over", |o, v| {
        o.time_based = value::boolean(v)?;
        Ok(())
    }),
    row("ramp_time", "a time", "what is done before is not counted", |o, v| {
        o.ramp_time = seconds(v)?;
        Ok(())
    }),
    row("startdelay", "a time, or two", "a job begins so much later", |o, v| {
        let (from, to) = value::range(v, |one| value::time(one, SECOND))?;
        o.startdelay = (Duration::from_nanos(from), Duration::from_nanos(to));
        Ok(())
    }),
    row("thinktime", "a time (us)", "a job waits so long after requests", |o, v| {
        o.thinktime = Duration::from_nanos(value::time(v, 1000)?);
        Ok(())
    }),
    row("thinktime_blocks", "a number", "it waits after so many requests", |o, v| {
        o.thinktime_blocks = value::within(v, 1, u64::MAX)?;
        Ok(())
    }),
    row("rate", "sizes", "bytes a second at most: reads,writes", |o, v| {
        let p = o.prefixes;
        o.rate = value::by_direction(v, &None, |one| {
            value::int(one, p).map(|n| Some(n).filter(|n| *n > 0))
        })?;
        Ok(())
    }),
    row("rate_iops", "numbers", "requests a second at most: reads,writes", |o, v| {
        let p = o.prefixes;
        o.rate_iops = value::by_direction(v, &None, |one| {
            value::int(one, p).map(|n| Some(n).filter(|n| *n > 0))
        })?;
        Ok(())
    }),
    row(
        "rate_process",
        "linear, poisson",
        "whether requests of a rate come at equal distances",
        |o, v| {
            o.rate_process = RatePacing::parse(v)?;
            Ok(())
        },
    ),
    row(
        "random_distribution",
        "random, zipf:, pareto:, normal:, zoned:",
        "where random requests go",
        |o, v| {
            o.distribution = Distribution::parse(v).map_err(|e| e.to_string())?;
            Ok(())
        },
    ),
    flag("norandommap", "1 or 0", "a block may come again before all others came", |o, v| {
        o.norandommap = value::boolean(v)?;
        Ok(())
    }),
    row("randseed", "a number", "what random choices begin from", |o, v| {
        o.randseed = Some(value::int(v, o.prefixes)?);
        Ok(())
    }),
    also(
        &["allrandrepeat"],
        flag("randrepeat", "1 or 0", "random choices are the same in each run", |o, v| {
            o.randrepeat = value::boolean(v)?;
            Ok(())
        }),
    ),
    row(
        "verify",
        "a checksum",
        "what is read must be what was written; all bytes are compared",
        |o, v| {
            o.verify = Verification::parse(v)?;
            Ok(())
        },
    ),
    flag("do_verify", "1 or 0", "after a job has written, it reads that back", |o, v| {
        o.do_verify = value::boolean(v)?;
        Ok(())
    }),
    flag("zero_buffers", "1 or 0", "zeros are written", |o, v| {
        if value::boolean(v)? {
            o.buffers = Buffers::Zeros
        };
        Ok(())
    }),
    flag("refill_buffers", "1 or 0", "each write has new noise", |o, v| {
        if value::boolean(v)? {
            o.buffers = Buffers::Refilled
        };
        Ok(())
    }),
    flag("scramble_buffers", "1 or 0", "each write has a little new noise", |o, v| {
        o.buffers = if value::boolean(v)? { Buffers::Scrambled } else { Buffers::Same };
        Ok(())
    }),
    row("numjobs", "a number", "so many jobs of this kind", |o, v| {
        o.numjobs = value::within(v, 1, JOBS_MAX)?;
        Ok(())
    }),
    also(
        &["wait_for_previous"],
        flag("stonewall", "1 or 0", "it begins when the jobs before it have ended", |o, v| {
            o.stonewall = value::boolean(v)?;
            Ok(())
        }),
    ),
    flag("new_group", "1 or 0", "a new group of figures begins", |o, v| {
        o.new_group = value::boolean(v)?;
        Ok(())
    }),
    flag("group_reporting", "1 or 0", "the figures of a group are added up", |o, v| {
        o.group_reporting = value::boolean(v)?;
        Ok(())
    }),
    row("wait_for", "a job", "it begins when the job of this name has ended", |o, v| {
        o.wait_for = Some(text(v)?);
        Ok(())
    }),
    row(
        "percentile_list",
        "numbers",
        "percentiles that are reported, with : between them",
        |o, v| {
            o.percentiles = percentiles(v)?;
            Ok(())
        },
    ),
    flag("clat_percentiles", "1 or 0", "percentiles of the time from call to return", |o, v| {
        o.clat_percentiles = value::boolean(v)?;
        Ok(())
    }),
    flag("lat_percentiles", "1 or 0", "percentiles of the whole time", |o, v| {
        o.lat_percentiles = value::boolean(v)?;
        Ok(())
    }),
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

/// Options that are not taken, and what is to be said of them.
const NOT: &[(&str, &str)] = &[
    ("write_bw_log", "no logs are written; --output-format=json has the figures"),
    ("write_lat_log", "no logs are written; --output-format=json has the figures"),
    ("write_iops_log", "no logs are written; --output-format=json has the figures"),
    ("write_hist_log", "no logs are written; --output-format=json has the figures"),
    ("write_iolog", "steadfast trace record notes the calls of a program"),
    (
        "read_iolog",
        "steadfast trace import reads fio's logs, and trace replay makes their calls again",
    ),
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

fn seconds(text: &str) -> Result<Duration, String> {
    value::time(text, SECOND).map(Duration::from_nanos)
}

fn text(text: &str) -> Result<String, String> {
    match text.len() {
        0 => Err("it is empty".into()),
        1..=NAME_MAX if !text.contains('\0') => Ok(text.to_owned()),
        _ => Err(format!("it has a NUL, or more than {NAME_MAX} bytes")),
    }
}

/// Names with `:` between them; `\:` is a colon of a name.
fn names(given: &str) -> Result<Vec<String>, String> {
    let mut names = vec![String::new()];
    let mut chars = text(given)?.chars().collect::<Vec<_>>().into_iter().peekable();
    while let Some(c) = chars.next() {
        // OK to unwrap: there is always a last one.
        let last = names.last_mut().unwrap();
        match c {
            '\\' if chars.peek() == Some(&':') => last.extend(chars.next()),
            ':' => names.push(String::new()),
            c => last.push(c),
        }
    }
    names.retain(|name| !name.is_empty());
    if names.is_empty() { Err("it names nothing".into()) } else { Ok(names) }
}

fn percentiles(text: &str) -> Result<Vec<f64>, String> {
    let one = |part: &str| match part.parse::<f64>() {
        Ok(share) if share > 0.0 && share <= 100.0 => Ok(share),
        _ => Err(format!("'{part}' is no percentile: above 0, at most 100")),
    };
    let mut list = text.split(':').map(one).collect::<Result<Vec<f64>, _>>()?;
    if list.len() > PERCENTILES_MAX {
        return Err(format!("more than {PERCENTILES_MAX} percentiles"));
    }
    list.sort_by(f64::total_cmp);
    Ok(list)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_stands_once() {
        let mut seen = BTreeSet::new();
        let not = NOT.iter().map(|(name, _)| name);
        for name in
            ROWS.iter().flat_map(|row| [&row.name].into_iter().chain(row.aliases)).chain(not)
        {
            assert!(seen.insert(name), "{name}");
        }
    }

    #[test]
    fn a_name_may_have_a_colon() {
        assert_eq!(names("a:b\\:c:").unwrap(), ["a", "b:c"]);
        assert!(names(":").is_err() && names("").is_err());
        assert_eq!(percentiles("99.9:50").unwrap(), [50.0, 99.9]);
        assert!(percentiles("0").is_err() && percentiles(&["1"; 21].join(":")).is_err());
    }
}
