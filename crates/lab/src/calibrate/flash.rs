//! Flash and memory: a model of each kind is asked as the device was, and each parameter moved
//! until its figure is the device's.

use steadfast_devices::model::parameters::Describe;
use steadfast_devices::model::ssd::SsdCache;
use steadfast_devices::model::{EmmcParams, ModelParams, NvramParams, SsdParams};

use super::error::Result;
use super::figures::{
    BUFFER, DURABLE, DURABLE_64K, FLUSH, FLUSH_IDLE, Figures, READ, READ_16K, READ_32, READ_64K,
    READ_256K, READ_512, READ_ON, STREAM_READ, STREAM_WRITE, WRITE, WRITE_32, memory_kib,
};
use super::fit::{Fit, Provenance};
use super::groups::{GROUP, OPEN};

/// A figure, or a difference of two.
type Of = fn(&Figures) -> Option<f64>;

/// A parameter and what moves it.
pub(super) struct Knob<P> {
    parameter: &'static str,
    /// The figure that it follows from, and how.
    figure: &'static str,
    how: &'static str,
    of: Of,
    /// Moves it: the figure of the device, and that of the model.
    step: fn(&mut P, f64, f64),
}

/// Models whose errors differ by less are as good.
pub(super) const ALIKE: f64 = 1.02;

/// How often the parameters are moved: each depends a little on the others.
const STEPS: usize = 8;

macro_rules! knobs {
    ($type:ty: $($parameter:ident, $figure:expr, $how:expr, $of:expr, $how_moved:ident;)*) => {
        const KNOBS: &[Knob<$type>] = &[$(Knob {
            parameter: stringify!($parameter),
            figure: $figure,
            how: $how,
            of: $of,
            step: |p, device, model| $how_moved(&mut p.$parameter, device, model),
        }),*];
    };
}

/// A time that is a part of the figure.
fn part(value: &mut f64, device: f64, model: f64) {
    *value = (*value + device - model).max(0.0);
}

/// A time that is there 15 times in the figure.
fn fifteenth(value: &mut f64, device: f64, model: f64) {
    part(value, device / 15.0, model / 15.0);
}

/// A rate, of which the figure is one.
fn rate(value: &mut f64, device: f64, model: f64) {
    if device > 0.0 && model > 0.0 {
        *value = (*value * (device / model).clamp(0.25, 4.0)).clamp(0.01, 9e5);
    }
}

/// A rate, of which the figure is a time; or a time, of which it is a rate.
fn inverse(value: &mut f64, device: f64, model: f64) {
    rate(value, model, device);
}

/// A size.
fn size(value: &mut u32, device: f64, model: f64) {
    let mut as_float = f64::from(*value);
    rate(&mut as_float, device, model);
    *value = as_float.round().max(4.0) as u32;
}

/// Of what the rounds tell apart.
fn difference(f: &Figures, more: &str, less: &str) -> Option<f64> {
    let (more, less) = (f.get(more)?, f.get(less)?);
    (more.low > less.high || more.rounds == 1).then_some(more.value - less.value)
}

/// What is common to the kinds.
pub(super) trait Flash: Describe + 'static {
    const KNOBS: &'static [Knob<Self>];

    fn params(self) -> ModelParams;

    /// Makes sizes of memory what memory comes in.
    fn round_sizes(&mut self) {}
}

impl Flash for SsdParams {
    knobs! { SsdParams:
        read_us, READ, "", |f| f.value(READ), part;
        command_us, READ_32, "one after the other", |f| f.value(READ_32), inverse;
        channel_mb_per_s, READ_16K, "beside that of 4 KiB",
            |f| difference(f, READ_16K, READ), inverse;
        interface_mb_per_s, STREAM_READ, "", |f| f.value(STREAM_READ), rate;
        buffer_us, WRITE, "", |f| f.value(WRITE), part;
        program_us, STREAM_WRITE, "", |f| f.value(STREAM_WRITE), inverse;
        random_write_amplification, WRITE_32, "beside sequential ones",
            |f| f.value(WRITE_32), inverse;
        flush_us, FLUSH, "", |f| f.value(FLUSH), part;
        write_buffer_kb, BUFFER, "taken before writes became slow", |f| f.value(BUFFER), size;
    }

    fn params(self) -> ModelParams {
        ModelParams::Ssd(self)
    }

    fn round_sizes(&mut self) {
        self.write_buffer_kb = memory_kib(self.write_buffer_kb.into()) as u32;
    }
}

impl Flash for EmmcParams {
    knobs! { EmmcParams:
        command_us, READ_ON, "", |f| f.value(READ_ON), part;
        read_access_us, READ, "beside the next one", |f| difference(f, READ, READ_ON), part;
        read_mb_per_s, READ_256K, "beside that of 64 KiB",
            |f| difference(f, READ_256K, READ_64K), inverse;
        write_access_us, DURABLE, "", |f| f.value(DURABLE), part;
        write_mb_per_s, DURABLE_64K, "beside that of 4 KiB",
            |f| difference(f, DURABLE_64K, DURABLE), inverse;
        erase_ms, STREAM_WRITE, "beside writes that close no group",
            |f| Some(ERASED_KB / f.value(STREAM_WRITE)?), part;
        flush_us, FLUSH, "", |f| f.value(FLUSH), part;
        cache_kb, BUFFER, "taken before writes became slow", |f| f.value(BUFFER), size;
    }

    fn params(self) -> ModelParams {
        ModelParams::Emmc(self)
    }

    fn round_sizes(&mut self) {
        self.cache_kb = memory_kib(self.cache_kb.into()) as u32;
    }
}

impl Flash for NvramParams {
    knobs! { NvramParams:
        interrupt_us, READ, "beside the data", |f| f.value(READ_512).or(f.value(READ)), part;
        bus_clock_mhz, READ_64K, "beside that of 4 KiB, or that of 512 B",
            |f| difference(f, READ, READ_512).or(difference(f, READ_64K, READ)), inverse;
        descriptor_overhead_us, READ_512, "beside larger ones",
            |f| f.value(READ_512).and(difference(f, READ_64K, READ)), fifteenth;
    }

    fn params(self) -> ModelParams {
        ModelParams::Nvram(self)
    }
}

/// KiB that are written while a group is erased: of a default one.
const ERASED_KB: f64 = 524.288;

/// A kind's model that is nearest to the figures of a device, and how far it is: the mean of the
/// logarithms of the figures' ratios.
pub(super) struct FlashFit {
    pub params: ModelParams,
    pub from: std::collections::BTreeMap<&'static str, Provenance>,
    pub model: Figures,
    pub error: f64,
}

/// How the model is asked: as the device was.
pub(super) type Ask<'a> = &'a dyn Fn(&ModelParams) -> Result<Figures>;

fn distance(device: &Figures, model: &Figures) -> f64 {
    let logs = device.0.iter().filter_map(|f| {
        let other = model.value(&f.name)?;
        // Below a microsecond, or nothing of a size: as good as none.
        Some(((f.value + 1.0) / (other + 1.0)).ln().abs())
    });
    let logs: Vec<f64> = logs.collect();
    logs.iter().sum::<f64>() / logs.len().max(1) as f64
}

/// Moves the parameters of one start.
fn refine<P: Flash>(mut fit: Fit<P>, device: &Figures, ask: Ask<'_>) -> Result<FlashFit> {
    let mut best: Option<FlashFit> = None;
    let mut tried = fit.params.clone();
    for _ in 0..STEPS {
        let params = tried.clone().params();
        let model = ask(&params)?;
        let error = distance(device, &model);
        for knob in P::KNOBS {
            if let (Some(wanted), Some(is)) = ((knob.of)(device), (knob.of)(&model)) {
                (knob.step)(&mut tried, wanted, is);
                fit.measured(knob.parameter, device, knob.figure, knob.how);
            }
        }
        P::round_sizes(&mut tried);
        if best.as_ref().is_none_or(|best| error < best.error) {
            best = Some(FlashFit { params, from: fit.from.clone(), model, error });
        }
        if tried.check().is_err() {
            break;
        }
    }
    // OK to unwrap: the first step has found one.
    Ok(best.unwrap())
}

/// The kind that is nearest, of those that a device without a head can be.
pub(super) fn fit(device: &Figures, bytes: u64, ask: Ask<'_>) -> Result<Vec<FlashFit>> {
    let sectors = bytes / 512;
    let said = || Provenance::Said("the device's size".into());
    let mut all = Vec::new();
    for p in ssds(device, sectors) {
        let mut fit = Fit::new(p);
        fit.note("sectors", said());
        fit.measured("write_cache", device, FLUSH, "beside one of nothing");
        fit.measured("dies_per_channel", device, READ_32, "by trial");
        all.push(refine(fit, device, ask)?);
    }
    let (least, most) = all.iter().fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), f| {
        (least.min(f.error), most.max(f.error))
    });
    if most < ALIKE * least {
        all.iter_mut().for_each(|f| drop(f.from.remove("dies_per_channel")));
    }
    let mut fit = Fit::new(emmc(device, sectors));
    fit.note("sectors", said());
    fit.measured("cache", device, WRITE, "beside durable ones");
    fit.measured("erase_group_kb", device, GROUP, "");
    fit.measured("open_groups", device, OPEN, "");
    all.push(refine(fit, device, ask)?);
    let size_mib = u32::try_from(bytes >> 20).unwrap_or(u32::MAX).clamp(1, 1 << 16);
    let mut params = NvramParams { size_mib, ..NvramParams::default() };
    if device.get(READ_512).is_none() {
        // What is the same for each 4 KiB cannot be told apart.
        params.descriptor_overhead_us = 0.0;
    }
    let mut fit = Fit::new(params);
    fit.note("size_mib", said());
    if bytes >> 20 <= 1 << 16 {
        all.push(refine(fit, device, ask)?);
    }
    all.sort_by(|a, b| a.error.total_cmp(&b.error));
    Ok(all)
}

/// Solid-state disks to begin with: what cannot be moved in steps is tried.
fn ssds(device: &Figures, sectors: u64) -> Vec<SsdParams> {
    let flushes = match (device.value(FLUSH), device.value(FLUSH_IDLE)) {
        (Some(after), Some(idle)) => after > 2.0 * idle + 50.0,
        _ => false,
    };
    let caches = match (device.value(WRITE), flushes) {
        (None, _) => &[SsdCache::Protected][..],
        (Some(_), true) => &[SsdCache::Volatile],
        (Some(_), false) => &[SsdCache::Protected, SsdCache::Off],
    };
    let mut all = Vec::new();
    for write_cache in caches {
        let default = SsdParams::default();
        let usual = default.dies_per_channel;
        for dies_per_channel in [usual, 1, 16] {
            let default = default.clone();
            let program_us = default.program_us * f64::from(dies_per_channel) / f64::from(usual);
            let write_cache = *write_cache;
            all.push(SsdParams { sectors, write_cache, dies_per_channel, program_us, ..default });
        }
    }
    all
}

fn emmc(device: &Figures, sectors: u64) -> EmmcParams {
    let default = EmmcParams::default();
    let whole = |name, default| device.value(name).map_or(default, |v| v.round() as u32);
    let cache = match (device.value(WRITE), device.value(DURABLE)) {
        (Some(write), Some(durable)) => write < 0.7 * durable,
        _ => false,
    };
    EmmcParams {
        sectors,
        cache,
        erase_group_kb: whole(GROUP, default.erase_group_kb),
        open_groups: whole(OPEN, default.open_groups),
        ..default
    }
}
