//! What only a disk has: rotation, tracks, seeks, a cache that reads ahead.
//!
//! A drive completes a read when the end of its last sector passes the head, so times from one
//! completion to the next are known as finely as the clock: reads that go backwards by a stride
//! take a revolution less the stride. A seek shows itself only by which revolution is caught. Over
//! many places the time of an access is evenly spread over one revolution, from the overhead and
//! the seek on; the middle of the revolution in which most of them lie, less half of it, is what
//! neither the number of accesses nor their luck moves much, nor a few that the cache answers or
//! that something else holds up (Worthington et al., "On-line extraction of SCSI disk drive
//! parameters", SIGMETRICS 1995, look for the shortest access instead).

use steadfast_devices::model::hdd::{HddParams, QueuePolicy, WriteCacheMode};
use steadfast_devices::model::parameters::Describe;
use steadfast_statistics::median;

use super::error::{CalibrateError, Result};
use super::figures::{
    self, BUFFER, DURABLE, Figures, READ, READ_32, Reading, STREAMS, WRITE, enter, enter_one,
};
use super::fit::{Fit, Provenance};
use super::probe::{KIB, MIB, Op, Prober, Times};

const SECTOR: u64 = 512;
/// Sectors by which reads go backwards.
const STRIDES: [u64; 2] = [16, 256];
/// Distances, as shares of the stroke, of which the seek is measured; those of writes.
const SHARES: [f64; 7] = [0.003, 0.02, 0.08, 0.2, 0.4, 0.7, 0.96];
const WRITE_SHARES: [f64; 5] = [0.01, 0.08, 0.25, 0.5, 0.96];
/// How much wider than a revolution the times of accesses may lie: seeks vary.
const SPREAD: f64 = 1.12;
/// One access in so many, and one more, is left out at each end: what went wrong is no extreme.
const LEFT_OUT: usize = 500;
/// What the cache answers takes less than this part of a revolution.
const CACHED: f64 = 0.25;

/// Of a command, where no cached read shows it: the model's default.
const USUAL_OVERHEAD_US: f64 = 200.0;

const REVOLUTION: &str = "revolution";
const TRACK: &str = "track";
const HIT: &str = "cached read 4 KiB";
const HIT_64K: &str = "cached read 64 KiB";
const AHEAD: &str = "read ahead";
const NEAR: &str = "seek to the next tracks";
const NEAR_WRITE: &str = "write seek to the next tracks";

fn seek_name(op: Op, share: f64) -> String {
    let what = if op == Op::Read { "seek" } else { "write seek" };
    format!("{what} over {:.1} % of the stroke", share * 100.0)
}

/// A share of the capacity where a share of the stroke lies: outer cylinders hold more.
fn share_of_bytes(stroke: f64, outer_over_inner: f64) -> f64 {
    let (outer, inner) = (outer_over_inner, 1.0);
    (outer * stroke - (outer - inner) * stroke * stroke / 2.0) / f64::midpoint(outer, inner)
}

/// One round of a disk's own figures, after those of `reads`.
pub(super) fn round(
    p: &mut Prober<'_>,
    into: &mut Vec<Reading>,
    (writes, is_first): (bool, bool),
) -> Result<()> {
    let Some(Rotation { revolution, sector_us }) = rotation(p)? else { return Ok(()) };
    let track = (revolution / sector_us).round();
    enter_one(into, REVOLUTION, "ms", revolution / 1e3);
    enter_one(into, TRACK, "sectors", track);
    // Nothing of it is left to luck.
    if is_first {
        cached(p, CACHED * revolution, into)?;
    }
    let cached_us = into.iter().rfind(|r| r.name == HIT).map_or(USUAL_OVERHEAD_US, |r| r.value);
    // Beside the seek: the overhead, which a cached read shows, and the sectors.
    let beside = cached_us + sector_us * 8.0;
    let rates: Vec<f64> = [0, STREAMS - 1]
        .iter()
        .filter_map(|i| into.iter().rfind(|r| r.name == figures::stream_name(*i)))
        .map(|r| r.value)
        .collect();
    let ratio = match rates[..] {
        [outer, inner] => (outer / inner).clamp(1.0, 4.0),
        _ => 1.0,
    };
    // Reading ahead may have brought the head to the next track, but not over it.
    let jump = |p: &mut Prober<'_>| ((2.1 + unit(p)) * track) as u64 * SECTOR;
    let mut at = p.size / 10;
    let enter_seek = |into: &mut Vec<Reading>, name: String, sample: &mut Vec<f64>| {
        sample.sort_by(f64::total_cmp);
        let width = SPREAD * revolution;
        let after = |from: f64| sample.partition_point(|us| *us <= from + width);
        // The first of several that hold as many.
        let from = (0..sample.len()).rev().max_by_key(|i| after(sample[*i]) - i);
        if let Some(from) = from {
            let within = &sample[from..after(sample[from])];
            let left_out = (1 + within.len() / LEFT_OUT).min((within.len() - 1) / 2);
            let ends = within[left_out] + within[within.len() - 1 - left_out];
            let value = ((ends - revolution) / 2.0 - beside).max(0.0);
            into.push(Reading { name, unit: "us", value, n: sample.len() });
        }
    };
    let ops = if writes { &[Op::Read, Op::Durable][..] } else { &[Op::Read] };
    for op in ops.iter().copied() {
        let (name, shares) = match op {
            Op::Read => (NEAR, &SHARES[..]),
            _ => (NEAR_WRITE, &WRITE_SHARES[..]),
        };
        let mut sample = p.repeat(Times(1000, 6.0), |p| {
            at += jump(p);
            if at + MIB > p.size {
                at = p.size / 10;
            }
            p.one(op, at / (4 * KIB) * 4 * KIB, 4 * KIB)
        })?;
        enter_seek(into, name.into(), &mut sample);
        for share in shares {
            let mut sample = p.repeat(Times(110, 3.0), |p| {
                // From anywhere to a place that far away, so that few are near one another.
                let from = unit(p) * (1.0 - share);
                let ends =
                    if p.rng.percent(50) { [from, from + share] } else { [from + share, from] };
                let places = ends.map(|stroke| {
                    let at = share_of_bytes(stroke, ratio) * (p.size - MIB) as f64;
                    at as u64 / (4 * KIB) * 4 * KIB
                });
                p.one(op, places[0], 4 * KIB)?;
                p.one(op, places[1], 4 * KIB)
            })?;
            enter_seek(into, seek_name(op, *share), &mut sample);
        }
    }
    Ok(())
}

/// An even random number from 0 to 1.
fn unit(p: &mut Prober<'_>) -> f64 {
    p.rng.below(1 << 30) as f64 / f64::from(1 << 30)
}

/// How a disk turns, in microseconds.
struct Rotation {
    revolution: f64,
    sector_us: f64,
}

/// Whether something turns: reads that go backwards wait for nearly a revolution, each as long as
/// the others. A drive that keeps whole tracks answers from them, and shows no rotation.
pub(super) fn rotates(p: &mut Prober<'_>) -> Result<bool> {
    Ok(rotation(p)?.is_some())
}

fn rotation(p: &mut Prober<'_>) -> Result<Option<Rotation>> {
    let [near, far] = STRIDES.map(|stride| backwards(p, stride));
    let (Some(near), Some(far)) = (near?, far?) else { return Ok(None) };
    let sector_us = (near - far) / (STRIDES[1] - STRIDES[0]) as f64;
    let revolution = near + sector_us * STRIDES[0] as f64;
    let sound = near > 1000.0 && sector_us > 0.0 && revolution / sector_us > 16.0;
    Ok(sound.then_some(Rotation { revolution, sector_us }))
}

/// The time from one read to the next, each so many sectors before the last; `None` if it is not
/// always the same.
fn backwards(p: &mut Prober<'_>, stride: u64) -> Result<Option<f64>> {
    let mut at = p.size / 20 + stride * SECTOR * 200;
    let mut sample = p.repeat(Times(120, 3.0), |p| {
        at = at.saturating_sub(stride * SECTOR);
        p.one(Op::Read, at / (4 * KIB) * 4 * KIB, 4 * KIB)
    })?;
    sample.sort_by(f64::total_cmp);
    let quarter = sample.len() / 4;
    let Some(middle) = median(&sample).filter(|_| quarter > 2) else { return Ok(None) };
    let spread = sample[3 * quarter] - sample[quarter];
    Ok((spread < 0.05 * middle).then_some(middle))
}

/// Reads of what the drive has in its cache, which answers within `most_us`, and how far it reads
/// ahead. Of a drive without one nothing is entered.
fn cached(p: &mut Prober<'_>, most_us: f64, into: &mut Vec<Reading>) -> Result<()> {
    for (name, len) in [(HIT, 4 * KIB), (HIT_64K, 64 * KIB)] {
        let sample = p.repeat(Times(40, 2.0), |p| {
            let at = p.place(&(0..p.size), 64 * KIB);
            p.one(Op::Read, at, 64 * KIB)?;
            p.one(Op::Read, at, len)
        })?;
        if median(&sample).is_some_and(|us| us < most_us) {
            enter(into, name, &sample);
        }
    }
    let Some(hit) = into.iter().rfind(|r| r.name == HIT).map(|r| r.value) else { return Ok(()) };
    // After a pause: the furthest that is there, by halving.
    let is_ahead = |p: &mut Prober<'_>, bytes: u64| -> Result<bool> {
        let mut hits = 0;
        for _ in 0..3 {
            let at = p.place(&(0..p.size.saturating_sub(17 * MIB)), MIB);
            p.one(Op::Read, at, 4 * KIB)?;
            steadfast_runtime::sleep(std::time::Duration::from_millis(60));
            hits += u32::from(p.one(Op::Read, at + bytes, 4 * KIB)? < 1.3 * hit + 50.0);
        }
        Ok(hits >= 2)
    };
    let (mut low, mut high) = (0, 16 * MIB);
    while high - low > (low / 40).max(16 * KIB) {
        let middle = (low + high) / 2 / (4 * KIB) * 4 * KIB;
        if is_ahead(p, middle)? { low = middle } else { high = middle }
    }
    enter_one(into, AHEAD, "KiB", (low + 4 * KIB) as f64 / KIB as f64);
    Ok(())
}

/// A disk with these figures.
///
/// # Errors
/// No disk has such seek times.
pub(super) fn fit(figures: &Figures, size: u64) -> Result<Fit<HddParams>> {
    let mut fit = Fit::new(HddParams { sectors: size / SECTOR, ..HddParams::default() });
    fit.note("sectors", Provenance::Said("the device's size".into()));
    let p = &mut fit.params;
    let mut from: Vec<(&'static str, &str, &str)> = Vec::new();
    let value = |name: &str| figures.value(name);
    let (Some(revolution), Some(track)) = (value(REVOLUTION), value(TRACK)) else {
        return Ok(fit);
    };
    p.rpm = (60_000.0 / revolution).round() as u32;
    from.push(("rpm", REVOLUTION, "reads that go backwards"));
    // Overhead and link.
    if let (Some(hit), Some(hit_64k)) = (value(HIT), value(HIT_64K))
        && hit_64k > hit
    {
        p.interface_mb_per_s = (60 * KIB) as f64 / (hit_64k - hit);
        from.push(("interface_mb_per_s", HIT_64K, "beside that of 4 KiB"));
    }
    let link_us = (4 * KIB) as f64 / p.interface_mb_per_s;
    if let Some(hit) = value(HIT) {
        p.controller_overhead_ms = (hit - link_us).max(0.0) / 1e3;
        from.push(("controller_overhead_ms", HIT, "less 4 KiB on the link"));
    }
    rates(figures, size, p);
    let (first, last) = (figures::stream_name(0), figures::stream_name(STREAMS - 1));
    from.push(("sustained_outer_mb_per_s", &first, "a line through all places"));
    from.push(("sustained_inner_mb_per_s", &last, "a line through all places"));
    // A track takes a revolution; on and on, a skew more.
    let share = 0.05;
    let sustained = p.sustained_outer_mb_per_s
        + (p.sustained_inner_mb_per_s - p.sustained_outer_mb_per_s) * zone_share(share, p);
    let rate = track * SECTOR as f64 / revolution / 1e3;
    let skew = (rate / sustained - 1.0) * revolution;
    // What was measured beside the seek has the link's time in it, too.
    seeks(figures, p, link_us / 1e3, &mut from);
    if skew > 0.0 && skew < revolution / 2.0 {
        (p.track_skew_ms, p.cylinder_skew_ms) = (skew, skew);
        from.push(("track_skew_ms", TRACK, "its rate over the sustained one"));
        from.push(("cylinder_skew_ms", TRACK, "its rate over the sustained one"));
    }
    cache(figures, p, &mut from);
    for (parameter, figure, how) in from {
        fit.measured(parameter, figures, figure, how);
    }
    make_sense(&mut fit.params);
    fit.params.check().map_err(|e| CalibrateError::Seeks {
        why: e.to_string(),
        figures: figures.0.iter().filter(|f| f.name.contains("seek")).cloned().collect(),
    })?;
    Ok(fit)
}

/// Moves the average seek until there is a curve through the three figures: where a curve is at the
/// edge of what the model has, the noise of a figure may be beyond it.
fn make_sense(p: &mut HddParams) {
    let (read, write) = (p.seek_read_average_ms, p.seek_write_average_ms);
    for percent in 0..30 {
        for sign in [1.0, -1.0] {
            if p.check().is_ok() {
                return;
            }
            let factor = 1.0 + sign * f64::from(percent) / 100.0;
            (p.seek_read_average_ms, p.seek_write_average_ms) = (read * factor, write * factor);
        }
    }
}

/// The rate's place between outer and inner zone at a share of the stroke.
fn zone_share(stroke: f64, p: &HddParams) -> f64 {
    let zones = f64::from(p.zones);
    ((stroke * zones).floor() / (zones - 1.0).max(1.0)).min(1.0)
}

/// A line through the rates along the device; places are shares of the stroke.
fn rates(figures: &Figures, size: u64, p: &mut HddParams) {
    let measured: Vec<(f64, f64)> = (0..STREAMS)
        .filter_map(|i| {
            let rate = figures.value(&figures::stream_name(i))?;
            Some((figures::stream_share(size, i), rate))
        })
        .collect();
    for _ in 0..4 {
        let ratio = p.sustained_outer_mb_per_s / p.sustained_inner_mb_per_s;
        let points = measured.iter().map(|(bytes, rate)| {
            // By halving: the share of bytes grows with that of the stroke.
            let (mut low, mut high) = (0.0, 1.0);
            for _ in 0..40 {
                let middle = f64::midpoint(low, high);
                if share_of_bytes(middle, ratio) < *bytes { low = middle } else { high = middle }
            }
            (zone_share(low, p), *rate)
        });
        let points: Vec<(f64, f64)> = points.collect();
        let n = points.len() as f64;
        let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), (a, b)| (x + a / n, y + b / n));
        let slope = points.iter().map(|(a, b)| (a - x) * (b - y)).sum::<f64>()
            / points.iter().map(|(a, _)| (a - x) * (a - x)).sum::<f64>().max(1e-9);
        p.sustained_outer_mb_per_s = (y - slope * x).max(0.01);
        p.sustained_inner_mb_per_s = (y + slope * (1.0 - x)).max(0.01);
    }
}

/// The three figures of each seek curve; those of writes follow from the reads' where no write was
/// measured, in the relation that the default drive has.
fn seeks(
    figures: &Figures,
    p: &mut HddParams,
    link_ms: f64,
    from: &mut Vec<(&'static str, &str, &str)>,
) {
    let default = HddParams::default();
    let curve = |op, near: &str, shares: &[f64]| {
        let near = figures.value(near)? / 1e3 + link_ms;
        let far = shares.iter().filter_map(|share| {
            Some((*share, figures.value(&seek_name(op, *share))? / 1e3 + link_ms))
        });
        Some(SeekPoints { near, far: far.collect() }.of_a_sheet())
    };
    if let Some([track, average, full]) = curve(Op::Read, NEAR, &SHARES) {
        p.seek_read_track_to_track_ms = track;
        p.seek_read_average_ms = average;
        p.seek_read_full_stroke_ms = full;
        from.push(("seek_read_track_to_track_ms", NEAR, "middle of the extremes"));
        from.push(("seek_read_average_ms", FULL, "mean over all distances"));
        from.push(("seek_read_full_stroke_ms", FULL, "continued to the whole stroke"));
    }
    if let Some([track, average, full]) = curve(Op::Durable, NEAR_WRITE, &WRITE_SHARES) {
        p.seek_write_track_to_track_ms = track;
        p.seek_write_average_ms = average;
        p.seek_write_full_stroke_ms = full;
        from.push(("seek_write_track_to_track_ms", NEAR_WRITE, "middle of the extremes"));
        from.push(("seek_write_average_ms", FULL_WRITE, "mean over all distances"));
        from.push(("seek_write_full_stroke_ms", FULL_WRITE, "continued to the whole stroke"));
    } else {
        p.seek_write_track_to_track_ms = p.seek_read_track_to_track_ms
            * (default.seek_write_track_to_track_ms / default.seek_read_track_to_track_ms);
        p.seek_write_average_ms =
            p.seek_read_average_ms * (default.seek_write_average_ms / default.seek_read_average_ms);
        p.seek_write_full_stroke_ms = p.seek_read_full_stroke_ms
            * (default.seek_write_full_stroke_ms / default.seek_read_full_stroke_ms);
    }
    p.track_skew_ms = p.seek_write_track_to_track_ms * 1.1;
    p.cylinder_skew_ms = p.track_skew_ms;
    let shortest = p.seek_read_track_to_track_ms.min(p.seek_write_track_to_track_ms);
    p.seek_variation_ms = p.seek_variation_ms.min(shortest);
}

const FULL: &str = "seek over 96.0 % of the stroke";
const FULL_WRITE: &str = "write seek over 96.0 % of the stroke";

/// Measured seeks in ms: to the next tracks, and over shares of the stroke.
struct SeekPoints {
    near: f64,
    far: Vec<(f64, f64)>,
}

impl SeekPoints {
    /// What a data sheet says: to the next cylinder, average over all pairs, full stroke.
    fn of_a_sheet(&self) -> [f64; 3] {
        let mut points = vec![(0.0, self.near)];
        points.extend(&self.far);
        let full = match points[..] {
            [.., (a, x), (b, y)] => y + (y - x) / (b - a) * (1.0 - b),
            _ => self.near,
        };
        points.push((1.0, full));
        // Between two points linear over the root of the distance, as a curve that begins so is.
        let time = |share: f64| {
            let i = points.partition_point(|(at, _)| *at < share).clamp(1, points.len() - 1);
            let ((a, x), (b, y)) = (points[i - 1], points[i]);
            x + (y - x) * (share.sqrt() - a.sqrt()) / (b.sqrt() - a.sqrt()).max(1e-12)
        };
        const STEPS: u32 = 1000;
        let average = (0..STEPS).map(|i| {
            let share = (f64::from(i) + 0.5) / f64::from(STEPS);
            2.0 * (1.0 - share) * time(share) / f64::from(STEPS)
        });
        [self.near, average.sum(), full]
    }
}

/// Read-ahead, queue and write cache.
fn cache(figures: &Figures, p: &mut HddParams, from: &mut Vec<(&'static str, &str, &str)>) {
    let value = |name: &str| figures.value(name);
    if let Some(ahead) = value(AHEAD) {
        p.look_ahead = ahead >= 64.0;
        from.push(("look_ahead", AHEAD, "after a pause"));
        if p.look_ahead {
            p.read_cache_kb = figures::memory_kib(ahead) as u32 * p.read_segments;
            from.push(("read_cache_kb", AHEAD, "a segment, and 16 of them, which is assumed"));
        }
    }
    if let (Some(one), Some(many)) = (value(READ), value(READ_32)) {
        let gain = many * one / 1e6;
        p.queue_policy = if gain > 1.3 { QueuePolicy::Sptf } else { QueuePolicy::Fifo };
        from.push(("queue_policy", READ_32, "beside one at a time"));
    }
    let (Some(write), Some(durable)) = (value(WRITE), value(DURABLE)) else { return };
    let cached = write < durable / 2.0;
    p.write_cache = match value("flush after 1 MiB") {
        _ if !cached => WriteCacheMode::Off,
        Some(flush) if flush < durable / 2.0 => WriteCacheMode::Lying,
        _ => WriteCacheMode::On,
    };
    from.push(("write_cache", WRITE, "beside durable ones, and the flush"));
    if let Some(kib) = value(BUFFER).filter(|_| cached) {
        p.write_buffer_kb = figures::memory_kib(kib) as u32;
        from.push(("write_buffer_kb", BUFFER, "taken before writes became slow"));
    }
}
