//! fio's JSON.

use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};

use super::super::options::RequestKind;
use super::super::results::{FioEntry, FioResults};
use super::super::stats::{CallTimes, JobFigures, KindFigures, Moments};
use super::{RunDate, Shares, VERSION, percent, processor};

/// A value whose keys stay in order.
enum JsonNode {
    Int(u64),
    Float(f64),
    Text(String),
    Map(Vec<(String, JsonNode)>),
    List(Vec<JsonNode>),
}

impl Serialize for JsonNode {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            JsonNode::Int(n) => to.serialize_u64(*n),
            // Six digits, as fio has them.
            JsonNode::Float(x) => to.serialize_f64((x * 1e6).round() / 1e6),
            JsonNode::Text(text) => to.serialize_str(text),
            JsonNode::Map(entries) => {
                let mut map = to.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
            JsonNode::List(nodes) => {
                let mut list = to.serialize_seq(Some(nodes.len()))?;
                for node in nodes {
                    list.serialize_element(node)?;
                }
                list.end()
            }
        }
    }
}

fn map<const N: usize>(entries: [(&str, JsonNode); N]) -> JsonNode {
    JsonNode::Map(entries.into_iter().map(|(key, node)| (key.to_owned(), node)).collect())
}

/// Everything as one document.
///
/// # Errors
/// None that is known: all of it can be JSON.
pub fn json(results: &FioResults, date: &RunDate) -> serde_json::Result<String> {
    let globals = results.entries.first().map_or(&[][..], |entry| &entry.job.globals);
    let document = map([
        ("fio version", JsonNode::Text(VERSION.into())),
        ("timestamp", JsonNode::Int(date.unix_ns / 1_000_000_000)),
        ("timestamp_ms", JsonNode::Int(date.unix_ns / 1_000_000)),
        ("time", JsonNode::Text(date.text.clone())),
        ("global options", settings(globals)),
        ("jobs", JsonNode::List(results.entries.iter().map(entry).collect())),
        ("disk_util", JsonNode::List(Vec::new())),
    ]);
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// A setting that is said twice is as the last one says.
fn settings(given: &[(String, Option<String>)]) -> JsonNode {
    let mut known: Vec<(String, JsonNode)> = Vec::new();
    for (name, value) in given {
        let node = JsonNode::Text(value.clone().unwrap_or_else(|| "1".into()));
        match known.iter_mut().find(|(seen, _)| seen == name) {
            Some((_, was)) => *was = node,
            None => known.push((name.clone(), node)),
        }
    }
    JsonNode::Map(known)
}

fn entry(entry: &FioEntry) -> JsonNode {
    let (o, figures) = (&entry.job.options, &entry.figures);
    let shares = Shares::of(figures);
    let (user, system) = processor(entry);
    let mut nodes = vec![
        ("jobname", JsonNode::Text(o.name.clone())),
        ("groupid", JsonNode::Int(entry.job.group)),
        (
            "error",
            JsonNode::Int(entry.fault.as_ref().map_or(0, |f| u64::from(f.errno.unsigned_abs()))),
        ),
        ("eta", JsonNode::Int(0)),
        ("elapsed", JsonNode::Int(figures.elapsed_ns.div_ceil(1_000_000_000))),
        ("job options", settings(&entry.job.own)),
    ];
    if let Some(text) = &o.description {
        nodes.push(("desc", JsonNode::Text(text.clone())));
    }
    for kind in RequestKind::ALL {
        nodes.push((kind.name(), of_kind(&figures.kinds[kind as usize], entry)));
    }
    nodes.push(("trim", of_kind(&KindFigures::default(), entry)));
    let syncs = timing(&figures.syncs, true, entry);
    let sync = [("total_ios", JsonNode::Int(figures.syncs.moments.count)), ("lat_ns", syncs)];
    nodes.push(("sync", map(sync)));
    nodes.extend([
        ("job_runtime", JsonNode::Int(figures.elapsed_ns / 1_000_000)),
        ("usr_cpu", JsonNode::Float(user)),
        ("sys_cpu", JsonNode::Float(system)),
        ("ctx", JsonNode::Int(figures.tasks.switches)),
        ("majf", JsonNode::Int(figures.tasks.major_faults)),
        ("minf", JsonNode::Int(figures.tasks.minor_faults)),
        ("iodepth_level", named(&["1", "2", "4", "8", "16", "32", ">=64"], &shares.depths)),
        ("iodepth_submit", one_by_one(figures)),
        ("iodepth_complete", one_by_one(figures)),
        ("latency_ns", named(&STEPS[..10], &shares.ns)),
        ("latency_us", named(&STEPS[..10], &shares.us)),
        ("latency_ms", named(&STEPS, &shares.ms)),
        ("latency_depth", JsonNode::Int(o.iodepth)),
        ("latency_target", JsonNode::Int(0)),
        ("latency_percentile", JsonNode::Float(100.0)),
        ("latency_window", JsonNode::Int(0)),
    ]);
    JsonNode::Map(nodes.into_iter().map(|(key, node)| (key.to_owned(), node)).collect())
}

/// The keys of the steps of latencies.
const STEPS: [&str; 12] =
    ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000"];

fn named(names: &[&str], shares: &[f64]) -> JsonNode {
    let pairs = names.iter().zip(shares);
    JsonNode::Map(
        pairs.map(|(name, share)| ((*name).to_owned(), JsonNode::Float(*share))).collect(),
    )
}

/// Requests are made and return one at a time.
fn one_by_one(figures: &JobFigures) -> JsonNode {
    let all = percent(figures.requests(), figures.requests());
    named(&["0", "4", "8", "16", "32", "64", ">=64"], &[0.0, all, 0.0, 0.0, 0.0, 0.0, 0.0])
}

fn of_kind(kind: &KindFigures, entry: &FioEntry) -> JsonNode {
    let o = &entry.job.options;
    let bytes_per_s = kind.bytes_per_s() as u64;
    let all: f64 = entry.figures.kinds.iter().map(KindFigures::bytes_per_s).sum();
    let share = if all > 0.0 { kind.bw.mean * 1024.0 / all * 100.0 } else { 0.0 };
    map([
        ("io_bytes", JsonNode::Int(kind.bytes)),
        ("io_kbytes", JsonNode::Int(kind.bytes >> 10)),
        ("bw_bytes", JsonNode::Int(bytes_per_s)),
        ("bw", JsonNode::Int(bytes_per_s >> 10)),
        ("iops", JsonNode::Float(kind.requests_per_s())),
        ("runtime", JsonNode::Int(kind.runtime_ns.div_ceil(1_000_000))),
        ("total_ios", JsonNode::Int(kind.requests)),
        ("short_ios", JsonNode::Int(kind.short)),
        ("drop_ios", JsonNode::Int(0)),
        ("slat_ns", JsonNode::Map(moments(&kind.slat))),
        ("clat_ns", timing(&kind.clat, o.clat_percentiles, entry)),
        ("lat_ns", timing(&kind.lat, o.lat_percentiles, entry)),
        ("bw_min", JsonNode::Int(kind.bw.min)),
        ("bw_max", JsonNode::Int(kind.bw.max)),
        ("bw_agg", JsonNode::Float(share.min(100.0))),
        ("bw_mean", JsonNode::Float(kind.bw.mean)),
        ("bw_dev", JsonNode::Float(kind.bw.deviation())),
        ("bw_samples", JsonNode::Int(kind.bw.count)),
        ("iops_min", JsonNode::Int(kind.iops.min)),
        ("iops_max", JsonNode::Int(kind.iops.max)),
        ("iops_mean", JsonNode::Float(kind.iops.mean)),
        ("iops_stddev", JsonNode::Float(kind.iops.deviation())),
        ("iops_samples", JsonNode::Int(kind.iops.count)),
    ])
}

fn moments(of: &Moments) -> Vec<(String, JsonNode)> {
    [
        ("min", JsonNode::Int(of.min)),
        ("max", JsonNode::Int(of.max)),
        ("mean", JsonNode::Float(of.mean)),
        ("stddev", JsonNode::Float(of.deviation())),
        ("N", JsonNode::Int(of.count)),
    ]
    .map(|(key, node)| (key.to_owned(), node))
    .into()
}

/// Percentiles are there where there is something to have them of.
fn timing(of: &CallTimes, with_percentiles: bool, entry: &FioEntry) -> JsonNode {
    let mut nodes = moments(&of.moments);
    if with_percentiles && of.moments.count > 0 {
        let list = entry.job.options.percentiles.iter();
        let list = list.map(|p| (format!("{p:.6}"), JsonNode::Int(of.percentile(*p))));
        nodes.push(("percentile".to_owned(), JsonNode::Map(list.collect())));
    }
    JsonNode::Map(nodes)
}
