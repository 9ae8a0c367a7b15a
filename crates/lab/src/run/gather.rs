//! Puts together what the jobs of a run brought.

use std::collections::BTreeMap;
use std::sync::Arc;

use steadfast_crash::program::describe::counted;
use steadfast_setup::Overwrite;

use super::cases::CaseEnd;
use super::jobs::Job;
use super::peers::Peers;
use super::setting::Setting;
use super::workload::JobResult;
use super::{disk_use, legs};
use crate::results::{
    ClockKind, ConfigurationInfo, ControlRow, FailureRow, FilesRow, FullSize, GridRow, JudgedScope,
    LegRow, Measurement, Note, PlantedRuns, Rate, Results, RiskRow, SeedResults, ShownRow, VERSION,
    VariantInfo, VariantTime, checked, place, points, published, ratios,
};
use crate::scenario::{RunKind, Scenario, Variant};

/// Said of results that are not whole.
const PARTIAL: &str = "PARTIAL: the run was interrupted; what had not ended by then is missing.";

/// What the speeds are of, where the kernel's file systems take part.
const REAL_TIME: &str = "Speeds are of runs in real time on the same modelled device behind a loop \
    device, by turns, one at a time: median, and least to greatest. By system calls: Steadfast \
    through its FUSE mount, the kernel's file systems through theirs; in process there is no \
    system call. What was cut are other, longer runs of the same workload: of the kernel's in real \
    time, of Steadfast's in virtual time, with the same result for the same seed.";

/// What the speeds are of with `--real`.
const NOT_SIMULATED: &str = "Speeds are of runs in real time on this machine, one at a time: they \
    depend on it, and on what else it does. Nothing was cut.";

/// Said where places are.
const PLACES: &str = "'place': the places that each may have by speed. Two have an order if a \
    signed-rank test of their runs, turn by turn, says so at a level of 5 % for all pairs together \
    (Holm), and their medians differ by 5 % or more.";

/// What all seeds brought, as one document; `None` without a seed. A job without an outcome was
/// interrupted.
pub(super) fn results(
    settings: &[Arc<Setting>],
    jobs: &[Job],
    outcomes: Vec<Option<CaseEnd>>,
    peers: Peers,
) -> Option<Results> {
    let first = settings.first()?;
    let partial = outcomes.iter().any(Option::is_none);
    let mut failures: Vec<FailureRow> =
        settings.iter().flat_map(|s| &s.reals.failures).cloned().chain(peers.failures).collect();
    let mut of_seeds: Vec<SeedRun> =
        settings.iter().map(|s| SeedRun::new(s.options.seed)).collect();
    for (job, outcome) in jobs.iter().zip(outcomes) {
        let variant = &first.scenario.variants[job.variant];
        match outcome {
            Some(CaseEnd::Ran(outcome)) => of_seeds[job.seed].add(variant, outcome),
            Some(CaseEnd::Failed(e)) => failures.push(FailureRow::of(variant, e)),
            None => {}
        }
    }
    failures.dedup();
    let mut notes: Vec<Note> = failures.iter().map(FailureRow::note).collect();
    if partial {
        notes.push(Note::alarm(PARTIAL));
    }
    let mut runs = Vec::new();
    for (gathered, setting) in of_seeds.into_iter().zip(settings) {
        let (run, of_run) = gathered.end(setting);
        for note in of_run {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        runs.push(run);
    }
    notes.extend(peers.notes);
    notes.extend(first.scale_note());
    notes.extend(first.control_notes(&runs));
    let risks = || runs.iter().flat_map(SeedResults::of::<RiskRow>);
    notes.extend(risks().flat_map(blind_notes));
    notes.extend(risks().filter_map(not_judged_note));
    notes.extend(cacheless_note(&runs));
    notes.extend(disk_use::notes(&runs));
    notes.extend(legs::notes(&first.scenario, &runs));
    notes.extend(matrix_note(&runs));
    let was_cut = runs
        .iter()
        .flat_map(|run| &run.measurements)
        .any(|m| m.row::<RiskRow>().is_some() || m.row::<LegRow>().is_some());
    Some(Results {
        format: "steadfast-lab".into(),
        version: VERSION,
        program: env!("CARGO_PKG_VERSION").into(),
        day: None,
        scenario: first.scenario.name.clone(),
        title: first.scenario.title.clone(),
        source: first.scenario.source.clone(),
        seeds: settings.iter().map(|s| s.options.seed).collect(),
        full: first.options.full,
        full_size: (!first.options.full).then(|| FullSize::of(&first.scenario)).flatten(),
        partial,
        command: first.loads.iter().filter_map(|l| l.command()).collect::<Vec<_>>().join("; "),
        risk_command: first.loads.iter().find_map(|l| l.risk_command()).filter(|_| was_cut),
        reproduce: Some(first.reproduce(settings)),
        configurations: first.configurations(),
        medium: first.scenario.medium,
        sentences: checked(&first.scenario, &runs),
        published: published(&first.scenario, &runs),
        variants: first.variants(),
        runs,
        machine_load: first.reals.load.or(peers.load),
        clock: match first.options.real {
            Some(_) => ClockKind::Wall,
            None => ClockKind::Virtual,
        },
        peers: peers.rows,
        failures,
        notes,
    })
}

/// What the jobs of a seed brought.
struct SeedRun {
    run: SeedResults,
    notes: Vec<Note>,
    /// Why which variants were left out.
    left_out: BTreeMap<String, Vec<String>>,
}

impl SeedRun {
    fn new(seed: u64) -> Self {
        let run = SeedResults { seed, ..SeedResults::default() };
        SeedRun { run, notes: Vec::new(), left_out: BTreeMap::new() }
    }

    fn add(&mut self, variant: &Variant, outcome: JobResult) {
        self.run.measurements.extend(outcome.measurements);
        self.notes.extend(outcome.notes.into_iter().map(Note::remark));
        if let Some(why) = outcome.left_out {
            self.left_out.entry(why).or_default().push(variant.name.clone());
        }
    }

    /// The run with what follows from its rows, and its notes.
    fn end(mut self, setting: &Setting) -> (SeedResults, Vec<Note>) {
        let run = &mut self.run;
        let load = setting.reals.load;
        let not_ranked = place(run.files_mut(), load.and_then(|load| load.at_start()));
        let ratios = ratios(run.of(), |variant| setting.scenario.baseline_of(variant));
        let cuts = setting.options.cuts.unwrap_or(setting.cuts);
        let shown: Vec<ShownRow> = PlantedRuns::kept().map_or_else(
            |_| Vec::new(),
            |kept| {
                let known = |r: &RiskRow| {
                    let programs = r.programs?;
                    kept.of(&setting.scenario, &r.variant, (run.seed, cuts), programs)
                };
                run.of::<RiskRow>().filter_map(known).collect()
            },
        );
        let points = points(run);
        run.measurements.extend(ratios.into_iter().map(Measurement::from));
        run.measurements.extend(shown.into_iter().map(Measurement::from));
        run.measurements.extend(points.into_iter().map(Measurement::from));
        if setting.options.real.is_some() {
            // There is no virtual time.
            run.measurements.retain(|m| m.row::<VariantTime>().is_none());
            self.notes.push(Note::remark(NOT_SIMULATED));
        } else if run.of::<FilesRow>().any(|f| f.clock == ClockKind::Wall) {
            self.notes.push(Note::remark(REAL_TIME));
            self.notes.extend(setting.reals.notes.iter().map(Note::remark));
            self.notes.extend(load.map(|load| Note::remark(load.to_string())));
            self.notes.push(Note::remark(match not_ranked {
                Some(why) => format!("By speed the variants are {why}."),
                None => PLACES.to_owned(),
            }));
        }
        for (why, names) in self.left_out {
            self.notes.push(Note::remark(format!("LEFT OUT: {}: {why}", names.join(", "))));
        }
        (self.run, self.notes)
    }
}

impl Setting {
    /// The command line that reproduces it.
    fn reproduce(&self, settings: &[Arc<Setting>]) -> String {
        let Setting { scenario, options, .. } = self;
        let own = Scenario::find_own(&scenario.name).is_some_and(|own| own == *scenario);
        let mut command = format!("steadfast lab run {}", scenario.name);
        // Where the file is, is nobody's business.
        command += if own { "" } else { ".toml" };
        command += if options.full { " --full" } else { "" };
        command += if options.peers { " --peers" } else { "" };
        command += if options.band { " --band" } else { "" };
        command += match options.real {
            None => "",
            Some(Overwrite::Blank) => " --real",
            Some(Overwrite::Anything) => " --real --destroy",
        };
        if let Some(cuts) = options.cuts {
            command += &format!(" --cuts {cuts}");
        }
        command += &format!(" --seed {}", options.seed);
        match settings.len() {
            1 => command,
            n => command + &format!(" --seeds {n}"),
        }
    }

    fn variants(&self) -> Vec<VariantInfo> {
        let info = |v: &Variant| VariantInfo {
            name: v.name.clone(),
            label: v.label.clone(),
            devices: self.device_names(v),
            mount: v.stack.mount.clone(),
            configuration: v.configuration.clone(),
            kernel: v.kernel.clone(),
            fuse: v.fuse.clone(),
            control: self.scenario.lies(v),
        };
        let kernels = self.options.peers || self.options.real.is_some();
        let takes_part = |v: &&Variant| v.run != RunKind::Peer || kernels;
        self.scenario.variants.iter().filter(takes_part).map(info).collect()
    }

    /// What the configurations run.
    fn configurations(&self) -> Vec<ConfigurationInfo> {
        let all = self.scenario.workload.configurations.iter();
        all.map(|(name, c)| ConfigurationInfo {
            name: name.clone(),
            label: c.label.clone(),
            command: if self.options.full { c.iozone.clone() } else { c.quick_iozone.clone() },
            risk_command: c.risk_iozone.clone(),
        })
        .collect()
    }

    fn device_names(&self, variant: &Variant) -> Vec<String> {
        let topology = &self.scenario.topology;
        let leaf = |name: String| {
            // OK to index: the scenario's check found every device described.
            let device = &topology.devices[&name];
            format!("{name}: {}", device.description())
        };
        let volume = |name: &String| {
            let spec = topology.volumes.get(name)?;
            Some(format!("{name}: {}", spec.description()))
        };
        let both = std::iter::once(&variant.stack.disk).chain(&variant.stack.journal);
        both.flat_map(|name| {
            let leaves = topology.leaves_of(name).into_iter().map(leaf);
            volume(name).into_iter().chain(leaves).collect::<Vec<_>>()
        })
        .collect()
    }

    /// Says that disks were scaled with the files.
    fn scale_note(&self) -> Option<Note> {
        let mut devices = self.measured.topology.devices.iter().filter_map(|(name, device)| {
            Some((device.model()?.bytes(), self.scenario.model(name)?.bytes()))
        });
        devices.find(|(measured, whole)| measured < whole).map(|(measured, whole)| {
            Note::remark(format!(
                "The benchmark ran at a reduced size, on scale models of the disks: {:.3} of their \
                 capacity, as of the files' size, so that seeks take as long as at the full size.",
                measured as f64 / whole as f64
            ))
        })
    }

    /// Says whether the controls have shown that the check can fail, and what broke.
    fn control_notes(&self, runs: &[SeedResults]) -> Vec<Note> {
        let of_variant = |v: &Variant| {
            let rows =
                || runs.iter().flat_map(SeedResults::of::<RiskRow>).filter(|r| r.variant == v.name);
            rows().next()?;
            let broken: u64 = rows().map(|r| r.broken_promises).sum();
            let sum = |f: fn(&RiskRow) -> Rate| Rate::of_all(&rows().map(f).collect::<Vec<_>>());
            let (with_broken, damage) = (sum(|r| r.cuts_with_broken_promises), sum(|r| r.damage));
            let (name, cuts) = (&v.name, with_broken.of);
            match (self.scenario.lies(v), broken) {
                (true, 0) => Some(match breaks_little(rows().find_map(|row| row.scope)) {
                    Some(why) => Note::remark(format!(
                        "'{name}' is the control, which does not do its flushes. {why}: the zeros \
                         of {cuts} cuts say nothing."
                    )),
                    None => Note::alarm(format!(
                        "CONTROL DID NOT FAIL: '{name}' does not do its flushes and yet no broken \
                         promise was found in {cuts} cuts: make more cuts before trusting the \
                         zeros of the others."
                    )),
                }),
                (true, n) => Some(Note::remark(format!(
                    "'{name}' is the control: its flushes are not done, and {} broken in {} of \
                     {cuts} cuts. The check can fail.",
                    if n == 1 { "1 promise was".into() } else { format!("{n} promises were") },
                    with_broken.events
                ))),
                _ if v.kernel.is_some() => None,
                (false, n) if n > 0 || damage.events > 0 => Some(Note::alarm(format!(
                    "'{name}' BROKE {} and was damaged after {} of {cuts} cuts, on honest devices.",
                    counted(n, "promise").to_uppercase(),
                    damage.events
                ))),
                _ => None,
            }
        };
        self.scenario.variants.iter().filter_map(of_variant).collect()
    }
}

/// Why a program may have had nothing that a cut can break.
fn breaks_little(scope: Option<JudgedScope>) -> Option<&'static str> {
    match scope? {
        JudgedScope { promises: 0, .. } => {
            Some("The program syncs nothing, so no cut can break a promise")
        }
        JudgedScope { files_left_out: 1.., .. } => Some("Files of more than 64 MiB are not judged"),
        JudgedScope { files_without_name: 1.., .. } => Some(
            "The program does not sync the folders of new files, so a cut that takes a \
                  file whole breaks no promise",
        ),
        _ => None,
    }
}

/// Says of each control that did not fail that it did not.
fn blind_notes(r: &RiskRow) -> Vec<Note> {
    let named = [
        (&r.control_flush_ignored, "drives that ignore flushes"),
        (&r.control_flushes_omitted, "no flush asked for"),
    ];
    let blind = |(control, what): (&Option<ControlRow>, &str)| {
        let control = control.as_ref().filter(|c| c.is_blind())?;
        if let Some(why) = breaks_little(r.scope) {
            return Some(Note::remark(format!(
                "'{}' with {what}: no broken promise in {} cuts. {why}: its zeros prove nothing.",
                r.variant, control.cuts
            )));
        }
        Some(Note::alarm(format!(
            "CONTROL DID NOT FAIL: '{}' with {what}: no broken promise in {} cuts; its zeros \
             prove nothing. Make more cuts.",
            r.variant, control.cuts
        )))
    };
    named.into_iter().filter_map(blind).collect()
}

/// Says what could not be judged: this is no damage, and no zero either.
fn not_judged_note(r: &RiskRow) -> Option<Note> {
    let missing = r.not_judged.as_ref()?;
    Some(Note::alarm(format!(
        "NOT JUDGED: '{}': {} cuts, and {} of another program's opinions: {}. The figures are of \
         the others.",
        r.variant, missing.cuts, missing.opinions, missing.why
    )))
}

/// Says what stands in the tables for a matrix.
fn matrix_note(runs: &[SeedResults]) -> Option<Note> {
    runs.iter().flat_map(SeedResults::of::<GridRow>).next().map(|_| {
        Note::remark(
            "A test's speed is the geometric mean over the cells of its matrix; --json has every \
             cell. Cells in which only the page cache was measured are marked there.",
        )
    })
}

/// Says which variants' zeros cannot show a missing flush.
fn cacheless_note(runs: &[SeedResults]) -> Option<Note> {
    let without = |r: &&RiskRow| r.control_flushes_omitted.as_ref().is_some_and(|c| !c.must_break);
    let risk = runs.first()?.of::<RiskRow>();
    let names: Vec<&str> = risk.filter(without).map(|r| r.variant.as_str()).collect();
    (!names.is_empty()).then(|| {
        Note::remark(format!(
            "{}: no device of these has a volatile cache, so what is acknowledged is kept, \
             flushed or not. Their zeros say nothing about flushes: with every flush and FUA left \
             out they stay zero.",
            names.join(", ")
        ))
    })
}
