//! docs/lab-results.schema.json describes what `lab run --json` writes: all of it, and nothing
//! else.

mod validator;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use steadfast_lab::results::{FullSize, Results, summary};
use steadfast_lab::scenario::Scenario;
use steadfast_lab::{RunOptions, Watch, run_seeds};

use validator::Schema;

const SCHEMA: &str = include_str!("../../../../docs/lab-results.schema.json");
/// Results that are kept: of each kind of experiment one.
const KEPT: [&str; 6] = [
    include_str!("../../../../docs/results/nvram-journal-full.json"),
    include_str!("../../../../docs/results/data-at-risk.json"),
    include_str!("../../../../docs/results/ext3-data-modes.json"),
    include_str!("../../../../docs/results/emmc-transactional.json"),
    include_str!("../../../../docs/results/ramdisk-mirror.json"),
    include_str!("../../../../docs/results/nvdimm-dax.json"),
];

fn schema() -> Schema {
    Schema::new(serde_json::from_str(SCHEMA).unwrap())
}

fn kept() -> Vec<Value> {
    KEPT.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

/// Panics if the document of these results has something that the schema does not describe.
pub fn assert_described(results: &Results) {
    let document = serde_json::from_str(&summary::json(results).unwrap()).unwrap();
    assert_eq!(schema().faults(&document), Vec::<String>::new());
}

/// A short run: a document of this program, and not only of the one that wrote what is kept.
fn run() -> Value {
    let mut scenario = Scenario::find("nvram-journal").unwrap();
    scenario.variants.retain(|v| ["internal", "external"].contains(&v.name.as_str()));
    scenario.workload.quick_size = Some("1m".into());
    scenario.workload.quick_scales_disks = false;
    scenario.workload.risk_size = Some("512k".into());
    let options = RunOptions { cuts: Some(4), ..RunOptions::default() };
    let watch = Watch { progress: &|_, _| (), stop: &false.into() };
    let mut results = run_seeds(&scenario, &options, &[1, 2], &watch).unwrap();
    results.reproduce = Some("steadfast lab run nvram-journal".into());
    results.full_size = FullSize::of(&Scenario::find("nvram-journal").unwrap());
    assert!(results.full_size.is_some(), "it was run at the published size");
    serde_json::from_str(&summary::json(&results).unwrap()).unwrap()
}

#[test]
fn documents_are_as_the_schema_says() {
    let schema = schema();
    for document in kept().iter().chain([&run()]) {
        assert_eq!(schema.faults(document), Vec::<String>::new(), "{}", document["scenario"]);
    }
}

/// What the documents above do not have. The experiments that make them check theirs themselves
/// ([`assert_described`]): band.rs, data_at_risk.rs, fio.rs, kernel_peers.rs, peers.rs and
/// own_size.rs. `NotJudged` and `FailureRow` are written only where something was not as it should
/// be.
const NOT_SEEN: [&str; 15] = [
    "Band",
    "Combination",
    "FilesRow.calls_at_s",
    "FilesRow.each_operations_per_s",
    "FilesRow.fsync_distribution",
    "JudgedScope.",
    "MachineLoad.",
    "PeerRow.",
    "SteadyLoss.",
    "NotJudged.",
    "RiskRow.not_judged",
    "RiskRow.scope",
    "FailureRow.",
    "FioRow.",
    "VariantInfo.fuse",
];

#[test]
fn the_schema_describes_nothing_that_is_not_written() {
    let schema = schema();
    let mut seen = BTreeSet::new();
    for document in kept().iter().chain([&run()]) {
        seen.extend(schema.properties_of(document));
    }
    let never: Vec<String> = schema.all_properties().difference(&seen).cloned().collect();
    let unexpected: Vec<&String> = never
        .iter()
        .filter(|property| !NOT_SEEN.iter().any(|known| property.starts_with(known)))
        .collect();
    assert_eq!(unexpected, Vec::<&String>::new());
}

/// The test of the test: each kind of change is seen.
#[test]
fn documents_that_are_otherwise_are_refused() {
    let (schema, whole) = (schema(), kept().swap_remove(0));
    let refused = |change: &dyn Fn(&mut Value), fault: &str| {
        let mut changed = whole.clone();
        change(&mut changed);
        let faults = schema.faults(&changed);
        assert!(faults.iter().any(|found| found.contains(fault)), "{fault}: {faults:?}");
    };
    let remove = |value: &mut Value, key: &str| drop(value.as_object_mut().unwrap().remove(key));
    let speed = |v: &Value| -> usize {
        let rows = v["runs"][0]["measurements"].as_array().unwrap();
        rows.iter().position(|row| row["kind"] == "speed").unwrap()
    };
    let speed = format!("/runs/0/measurements/{}", speed(&whole));
    let of_speed = |v: &mut Value, key: &str, to: Value| {
        v.pointer_mut(&speed).unwrap()[key] = to;
    };
    refused(&|v| v["version"] = json!(3), "/version: is not 4");
    refused(&|v| v["new"] = json!(1), ": new is not described");
    refused(&|v| remove(v, "variants"), ": variants is missing");
    refused(&|v| v["seeds"][0] = json!(-1), "/seeds/0: is below 0");
    refused(&|v| v["seeds"][0] = json!(1.5), "/seeds/0: is no integer");
    refused(&|v| v["full"] = json!("yes"), "/full: is no boolean");
    refused(&|v| v["runs"] = json!([]), "/runs: has 0 items");
    refused(&|v| of_speed(v, "figure", json!("child")), "/figure: is not");
    refused(&|v| of_speed(v, "kb_per_s", json!(null)), "/kb_per_s: is no number");
    refused(&|v| of_speed(v, "kind", json!("speeds")), "/kind: is not");
    refused(&|v| remove(v.pointer_mut(&speed).unwrap(), "latency_us"), "latency_us is missing");
}
