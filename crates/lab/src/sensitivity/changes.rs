//! What is changed: each parameter of machine and devices by a third down and up, or to its
//! alternatives, one at a time.

use std::collections::BTreeSet;

use serde_json::Value;
use steadfast_devices::model::parameters::{ModelKind, Parameter};
use steadfast_devices::model::{ModelParams, SsdParams};
use steadfast_setup::Machine;

use super::change::Change;
use super::costs;
use super::unknown::alternatives;
use crate::results::distinct;
use crate::scenario::{Scenario, Variant};

/// Names that say what a device is or how it fails, not how fast it is.
const NOT_SPEED: [&str; 5] =
    ["description", "cache_at_reset", "batteries", "batteries_needed", "initialised"];
/// A word that is a fault, not a choice.
const FAULT: &str = "lying";

/// All changes of a scenario, with the changed scenario.
pub(super) fn all(scenario: &Scenario, full: bool) -> Vec<(Change, Scenario)> {
    let mut list = machine(scenario, full);
    list.extend(memories(scenario));
    list.extend(schedulers(scenario));
    list.extend(costs::of_dd(scenario));
    list.extend(costs::of_drivers(scenario));
    for name in measured_devices(scenario) {
        list.extend(device(scenario, &name));
    }
    for name in journals(scenario) {
        list.extend(another_journal(scenario, &name));
    }
    for other in alternatives(scenario).into_iter().flatten() {
        if let Some(changed) = other.of(scenario) {
            let is_there = list.iter().any(|(_, known)| *known == changed);
            list.extend((!is_there).then_some((other.change, changed)));
        }
    }
    list
}

/// A change, with the scenario after it.
pub(super) fn edited(
    scenario: &Scenario,
    change: Change,
    edit: impl FnOnce(&mut Scenario),
) -> (Change, Scenario) {
    let mut changed = scenario.clone();
    edit(&mut changed);
    (change, changed)
}

/// Devices of the variants that are measured, disks first.
pub(super) fn measured_devices(scenario: &Scenario) -> Vec<String> {
    let speed = || scenario.variants.iter().filter(|v| v.run.speed());
    let all =
        speed().map(|v| &v.stack.disk).chain(speed().filter_map(|v| v.stack.journal.as_ref()));
    distinct(all.flat_map(|name| scenario.topology.leaves_of(name)))
}

/// Devices that hold only journals.
fn journals(scenario: &Scenario) -> Vec<String> {
    let measured = scenario.variants.iter().filter(|v| v.run.speed());
    let disks: Vec<String> =
        measured.flat_map(|v| scenario.topology.leaves_of(&v.stack.disk)).collect();
    measured_devices(scenario).into_iter().filter(|name| !disks.contains(name)).collect()
}

/// Whether a change of this part concerns a variant.
pub(super) fn uses(scenario: &Scenario, variant: &Variant, part: &str) -> bool {
    let scheduler = variant.stack.scheduler.as_deref();
    let is_scheduler = part.strip_prefix("scheduler ").is_some_and(|s| scheduler == Some(s));
    // Of a variant its mount options are changed.
    if is_scheduler || variant.name == part {
        return true;
    }
    scenario.leaves(variant).iter().any(|leaf| leaf == part)
}

fn machine(scenario: &Scenario, full: bool) -> Vec<(Change, Scenario)> {
    let m = &scenario.machine;
    let mut list = Vec::new();
    let mut add = |parameter: &str, from: String, to: String, edit: &dyn Fn(&mut Scenario)| {
        list.push(edited(scenario, Change::new("machine", parameter, from, to), edit));
    };
    for (name, get, set) in WHOLE {
        let Some(now) = get(m) else { continue };
        let others: Vec<u64> = match name {
            "file_window_mb" => WINDOWS.into_iter().filter(|w| *w != now).collect(),
            _ => thirds(now).collect(),
        };
        // What is the default everywhere is settled by the program, and is no assumption here.
        let matters = ["cpus", "file_window_mb"].contains(&name) || is_for_reads(scenario);
        for n in others.into_iter().filter(|_| matters) {
            let edit = |s: &mut Scenario| {
                for machine in machines(s).filter(|machine| get(machine) == Some(now)) {
                    set(machine, n);
                }
            };
            add(name, now.to_string(), n.to_string(), &edit);
        }
        if name == "cpus" && m.memory_mb.is_none() {
            for factor in [2.0 / 3.0, 4.0 / 3.0] {
                let (now, share) = (m.page_cache_per_data, round(m.page_cache_per_data * factor));
                let edit = |s: &mut Scenario| {
                    machines(s).for_each(|machine| machine.page_cache_per_data = share);
                };
                add("page_cache_per_data", now.to_string(), share.to_string(), &edit);
            }
        }
    }
    let scales = scenario.workload.quick_scales_disks;
    if !full && scenario.workload.iozone.is_some() {
        let edit = |s: &mut Scenario| s.workload.quick_scales_disks = !scales;
        add("quick_scales_disks", scales.to_string(), (!scales).to_string(), &edit);
    }
    list
}

/// A whole number of a machine: its key, and how it is read and set.
type IntegerParameter = (&'static str, fn(&Machine) -> Option<u64>, fn(&mut Machine, u64));

/// Those that are changed.
const WHOLE: [IntegerParameter; 6] = [
    ("cpus", |m| Some(m.cpus as u64), |m, n| m.cpus = n as usize),
    ("file_window_mb", |m| Some(m.file_window_mb), |m, n| m.file_window_mb = n),
    ("memory_mb", |m| m.memory_mb, |m, n| m.memory_mb = Some(n)),
    ("read_ahead_kb", |m| Some(m.read_ahead_kb), |m, n| m.read_ahead_kb = n),
    ("request_kb", |m| Some(m.request_kb), |m, n| m.request_kb = n),
    ("checkpoint_kb", |m| Some(m.checkpoint_kb), |m, n| m.checkpoint_kb = n),
];
const WINDOWS: [u64; 5] = [1, 2, 8, 32, 128];

/// Whether the scenario is about reading beside a writer, where the machine's queues decide.
fn is_for_reads(scenario: &Scenario) -> bool {
    scenario.workload.read_under_write.is_some()
}

/// The page caches of variants that have their own, by a third less and more.
fn memories(scenario: &Scenario) -> Vec<(Change, Scenario)> {
    let measured = scenario.variants.iter().filter(|v| v.run.speed());
    let own: BTreeSet<u64> = measured.filter_map(|v| v.machine.as_ref()?.memory_mb).collect();
    if own.is_empty() || scenario.machine.memory_mb.is_some() {
        return Vec::new();
    }
    let other = |part: u64| move |mb: u64| (mb * part / 3).max(4);
    let listed = |of: &dyn Fn(u64) -> u64| {
        own.iter().map(|mb| of(*mb).to_string()).collect::<Vec<_>>().join(", ")
    };
    let changed = |part| {
        let change = Change::new("machine", "memory_mb", listed(&|mb| mb), listed(&other(part)));
        edited(scenario, change, |s| {
            machines(s).for_each(|machine| machine.memory_mb = machine.memory_mb.map(other(part)));
        })
    };
    [2, 4].map(changed).to_vec()
}

/// The scenario's machine and those of its variants.
pub(super) fn machines(scenario: &mut Scenario) -> impl Iterator<Item = &mut Machine> {
    let own = scenario.variants.iter_mut().filter_map(|v| v.machine.as_mut());
    std::iter::once(&mut scenario.machine).chain(own)
}

/// The queue of each request scheduler, by a third less and more.
fn schedulers(scenario: &Scenario) -> Vec<(Change, Scenario)> {
    let mut list = Vec::new();
    let is_used =
        |name: &String| scenario.variants.iter().any(|v| v.stack.scheduler.as_ref() == Some(name));
    for (name, settings) in scenario.schedulers.iter().filter(|(name, _)| is_used(name)) {
        let now = settings.queue_bytes >> 10;
        for kb in thirds(now) {
            let change = Change::new(&format!("scheduler {name}"), "queue_kb", now, kb);
            list.push(edited(scenario, change, |s| {
                s.schedulers.entry(name.clone()).and_modify(|queue| queue.queue_bytes = kb << 10);
            }));
        }
    }
    list
}

/// Two thirds and four thirds of a whole number, where that is another one.
fn thirds(n: u64) -> impl Iterator<Item = u64> {
    [(2 * n + 1) / 3, (4 * n + 1) / 3].into_iter().filter(move |m| *m != n && *m > 0)
}

/// Four significant digits: what a table shows is what was run.
pub(super) fn round(x: f64) -> f64 {
    // OK to unwrap: it was just written so.
    format!("{x:.3e}").parse().unwrap()
}

fn device(scenario: &Scenario, name: &str) -> Vec<(Change, Scenario)> {
    let Some(model) = scenario.model(name) else { return Vec::new() };
    let Some(kind) = ModelKind::of_name(model.kind_name()) else { return Vec::new() };
    // OK to unwrap: parameters are numbers, words and lists of them.
    let values = serde_json::to_value(model).unwrap();
    let of_journal = journals(scenario).iter().any(|journal| journal == name);
    let mut list = Vec::new();
    for p in kind.parameters.iter().filter(|p| !NOT_SPEED.contains(&p.name)) {
        for value in other_values(p, &values[p.name]) {
            let mut other = model.clone();
            let done = other.set(p.name, &value);
            if !matches!(done, Some(Ok(()))) || other.check().is_err() {
                continue;
            }
            let change = Change::new(name, p.name, shown(&values[p.name]), shown(&value));
            list.push((Change { of_journal, ..change }, scenario.with_model(name, other)));
        }
    }
    list
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn other_values(p: &Parameter, value: &Value) -> Vec<Value> {
    let words = (p.words)();
    match value {
        Value::String(now) => {
            let others = words.iter().filter(|w| *w != now && **w != FAULT);
            others.map(|w| Value::from(*w)).collect()
        }
        Value::Bool(b) => vec![Value::from(!b)],
        Value::Number(n) => match n.as_u64() {
            Some(n) => thirds(n).map(Value::from).collect(),
            // A third of nothing is nothing.
            None => n.as_f64().filter(|x| *x != 0.0).map_or_else(Vec::new, |x| {
                [2.0, 4.0].map(|f| Value::from(round(x * f / 3.0))).to_vec()
            }),
        },
        _ => Vec::new(),
    }
}

/// Ten times slower in everything; a solid-state disk; the disk's own kind.
fn another_journal(scenario: &Scenario, name: &str) -> Vec<(Change, Scenario)> {
    let Some(model) = scenario.model(name) else { return Vec::new() };
    let mut others: Vec<(String, ModelParams)> = Vec::new();
    if let Some(slow) = ten_times_slower(model) {
        others.push(("10 times slower".into(), slow));
    }
    if !matches!(model, ModelParams::Ssd(_)) {
        others.push(("an SSD".into(), ModelParams::Ssd(SsdParams::default())));
    }
    let disk = scenario.variants.iter().find(|v| v.stack.journal.as_deref() == Some(name));
    let leaf = disk.and_then(|v| scenario.topology.leaves_of(&v.stack.disk).into_iter().next());
    if let Some(disk) = leaf.and_then(|leaf| scenario.model(&leaf)) {
        others.push(("a second disk".into(), disk.clone()));
    }
    let changed = |(to, other): (String, ModelParams)| {
        let change = Change::new(name, "device", model.kind_name(), to);
        (Change { of_journal: true, ..change }, scenario.with_model(name, other))
    };
    others.into_iter().map(changed).collect()
}

/// Times (parameters in ns, us, ms) ten times as long, rates a tenth.
fn ten_times_slower(model: &ModelParams) -> Option<ModelParams> {
    let kind = ModelKind::of_name(model.kind_name())?;
    let values = serde_json::to_value(model).ok()?;
    let mut slow = model.clone();
    let mut any = false;
    for p in kind.parameters {
        let factor = match p.unit {
            "ns" | "us" | "ms" | "clocks" => 10.0,
            "MHz" | "MB/s" => 0.1,
            _ => continue,
        };
        let Some(x) = values[p.name].as_f64() else { continue };
        let value = match values[p.name].as_u64() {
            Some(n) => Value::from((n as f64 * factor).round() as u64),
            None => Value::from(round(x * factor)),
        };
        any |= matches!(slow.set(p.name, &value), Some(Ok(())));
    }
    (any && slow.check().is_ok()).then_some(slow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_goes_both_ways_and_words_to_their_alternatives() {
        let scenario = Scenario::find("nvram-journal").unwrap();
        let list = all(&scenario, false);
        let of = |part: &str, parameter: &str| -> Vec<String> {
            let fits = |c: &&(Change, Scenario)| c.0.part == part && c.0.parameter == parameter;
            list.iter().filter(fits).map(|(c, _)| c.to.clone()).collect()
        };
        assert_eq!(of("disk", "rpm"), ["10000", "20000"]);
        assert_eq!(of("disk", "queue_policy"), ["fifo"]);
        assert_eq!(of("disk", "look_ahead"), ["false"]);
        assert_eq!(of("card", "device"), ["10 times slower", "an SSD", "a second disk"]);
        assert_eq!(of("disk", "drive").len(), 4, "the scenario's own is left out");
        assert_eq!(of("machine", "cpus"), ["3", "5"]);
        // What the source leaves unknown, each once, and no cache that lies.
        assert_eq!(of("disk", "write_cache"), ["on"]);
        assert_eq!(of("machine", "scheduler"), ["deadline"]);
        assert_eq!(of("internal", "mount"), ["data=writeback,journal_async_commit"]);
        assert!(of("disk", "description").is_empty());
        for (change, changed) in &list {
            assert_ne!(changed, &scenario, "{change:?}");
        }
    }

    #[test]
    fn the_slow_card_is_slow() {
        let card = Scenario::find("nvram-journal").unwrap().model("card").unwrap().clone();
        let slow = serde_json::to_value(ten_times_slower(&card).unwrap()).unwrap();
        assert_eq!(slow["interrupt_us"], 100.0);
        assert_eq!(slow["bus_clock_mhz"], 6.667);
        assert_eq!(slow["burst_bytes"], 512);
    }
}
