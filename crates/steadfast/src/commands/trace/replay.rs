//! `steadfast trace replay`.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use serde_json::json;
use steadfast_trace::format::TraceEnd;
use steadfast_trace::replay::{
    self, Differences, ReplayFigures, ReplayPace, TraceFile, TraceSource,
};
use steadfast_vfs::{FileSystem, HostFs};

use super::cli::TraceReplay;
use super::replay_folder::ReplayFolder;
use super::wrong;
use crate::terminal::counted;
use crate::{CommandEnd, document};

/// Of what came out otherwise so many kinds are named.
const KINDS: usize = 10;

/// Replays, and says how long it took and what came out otherwise.
pub fn run(args: &TraceReplay, out: &mut dyn Write) -> Result<CommandEnd> {
    let source = TraceFile { path: args.file.clone(), partial: args.partial };
    let (found, end) = in_folder(source, &args.folder, args.pace())?;
    let (seconds, recorded) = (found.elapsed.as_secs_f64(), end.at as f64 / 1e9);
    let syncs = found.syncs();
    let ms = |share: f64| syncs.quantile(share).map(|took| took.as_secs_f64() * 1e3);
    let differences = &found.differences;
    if args.json {
        let body = json!({ "calls": found.calls, "seconds": seconds, "recorded_seconds": recorded,
            "in_calls_seconds": found.in_calls().as_secs_f64(), "bytes_read": found.bytes.0,
            "bytes_written": found.bytes.1, "syncs": syncs.count(), "sync_ms_p50": ms(0.5),
            "differences": differences.calls, "kinds_of_differences": differences.kinds,
            "peak_memory_bytes": peak_memory() });
        document::print(out, "steadfast-trace-replay", 1, body)?;
    } else {
        writeln!(
            out,
            "{} in {seconds:.3} s; recorded in {recorded:.3} s",
            counted(found.calls, "call")
        )?;
        if let Some(median) = ms(0.5) {
            let count = counted(syncs.count(), "sync");
            writeln!(out, "{count}: half of them took at most {median:.3} ms")?;
        }
        said(differences, out)?;
    }
    Ok(if differences.calls > 0 { CommandEnd::Problem } else { CommandEnd::Good })
}

/// What came out otherwise, in lines.
pub fn said(differences: &Differences, out: &mut dyn Write) -> Result<()> {
    if differences.calls == 0 {
        writeln!(out, "all calls returned what was recorded")?;
        return Ok(());
    }
    writeln!(
        out,
        "{} returned something else than was recorded:",
        counted(differences.calls, "call")
    )?;
    let mut kinds: Vec<_> = differences.kinds.iter().collect();
    kinds.sort_by_key(|(_, (count, first))| (std::cmp::Reverse(*count), *first));
    for (what, (count, first)) in kinds.iter().take(KINDS) {
        writeln!(out, "  {count} x {what} (the first is call {first})")?;
    }
    Ok(())
}

/// Replays in a folder of its own below one of this machine, which is removed again, also if a
/// signal ends the process.
pub fn in_folder(
    source: TraceFile,
    below: &Path,
    pace: ReplayPace,
) -> Result<(ReplayFigures, TraceEnd)> {
    let file = source.path.clone();
    let trace: Arc<dyn TraceSource> = Arc::new(source);
    trace.read().map_err(wrong(&file))?;
    let folder = ReplayFolder::below(below)?;
    let fs: Arc<dyn FileSystem> = Arc::new(HostFs::open(folder.path())?);
    let ran = replay::run(&trace, &fs, (pace, folder.halt()), || Ok(()));
    drop(fs);
    folder.close()?;
    Ok(ran.map_err(wrong(&file))?)
}

/// The most memory that this process has had, in bytes, as far as /proc says.
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}
