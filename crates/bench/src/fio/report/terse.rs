//! fio's terse form, version 3: one line an entry, fields with `;` between them.

use std::fmt::Write;

use super::super::results::{FioEntry, FioResults};
use super::super::stats::{KindFigures, Moments};
use super::{Shares, VERSION, processor};

/// Places for percentiles.
const PERCENTILES: usize = 20;

/// A line an entry. Fields of disks, which fio has where it knows the disks, are not there.
pub fn terse(results: &FioResults) -> String {
    results.entries.iter().map(|entry| line(entry) + "\n").collect()
}

fn line(entry: &FioEntry) -> String {
    let (o, figures) = (&entry.job.options, &entry.figures);
    let error = entry.fault.as_ref().map_or(0, |fault| fault.errno);
    // A `;` of the name would be the end of a field.
    let name = o.name.replace(';', ",");
    let mut line = format!("3;{VERSION};{name};{};{error}", entry.job.group);
    figures.kinds.iter().for_each(|kind| add_kind(&mut line, kind, entry));
    let (user, system) = processor(entry);
    let tasks = &figures.tasks;
    add(&mut line, format_args!("{user:.6}%;{system:.6}%"));
    add(
        &mut line,
        format_args!("{};{};{}", tasks.switches, tasks.major_faults, tasks.minor_faults),
    );
    let shares = Shares::of(figures);
    shares.depths.iter().for_each(|share| add(&mut line, format_args!("{share:.1}%")));
    // What took less than a microsecond is in no field.
    let times = shares.us.iter().chain(&shares.ms);
    times.for_each(|share| add(&mut line, format_args!("{share:.2}%")));
    if let Some(text) = &o.description {
        add(&mut line, format_args!("{}", text.replace(';', ",")));
    }
    line
}

fn add(line: &mut String, field: std::fmt::Arguments<'_>) {
    // OK to ignore: writing to a string does not fail.
    let _ = write!(line, ";{field}");
}

fn add_kind(line: &mut String, kind: &KindFigures, entry: &FioEntry) {
    let bytes_per_s = kind.bytes_per_s() as u64;
    add(line, format_args!("{};{}", kind.bytes >> 10, bytes_per_s >> 10));
    let runtime_ms = kind.runtime_ns.div_ceil(1_000_000);
    add(line, format_args!("{};{runtime_ms}", kind.requests_per_s() as u64));
    add_times(line, &kind.slat);
    add_times(line, &kind.clat.moments);
    let list = &entry.job.options.percentiles;
    for at in 0..PERCENTILES {
        match list.get(at).filter(|_| entry.job.options.clat_percentiles) {
            Some(p) => add(line, format_args!("{p:.6}%={}", kind.clat.percentile(*p) / 1000)),
            None => add(line, format_args!("0%=0")),
        }
    }
    add_times(line, &kind.lat.moments);
    let all: f64 = entry.figures.kinds.iter().map(KindFigures::bytes_per_s).sum();
    let share = if all > 0.0 { kind.bw.mean * 1024.0 / all * 100.0 } else { 0.0 };
    let (bw, share) = (&kind.bw, share.min(100.0));
    add(line, format_args!("{};{};{share:.6}%", bw.min, bw.max));
    add(line, format_args!("{:.6};{:.6}", bw.mean, bw.deviation()));
}

/// In microseconds.
fn add_times(line: &mut String, of: &Moments) {
    add(line, format_args!("{};{}", of.min / 1000, of.max / 1000));
    add(line, format_args!("{:.6};{:.6}", of.mean / 1000.0, of.deviation() / 1000.0));
}
