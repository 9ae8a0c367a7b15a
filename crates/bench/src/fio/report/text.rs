//! fio's text for people.

use std::fmt::Write;

use super::super::options::{BlockSizes, IoEngine, RequestKind};
use super::super::plan::FioPlan;
use super::super::results::{FioEntry, FioResults, GroupFigures};
use super::super::stats::{CallTimes, KindFigures, Moments};
use super::numbers::{Prefixes, shown};
use super::{RunDate, Shares, VERSION, processor};

/// Units of time, and their nanoseconds.
const UNITS: [(&str, u64); 3] = [("nsec", 1), ("usec", 1000), ("msec", 1_000_000)];

/// What is printed before the run: the jobs, and how many there are.
pub fn head(plan: &FioPlan) -> String {
    let mut text = String::new();
    for job in plan.jobs.iter().filter(|job| job.clone == 0) {
        let o = &job.options;
        let sizes = |sizes: &BlockSizes| format!("{}B-{}B", sizes.least, sizes.most);
        let [reads, writes] = o.sizes.each_ref().map(sizes);
        let _ = writeln!(
            text,
            "{}: (g={}): rw={}, bs=(R) {reads}, (W) {writes}, ioengine={}, iodepth={}",
            o.name,
            job.group,
            o.mix.name(),
            o.engine_name,
            job.depth()
        );
        if o.numjobs > 1 {
            text += "...\n";
        }
    }
    let jobs = plan.jobs.len();
    let plural = if jobs == 1 { "" } else { "es" };
    let _ = writeln!(text, "{VERSION}\nStarting {jobs} process{plural}");
    text
}

/// What is printed after it.
pub fn text(results: &FioResults, date: &RunDate) -> String {
    let mut text = String::new();
    results.entries.iter().for_each(|entry| one(&mut text, entry, date));
    results.groups.iter().for_each(|group| of_group(&mut text, group));
    text
}

/// Adds a line; writing to a string does not fail.
macro_rules! line {
    ($text:expr, $($form:tt)+) => {{
        let _ = writeln!($text, $($form)+);
    }};
}

fn one(text: &mut String, entry: &FioEntry, date: &RunDate) {
    let (o, figures) = (&entry.job.options, &entry.figures);
    let error = entry.fault.as_ref().map_or(0, |fault| fault.errno);
    let (group, jobs) = (entry.job.group, entry.jobs);
    line!(text, "\n{}: (groupid={group}, jobs={jobs}): err={error:2}: {}", o.name, date.text);
    if let Some(about) = &o.description {
        line!(text, "  Description  : [{about}]");
    }
    for kind in RequestKind::ALL {
        let of = &figures.kinds[kind as usize];
        if of.requests > 0 {
            of_kind(text, kind, of, entry);
        }
    }
    steps(text, entry);
    if figures.syncs.moments.count > 0 {
        line!(text, "  fsync/fdatasync/sync_file_range:");
        times(text, "  sync", &figures.syncs.moments);
        percentiles(text, "sync", &figures.syncs, entry);
    }
    let (user, system) = processor(entry);
    let tasks = &figures.tasks;
    line!(
        text,
        "  cpu          : usr={user:.2}%, sys={system:.2}%, ctx={}, majf={}, minf={}",
        tasks.switches,
        tasks.major_faults,
        tasks.minor_faults
    );
    let names = ["1", "2", "4", "8", "16", "32", ">=64"];
    let depths = names.iter().zip(Shares::of(figures).depths);
    let depths: Vec<String> = depths.map(|(name, share)| format!("{name}={share:.1}%")).collect();
    line!(text, "  IO depths    : {}", depths.join(", "));
    let [reads, writes] = &figures.kinds;
    line!(
        text,
        "     issued rwts: total={},{},0,{} short={},{},0,0 dropped=0,0,0,0",
        reads.requests,
        writes.requests,
        figures.syncs.moments.count,
        reads.short,
        writes.short
    );
    if let Some(fault) = &entry.fault {
        line!(text, "     error      : {}", fault.what);
    }
}

fn of_kind(text: &mut String, kind: RequestKind, of: &KindFigures, entry: &FioEntry) {
    let o = &entry.job.options;
    let per_s = of.bytes_per_s();
    line!(
        text,
        "  {:>5}: IOPS={}, BW={} ({})({}/{}msec)",
        kind.name(),
        shown(of.requests_per_s(), Prefixes::Decimal, ""),
        shown(per_s, Prefixes::Binary, "B/s"),
        shown(per_s, Prefixes::Decimal, "B/s"),
        shown(of.bytes as f64, Prefixes::Binary, "B"),
        of.runtime_ns.div_ceil(1_000_000)
    );
    if o.engine == IoEngine::Tasks {
        times(text, "  slat", &of.slat);
    }
    times(text, "  clat", &of.clat.moments);
    times(text, "   lat", &of.lat.moments);
    if o.clat_percentiles {
        percentiles(text, "clat", &of.clat, entry);
    }
    if o.lat_percentiles {
        percentiles(text, " lat", &of.lat, entry);
    }
    if of.bw.count > 0 {
        rates(text, "bw (KiB/s)", &of.bw);
        rates(text, "iops", &of.iops);
    }
}

/// As fio chooses it: a larger one where neither end would have few digits, or the deviation.
fn unit_of(min: u64, max: u64, deviation: f64) -> (&'static str, u64) {
    let fits = |ns: u64| min > 2 * ns && max > 99_999 * (ns / 1000).max(1) && deviation > ns as f64;
    let larger = UNITS[1..].iter().rev().find(|(_, ns)| fits(*ns));
    *larger.unwrap_or(&UNITS[0])
}

fn times(text: &mut String, what: &str, of: &Moments) {
    let (unit, ns) = unit_of(of.min, of.max, of.deviation());
    let scaled = |value: f64| value / ns as f64;
    line!(
        text,
        "  {what} ({unit}): min={}, max={}, avg={:.2}, stdev={:.2}",
        of.min / ns,
        shown((of.max / ns) as f64, Prefixes::Decimal, ""),
        scaled(of.mean),
        scaled(of.deviation())
    );
}

fn percentiles(text: &mut String, what: &str, of: &CallTimes, entry: &FioEntry) {
    let list = &entry.job.options.percentiles;
    let end = |percent: Option<&f64>| percent.map_or(0, |percent| of.percentile(*percent));
    let (unit, ns) = unit_of(end(list.first()), end(list.last()), f64::MAX);
    line!(text, "    {what} percentiles ({unit}):");
    for (at, row) in list.chunks(4).enumerate() {
        let cells: Vec<String> =
            row.iter().map(|p| format!("{p:5.2}th=[{:5}]", of.percentile(*p) / ns)).collect();
        let end = if at * 4 + row.len() < list.len() { "," } else { "" };
        line!(text, "     | {}{end}", cells.join(", "));
    }
}

fn rates(text: &mut String, what: &str, of: &Moments) {
    line!(
        text,
        "   {what:<13}: min={}, max={}, avg={:.2}, stdev={:.2}, samples={}",
        of.min,
        of.max,
        of.mean,
        of.deviation(),
        of.count
    );
}

/// Times in steps, those that there are.
fn steps(text: &mut String, entry: &FioEntry) {
    let names = ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000"];
    let shares = Shares::of(&entry.figures);
    for (unit, shares) in
        [("nsec", &shares.ns[..]), ("usec", &shares.us[..]), ("msec", &shares.ms[..])]
    {
        let there = names.iter().zip(shares).filter(|(_, share)| **share > 0.0);
        let cells: Vec<String> = there.map(|(name, share)| format!("{name}={share:.2}%")).collect();
        for row in cells.chunks(5) {
            line!(text, "  lat ({unit})   : {}", row.join(", "));
        }
    }
}

fn of_group(text: &mut String, group: &GroupFigures) {
    line!(text, "\nRun status group {} (all jobs):", group.group);
    for kind in RequestKind::ALL {
        let jobs: Vec<&KindFigures> =
            group.jobs.iter().map(|job| &job.kinds[kind as usize]).collect();
        let jobs: Vec<&KindFigures> = jobs.into_iter().filter(|of| of.requests > 0).collect();
        if jobs.is_empty() {
            continue;
        }
        let bytes: u64 = jobs.iter().map(|of| of.bytes).sum();
        let longest = jobs.iter().map(|of| of.runtime_ns).max().unwrap_or(0);
        let shortest = jobs.iter().map(|of| of.runtime_ns).min().unwrap_or(0);
        let all = if longest == 0 { 0.0 } else { bytes as f64 * 1e9 / longest as f64 };
        let rates = || jobs.iter().map(|of| of.bytes_per_s());
        let (least, most) = (rates().fold(f64::MAX, f64::min), rates().fold(0.0, f64::max));
        let both = |prefixes| {
            let of = |value| shown(value, prefixes, "B/s");
            (of(all), format!("{}-{}", of(least), of(most)))
        };
        let ((binary, binary_range), (decimal, decimal_range)) =
            (both(Prefixes::Binary), both(Prefixes::Decimal));
        line!(
            text,
            "{:>7}: bw={binary} ({decimal}), {binary_range} ({decimal_range}), io={} ({}), \
             run={}-{}msec",
            kind.name().to_uppercase(),
            shown(bytes as f64, Prefixes::Binary, "B"),
            shown(bytes as f64, Prefixes::Decimal, "B"),
            shortest.div_ceil(1_000_000),
            longest.div_ceil(1_000_000)
        );
    }
}
