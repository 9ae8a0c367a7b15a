//! The text of blkparse(1): requests of a block device, each from when it was queued (`Q`; `D`,
//! where that is not there) to its completion (`C`).

use std::collections::HashMap;

use super::build::TraceBuild;
use crate::format::{CallFlag, CallOp, FileKind, TraceCall};

/// Bytes of a sector, whatever the device has.
const SECTOR: u64 = 512;
/// The name of the device's file in the trace.
const DEVICE: &str = "device";

struct BlockEvent<'l> {
    ns: u64,
    process: u32,
    action: &'l str,
    rwbs: &'l str,
    sector: u64,
    sectors: u64,
}

/// Whether a line is an event.
pub(super) fn is_line(line: &str) -> bool {
    event(line).is_some()
}

fn event(line: &str) -> Option<BlockEvent<'_>> {
    let mut words = line.split_whitespace();
    let (major, minor) = words.next()?.split_once(',')?;
    major.parse::<u32>().ok()?;
    minor.parse::<u32>().ok()?;
    words.next()?.parse::<u32>().ok()?;
    words.next()?.parse::<u64>().ok()?;
    let (seconds, part) = words.next()?.split_once('.')?;
    if part.len() != 9 {
        return None;
    }
    let ns = seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)? + part.parse::<u64>().ok()?;
    let process = words.next()?.parse().ok()?;
    let (action, rwbs) = (words.next()?, words.next()?);
    let sector = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let sectors = words.nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    Some(BlockEvent { ns, process, action, rwbs, sector, sectors })
}

/// Reads all lines.
pub(super) fn read(lines: &[String], build: &mut TraceBuild) {
    let (file, handle) = (build.file(&[DEVICE.to_owned()], FileKind::Regular), build.new_handle());
    // Requests that are under way: when they began, by whom and in which line, by what they are.
    let mut begun: HashMap<(u64, u64), (u64, u32, u64)> = HashMap::new();
    let mut is_open = false;
    for line in lines {
        let number = build.next_line();
        let Some(event) = event(line) else {
            build.leave_out("no event");
            continue;
        };
        let request = (event.sector, event.sectors);
        match event.action {
            "Q" => drop(begun.insert(request, (event.ns, event.process, number))),
            "D" => drop(begun.entry(request).or_insert((event.ns, event.process, number))),
            "C" => {
                let Some((start, process, _)) = begun.remove(&request) else {
                    build.leave_out("completed, and its beginning is not there");
                    continue;
                };
                build.thread(process, (process, None));
                if !is_open {
                    is_open = true;
                    let open = TraceCall {
                        flags: vec![CallFlag::Read, CallFlag::Write, CallFlag::Direct],
                        ..TraceCall::new(CallOp::Open, process, start, start)
                    };
                    build.add(TraceCall { file: Some(file), handle: Some(handle), ..open });
                }
                let Some(op) = op_of(event.rwbs, event.sectors) else {
                    build.leave_out(format!("`{}`, which is not known", event.rwbs));
                    continue;
                };
                let mut call = TraceCall::new(op, process, start, event.ns.max(start));
                (call.file, call.handle) = (Some(file), Some(handle));
                (call.offset, call.len) =
                    (event.sector.saturating_mul(SECTOR), event.sectors.saturating_mul(SECTOR));
                match op {
                    CallOp::Read | CallOp::Write => {
                        call.result = i64::try_from(call.len).unwrap_or(0);
                        // FUA: after the kind of request.
                        if event.rwbs.trim_start_matches('F').contains('F') {
                            call.flags.push(CallFlag::Dsync);
                        }
                        build.had(file, call.offset.saturating_add(call.len));
                    }
                    CallOp::Punch => build.had(file, call.offset.saturating_add(call.len)),
                    _ => (call.offset, call.len) = (0, 0),
                }
                build.add(call);
            }
            other => build.leave_out(format!("action {other}")),
        }
    }
    build.leave_out_lines(begun.into_values().map(|(.., line)| line), "not completed");
}

fn op_of(rwbs: &str, sectors: u64) -> Option<CallOp> {
    // A flush comes before the kind of request, or alone.
    let kind = rwbs.trim_start_matches('F');
    match kind.chars().next() {
        Some('R') => Some(CallOp::Read),
        Some('W') if sectors > 0 => Some(CallOp::Write),
        Some('D') => Some(CallOp::Punch),
        Some('W') | None => rwbs.contains('F').then_some(CallOp::Fdatasync),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::build::LeftOutPlaces;
    use super::*;

    #[test]
    fn requests_are_from_queue_to_completion() {
        let text = "\
  8,0    1        1     0.000000000  4321  Q  WS 2048 + 8 [fio]
  8,0    1        2     0.000001000  4321  D  WS 2048 + 8 [fio]
  8,0    0        3     0.000151000     0  C  WS 2048 + 8 [0]
  8,0    1        4     0.000200000  4321  Q FWFS 4096 + 8 [fio]
  8,0    0        5     0.000400000     0  C FWFS 4096 + 8 [0]
  8,0    1        6     0.000500000  4321  Q   R 0 + 16 [fio]
CPU0 (8,0):
 Reads Queued:           1,        8KiB";
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut build = TraceBuild::default();
        build.at = Some((0, 0));
        read(&lines, &mut build);
        let found: Vec<(CallOp, u64, u64, u64)> =
            build.calls.iter().map(|c| (c.op, c.offset, c.start, c.end)).collect();
        assert_eq!(
            found,
            [
                (CallOp::Open, 0, 0, 0),
                (CallOp::Write, 1 << 20, 0, 151_000),
                (CallOp::Write, 2 << 20, 200_000, 400_000)
            ]
        );
        assert_eq!(build.calls[2].flags, [CallFlag::Dsync]);
        let places = |lines, first| LeftOutPlaces { lines, first: Some((0, first)) };
        let expected = [("no event", places(2, 7)), ("not completed", places(1, 6))];
        assert_eq!(build.left_out, expected.map(|(why, places)| (why.to_owned(), places)).into());
    }
}
