//! hdparm's timings: of devices, each by itself, and of files on variants.

use std::sync::Arc;

use steadfast_bench::hdparm::line::TimingSelection;
use steadfast_bench::hdparm::{self, CopyCost, DeviceReader, FileReader, Readable, Timing};
use steadfast_pagecache::Settings;
use steadfast_vfs::{FileSystem, OpenFlags, path};

use super::measured::published;
use super::setting::{Part, Report, Subject};
use super::stack_target::StackTarget;
use super::workload::{JobResult, Workload};
use crate::results::TimingRow;
use crate::scenario::{HdparmSpec, Scenario, Variant, is_file};
use crate::{Result, VariantError};

/// hdparm's timings as a workload.
pub(super) struct Timings(pub Vec<HdparmSpec>);

impl Timings {
    /// What is timed with a variant: files on each, and a device with the first that has it.
    fn on<'a>(&'a self, of: Subject<'a>) -> impl Iterator<Item = (&'a HdparmSpec, &'a String)> {
        let all = self.0.iter().flat_map(|spec| spec.targets.iter().map(move |t| (spec, t)));
        all.filter(move |(_, target)| match is_file(target) {
            true => of.variant.run.speed(),
            false => first_with(&of.setting.scenario, target) == Some(&of.variant.name),
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

    fn parts(&self, of: Subject<'_>) -> Vec<Part> {
        of.measured_if(self.on(of).next().is_some())
    }

    fn run(&self, of: Subject<'_>, _: Part, _: Report) -> Result<JobResult> {
        let timed = self.on(of).map(|(spec, target)| match is_file(target) {
            true => file(of, spec, target),
            false => device(of, spec, target),
        });
        Ok(JobResult::of(timed.collect::<Result<Vec<_>>>()?.concat()))
    }
}

/// Times a device of the scenario, which is new and used by nobody else, on a variant's machine.
fn device(of: Subject<'_>, spec: &HdparmSpec, name: &str) -> Result<Vec<TimingRow>> {
    let (called, wanted) = (name.to_owned(), spec.wanted);
    let timed = of.setting.on_stack(of.variant, None, move |stack| {
        let device = stack.device(&called)?;
        let settings = Settings::default();
        let (ns_per_kib, ns_per_page) = (settings.cpu_copy_ns_per_kib, settings.cpu_page_ns);
        let cost = CopyCost { ns_per_kib, ns_per_page };
        timings(&mut DeviceReader::new(device, wanted.direct, cost), wanted)
    })?;
    Ok(rows(&of.setting.scenario, spec, timed, name, None))
}

/// Times a file of a variant, after what is to be done before.
fn file(of: Subject<'_>, spec: &HdparmSpec, name: &str) -> Result<Vec<TimingRow>> {
    let (called, before, wanted) = (name.to_owned(), spec.before.clone(), spec.wanted);
    let timed = of.setting.on_stack(of.variant, None, move |stack| {
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
    Ok(rows(&of.setting.scenario, spec, timed, name, Some(&of.variant.name)))
}

/// -T, if it is wanted, and -t.
type TimingPair = [Option<Timing>; 2];

fn timings(from: &mut dyn Readable, wanted: TimingSelection) -> Result<TimingPair> {
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
