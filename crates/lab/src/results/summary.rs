//! The document of a run: each seed's figures, and of every figure the median and the range.
//!
//! What is a number in [`SeedResults`] is here `{median, min, max, runs}`, whatever it is
//! called: a figure that is new there is here too. Rates are added up over the seeds, so that
//! their bounds are those of all cuts.

use serde::Serialize;
use serde_json::{Map, Value};
use steadfast_vfs::foreign;

use super::Results;
use super::seed::SeedResults;
use super::statistics::{Rate, Spread};

/// The whole document: what was run, the summary over the seeds, and each seed's figures.
#[derive(Debug, Serialize)]
struct ResultsDocument<'a> {
    #[serde(flatten)]
    results: &'a Results,
    summary: Value,
}

/// The results as JSON, with the summary.
///
/// # Errors
/// None that is known: the figures are numbers and strings.
pub fn json(results: &Results) -> Result<String, serde_json::Error> {
    let summary = of(&results.runs)?;
    Ok(foreign::json(serde_json::to_string_pretty(&ResultsDocument { results, summary })? + "\n"))
}

/// Median and range of every figure over the seeds.
///
/// # Errors
/// As [`json`].
pub fn of(runs: &[SeedResults]) -> Result<Value, serde_json::Error> {
    let values = runs.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
    let mut merged = merge(&values.iter().collect::<Vec<_>>());
    if let Some(members) = merged.as_object_mut() {
        // Which seeds, the document says; their range means nothing.
        members.remove("seed");
    }
    Ok(merged)
}

/// What is each run's own: words about single cuts, counts of single calls.
const OF_ONE_RUN: [&str; 6] = [
    "findings",
    "not_judged",
    "distribution",
    "fsync_distribution",
    "programs",
    "each_operations_per_s",
];

/// Kinds of measurements that are so.
const KINDS_OF_ONE_RUN: [&str; 4] = ["queue", "planted_bugs", "ages", "combination"];

/// Numbers that say where a figure belongs, and are none themselves.
const PLACES: [&str; 2] = ["file_kb", "record_kb"];

/// What several runs have in one place, as one.
fn merge(values: &[&Value]) -> Value {
    let there: Vec<&Value> = values.iter().copied().filter(|v| !v.is_null()).collect();
    let Some(first) = there.first() else { return Value::Null };
    match first {
        Value::Number(_) => spread(&numbers(&there)),
        Value::Object(members) => object(&there, members),
        Value::Array(_) => rows(&there),
        // Names, and what is the same in every run.
        _ if there.iter().all(|v| v == first) => (*first).clone(),
        _ => Value::Null,
    }
}

fn numbers(values: &[&Value]) -> Vec<f64> {
    values.iter().filter_map(|v| v.as_f64()).collect()
}

fn spread(values: &[f64]) -> Value {
    serde_json::to_value(Spread::of(values)).unwrap_or_default()
}

fn object(values: &[&Value], members: &Map<String, Value>) -> Value {
    let has = |names: &[&str]| names.iter().all(|name| members.contains_key(*name));
    if has(&["events", "of", "at_most_percent"]) {
        let rates: Vec<Rate> =
            values.iter().filter_map(|v| serde_json::from_value((*v).clone()).ok()).collect();
        return serde_json::to_value(Rate::of_all(&rates)).unwrap_or_default();
    }
    if has(&["median", "min", "max", "runs"]) {
        let spreads: Vec<Spread> =
            values.iter().filter_map(|v| serde_json::from_value((*v).clone()).ok()).collect();
        return serde_json::to_value(Spread::over(&spreads)).unwrap_or_default();
    }
    let merged = members.iter().map(|(name, first)| {
        if PLACES.contains(&name.as_str()) {
            return (name.clone(), first.clone());
        }
        let of_name: Vec<&Value> = values.iter().filter_map(|v| v.get(name)).collect();
        (name.clone(), merge(&of_name))
    });
    Value::Object(merged.filter(|(name, _)| !OF_ONE_RUN.contains(&name.as_str())).collect())
}

/// Rows of the same test and variant belong together.
fn rows(values: &[&Value]) -> Value {
    let all = values.iter().filter_map(|v| v.as_array()).flatten();
    let mut groups: Vec<(String, Vec<&Value>)> = Vec::new();
    let of_one_run = |row: &&Value| {
        let kind = row.get("kind").and_then(Value::as_str);
        kind.is_some_and(|kind| KINDS_OF_ONE_RUN.contains(&kind))
    };
    for row in all.filter(|row| !of_one_run(row)) {
        let words =
            ["kind", "test", "variant", "path"].map(|name| row.get(name).and_then(Value::as_str));
        let key = format!("{words:?} {:?}", PLACES.map(|name| row.get(name)));
        match groups.iter_mut().find(|(k, _)| *k == key) {
            Some((_, group)) => group.push(row),
            None => groups.push((key, vec![row])),
        }
    }
    Value::Array(groups.iter().map(|(_, group)| merge(group)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_number_gets_a_range_and_rates_are_added() {
        let rate = |events| {
            json!({ "events": events, "of": 400, "places_with_events": events, "places": 300,
                "at_most_percent": 9.0 })
        };
        let run = |speed: f64, events| {
            let fast = json!({ "variant": "a", "speed": speed, "damage": rate(events),
                "findings": ["cut 3"], "none": null });
            json!({ "rows": [fast, { "variant": "b", "speed": 5 }] })
        };
        let (one, two) = (run(1.0, 0), run(3.0, 2));
        let merged = merge(&[&one, &two]);
        let a = &merged["rows"][0];
        assert_eq!(a["speed"], json!({ "median": 2.0, "min": 1.0, "max": 3.0, "runs": 2 }));
        let damage = ["events", "of", "places_with_events", "places"].map(|n| &a["damage"][n]);
        assert_eq!(damage, [&json!(2), &json!(800), &json!(2), &json!(600)]);
        assert_eq!((a.get("findings"), &a["none"]), (None, &Value::Null));
        assert_eq!(merged["rows"][1]["speed"]["median"], json!(5.0));
        let cells =
            |kb| json!([{ "file_kb": 64, "kb_per_s": kb }, { "file_kb": 128, "kb_per_s": 1 }]);
        let merged_cells = merge(&[&cells(1.0), &cells(4.0)]);
        assert_eq!(
            (&merged_cells[0]["file_kb"], &merged_cells[1]["file_kb"]),
            (&json!(64), &json!(128))
        );
        assert_eq!(merged_cells[0]["kb_per_s"]["median"], json!(2.5));
        let again = merge(&[&merged, &merged]);
        assert_eq!(again["rows"][0]["speed"]["max"], json!(3.0));
        assert_eq!(again["rows"][0]["speed"]["runs"], json!(4));
    }
}
