//! Logs of fio (`write_iolog`), versions 2 and 3, as calls. Version 3 has times, whose unit has
//! changed between versions of fio.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::build::TraceBuild;
use crate::fio_log::{self, FioLogAction};
use crate::format::{CallFlag, CallOp, FileKind, TraceCall, name_text};

/// The one thread of a log.
const THREAD: u32 = 1;
const US: u64 = 1000;
const MS: u64 = 1_000_000;
/// Bytes of a name in a folder, at most.
const NAME_MAX: usize = 255;
/// Of names that are others in the trace so many are said.
const NAMED: usize = 3;

/// Names of files in logs, as the trace has them: all in one folder, wherever they were.
#[derive(Default)]
pub(super) struct LogNames {
    /// By the log's name.
    own: BTreeMap<String, String>,
    taken: HashSet<String>,
    /// So many have a number for a name.
    numbered: u64,
}

impl LogNames {
    fn of(&mut self, name: &str) -> String {
        if let Some(known) = self.own.get(name) {
            return known.clone();
        }
        let mut own = name.replace('/', "_");
        let fits = own.len() <= NAME_MAX && !own.contains('\0') && own != "." && own != "..";
        let mut is_own = fits && self.taken.insert(own.clone());
        while !is_own {
            self.numbered += 1;
            own = format!("file_{}", self.numbered);
            is_own = self.taken.insert(own.clone());
        }
        self.own.insert(name.to_owned(), own.clone());
        own
    }

    /// Which files are called otherwise.
    pub fn note(&self) -> Option<String> {
        let others: Vec<String> = self
            .own
            .iter()
            .filter(|(name, own)| name != own)
            .map(|(name, own)| format!("{name} is {own}"))
            .collect();
        let more = match others.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let named = others.get(..NAMED.min(others.len()))?.join(", ");
        (!others.is_empty()).then(|| format!("all files are in one folder: {named}{more}"))
    }
}

/// A file of a log that was added.
struct LogFile {
    file: u64,
    /// While it is open.
    handle: Option<u64>,
}

/// Reads all lines; what is to be said of it. `unit`: the version, what a time is in ns if it was
/// said, and how long the log was written. What fio refuses is refused.
pub(super) fn read(
    lines: &[String],
    (version, unit, written): (u32, Option<u64>, Option<f64>),
    names: &mut LogNames,
    build: &mut TraceBuild,
) -> Result<Vec<String>, String> {
    if !matches!(version, 2 | 3) {
        return Err(format!("is a log of version {version}; 2 and 3 are read"));
    }
    let mut notes = Vec::new();
    let unit = match (version, unit) {
        (2, Some(_)) => return Err("a log of version 2 has no times, and so no unit".into()),
        (2, None) => {
            notes.push("a log of version 2 has no times: the calls follow each other".to_owned());
            0
        }
        (_, Some(unit)) => unit,
        (_, None) => {
            let unit = unit_of(lines, written)?;
            let word = if unit == MS { "ms" } else { "us" };
            notes.push(format!("times were taken as {word}, from how long the log was written"));
            unit
        }
    };
    build.thread(THREAD, (THREAD, None));
    let mut files: HashMap<&str, LogFile> = HashMap::new();
    let (mut time, mut trims) = (0, 0u64);
    // The first line is the log's version.
    build.next_line();
    for text in &lines[1..] {
        let number = build.next_line();
        if text.trim().is_empty() {
            continue;
        }
        let line = match fio_log::line(text, version) {
            Ok(line) => line,
            Err(why) => {
                build.leave_out(why.to_string());
                continue;
            }
        };
        let refused = |what: &str| format!("line {number}: {what}, which fio refuses, too");
        time = line.time.map_or(time, |at| at.saturating_mul(unit).max(time));
        let mut call = TraceCall::new(CallOp::Open, THREAD, time, time);
        let (op, place) = match line.action {
            FioLogAction::Add => {
                let own = names.of(line.file);
                let file = build.file(&[name_text(own.as_bytes())], FileKind::Regular);
                files.entry(line.file).or_insert(LogFile { file, handle: None });
                continue;
            }
            FioLogAction::Wait(until) => {
                time = time.max(until.saturating_mul(MS));
                continue;
            }
            FioLogAction::Open => (CallOp::Open, None),
            FioLogAction::Close => (CallOp::Close, None),
            FioLogAction::Read(at, len) => (CallOp::Read, Some((at, len))),
            FioLogAction::Write(at, len) => (CallOp::Write, Some((at, len))),
            FioLogAction::Trim(at, len) => (CallOp::Punch, Some((at, len))),
            FioLogAction::Sync => (CallOp::Fsync, None),
            FioLogAction::DataSync => (CallOp::Fdatasync, None),
        };
        let known = files.get_mut(line.file);
        let known =
            known.ok_or_else(|| refused(&format!("'{}' was not added before", line.file)))?;
        match (op, known.handle) {
            (CallOp::Open, None) => known.handle = Some(build.new_handle()),
            (CallOp::Open, Some(_)) => {
                return Err(refused(&format!("'{}' is open already", line.file)));
            }
            (CallOp::Close, None) => {
                build.leave_out("closed, and not open");
                continue;
            }
            (_, None) => return Err(refused(&format!("'{}' is not open", line.file))),
            _ => {}
        }
        (call.op, call.file, call.handle) = (op, Some(known.file), known.handle);
        match op {
            CallOp::Open => call.flags = vec![CallFlag::Read, CallFlag::Write],
            CallOp::Close => known.handle = None,
            CallOp::Punch => trims += 1,
            _ => {}
        }
        if let Some((offset, len)) = place {
            if len == 0 {
                return Err(refused("a request of 0 bytes"));
            }
            (call.offset, call.len) = (offset, len);
            if op != CallOp::Punch {
                call.result = i64::try_from(len).unwrap_or(0);
            }
            // What is read was there; what is written may have been.
            build.had(known.file, offset.saturating_add(len));
        }
        build.add(call);
    }
    if trims > 0 {
        notes.push(format!(
            "trims ({trims}) are holes punched in the files (fallocate(2)): a file has no trim"
        ));
    }
    Ok(notes)
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

    fn imported(text: &str) -> Result<(TraceBuild, LogNames, Vec<String>), String> {
        let mut build = TraceBuild::default();
        build.at = Some((0, 0));
        let mut names = LogNames::default();
        let notes = read(&lines(text), (2, None, None), &mut names, &mut build)?;
        Ok((build, names, notes))
    }

    #[test]
    fn lines_become_calls() {
        let text = "fio version 2 iolog\n/d/f add\n/d/f open\n/d/f read 4096 512\n/d/f wait 7 0\n\
                    /d/f write 0 512\n/d/f trim 0 512\n/d/f sync 0 0\n/d/f odd 0 0\n\n/d/f close\n\
                    /d/f close";
        let (build, names, notes) = imported(text).unwrap();
        let ops: Vec<(CallOp, u64)> =
            build.calls.iter().map(|call| (call.op, call.start)).collect();
        let wait = 7 * MS;
        assert_eq!(
            ops,
            [
                (CallOp::Open, 0),
                (CallOp::Read, 0),
                (CallOp::Write, wait),
                (CallOp::Punch, wait),
                (CallOp::Fsync, wait),
                (CallOp::Close, wait)
            ]
        );
        let first: Vec<_> = build.left_out.values().map(|of| (of.lines, of.first)).collect();
        assert_eq!(first, [(1, Some((0, 9))), (1, Some((0, 12)))]);
        assert!(notes.len() == 2 && notes[1].starts_with("trims (1) are holes"), "{notes:?}");
        assert_eq!(names.note().unwrap(), "all files are in one folder: /d/f is _d_f");
    }

    #[test]
    fn no_name_leaves_the_folder_and_none_stands_for_two() {
        let mut names = LogNames::default();
        let all = ["f", "_d_f", "/d/f", "..", "../f", ".", &"n".repeat(300), "file_1"];
        let found = all.map(|name| names.of(name));
        assert_eq!(found[..6], ["f", "_d_f", "file_1", "file_2", ".._f", "file_3"]);
        assert_eq!(found[6..], ["file_4", "file_5"]);
        assert!(names.note().unwrap().ends_with(", and 3 more"), "{:?}", names.note());
    }

    #[test]
    fn what_fio_refuses_is_refused_with_its_line() {
        let refused = |more: &str| {
            imported(&format!("fio version 2 iolog\nf add\n{more}")).err().unwrap_or_default()
        };
        for (more, what) in [
            ("g read 0 1", "line 3: 'g' was not added before"),
            ("f read 0 1", "line 3: 'f' is not open"),
            ("f open\nf open", "line 4: 'f' is open already"),
            ("f open\nf write 4096 0", "line 4: a request of 0 bytes"),
        ] {
            assert_eq!(refused(more), format!("{what}, which fio refuses, too"));
        }
        let build = &mut TraceBuild::default();
        let four = lines("fio version 4 iolog");
        assert!(read(&four, (4, None, None), &mut LogNames::default(), build).is_err());
    }
}
