//! Scenarios at a small size, with two seeds: every ratio, every cell of a matrix and every figure
//! of the data loss stands in pinned*.jsonl, a row a line. A change must be made on purpose:
//! `STEADFAST_PIN=1 cargo test -p steadfast-lab --test experiments pinned` writes the file anew.

use std::path::Path;

use serde_json::{Map, Value, json};
use steadfast_devices::model::ModelParams;
use steadfast_lab::results::{MeasurementRow, Ratio, Results, RiskRow, SeedResults};
use steadfast_lab::scenario::Scenario;
use steadfast_lab::{RunOptions, Watch, run_seeds};

use crate::golden::assert_tables;
use steadfast_setup::DeviceSpec;

/// The headline scenario with files of 2 MiB for the benchmark and 1 MiB for the cuts, on disks
/// of 3 GB.
fn small() -> Scenario {
    let mut scenario = Scenario::find("nvram-journal").unwrap();
    scenario.workload.quick_size = Some("2m".into());
    // At this size a scale model would have no room for the journal.
    scenario.workload.quick_scales_disks = false;
    for device in scenario.topology.devices.values_mut().filter_map(DeviceSpec::model_mut) {
        if let ModelParams::Hdd(disk) = device {
            disk.sectors = 6_000_000;
        }
    }
    scenario.workload.risk_size = Some("1m".into());
    scenario
}

/// The rows of a run, as text: without the words, without what depends on whether e2fsck is
/// installed, and numbers to six digits, more than any table shows.
fn rows(run: &SeedResults) -> Vec<String> {
    let mut lines = Vec::new();
    for (of, kind) in [("grid", "matrix"), ("ratio", "ratio"), ("risk", "risk"), ("loss", "loss")] {
        let rows = run.measurements.iter().map(|m| serde_json::to_value(m).unwrap());
        for row in rows.filter(|row| row["kind"] == kind) {
            let mut line =
                Map::from_iter([("seed".into(), json!(run.seed)), ("of".into(), of.into())]);
            let fields = row.as_object().unwrap().iter();
            let kept = fields.filter(|(name, _)| {
                !name.starts_with("e2fsck") && !["findings", "kind"].contains(&name.as_str())
            });
            line.extend(kept.map(|(name, value)| (name.clone(), rounded(value))));
            lines.push(Value::Object(line).to_string());
        }
    }
    lines
}

fn rounded(value: &Value) -> Value {
    match value {
        Value::Number(n) if n.is_f64() => {
            format!("{:.5e}", n.as_f64().unwrap()).parse::<f64>().unwrap().into()
        }
        Value::Object(members) => {
            // The number of a run changes with each request that is made or left out.
            let figures = members.iter().filter(|(name, _)| *name != "run");
            Value::Object(figures.map(|(k, v)| (k.clone(), rounded(v))).collect())
        }
        Value::Array(all) => Value::Array(all.iter().map(rounded).collect()),
        other => other.clone(),
    }
}

fn results(scenario: &Scenario) -> Results {
    let options = RunOptions { cuts: Some(12), ..RunOptions::default() };
    let watch = Watch { progress: &|_, _| (), stop: &false.into() };
    let results = run_seeds(scenario, &options, &[1, 2], &watch).unwrap();
    assert!(!results.partial && results.runs.len() == 2);
    // Another seed is another run: the pin would not see it if nothing depended on the seed.
    assert!(has_changed::<RiskRow>(&results));
    results
}

/// Whether rows of this kind are others with another seed.
fn has_changed<R: MeasurementRow + PartialEq>(results: &Results) -> bool {
    !results.runs[0].of::<R>().eq(results.runs[1].of::<R>())
}

/// Compares with what is kept, or keeps it.
fn pinned(file: &str, results: &Results) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/experiments").join(file);
    let found: Vec<String> = results.runs.iter().flat_map(rows).collect();
    if std::env::var_os("STEADFAST_PIN").is_some() {
        std::fs::write(&path, found.join("\n") + "\n").unwrap();
        return;
    }
    let pinned = std::fs::read_to_string(&path).unwrap();
    let pinned: Vec<&str> = pinned.lines().collect();
    let changed: Vec<String> = (pinned.iter().zip(&found))
        .filter(|(a, b)| **a != b.as_str())
        .map(|(a, b)| format!("was {a}\nis  {b}"))
        .collect();
    assert!(
        changed.is_empty() && pinned.len() == found.len(),
        "{} rows changed, {} are now {}; if on purpose: STEADFAST_PIN=1 cargo test -p \
         steadfast-lab --test experiments pinned, then cargo xtask tables\n{}",
        changed.len(),
        pinned.len(),
        found.len(),
        changed.join("\n")
    );
}

#[test]
fn no_figure_changes_by_accident() {
    let results = results(&small());
    assert!(has_changed::<Ratio>(&results));
    pinned("pinned.jsonl", &results);
    assert_tables("nvram-journal", &results);
}

/// The scenario of the eMMC with two small files and two records.
fn small_matrix() -> Scenario {
    let mut scenario = Scenario::find("emmc-transactional").unwrap();
    for (name, configuration) in &mut scenario.workload.configurations {
        let with_fsync = if name == "low-ram" { "-Raze" } else { "-Raz" };
        let line = |sizes: &str| format!("{with_fsync} -+w 1 {sizes} -r 4k -r 64k");
        configuration.quick_iozone = line("-s 64k -s 512k");
        configuration.risk_iozone = line("-s 256k");
    }
    for variant in &mut scenario.variants {
        if let Some(machine) = &mut variant.machine {
            machine.memory_mb = machine.memory_mb.map(|mb| mb.min(32));
        }
    }
    scenario
}

#[test]
fn no_cell_changes_by_accident() {
    let results = results(&small_matrix());
    pinned("pinned-matrix.jsonl", &results);
    assert_tables("emmc-transactional", &results);
}
