//! dd's copies on a variant: one after the other, on one file system.

use steadfast_runtime::now;

use super::load::{Load, Outcome};
use super::place::Stack;
use super::timings::in_simulation;
use super::{Part, Report, Setting};
use crate::results::{Figure, Row};
use crate::scenario::{DdSpec, Variant};

/// What the copies of a variant brought: rows, virtual seconds of all, and what dd said.
type Copied = (Vec<Row>, f64, Vec<String>);

/// Runs them.
fn run(setting: &Setting, copies: &[DdSpec], variant: &Variant) -> Result<Copied, String> {
    let machine = Stack::machine(setting, variant);
    let (inner, full) = (copies.to_vec(), setting.options.full);
    let (speeds, seconds) = in_simulation(setting, variant, move || {
        let stack = Stack::build(machine)?;
        let began = now();
        let each = inner.iter().map(|spec| {
            spec.before.iter().try_for_each(|line| stack.copy_silently(line))?;
            if spec.cold {
                // What is read next is read from the devices.
                stack.unmount()?;
            }
            let (counts, said) = stack.copy(spec.line(full))?;
            let seconds = counts.elapsed.as_secs_f64().max(1e-9);
            Ok((counts.bytes as f64 / 1024.0 / seconds, said.words()))
        });
        let speeds = each.collect::<Result<Vec<_>, String>>()?;
        stack.unmount()?;
        Ok((speeds, (now() - began).as_secs_f64()))
    })?;
    let said = copies.iter().zip(&speeds).filter(|(_, (_, said))| !said.is_empty());
    let notes =
        said.map(|(spec, (_, said))| format!("{}: {}: dd: {said}", variant.name, spec.test));
    let rows = copies.iter().zip(&speeds).map(|(spec, (kb_per_s, _))| {
        let published = setting.scenario.published.iter().find(|p| p.test == spec.test);
        Row {
            test: spec.test.clone(),
            variant: variant.name.clone(),
            figure: Figure::Children,
            kb_per_s: *kb_per_s,
            published_kb_per_s: published.and_then(|p| p.kb_per_s.get(&variant.name).copied()),
            children_kb_per_s: *kb_per_s,
            parent_kb_per_s: *kb_per_s,
            latency_us: None,
            distribution: None,
        }
    });
    Ok((rows.collect(), seconds, notes.collect()))
}

/// dd's copies as a workload.
pub(super) struct Copies(pub Vec<DdSpec>);

impl Load for Copies {
    fn command(&self) -> Option<String> {
        let lines: Vec<String> =
            self.0.iter().map(|spec| format!("dd {}", spec.operands)).collect();
        Some(lines.join("; "))
    }

    fn run(
        &self,
        setting: &Setting,
        variant: &Variant,
        _: Part,
        _: Report,
    ) -> Result<Outcome, String> {
        let (rows, seconds, notes) = run(setting, &self.0, variant)?;
        Ok(Outcome { rows, virtual_seconds: Some(seconds), notes, ..Outcome::default() })
    }

    fn is_reduced_by_default(&self) -> bool {
        self.0.iter().any(|spec| spec.quick.is_some())
    }
}
