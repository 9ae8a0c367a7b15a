//! dd's copies on a variant: one after the other, on one file system.

use steadfast_bench::dd::Counts;
use steadfast_runtime::now;

use super::measured::speed;
use super::setting::{Part, Report, Subject};
use super::stack_target::StackTarget;
use super::workload::{JobResult, Workload};
use crate::Result;
use crate::results::{CopyRow, SpeedRow};
use crate::scenario::DdSpec;

/// dd's copies as a workload.
pub(super) struct Copies(pub Vec<DdSpec>);

impl Workload for Copies {
    fn command(&self) -> Option<String> {
        let lines: Vec<String> =
            self.0.iter().map(|spec| format!("dd {}", spec.operands)).collect();
        Some(lines.join("; "))
    }

    fn parts(&self, of: Subject<'_>) -> Vec<Part> {
        of.measured_if(self.0.iter().any(|spec| of.variant.is_among(&spec.variants)))
    }

    fn run(&self, of: Subject<'_>, _: Part, _: Report) -> Result<JobResult> {
        let Subject { setting, variant } = of;
        let own = self.0.iter().filter(|spec| variant.is_among(&spec.variants));
        let (copies, full): (Vec<DdSpec>, bool) = (own.cloned().collect(), setting.options.full);
        let inner = copies.clone();
        let (copied, virtual_seconds) = setting.on_stack(variant, None, move |stack| {
            stack.make()?;
            let dd = StackTarget(stack);
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
            let copied = each.collect::<Result<Vec<(Counts, String)>>>()?;
            Ok((copied, (now() - began).as_secs_f64()))
        })?;
        let took = of.took(virtual_seconds, None);
        let (mut rows, mut copy_rows, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for (spec, (counts, said)) in copies.iter().zip(&copied) {
            let kb_per_s = counts.bytes as f64 / 1024.0 / seconds_of(counts);
            let row = speed(&setting.scenario, variant, &spec.test, kb_per_s);
            copy_rows.push(copy_row(&row, counts));
            rows.push(row);
            if !said.is_empty() {
                notes.push(format!("{}: {}: dd: {said}", variant.name, spec.test));
            }
        }
        Ok(JobResult { notes, ..JobResult::of([took]).with(rows).with(copy_rows) })
    }

    fn is_reduced_by_default(&self) -> bool {
        self.0.iter().any(|spec| spec.quick.is_some())
    }
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
