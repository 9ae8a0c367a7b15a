//! hdparm's timings: of devices, each by itself, and of files on variants.

use std::sync::Arc;

use steadfast_bench::hdparm::line::TimingSelection;
use steadfast_bench::hdparm::{self, CopyCost, DeviceReader, FileReader, Readable, Timing};
use steadfast_pagecache::Settings;
use steadfast_vfs::{FileSystem, OpenFlags, path};

use super::measured::published;
use super::setting::{Part, Report, Setting};
use super::stack_target::StackTarget;
use super::workload::{JobResult, Workload};
use crate::VariantError;
use crate::results::TimingRow;
use crate::scenario::{HdparmSpec, Scenario, Variant, is_file};

/// hdparm's timings as a workload.
pub(super) struct Timings(pub Vec<HdparmSpec>);

impl Timings {
    /// What is timed with a variant: files on each, and a device with the first that has it.
    fn of<'a>(
        &'a self,
        setting: &'a Setting,
        variant: &'a Variant,
    ) -> impl Iterator<Item = (&'a HdparmSpec, &'a String)> {
        let all = self.0.iter().flat_map(|spec| spec.targets.iter().map(move |t| (spec, t)));
        all.filter(move |(_, target)| match is_file(target) {
            true => variant.run.speed(),
            false => first_with(&setting.scenario, target) == Some(&variant.name),
        })
    }
}

/// The first measured variant that has a device; of one that none has, the first of all.
fn first_with<'s>(scenario: &'s Scenario, device: &str) -> Option<&'s String> {
    let measured = || scenario.variants.iter().filter(|v| v.run.speed());
    let has = |v: &&Variant| scenario.leaves(v).iter().any(|leaf| leaf == device);
    measured().find(has).or_else(|| measured().next()).map(|v| &v.name)
}

impl Workload for Timings {
    fn command(&self) -> Option<String> {
        let lines: Vec<String> = self.0.iter().map(|s| format!("hdparm {}", s.line)).collect();
        Some(lines.join("; "))
    }

    fn parts(&self, setting: &Setting, variant: &Variant) -> Vec<Part> {
        self.of(setting, variant).next().map(|_| Part::Speed).into_iter().collect()
    }

    fn run(
        &self,
        setting: &Setting,
        variant: &Variant,
        _: Part,
        _: Report,
    ) -> Result<JobResult, VariantError> {
        let timed = self.of(setting, variant).map(|(spec, target)| match is_file(target) {
            true => file(setting, spec, variant, target),
            false => device(setting, spec, variant, target),
        });
        Ok(JobResult::of(timed.collect::<Result<Vec<_>, VariantError>>()?.concat()))
    }

    fn is_reduced_by_default(&self) -> bool {
        false
    }
}

/// Times a device of the scenario, which is new and used by nobody else, on a variant's machine.
fn device(
    setting: &Setting,
    spec: &HdparmSpec,
    variant: &Variant,
    name: &str,
) -> Result<Vec<TimingRow>, VariantError> {
    let (called, wanted) = (name.to_owned(), spec.wanted);
    let timed = setting.on_stack(variant, None, move |stack| {
        let device = stack.device(&called)?;
        let settings = Settings::default();
        let (ns_per_kib, ns_per_page) = (settings.cpu_copy_ns_per_kib, settings.cpu_page_ns);
        let cost = CopyCost { ns_per_kib, ns_per_page };
        timings(&mut DeviceReader::new(device, wanted.direct, cost), wanted)
    })?;
    Ok(rows(&setting.scenario, spec, timed, name, None))
}

/// Times a file of a variant, after what is to be done before.
fn file(
    setting: &Setting,
    spec: &HdparmSpec,
    variant: &Variant,
    name: &str,
) -> Result<Vec<TimingRow>, VariantError> {
    let (called, before, wanted) = (name.to_owned(), spec.before.clone(), spec.wanted);
    let timed = setting.on_stack(variant, None, move |stack| {
        stack.make()?;
        before.iter().try_for_each(|line| StackTarget(stack).copy_silently(line))?;
        // What is read next is read from the devices.
        stack.unmount()?;
        let fs: Arc<dyn FileSystem> = stack.mounted()?;
        let failed = VariantError::call(&called);
        let attr = path::resolve(&*fs, called.as_bytes(), true).map_err(&failed)?;
        let mut flags = OpenFlags::READ;
        flags.set(OpenFlags::DIRECT, wanted.direct);
        let fh = fs.open(attr.ino, flags).map_err(&failed)?;
        let timed = timings(&mut FileReader::new(Arc::clone(&fs), fh, attr.size), wanted);
        fs.release(fh).map_err(&failed)?;
        timed
    })?;
    Ok(rows(&setting.scenario, spec, timed, name, Some(&variant.name)))
}

/// -T, if it is wanted, and -t.
type TimingPair = [Option<Timing>; 2];

fn timings(from: &mut dyn Readable, wanted: TimingSelection) -> Result<TimingPair, VariantError> {
    let cached = wanted.cached.then(|| hdparm::cached(from)).transpose()?;
    let offset = wanted.offset_gib.unwrap_or(0).saturating_mul(1 << 30);
    let disk = wanted.disk.then(|| hdparm::disk(from, offset)).transpose()?;
    Ok([cached, disk])
}

fn rows(
    scenario: &Scenario,
    spec: &HdparmSpec,
    timed: TimingPair,
    target: &str,
    variant: Option<&str>,
) -> Vec<TimingRow> {
    let row = |(test, timing): (String, Timing)| {
        let by = variant.unwrap_or(target);
        TimingRow {
            published_kb_per_s: published(scenario, &test)
                .and_then(|p| p.kb_per_s.get(by).copied()),
            test,
            variant: variant.map(str::to_owned),
            bytes: timing.bytes,
            seconds: timing.took.as_secs_f64(),
            kb_per_s: timing.bytes as f64 / 1024.0 / timing.took.as_secs_f64().max(1e-9),
        }
    };
    spec.tests(target).zip(timed.into_iter().flatten()).map(row).collect()
}
