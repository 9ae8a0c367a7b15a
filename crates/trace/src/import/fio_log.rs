//! Logs of fio (`write_iolog`), versions 2 and 3, as calls. Version 3 has times, whose unit has
//! changed between versions of fio.

use std::collections::HashMap;

use super::build::TraceBuild;
use crate::fio_log::{self, FioLogAction};
use crate::format::{CallFlag, CallOp, FileKind, TraceCall};

/// The one thread of a log.
const THREAD: u32 = 1;
const US: u64 = 1000;
const MS: u64 = 1_000_000;

/// Reads all lines; what is to be said of it. `unit`: the version, what a time is in ns if it was
/// said, and how long the log was written.
pub(super) fn read(
    lines: &[String],
    (version, unit, written): (u32, Option<u64>, Option<f64>),
    build: &mut TraceBuild,
) -> Result<Option<String>, String> {
    if !matches!(version, 2 | 3) {
        return Err(format!("is a log of version {version}; 2 and 3 are read"));
    }
    let mut note = None;
    let unit = match (version, unit) {
        (2, Some(_)) => return Err("a log of version 2 has no times, and so no unit".into()),
        (2, None) => {
            note = Some("a log of version 2 has no times: the calls follow each other".to_owned());
            0
        }
        (_, Some(unit)) => unit,
        (_, None) => {
            let unit = unit_of(lines, written)?;
            let word = if unit == MS { "ms" } else { "us" };
            note = Some(format!("times were taken as {word}, from how long the log was written"));
            unit
        }
    };
    build.thread(THREAD, (THREAD, None));
    // File, handle.
    let mut open: HashMap<String, (u64, u64)> = HashMap::new();
    let mut time = 0;
    for line in &lines[1..] {
        let line = match fio_log::line(line, version) {
            Ok(line) => line,
            Err(why) => {
                build.leave_out(why.to_string());
                continue;
            }
        };
        time = line.time.map_or(time, |at| at.saturating_mul(unit).max(time));
        let mut call = TraceCall::new(CallOp::Open, THREAD, time, time);
        let path = line.file.replace(['/', '%'], "_");
        let (op, place) = match line.action {
            FioLogAction::Add => {
                build.file(&path, FileKind::Regular);
                continue;
            }
            FioLogAction::Wait(until) => {
                time = time.max(until.saturating_mul(MS));
                continue;
            }
            FioLogAction::Open => {
                let known = (build.file(&path, FileKind::Regular), build.new_handle());
                open.insert(line.file.to_owned(), known);
                call.flags = vec![CallFlag::Read, CallFlag::Write];
                (call.file, call.handle) = (Some(known.0), Some(known.1));
                build.calls.push(call);
                continue;
            }
            FioLogAction::Read(at, len) => (CallOp::Read, Some((at, len))),
            FioLogAction::Write(at, len) => (CallOp::Write, Some((at, len))),
            FioLogAction::Trim(at, len) => (CallOp::Punch, Some((at, len))),
            FioLogAction::Sync => (CallOp::Fsync, None),
            FioLogAction::DataSync => (CallOp::Fdatasync, None),
            FioLogAction::Close => (CallOp::Close, None),
        };
        let Some((file, handle)) = open.get(line.file).copied() else {
            build.leave_out("of a file that is not open");
            continue;
        };
        (call.op, call.file, call.handle) = (op, Some(file), Some(handle));
        if let Some((offset, len)) = place {
            (call.offset, call.len) = (offset, len);
            if op != CallOp::Punch {
                call.result = i64::try_from(len).unwrap_or(0);
            }
            // What is read was there; what is written may have been.
            build.had(file, offset.saturating_add(len));
        }
        build.calls.push(call);
    }
    Ok(note)
}

/// What a time is, from how long the file was written: the unit whose span is nearer.
fn unit_of(lines: &[String], written: Option<f64>) -> Result<u64, String> {
    let times = lines[1..].iter().filter_map(|l| l.split_whitespace().next()?.parse::<u64>().ok());
    let span = times.max().unwrap_or(0) as f64;
    let cannot = "it cannot be told whether its times are ms or us: say it (--unit ms, --unit us)";
    let written = written.filter(|s| *s > 0.0 && span > 0.0).ok_or(cannot)?;
    // One of the two is a thousand times off: between them is no doubt.
    let off = |unit: f64| (span * unit / written).log10().abs();
    let (ms, us) = (off(1e-3), off(1e-6));
    if (ms - us).abs() < 1.0 {
        return Err(cannot.into());
    }
    Ok(if ms < us { MS } else { US })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_unit_is_found_or_asked_for() {
        let log = lines("fio version 3 iolog\n0 f add\n5000000 f close");
        assert_eq!(unit_of(&log, Some(5.2)), Ok(US));
        assert_eq!(unit_of(&log, Some(5100.0)), Ok(MS));
        assert!(unit_of(&log, Some(160.0)).is_err() && unit_of(&log, None).is_err());
    }

    #[test]
    fn both_versions_are_read() {
        let mut build = TraceBuild::default();
        let text = "fio version 2 iolog\n/d/f add\n/d/f open\n/d/f read 4096 512\n/d/f wait 7 0\n\
                    /d/f write 0 512\n/d/f sync 0 0\n/d/f odd 0 0\n/d/g read 0 1\n/d/f close";
        assert!(read(&lines(text), (2, None, None), &mut build).unwrap().is_some());
        let ops: Vec<(CallOp, u64)> =
            build.calls.iter().map(|call| (call.op, call.start)).collect();
        let wait = 7 * MS;
        assert_eq!(
            ops,
            [
                (CallOp::Open, 0),
                (CallOp::Read, 0),
                (CallOp::Write, wait),
                (CallOp::Fsync, wait),
                (CallOp::Close, wait)
            ]
        );
        assert_eq!(build.left_out.values().sum::<u64>(), 2);
        assert!(read(&lines("fio version 4 iolog"), (4, None, None), &mut build).is_err());
    }
}
