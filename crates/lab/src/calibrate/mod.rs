//! A model of a device that is there: measured, fitted, and judged by a mix of requests that the
//! fit has not seen.
//!
//! [`measure`] asks the device, in the world of its caller: a disk in real time, or a model in
//! virtual time, by the same code. [`fit()`] looks for the model that is like what was measured: of
//! a disk parameters follow from the figures; of flash and memory the same probes are run on a
//! model in virtual time, and each parameter is moved until its figure is the device's.

mod disk;
mod error;
pub(crate) mod figures;
mod fit;
mod flash;
mod groups;
mod mix;
pub(crate) mod probe;
pub(crate) mod text;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use steadfast_block::{BlockDevice, DeviceInfo};
use steadfast_devices::model::ModelParams;
use steadfast_runtime::Sim;

pub use error::CalibrateError;
pub(crate) use error::Result;
pub use figures::{Figure, Figures};
use fit::Provenance;
pub use mix::Agreement;
use mix::{ClassTimes, Mix};
use probe::{MIB, Prober};

use crate::Watch;

/// The least device: a smaller one is within the caches of most.
pub const LEAST_BYTES: u64 = 32 * MIB;
/// Above this a model is not to be trusted, in % of the mean.
pub(crate) const DEMERIT_MAX: f64 = 10.0;

/// How long a disk takes with all the repetitions that its figures need.
pub const USUAL_SECONDS: f64 = 120.0;

/// Rounds of all figures.
const ROUNDS: usize = 3;
/// Seconds of each of the two runs of the mix.
const MIX_SECONDS: f64 = 12.0;
/// Runs of the mix on the model of a disk: the luck of its seeks is not to be judged.
const DISK_RUNS: u64 = 8;

/// How a device is measured.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// It is written to, whatever it holds.
    pub writes: bool,
    /// Of all random choices.
    pub seed: u64,
    /// Bytes of it that are used at most, from the start.
    pub bytes: u64,
    /// About how many seconds it takes at the most.
    pub seconds: f64,
}

/// What was measured.
pub struct Probes {
    device: DeviceInfo,
    options: Options,
    /// Its size.
    size: u64,
    /// So much of it was measured, from the start.
    bytes: u64,
    has_a_head: bool,
    figures: Figures,
    mix: Mix,
    taken: [ClassTimes; 2],
}

/// Measures a device.
///
/// # Errors
/// It fails, is too small, cannot be written to, or is too noisy; or whoever watches stops it.
pub fn measure(
    device: Arc<dyn BlockDevice>,
    options: Options,
    watch: &Watch<'_>,
) -> Result<Probes> {
    let mut info = device.info();
    info.size = info.size.min(options.bytes);
    is_large_enough(&info)?;
    let size = info.size;
    if options.writes && info.read_only {
        return Err(CalibrateError::ReadOnly { device: info.name });
    }
    let mut p = Prober::new(device, options.seed, watch);
    p.size = p.size.min(options.bytes) / MIB * MIB;
    p.pace = options.seconds / USUAL_SECONDS;
    p.tell(0.0, "the kind of device");
    p.seeks = figures::varies(&mut p)? && disk::rotates(&mut p)?;
    let has_a_head = p.seeks;
    if options.writes && !has_a_head {
        p.tell(0.02, "writes what will be read");
        // What was never written is read without the medium.
        p.size = figures::prepare(&p)?.max(LEAST_BYTES);
    }
    let mut readings = Vec::new();
    for n in 0..ROUNDS {
        p.tell(0.05 + 0.25 * n as f64, &format!("round {} of {ROUNDS}", n + 1));
        round(&mut p, (has_a_head, options.writes, n), &mut readings)?;
    }
    let figures = Figures::of(&readings);
    figures.believe(&info.name)?;
    p.tell(0.8, "a mix that no figure is from");
    let writes = options.writes.then_some(has_a_head);
    let mix = Mix { seed: options.seed, luck: 0, steps: 0, writes };
    let mix = mix.fitted(&mut p, MIX_SECONDS * options.seconds / USUAL_SECONDS)?;
    let first = mix.run(&mut p)?;
    p.tell(0.9, "the mix again");
    let again = Mix { luck: 1, ..mix };
    again.warm_up(&mut p)?;
    let second = again.run(&mut p)?;
    let (bytes, taken) = (p.size, [first, second]);
    Ok(Probes { device: info, options, size, bytes, has_a_head, figures, mix, taken })
}

/// # Errors
/// The device is too small to be measured.
pub fn is_large_enough(info: &DeviceInfo) -> Result<()> {
    let DeviceInfo { name, size, .. } = info;
    match *size < LEAST_BYTES {
        true => {
            let (device, size) = (name.clone(), *size);
            Err(CalibrateError::TooSmall { device, size, least: LEAST_BYTES })
        }
        false => Ok(()),
    }
}

/// Seconds in which a file of our own is filled.
const OWN_FILL_SECONDS: f64 = 30.0;

/// Fills a new device, from the start, as far as there is time for; the bytes that have been
/// filled.
///
/// # Errors
/// It fails, or whoever watches stops it.
pub fn fill(device: &Arc<dyn BlockDevice>, watch: &Watch<'_>) -> Result<u64> {
    let p = Prober::new(Arc::clone(device), 0, watch);
    p.tell(0.0, "fills a file");
    p.fill(p.size, OWN_FILL_SECONDS)
}

/// One round of all figures.
fn round(
    p: &mut Prober<'_>,
    (disk, writes, n): (bool, bool, usize),
    into: &mut Vec<figures::Reading>,
) -> Result<()> {
    figures::reads(p, into)?;
    if disk {
        disk::round(p, into, (writes, n == 0))?;
    }
    if writes {
        figures::writes(p, disk, into)?;
        if !disk && n == 0 {
            groups::look(p, into)?;
        }
    }
    Ok(())
}

/// What a model of the device is, and how far it can be trusted.
#[derive(Serialize)]
pub struct Calibration {
    /// The device's name.
    pub device: String,
    /// What it says that it is.
    pub model: String,
    /// Bytes that were measured.
    pub bytes: u64,
    /// Whether it was written to.
    pub writes: bool,
    /// What was measured.
    pub figures: Figures,
    /// The same of the fitted model, where the fit has asked it.
    pub model_figures: Figures,
    /// The parameters with the kind.
    pub params: ModelParams,
    /// Where those of them are from that are not the model's defaults.
    #[serde(rename = "provenance")]
    from: BTreeMap<&'static str, Provenance>,
    /// Kinds that were tried, the nearest first: mean distance of their figures, in %.
    pub kinds: Vec<(&'static str, f64)>,
    /// All requests of the mix together, then each kind of request.
    pub validation: Vec<Agreement>,
    /// Two runs of the mix on the device: their demerit, in % of the mean.
    pub repeatability_percent: f64,
}

/// Finds the model, and judges it. Works in virtual time.
///
/// # Errors
/// No model can be so, or somebody wants it to stop.
pub fn fit(measured: &Probes, stop: &AtomicBool) -> Result<Calibration> {
    let go_on = || match stop.load(Ordering::Relaxed) {
        true => Err(CalibrateError::Interrupted),
        false => Ok(()),
    };
    go_on()?;
    let Probes { device, options, figures, size, bytes, taken, .. } = measured;
    let bytes = *bytes;
    let (params, from, model_figures, kinds) = if measured.has_a_head {
        let fit = disk::fit(figures, bytes)?;
        (ModelParams::Hdd(fit.params), fit.from, Figures::default(), vec![("hdd", 0.0)])
    } else {
        let writes = options.writes;
        let ask = |params: &ModelParams| {
            go_on()?;
            let readings = in_model(params, options.seed, move |p| {
                p.size = p.size.min(bytes);
                if writes {
                    figures::prepare(p)?;
                }
                let mut readings = Vec::new();
                round(p, (false, writes, 1), &mut readings)?;
                Ok(readings)
            })?;
            Ok(Figures::of(&readings))
        };
        let mut all = flash::fit(figures, *size, &ask)?;
        let mut kinds: Vec<(&'static str, f64)> = Vec::new();
        for f in &all {
            if !kinds.iter().any(|(name, _)| *name == f.params.kind_name()) {
                kinds.push((f.params.kind_name(), f.error * 100.0));
            }
        }
        let best = all.swap_remove(0);
        (best.params, best.from, best.model, kinds)
    };
    let params = described(params, device);
    // What is judged is what is written.
    let params = text::rounded(&params).unwrap_or(params);
    params.check()?;
    let mut model = ClassTimes::new();
    for n in 0..if measured.has_a_head { DISK_RUNS } else { taken.len() as u64 } {
        // Flash has no luck: it is as it was in the same run on the device.
        let luck = if measured.has_a_head { 2 + n } else { n };
        go_on()?;
        let mix = Mix { luck, ..measured.mix };
        model.extend(in_model(&params, options.seed ^ n, move |p| {
            p.size = p.size.min(bytes);
            if mix.writes == Some(false) {
                figures::prepare(p)?;
            }
            mix.warm_up(p)?;
            mix.run(p)
        })?);
    }
    Ok(Calibration {
        device: device.name.clone(),
        model: device.model.clone(),
        bytes,
        writes: options.writes,
        figures: figures.clone(),
        model_figures,
        from,
        kinds,
        validation: mix::compare(&taken.concat(), &model),
        repeatability_percent: mix::repeatability(&taken[0], &taken[1]),
        params,
    })
}

/// The parameters with a description of the device.
fn described(mut params: ModelParams, device: &DeviceInfo) -> ModelParams {
    let text = format!("calibrated: {}", device.model);
    let description = serde::de::value::StringDeserializer::<serde::de::value::Error>::new(text);
    // OK to ignore: each kind of those that are fitted has one, and it is a text.
    let _ = params.set("description", description);
    params
}

/// Processors of a simulated machine that asks a model: each task has its own.
const CPUS: usize = 64;

/// Does something with a model, in virtual time.
pub(crate) fn in_model<T: 'static>(
    params: &ModelParams,
    seed: u64,
    ask: impl FnOnce(&mut Prober<'_>) -> Result<T> + 'static,
) -> Result<T> {
    let params = params.clone();
    Sim::new(seed).cpus(CPUS).run(move || {
        let stop = AtomicBool::new(false);
        let watch = Watch { progress: &|_, _| (), stop: &stop };
        let model: Arc<dyn BlockDevice> = params.build("the model")?;
        ask(&mut Prober::new(model, seed, &watch))
    })?
}

impl Calibration {
    /// Kinds of requests for which the model is not to be trusted, the worst first.
    pub(crate) fn not_to_be_trusted(&self) -> Vec<&Agreement> {
        let mut bad: Vec<&Agreement> =
            self.validation.iter().filter(|a| a.demerit_percent > DEMERIT_MAX).collect();
        bad.sort_by(|a, b| b.demerit_percent.total_cmp(&a.demerit_percent));
        bad
    }
}

#[cfg(test)]
mod tests;
