//! Puts together what the jobs of a run brought.

use std::collections::BTreeMap;

use super::{Load, Outcome, Part, Setting};
use crate::results::{Clock, FilesRow, Results, RiskRow, VERSION, VariantInfo, points, ratios};
use crate::scenario::Variant;

/// What the speeds are of, where the kernel's file systems take part.
const REAL_TIME: &str = "Speeds are of runs in real time, one after the other, all on the same \
    modelled device behind a loop device: Steadfast in process, the kernel's by system calls. \
    What else the machine does slows them: compare the rows of one run only. The kernel's runs are \
    the ones that were cut; Steadfast's were cut in virtual time, with the same result for the \
    same seed.";

impl Setting {
    pub(super) fn results(&self, jobs: &[(usize, Part)], outcomes: Vec<Outcome>) -> Results {
        let mut rows = Vec::new();
        let mut risk = Vec::new();
        let mut files = Vec::new();
        let mut notes = Vec::new();
        let mut left_out: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        let mut seconds = vec![None; self.scenario.variants.len()];
        for ((variant, _), outcome) in jobs.iter().zip(outcomes) {
            match outcome {
                Outcome::Speed { rows: of_variant, virtual_seconds, notes: of_run } => {
                    rows.extend(of_variant);
                    seconds[*variant] = Some(virtual_seconds);
                    for note in of_run {
                        if !notes.contains(&note) {
                            notes.push(note);
                        }
                    }
                }
                Outcome::Risk(row) => risk.push(*row),
                Outcome::Files(of_files, row) => {
                    if of_files.clock == Clock::Virtual {
                        seconds[*variant] = Some(of_files.elapsed_seconds);
                    }
                    files.push(*of_files);
                    risk.push(*row);
                }
                Outcome::LeftOut(why) => {
                    let name = self.scenario.variants[*variant].name.as_str();
                    left_out.entry(why).or_default().push(name);
                }
            }
        }
        if files.iter().any(|f: &FilesRow| f.clock == Clock::Real) {
            notes.push(REAL_TIME.into());
        }
        for (why, names) in left_out {
            notes.push(format!("LEFT OUT: {}: {why}", names.join(", ")));
        }
        notes.extend(self.scale_note());
        notes.extend(self.control_notes(&risk));
        notes.extend(blind_notes(&risk));
        notes.extend(self.cacheless_note(&risk));
        let variants = self.scenario.variants.iter().zip(seconds);
        Results {
            format: "steadfast-lab",
            version: VERSION,
            scenario: self.scenario.name.clone(),
            title: self.scenario.title.clone(),
            source: self.scenario.source.clone(),
            seed: self.options.seed,
            full: self.options.full,
            command: match &self.load {
                Load::Iozone { speed, .. } => speed.command_line.clone(),
                Load::Files(_, description) => description.clone(),
            },
            risk_command: match &self.load {
                Load::Iozone { risk: cut, .. } if !risk.is_empty() => {
                    Some(cut.command_line.clone())
                }
                _ => None,
            },
            variants: variants
                .map(|(v, virtual_seconds)| VariantInfo {
                    name: v.name.clone(),
                    label: v.label.clone(),
                    devices: self.device_names(v),
                    mount: v.mount.clone(),
                    kernel: v.kernel.clone(),
                    virtual_seconds,
                })
                .collect(),
            ratios: ratios(&rows, self.scenario.baseline()),
            speed_and_exposure: points(&rows, &files, &risk),
            rows,
            files,
            risk,
            notes,
        }
    }

    fn device_names(&self, variant: &Variant) -> Vec<String> {
        std::iter::once(&variant.disk)
            .chain(&variant.journal)
            .map(|name| format!("{name}: {}", self.scenario.devices[name].description()))
            .collect()
    }

    /// Says that disks were scaled with the files.
    fn scale_note(&self) -> Option<String> {
        let mut devices = self.measured.devices.iter().map(|(name, d)| {
            // OK to index: it is a scenario of the same devices.
            (d.bytes(), self.scenario.devices[name].bytes())
        });
        devices.find(|(measured, whole)| measured < whole).map(|(measured, whole)| {
            format!(
                "The benchmark ran at a reduced size, on scale models of the disks: {:.3} of their \
                 capacity, as of the files' size, so that seeks take as long as at the full size.",
                measured as f64 / whole as f64
            )
        })
    }

    /// Says whether the control has shown that the check can fail.
    fn control_notes(&self, risk: &[RiskRow]) -> Vec<String> {
        risk.iter()
            .filter_map(|r| {
                let v = self.scenario.variants.iter().find(|v| v.name == r.variant)?;
                let lies = self.scenario.lies(v);
                match (lies, r.broken_promises) {
                    (true, 0) => Some(format!(
                        "'{}' lies about its flushes and yet no broken promise was found in {} \
                         cuts: make more cuts before trusting the zeros of the others.",
                        r.variant, r.cuts
                    )),
                    (true, n) => Some(format!(
                        "'{}' is the control: its disk acknowledges flushes without doing them, \
                         and {n} promises were broken in {} of {} cuts. The check can fail.",
                        r.variant, r.cuts_with_broken_promises, r.cuts
                    )),
                    _ if v.kernel.is_some() => None,
                    (false, n) if n > 0 || r.damage > 0 => Some(format!(
                        "'{}' BROKE {n} PROMISES and was damaged after {} of {} cuts, on honest \
                         devices.",
                        r.variant, r.damage, r.cuts
                    )),
                    _ => None,
                }
            })
            .collect()
    }

    /// Says which variants' zeros cannot show a missing flush.
    fn cacheless_note(&self, risk: &[RiskRow]) -> Option<String> {
        let without = |r: &&RiskRow| {
            r.control_flushes_omitted.as_ref().is_some_and(|control| !control.must_break)
        };
        let names: Vec<&str> = risk.iter().filter(without).map(|r| r.variant.as_str()).collect();
        (!names.is_empty()).then(|| {
            format!(
                "{}: no device of these has a volatile cache, so what is acknowledged is kept, \
                 flushed or not. Their zeros say nothing about flushes: with every flush and FUA \
                 left out they stay zero.",
                names.join(", ")
            )
        })
    }
}

/// Says of each control that did not fail that it did not.
fn blind_notes(risk: &[RiskRow]) -> Vec<String> {
    let controls = |r: &RiskRow| {
        let named = [
            (r.control_flush_ignored.clone(), "drives that ignore flushes"),
            (r.control_flushes_omitted.clone(), "no flush asked for"),
        ];
        let name = r.variant.clone();
        named.into_iter().filter_map(move |(control, what)| {
            let control = control.filter(|c| c.is_blind())?;
            Some(format!(
                "CONTROL DID NOT FAIL: '{name}' with {what}: no broken promise in {} cuts; its \
                 zeros prove nothing. Make more cuts.",
                control.cuts
            ))
        })
    };
    risk.iter().flat_map(controls).collect()
}
