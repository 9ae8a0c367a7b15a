//! fio's JSON.

use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};

use super::super::options::RequestKind;
use super::super::results::{FioEntry, FioResults};
use super::super::stats::{JobFigures, KindFigures, Moments, Timing};
use super::{RunDate, Shares, VERSION, percent, processor};

/// A value whose keys stay in order.
enum Node {
    Int(u64),
    Float(f64),
    Text(String),
    Map(Vec<(String, Node)>),
    List(Vec<Node>),
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Node::Int(n) => to.serialize_u64(*n),
            // Six digits, as fio has them.
            Node::Float(x) => to.serialize_f64((x * 1e6).round() / 1e6),
            Node::Text(text) => to.serialize_str(text),
            Node::Map(entries) => {
                let mut map = to.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
            Node::List(nodes) => {
                let mut list = to.serialize_seq(Some(nodes.len()))?;
                for node in nodes {
                    list.serialize_element(node)?;
                }
                list.end()
            }
        }
    }
}

fn map<const N: usize>(entries: [(&str, Node); N]) -> Node {
    Node::Map(entries.into_iter().map(|(key, node)| (key.to_owned(), node)).collect())
}

/// Everything as one document.
///
/// # Errors
/// None that is known: all of it can be JSON.
pub fn json(results: &FioResults, date: &RunDate) -> serde_json::Result<String> {
    let globals = results.entries.first().map_or(&[][..], |entry| &entry.job.globals);
    let document = map([
        ("fio version", Node::Text(VERSION.into())),
        ("timestamp", Node::Int(date.unix_ns / 1_000_000_000)),
        ("timestamp_ms", Node::Int(date.unix_ns / 1_000_000)),
        ("time", Node::Text(date.text.clone())),
        ("global options", settings(globals)),
        ("jobs", Node::List(results.entries.iter().map(entry).collect())),
        ("disk_util", Node::List(Vec::new())),
    ]);
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// A setting that is said twice is as the last one says.
fn settings(given: &[(String, Option<String>)]) -> Node {
    let mut known: Vec<(String, Node)> = Vec::new();
    for (name, value) in given {
        let node = Node::Text(value.clone().unwrap_or_else(|| "1".into()));
        match known.iter_mut().find(|(seen, _)| seen == name) {
            Some((_, was)) => *was = node,
            None => known.push((name.clone(), node)),
        }
    }
    Node::Map(known)
}

fn entry(entry: &FioEntry) -> Node {
    let (o, figures) = (&entry.job.options, &entry.figures);
    let shares = Shares::of(figures);
    let (user, system) = processor(entry);
    let mut nodes = vec![
        ("jobname", Node::Text(o.name.clone())),
        ("groupid", Node::Int(entry.job.group)),
        ("error", Node::Int(entry.fault.as_ref().map_or(0, |f| u64::from(f.errno.unsigned_abs())))),
        ("eta", Node::Int(0)),
        ("elapsed", Node::Int(figures.elapsed_ns.div_ceil(1_000_000_000))),
        ("job options", settings(&entry.job.own)),
    ];
    if let Some(text) = &o.description {
        nodes.push(("desc", Node::Text(text.clone())));
    }
    for kind in RequestKind::ALL {
        nodes.push((kind.name(), of_kind(&figures.kinds[kind as usize], entry)));
    }
    nodes.push(("trim", of_kind(&KindFigures::default(), entry)));
    let syncs = timing(&figures.syncs, true, entry);
    let sync = [("total_ios", Node::Int(figures.syncs.moments.count)), ("lat_ns", syncs)];
    nodes.push(("sync", map(sync)));
    nodes.extend([
        ("job_runtime", Node::Int(figures.elapsed_ns / 1_000_000)),
        ("usr_cpu", Node::Float(user)),
        ("sys_cpu", Node::Float(system)),
        ("ctx", Node::Int(figures.tasks.switches)),
        ("majf", Node::Int(figures.tasks.major_faults)),
        ("minf", Node::Int(figures.tasks.minor_faults)),
        ("iodepth_level", named(&["1", "2", "4", "8", "16", "32", ">=64"], &shares.depths)),
        ("iodepth_submit", one_by_one(figures)),
        ("iodepth_complete", one_by_one(figures)),
        ("latency_ns", named(&STEPS[..10], &shares.ns)),
        ("latency_us", named(&STEPS[..10], &shares.us)),
        ("latency_ms", named(&STEPS, &shares.ms)),
        ("latency_depth", Node::Int(o.iodepth)),
        ("latency_target", Node::Int(0)),
        ("latency_percentile", Node::Float(100.0)),
        ("latency_window", Node::Int(0)),
    ]);
    Node::Map(nodes.into_iter().map(|(key, node)| (key.to_owned(), node)).collect())
}

/// The keys of the steps of latencies.
const STEPS: [&str; 12] =
    ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000"];

fn named(names: &[&str], shares: &[f64]) -> Node {
    let pairs = names.iter().zip(shares);
    Node::Map(pairs.map(|(name, share)| ((*name).to_owned(), Node::Float(*share))).collect())
}

/// Requests are made and return one at a time.
fn one_by_one(figures: &JobFigures) -> Node {
    let all = percent(figures.requests(), figures.requests());
    named(&["0", "4", "8", "16", "32", "64", ">=64"], &[0.0, all, 0.0, 0.0, 0.0, 0.0, 0.0])
}

fn of_kind(kind: &KindFigures, entry: &FioEntry) -> Node {
    let o = &entry.job.options;
    let bytes_per_s = kind.bytes_per_s() as u64;
    let all: f64 = entry.figures.kinds.iter().map(KindFigures::bytes_per_s).sum();
    let share = if all > 0.0 { kind.bw.mean * 1024.0 / all * 100.0 } else { 0.0 };
    map([
        ("io_bytes", Node::Int(kind.bytes)),
        ("io_kbytes", Node::Int(kind.bytes >> 10)),
        ("bw_bytes", Node::Int(bytes_per_s)),
        ("bw", Node::Int(bytes_per_s >> 10)),
        ("iops", Node::Float(kind.requests_per_s())),
        ("runtime", Node::Int(kind.runtime_ns.div_ceil(1_000_000))),
        ("total_ios", Node::Int(kind.requests)),
        ("short_ios", Node::Int(kind.short)),
        ("drop_ios", Node::Int(0)),
        ("slat_ns", Node::Map(moments(&kind.slat))),
        ("clat_ns", timing(&kind.clat, o.clat_percentiles, entry)),
        ("lat_ns", timing(&kind.lat, o.lat_percentiles, entry)),
        ("bw_min", Node::Int(kind.bw.min)),
        ("bw_max", Node::Int(kind.bw.max)),
        ("bw_agg", Node::Float(share.min(100.0))),
        ("bw_mean", Node::Float(kind.bw.mean)),
        ("bw_dev", Node::Float(kind.bw.deviation())),
        ("bw_samples", Node::Int(kind.bw.count)),
        ("iops_min", Node::Int(kind.iops.min)),
        ("iops_max", Node::Int(kind.iops.max)),
        ("iops_mean", Node::Float(kind.iops.mean)),
        ("iops_stddev", Node::Float(kind.iops.deviation())),
        ("iops_samples", Node::Int(kind.iops.count)),
    ])
}

fn moments(of: &Moments) -> Vec<(String, Node)> {
    [
        ("min", Node::Int(of.min)),
        ("max", Node::Int(of.max)),
        ("mean", Node::Float(of.mean)),
        ("stddev", Node::Float(of.deviation())),
        ("N", Node::Int(of.count)),
    ]
    .map(|(key, node)| (key.to_owned(), node))
    .into()
}

/// Percentiles are there where there is something to have them of.
fn timing(of: &Timing, with_percentiles: bool, entry: &FioEntry) -> Node {
    let mut nodes = moments(&of.moments);
    if with_percentiles && of.moments.count > 0 {
        let list = entry.job.options.percentiles.iter();
        let list = list.map(|p| (format!("{p:.6}"), Node::Int(of.percentile(*p))));
        nodes.push(("percentile".to_owned(), Node::Map(list.collect())));
    }
    Node::Map(nodes)
}
