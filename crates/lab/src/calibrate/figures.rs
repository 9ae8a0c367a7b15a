//! What is measured on a device of any kind, round by round, and the same of a model.

use std::ops::Range;

use serde::Serialize;
use steadfast_statistics::median;

use super::error::{CalibrateError, Result};
use super::probe::{KIB, MIB, Op, Prober, Times, us_since};

pub(super) const READ: &str = "random read 4 KiB";
pub(super) const READ_512: &str = "random read 512 B";
pub(super) const READ_16K: &str = "random read 16 KiB";
pub(super) const READ_64K: &str = "random read 64 KiB";
pub(super) const READ_256K: &str = "random read 256 KiB";
pub(super) const READ_ON: &str = "next read 4 KiB";
pub(super) const READ_32: &str = "random read 4 KiB, 32 at once";
pub(super) const STREAM_READ: &str = "sequential read";
pub(super) const WRITE: &str = "write 4 KiB";
pub(super) const DURABLE: &str = "durable write 4 KiB";
pub(super) const DURABLE_64K: &str = "durable write 64 KiB";
pub(super) const SCATTERED: &str = "scattered durable write 4 KiB";
pub(super) const WRITE_32: &str = "random write 4 KiB, 32 at once";
pub(super) const STREAM_WRITE: &str = "sequential write";
pub(super) const FLUSH_IDLE: &str = "flush, nothing dirty";
pub(super) const FLUSH: &str = "flush after 4 KiB";
pub(super) const BUFFER: &str = "write buffer";

/// Most bytes, from the start, that writes of flash and memory go to.
const AREA_MAX: u64 = 512 * MIB;
/// Small writes go to so few bytes that no erase block has to be closed for them.
const WINDOW: u64 = 2 * MIB;

/// One figure of one round.
pub(super) struct Reading {
    pub name: String,
    pub unit: &'static str,
    pub value: f64,
    pub n: usize,
}

/// A figure: the median of its rounds, and their range.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// What was measured.
    pub name: String,
    /// The median of the rounds.
    pub value: f64,
    /// Of the values.
    pub unit: &'static str,
    /// The least of the rounds.
    pub low: f64,
    /// The greatest of the rounds.
    pub high: f64,
    /// Rounds.
    pub rounds: usize,
    /// Requests in all rounds together.
    pub n: usize,
}

/// The figures of a device, in the order in which they were measured.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub struct Figures(pub Vec<Figure>);

impl Figures {
    /// Of the readings of all rounds.
    pub(super) fn of(readings: &[Reading]) -> Figures {
        let mut figures: Vec<Figure> = Vec::new();
        for r in readings {
            if figures.iter().any(|f| f.name == r.name) {
                continue;
            }
            let all = || readings.iter().filter(|other| other.name == r.name);
            let values: Vec<f64> = all().map(|r| r.value).collect();
            figures.push(Figure {
                name: r.name.clone(),
                value: median(&values).unwrap_or(r.value),
                unit: r.unit,
                low: values.iter().copied().fold(f64::INFINITY, f64::min),
                high: values.iter().copied().fold(0.0, f64::max),
                rounds: values.len(),
                n: all().map(|r| r.n).sum(),
            });
        }
        Figures(figures)
    }

    /// The figure of this name.
    pub fn get(&self, name: &str) -> Option<&Figure> {
        self.0.iter().find(|f| f.name == name)
    }

    /// Its value.
    pub(super) fn value(&self, name: &str) -> Option<f64> {
        self.get(name).map(|f| f.value)
    }

    /// Refuses figures that differ too much between rounds.
    pub(super) fn believe(&self, device: &str) -> Result<()> {
        let basic =
            [READ, STREAM_READ, READ_32, DURABLE].into_iter().filter_map(|name| self.get(name));
        let Some(f) = basic.into_iter().find(|f| f.high > f.low * NOISE_MAX) else { return Ok(()) };
        Err(CalibrateError::TooNoisy {
            device: device.to_owned(),
            figure: f.name.clone(),
            low: f.low,
            high: f.high,
            unit: f.unit,
            rounds: f.rounds,
        })
    }
}

/// The greatest round over the least, above which a figure is not believed: a model can be no
/// better than what it is made of.
const NOISE_MAX: f64 = 1.6;

/// Enters the median of a sample of latencies.
pub(super) fn enter(into: &mut Vec<Reading>, name: impl Into<String>, sample: &[f64]) {
    if let Some(value) = median(sample) {
        into.push(Reading { name: name.into(), unit: "us", value, n: sample.len() });
    }
}

/// Enters a rate or a size.
pub(super) fn enter_one(into: &mut Vec<Reading>, name: &str, unit: &'static str, value: f64) {
    into.push(Reading { name: name.into(), unit, value, n: 1 });
}

/// Where writes go.
pub(crate) fn area(p: &Prober<'_>) -> Range<u64> {
    0..p.size.min(AREA_MAX)
}

/// Whether a random read takes long, and not always as long, as that of a head that seeks.
pub(super) fn varies(p: &mut Prober<'_>) -> Result<bool> {
    let mut sample = p.random(Op::Read, &(0..p.size), 4 * KIB, Times(100, 3.0))?;
    sample.sort_by(f64::total_cmp);
    let (n, spread) = (sample.len(), |share: f64| sample[(share * sample.len() as f64) as usize]);
    Ok(n >= 20 && spread(0.5) > 1500.0 && spread(0.75) - spread(0.25) > 0.15 * spread(0.5))
}

/// One round of reads.
pub(super) fn reads(p: &mut Prober<'_>, into: &mut Vec<Reading>) -> Result<()> {
    let all = 0..p.size;
    let block = p.block;
    for (name, len, n) in [
        (READ, 4 * KIB, 400),
        (READ_512, 512, 200),
        (READ_16K, 16 * KIB, 200),
        (READ_64K, 64 * KIB, 100),
        (READ_256K, 256 * KIB, 60),
    ] {
        if len >= block {
            enter(into, name, &p.random(Op::Read, &all, len, Times(n, 0.7))?);
        }
    }
    // What continues the read before it.
    let mut at = 0;
    let next = p.repeat(Times(300, 0.5), |p| {
        if at % (64 * KIB) == 0 {
            at = p.place(&(0..p.size), 64 * KIB);
            p.one(Op::Read, at, 4 * KIB)?;
        }
        at += 4 * KIB;
        p.one(Op::Read, at, 4 * KIB)
    })?;
    enter(into, READ_ON, &next);
    for depth in [2, 4, 8, 16, 32] {
        let times = Times(400 * depth as usize, 0.6);
        let (rate, n) = p.at_once(depth, Op::Read, (&all, 4 * KIB), times)?;
        let name = format!("random read 4 KiB, {depth} at once");
        into.push(Reading { name, unit: "/s", value: rate, n });
    }
    let rates = (0..STREAMS).map(|i| stream_at(p, i)).collect::<Result<Vec<_>>>()?;
    for (i, rate) in rates.iter().enumerate() {
        enter_one(into, &stream_name(i), "MB/s", *rate);
    }
    enter_one(into, STREAM_READ, "MB/s", median(&rates).unwrap_or(0.0));
    Ok(())
}

/// Places along the device at which it is read in order.
pub(super) const STREAMS: usize = 9;
/// Bytes read at each.
const STREAM_BYTES: u64 = 24 * MIB;

/// Where a stream begins.
fn stream_start(size: u64, i: usize) -> u64 {
    size.saturating_sub(STREAM_BYTES) / (STREAMS as u64 - 1) * i as u64 / MIB * MIB
}

/// The middle of what a stream's rate is of, as a share of the device.
pub(super) fn stream_share(size: u64, i: usize) -> f64 {
    (stream_start(size, i) + STREAM_BYTES.min(size) * 3 / 4) as f64 / size as f64
}

pub(super) fn stream_name(i: usize) -> String {
    format!("sequential read at {} %", i * 100 / (STREAMS - 1))
}

fn stream_at(p: &Prober<'_>, i: usize) -> Result<f64> {
    let start = stream_start(p.size, i);
    p.stream(Op::Read, start..(start + STREAM_BYTES).min(p.size), 0.6)
}

/// Before writes are measured: the area has been written once, and nothing is dirty. So many bytes
/// of it have been.
pub(super) fn prepare(p: &Prober<'_>) -> Result<u64> {
    filled(p, area(p).end, FILL_SECONDS)
}

/// The same of so many bytes, as far as there is time for.
pub(crate) fn filled(p: &Prober<'_>, bytes: u64, seconds: f64) -> Result<u64> {
    let filled = p.fill(bytes, seconds)?;
    settle(p)?;
    Ok(filled)
}

/// What has not been filled by then stays as it was.
const FILL_SECONDS: f64 = 15.0;

/// One round of writes. `disk`: they may go anywhere; else they go to the area.
pub(super) fn writes(p: &mut Prober<'_>, disk: bool, into: &mut Vec<Reading>) -> Result<()> {
    let all = if disk { 0..p.size } else { area(p) };
    let few = if disk { all.clone() } else { all.end - WINDOW.min(all.end)..all.end };
    enter_one(into, STREAM_WRITE, "MB/s", p.stream(Op::Write, area(p), 2.5)?);
    settle(p)?;
    enter(into, WRITE, &p.random(Op::Write, &few, 4 * KIB, Times(200, 0.5))?);
    settle(p)?;
    enter(into, DURABLE, &p.random(Op::Durable, &few, 4 * KIB, Times(200, 0.7))?);
    enter(into, DURABLE_64K, &p.random(Op::Durable, &few, 64 * KIB, Times(100, 0.7))?);
    if !disk {
        enter(into, SCATTERED, &p.random(Op::Durable, &all, 4 * KIB, Times(150, 1.5))?);
    }
    settle(p)?;
    enter(into, FLUSH_IDLE, &p.repeat(Times(20, 0.3), |p| p.flush())?);
    for (name, writes, len, n) in [
        (FLUSH, 1, 4 * KIB, 60),
        ("flush after 1 MiB", 16, 64 * KIB, 8),
        ("flush after 8 MiB", 128, 64 * KIB, 3),
    ] {
        let flushes = p.repeat(Times(n, 1.5), |p| {
            for _ in 0..writes {
                let at = p.place(&few, len);
                p.one(Op::Write, at, len)?;
            }
            p.flush()
        })?;
        enter(into, name, &flushes);
    }
    settle(p)?;
    let mut buffers = Vec::new();
    for _ in 0..if disk { 1 } else { 3 } {
        buffers.extend(buffer(p, &few)?.map(|bytes| bytes / KIB as f64));
        settle(p)?;
    }
    if let Some(kib) = median(&buffers) {
        enter_one(into, BUFFER, "KiB", kib);
    }
    let (rate, n) = p.at_once(32, Op::Write, (&all, 4 * KIB), Times(20_000, 1.5))?;
    into.push(Reading { name: WRITE_32.into(), unit: "/s", value: rate, n });
    settle(p)
}

/// Memory comes in powers of two: what is nearly one is one.
pub(super) fn memory_kib(kib: f64) -> f64 {
    let power = kib.max(1.0).log2().round().exp2();
    if (kib / power - 1.0).abs() < 0.08 { power } else { kib.round() }
}

/// Waits until nothing is left of the writes before.
fn settle(p: &Prober<'_>) -> Result<()> {
    p.flush()?;
    steadfast_runtime::sleep(std::time::Duration::from_millis(200));
    Ok(())
}

/// Bytes of a write buffer, if writes are faster until it is full: what was taken beyond the rate
/// at which it drains. In a plot of bytes over time that is where the line of the later writes
/// meets the axis.
fn buffer(p: &mut Prober<'_>, within: &Range<u64>) -> Result<Option<f64>> {
    const LEN: u64 = 64 * KIB;
    let begun = steadfast_runtime::now();
    let mut ends = Vec::new();
    p.repeat(Times(2048, 2.0), |p| {
        let at = p.place(within, LEN);
        let took = p.one(Op::Write, at, LEN)?;
        ends.push(us_since(begun));
        Ok(took)
    })?;
    let mut n = ends.len();
    if n < 40 {
        return Ok(None);
    }
    let first = 9.0 / (ends[9] - ends[0]).max(1e-3);
    // Not far behind the place where it is full: an error of the rate counts as often.
    loop {
        let (taken, later) = line_through(&ends[..n], n / 2);
        if first <= 1.5 * later || taken <= 2.0 {
            return Ok(None);
        }
        let near = ((6.0 * taken) as usize).max(40);
        if near >= n {
            return Ok(Some(taken * LEN as f64));
        }
        n = near;
    }
}

/// The line of least squares through the numbers of the values over the values, from one on: what
/// it has at zero, and its slope.
fn line_through(values: &[f64], from: usize) -> (f64, f64) {
    let n = (values.len() - from) as f64;
    let points = || values.iter().enumerate().skip(from).map(|(i, x)| (*x, i as f64 + 1.0));
    let (x, y) = points().fold((0.0, 0.0), |(x, y), (a, b)| (x + a / n, y + b / n));
    let along = points().map(|(a, b)| (a - x) * (b - y)).sum::<f64>();
    let slope = along / points().map(|(a, _)| (a - x).powi(2)).sum::<f64>().max(1e-9);
    (y - slope * x, slope)
}
