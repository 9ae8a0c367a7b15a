//! What readers of fio's output find: its keys, its fields, its lines.

use std::collections::BTreeSet;

use serde_json::Value;
use steadfast_bench::fio::report::{self, RunDate};

use crate::memory::Behaviour;
use crate::{planned, simulate};

const JOB: &str = "[global]\nsize=1m\n[a b]\nrw=randrw\nfsync=16\ndescription=of two\n\
                   [c]\nstonewall\nnumjobs=2\ngroup_reporting\nlat_percentiles=1\n\
                   ioengine=libaio\n";

fn results() -> steadfast_bench::fio::FioResults {
    let ms = std::time::Duration::from_millis;
    let behaviour = Behaviour { read: ms(1), write: ms(2), fsync: ms(5), ..Behaviour::default() };
    simulate(JOB, behaviour).0
}

/// The keys of fio 3.33, by the paths to them; of a job's reads they are those of writes and trims.
const KEYS: &str = include_str!("fio-3.33-keys.txt");

fn paths(value: &Value, at: &str, to: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, v)| paths(v, &format!("{at}/{key}"), to)),
        Value::Array(list) => list.iter().for_each(|v| paths(v, &format!("{at}/[]"), to)),
        _ => drop(to.insert(at.to_owned())),
    }
}

#[test]
fn json_has_fios_keys() {
    let date = RunDate { unix_ns: 1_795_870_361_708_000_000, text: "Sat Nov 28".into() };
    let json = report::json(&results(), &date).unwrap();
    let document: Value = serde_json::from_str(&json).unwrap();
    let mut found = BTreeSet::new();
    paths(&document, "", &mut found);
    for key in KEYS.lines().filter(|key| !key.contains("options/")) {
        assert!(found.contains(key), "{key}");
    }
    let jobs = document["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 2);
    assert_eq!(document["timestamp_ms"], 1_795_870_361_708u64);
    assert_eq!(document["global options"]["size"], "1m");
    let first = &jobs[0];
    assert_eq!((&first["jobname"], &first["job options"]["fsync"]), (&"a b".into(), &"16".into()));
    let (read, write) = (&first["read"], &first["write"]);
    let sum = read["total_ios"].as_u64().unwrap() + write["total_ios"].as_u64().unwrap();
    assert_eq!(sum, 256);
    assert!(read["clat_ns"]["percentile"]["99.000000"].as_u64().unwrap() >= 1_000_000);
    assert!(first["sync"]["total_ios"].as_u64().unwrap() >= 7);
    assert_eq!(jobs[1]["read"]["total_ios"], 512);
    assert!(jobs[1]["read"]["lat_ns"]["percentile"].is_object());
    assert_eq!(jobs[1]["read"]["slat_ns"]["N"], 512);
    let levels = first["iodepth_level"].as_object().unwrap().values();
    assert!((levels.filter_map(Value::as_f64).sum::<f64>() - 100.0).abs() < 1e-6);
}

#[test]
fn a_terse_line_has_fios_fields() {
    let text = report::terse(&results());
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(';').collect()).collect();
    // fio has 121 without disks, and one more for a description.
    assert_eq!(lines.iter().map(Vec::len).collect::<Vec<_>>(), [122, 121]);
    assert_eq!((lines[0][0], lines[0][2], lines[0][121]), ("3", "a b", "of two"));
    assert_eq!((lines[0][17], lines[1][58]), ("1.000000%=1001", "1.000000%=0"));
}

#[test]
fn text_is_as_fios() {
    let head = report::head(&planned(JOB).unwrap());
    assert!(head.starts_with("a b: (g=0): rw=randrw, bs=(R) 4096B-4096B, "), "{head}");
    let text = report::text(&results(), &RunDate::default());
    for part in [
        "\na b: (groupid=0, jobs=1): err= 0: ",
        "\n   read: IOPS=",
        "\n  write: IOPS=",
        "\n    clat percentiles (",
        "\n     |  1.00th=[",
        "\n  fsync/fdatasync/sync_file_range:\n",
        "\n  lat (msec)   : 2=",
        "\n  cpu          : usr=0.00%, sys=0.00%",
        "\n  IO depths    : 1=100.0%, 2=0.0%",
        "\n     issued rwts: total=",
        "\nc: (groupid=1, jobs=2): err= 0: ",
        "\nRun status group 1 (all jobs):\n   READ: bw=",
    ] {
        assert!(text.contains(part), "{part:?} in\n{text}");
    }
}
