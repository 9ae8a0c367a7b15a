//! The options of a job that replays a log.

use super::JobOptions;
use super::table::{OptionRow, flag, row};
use super::taken::{names, text};
use super::value;

/// In percent: a hundred thousand times as fast.
const TIME_SCALE_MAX: u64 = 10_000_000;
/// Bytes that offsets are made multiples of: at least, as in fio, and at most.
const ALIGN: (u64, u64) = (512, 1 << 30);

/// A log, and what is made of it.
#[derive(Debug, Clone, PartialEq, Eq, smart_default::SmartDefault)]
pub struct ReplayOptions {
    /// The log's file; `None`: the job draws its requests.
    pub log: Option<String>,
    /// Its times are not kept.
    pub no_stall: bool,
    /// The pace, in percent of the log's.
    #[default = 100]
    pub time_scale: u64,
    /// Offsets are divided by this; 0: they are not.
    pub scale: u64,
    /// Offsets are made multiples of this; 0: they are not.
    pub align: u64,
    /// Of all files this is used instead.
    pub redirect: Option<String>,
    /// Requests that are left out.
    pub skip: SkipKinds,
}

/// Kinds of requests that a replay leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SkipKinds {
    /// Reads.
    pub reads: bool,
    /// Writes.
    pub writes: bool,
    /// Trims.
    pub trims: bool,
    /// fsync and fdatasync.
    pub syncs: bool,
}

/// Those that have an effect.
pub(super) const REPLAY: &[OptionRow] = &[
    row("read_iolog", "a file", "requests are those of this log of fio's", |o, v| {
        o.replay.log = Some(log(v)?);
        Ok(())
    }),
    flag("replay_no_stall", "1 or 0", "the times of the log are not kept", |o, v| {
        o.replay.no_stall = value::boolean(v)?;
        Ok(())
    }),
    row("replay_time_scale", "percent", "the pace of a replay, 100 is the log's", |o, v| {
        o.replay.time_scale = value::within(v, 1, TIME_SCALE_MAX)?;
        Ok(())
    }),
    row("replay_scale", "a number", "the offsets of the log are divided by this", |o, v| {
        o.replay.scale = value::int(v, o.prefixes)?;
        Ok(())
    }),
    row("replay_align", "a size", "the offsets of the log are made multiples of this", align),
    row("replay_redirect", "a file", "used for all files of the log", |o, v| {
        o.replay.redirect = Some(text(v)?);
        Ok(())
    }),
    row(
        "replay_skip",
        "read, write, trim, sync",
        "requests of the log that are left out, with , between them",
        |o, v| {
            o.replay.skip = skip(v)?;
            Ok(())
        },
    ),
];

fn log(given: &str) -> Result<String, String> {
    let mut logs = names(given)?;
    match logs.len() {
        1 if given == "-" => Err("a log is a file here, and not the standard input".into()),
        1 => Ok(logs.remove(0)),
        _ => {
            let what = "several logs are not supported; each can have a section, and a colon of a \
                        name is written \\:";
            Err(format!("'{given}': {what}"))
        }
    }
}

fn align(o: &mut JobOptions, given: &str) -> Result<(), String> {
    let (least, most) = ALIGN;
    let bytes = value::int(given, o.prefixes)?;
    if !bytes.is_power_of_two() || !(least..=most).contains(&bytes) {
        return Err(format!("'{given}' is no power of 2 from {least} to {most}"));
    }
    o.replay.align = bytes;
    Ok(())
}

fn skip(given: &str) -> Result<SkipKinds, String> {
    let mut skip = SkipKinds::default();
    for word in given.split(',').map(str::trim) {
        match word {
            "read" => skip.reads = true,
            "write" => skip.writes = true,
            "trim" => skip.trims = true,
            "sync" => skip.syncs = true,
            _ => return Err(format!("'{word}' is not one of read, write, trim, sync")),
        }
    }
    Ok(skip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_replay() {
        assert_eq!(log("a\\:b"), Ok("a:b".into()));
        assert!(log("a:b").unwrap_err().contains("several logs") && log("-").is_err());
        let some = SkipKinds { reads: true, syncs: true, ..SkipKinds::default() };
        assert_eq!(skip("read, sync"), Ok(some));
        assert!(skip("datasync").is_err());
        let mut o = JobOptions::default();
        assert!(align(&mut o, "4k").is_ok() && o.replay.align == 4096);
        assert!(align(&mut o, "3000").is_err() && align(&mut o, "256").is_err());
    }
}
