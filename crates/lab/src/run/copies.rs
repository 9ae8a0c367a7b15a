//! dd's copies on a variant: one after the other, on one file system.

use steadfast_bench::dd::Counts;
use steadfast_runtime::now;

use super::load::{JobResult, Load};
use super::place::{DdPlace, stack};
use super::timings::in_simulation;
use super::{Part, Report, Setting};
use crate::VariantError;
use crate::results::{CopyRow, SpeedRow, SumKind, VariantTime};
use crate::scenario::{DdSpec, Variant};

/// What the copies of a variant brought: rows, virtual seconds of all, and what dd said.
type CopyResult = (Vec<SpeedRow>, Vec<CopyRow>, f64, Vec<String>);

/// Runs them.
fn run(
    setting: &Setting,
    copies: &[DdSpec],
    variant: &Variant,
) -> Result<CopyResult, VariantError> {
    let stack = stack(setting, variant);
    let copies: Vec<DdSpec> =
        copies.iter().filter(|spec| spec.is_for(&variant.name)).cloned().collect();
    let (inner, full) = (copies.clone(), setting.options.full);
    let (speeds, seconds) = in_simulation(setting, variant, move || {
        stack.make()?;
        let dd = DdPlace(&stack);
        let began = now();
        let each = inner.iter().map(|spec| {
            spec.before.iter().try_for_each(|line| dd.copy_silently(line))?;
            if spec.cold {
                // What is read next is read from the devices.
                stack.unmount()?;
            }
            let (counts, said) = dd.copy(spec.line(full))?;
            Ok((counts, said.words()))
        });
        let speeds = each.collect::<Result<Vec<(Counts, String)>, VariantError>>()?;
        let seconds = (now() - began).as_secs_f64();
        stack.shut_down()?;
        Ok((speeds, seconds))
    })?;
    let said = copies.iter().zip(&speeds).filter(|(_, (_, said))| !said.is_empty());
    let notes =
        said.map(|(spec, (_, said))| format!("{}: {}: dd: {said}", variant.name, spec.test));
    let rows = copies.iter().zip(&speeds).map(|(spec, (counts, _))| {
        let published = setting.scenario.published.iter().find(|p| p.test == spec.test);
        let kb_per_s = counts.bytes as f64 / 1024.0 / seconds_of(counts);
        SpeedRow {
            test: spec.test.clone(),
            variant: variant.name.clone(),
            figure: SumKind::Children,
            kb_per_s,
            published_kb_per_s: published.and_then(|p| p.kb_per_s.get(&variant.name).copied()),
            children_kb_per_s: kb_per_s,
            parent_kb_per_s: kb_per_s,
            read_from_disk: None,
            written_to_disk: None,
            latency_us: None,
            distribution: None,
        }
    });
    let rows: Vec<SpeedRow> = rows.collect();
    let copy_rows = rows.iter().zip(&speeds).map(|(row, (counts, _))| copy_row(row, counts));
    Ok((rows.clone(), copy_rows.collect(), seconds, notes.collect()))
}

fn seconds_of(counts: &Counts) -> f64 {
    counts.elapsed.as_secs_f64().max(1e-9)
}

fn copy_row(row: &SpeedRow, counts: &Counts) -> CopyRow {
    let records = counts.whole_in + counts.part_in;
    let record_kb = counts.bytes as f64 / 1024.0 / records.max(1) as f64;
    CopyRow {
        test: row.test.clone(),
        variant: row.variant.clone(),
        records,
        bytes: counts.bytes,
        seconds: seconds_of(counts),
        records_per_s: records as f64 / seconds_of(counts),
        published_records_per_s: row.published_kb_per_s.map(|kb| kb / record_kb.max(1e-9)),
    }
}

/// dd's copies as a workload.
pub(super) struct Copies(pub Vec<DdSpec>);

impl Load for Copies {
    fn command(&self) -> Option<String> {
        let lines: Vec<String> =
            self.0.iter().map(|spec| format!("dd {}", spec.operands)).collect();
        Some(lines.join("; "))
    }

    fn parts(&self, _: &Setting, variant: &Variant) -> Vec<Part> {
        let runs_one = variant.run.speed() && self.0.iter().any(|spec| spec.is_for(&variant.name));
        runs_one.then_some(Part::Speed).into_iter().collect()
    }

    fn run(
        &self,
        setting: &Setting,
        variant: &Variant,
        _: Part,
        _: Report,
    ) -> Result<JobResult, VariantError> {
        let (rows, copies, virtual_seconds, notes) = run(setting, &self.0, variant)?;
        let took = VariantTime { variant: variant.name.clone(), virtual_seconds, log_used: None };
        Ok(JobResult { notes, ..JobResult::of([took]).with(rows).with(copies) })
    }

    fn is_reduced_by_default(&self) -> bool {
        self.0.iter().any(|spec| spec.quick.is_some())
    }
}
