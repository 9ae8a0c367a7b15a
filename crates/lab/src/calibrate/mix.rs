//! The mix of requests by which a model is judged: other sizes and another order than what it was
//! fitted to.

use std::ops::Range;

use serde::Serialize;
use steadfast_block::rng::Rng;
use steadfast_runtime::now;
use steadfast_statistics::demerit;

use super::error::Result;
use super::figures;
use super::probe::{KIB, MIB, Op, Prober};

/// A kind of request in the mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Class {
    Read8,
    Read128,
    Near32,
    Next32,
    AtOnce4,
    Write16,
    Durable8,
    Flush,
}

impl Class {
    const READS: [Class; 5] =
        [Class::Read8, Class::Read128, Class::Near32, Class::Next32, Class::AtOnce4];
    const WRITES: [Class; 3] = [Class::Write16, Class::Durable8, Class::Flush];

    fn name(self) -> &'static str {
        match self {
            Class::Read8 => "random reads of 8 KiB",
            Class::Read128 => "random reads of 128 KiB",
            Class::Near32 => "reads of 32 KiB near the last",
            Class::Next32 => "sequential reads of 32 KiB",
            Class::AtOnce4 => "random reads of 8 KiB, 4 at once",
            Class::Write16 => "writes of 16 KiB",
            Class::Durable8 => "durable writes of 8 KiB",
            Class::Flush => "flushes after 64 KiB",
        }
    }
}

/// How a mix is made: the same steps on the device and on its model.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mix {
    pub seed: u64,
    /// Moves each place by a few tracks at most: the seeks stay as long, and what passes the head
    /// when it gets there is another.
    pub luck: u64,
    pub steps: usize,
    /// Whether there are writes among them, and whether they go anywhere (a disk) or to the area.
    pub writes: Option<bool>,
}

/// Steps before the mix.
const WARM_UP: usize = 120;

/// How long each request took, in microseconds.
pub(super) type ClassTimes = Vec<(Class, f64)>;

impl Mix {
    /// Carries it out.
    pub fn run(self, p: &mut Prober<'_>) -> Result<ClassTimes> {
        let mut taken = ClassTimes::new();
        p.rng = Rng::new(self.seed);
        let mut luck = Rng::new(self.luck);
        let mut place = |p: &mut Prober<'_>, within: &Range<u64>| {
            let at = p.place(within, MIB) + luck.below(16) * 128 * KIB;
            at.min(within.end - MIB)
        };
        let all = 0..p.size;
        let area = if self.writes == Some(true) { all.clone() } else { figures::area(p) };
        for _ in 0..self.steps {
            p.go_on()?;
            let classes = if self.writes.is_some() { 8 } else { Class::READS.len() as u64 };
            let (at, to) = (place(p, &all), place(p, &area));
            let class = match p.rng.below(classes) as usize {
                n @ 0..5 => Class::READS[n],
                n => Class::WRITES[n - 5],
            };
            let mut note = |us: f64| taken.push((class, us));
            match class {
                Class::Read8 => note(p.one(Op::Read, at, 8 * KIB)?),
                Class::Read128 => note(p.one(Op::Read, at, 128 * KIB)?),
                Class::Near32 => {
                    p.one(Op::Read, at, 8 * KIB)?;
                    for _ in 0..2 {
                        let from = at.saturating_sub(16 * MIB);
                        let near = place(p, &(from..(at + 16 * MIB).min(p.size)));
                        note(p.one(Op::Read, near, 32 * KIB)?);
                    }
                }
                Class::Next32 => {
                    p.one(Op::Read, at, 32 * KIB)?;
                    for i in 1..5 {
                        note(p.one(Op::Read, at + i * 32 * KIB, 32 * KIB)?);
                    }
                }
                Class::AtOnce4 => {
                    let places = [(); 4].map(|()| place(p, &all));
                    p.burst(Op::Read, &places, 8 * KIB)?.into_iter().for_each(note);
                }
                Class::Write16 => note(p.one(Op::Write, to, 16 * KIB)?),
                Class::Durable8 => note(p.one(Op::Durable, to, 8 * KIB)?),
                Class::Flush => {
                    for i in 0..4 {
                        p.one(Op::Write, to + i * 16 * KIB, 16 * KIB)?;
                    }
                    note(p.flush()?);
                }
            }
        }
        Ok(taken)
    }

    /// Steps of the same kind before it: what they leave open, dirty or cached is what the mix
    /// finds, on the device as on the model.
    pub fn warm_up(self, p: &mut Prober<'_>) -> Result<()> {
        Mix { seed: self.seed ^ 0x7761_726d, steps: WARM_UP, ..self }.run(p).map(drop)
    }

    /// As many steps as fit into so many seconds.
    pub fn fitted(mut self, p: &mut Prober<'_>, seconds: f64) -> Result<Mix> {
        let begun = now();
        self.warm_up(p)?;
        let each = (now() - begun).as_secs_f64() / WARM_UP as f64;
        self.steps = ((seconds / each.max(1e-9)) as usize).clamp(60, 5000);
        Ok(self)
    }
}

/// How far the model is from the device in one kind of request, or in all.
#[derive(Debug, Clone, Serialize)]
pub struct Agreement {
    /// Of which requests.
    pub requests: String,
    /// How many were measured.
    pub n: usize,
    /// The device's mean, in ms.
    pub device_ms: f64,
    /// The model's mean, in ms.
    pub model_ms: f64,
    /// The demerit figure in ms.
    pub demerit_ms: f64,
    /// The same in % of the device's mean.
    pub demerit_percent: f64,
    /// The same without the slowest hundredth of both sides.
    pub without_tail_percent: f64,
}

/// The demerit figure in % of the first one's mean.
fn percent(a: &[f64], b: &[f64]) -> f64 {
    demerit(a, b).unwrap_or(0.0) / mean(a).max(1e-9) * 100.0
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn without_tail(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.truncate((values.len() as f64 * 0.99).ceil() as usize);
    values
}

fn agreement(requests: &str, device: &[f64], model: &[f64]) -> Agreement {
    Agreement {
        requests: requests.into(),
        n: device.len(),
        device_ms: mean(device) / 1e3,
        model_ms: mean(model) / 1e3,
        demerit_ms: demerit(device, model).unwrap_or(0.0) / 1e3,
        demerit_percent: percent(device, model),
        without_tail_percent: percent(&without_tail(device), &without_tail(model)),
    }
}

fn of_class(taken: &ClassTimes, class: Option<Class>) -> Vec<f64> {
    taken.iter().filter(|(c, _)| class.is_none_or(|class| *c == class)).map(|(_, us)| *us).collect()
}

/// All requests together, then each kind.
pub(super) fn compare(device: &ClassTimes, model: &ClassTimes) -> Vec<Agreement> {
    let of = |name, class| agreement(name, &of_class(device, class), &of_class(model, class));
    let classes = Class::READS.into_iter().chain(Class::WRITES);
    let there = classes.filter(|class| device.iter().any(|(c, _)| c == class));
    let each = there.map(|class| of(class.name(), Some(class)));
    std::iter::once(of("all", None)).chain(each).collect()
}

/// The demerit figure of two runs on the same device, in % of the mean: no model can be judged more
/// finely.
pub(super) fn repeatability(first: &ClassTimes, second: &ClassTimes) -> f64 {
    percent(&of_class(first, None), &of_class(second, None))
}
