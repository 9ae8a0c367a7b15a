//! The options that are taken, and what each does with its value.

use std::time::Duration;

use super::shape::{
    BlockSizes, Buffers, FileOrder, FileSize, IoEngine, RatePacing, RequestMix, Verification,
    WriteSync,
};
use super::table::{OptionRow, also, flag, row};
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

/// All that have an effect.
pub(super) const TAKEN: &[OptionRow] = &[
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
            o.engine = IoEngine::parse(v)?;
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
            o.sync = WriteSync::parse(v)?;
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
];

fn seconds(text: &str) -> Result<Duration, String> {
    value::time(text, SECOND).map(Duration::from_nanos)
}

pub(super) fn text(text: &str) -> Result<String, String> {
    match text.len() {
        0 => Err("it is empty".into()),
        1..=NAME_MAX if !text.contains('\0') => Ok(text.to_owned()),
        _ => Err(format!("it has a NUL, or more than {NAME_MAX} bytes")),
    }
}

/// Names with `:` between them; `\:` is a colon of a name.
pub(super) fn names(given: &str) -> Result<Vec<String>, String> {
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
    use super::*;

    #[test]
    fn a_name_may_have_a_colon() {
        assert_eq!(names("a:b\\:c:").unwrap(), ["a", "b:c"]);
        assert!(names(":").is_err() && names("").is_err());
        assert_eq!(percentiles("99.9:50").unwrap(), [50.0, 99.9]);
        assert!(percentiles("0").is_err() && percentiles(&["1"; 21].join(":")).is_err());
    }
}
