//! Engines: whatever they say of their tasks, the files decide.

use std::fs;
use std::process::Stdio;

use super::cluster::{Cluster, wait_for};
use super::{Desk, LIMIT, find, good};

/// 200 cases.
const SEEDS: u64 = 50;

/// A task of the node that has begun and not ended: its process, and its shard.
fn task_on(desk: &Desk, node: &str) -> Option<(u32, u64)> {
    let files = fs::read_dir(desk.path().join("out/results")).ok()?;
    files.filter_map(|file| fs::read_to_string(file.ok()?.path()).ok()).find_map(|text| {
        let (lines, last) = (text.lines().count(), text.lines().last()?);
        let first: serde_json::Value = serde_json::from_str(text.lines().next()?).ok()?;
        let attempt = &first["attempt"];
        let going = (4..=20).contains(&lines) && !last.contains("\"manifest\"");
        let pid = u32::try_from(attempt["pid"].as_u64()?).ok()?;
        (going && attempt["host"] == node).then_some((pid, attempt["shard"].as_u64()?))
    })
}

#[test]
fn a_node_of_slurm_is_lost_and_the_table_is_the_same() {
    let mut cluster = match Cluster::start() {
        Ok(cluster) => cluster,
        Err(why) => {
            println!("SKIPPED: a sweep on Slurm: {why}");
            return;
        }
    };
    let desk = Desk::new(SEEDS);
    let line = "sweep submit SWEEP.toml --shards 6 --slurm --partition short -o out";
    let (variable, value) = cluster.configuration();
    let mut submit = desk.command(line);
    submit.env(variable, value).stdin(Stdio::null());
    let submitted = submit.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lost = None;
    wait_for("task on n1", || {
        lost = task_on(&desk, "n1");
        lost.is_some()
    });
    let (task, shard) = lost.unwrap();
    cluster.lose("n1", task);
    let one = desk.one_machine("");
    let merged = good(line, steadfast_suite::output_of(LIMIT, submitted).unwrap());
    assert!(merged == one, "{merged}\n{one}");
    // What n1 had written was not run again.
    let file = desk.path().join(format!("out/results/shard-{shard:06}.jsonl"));
    let text = fs::read_to_string(file).unwrap();
    let hosts: Vec<bool> = text
        .lines()
        .filter(|line| line.starts_with("{\"attempt\""))
        .map(|line| line.contains("\"host\":\"n1\""))
        .collect();
    assert_eq!(hosts, [true, false], "{text}");
}

#[test]
fn parallel_does_the_same_and_what_is_missing_once_more() {
    if find("parallel").is_none() {
        println!("SKIPPED: a sweep by GNU parallel: it is not there (package parallel)");
        return;
    }
    let desk = Desk::new(5);
    let line = "sweep submit SWEEP.toml --shards 4 --parallel --jobs 2 -o out";
    let one = desk.one_machine("");
    assert!(desk.good(line) == one);
    // The same command runs what is missing, and no more.
    let (file, other) = ("out/results/shard-000002.jsonl", "out/results/shard-000001.jsonl");
    fs::remove_file(desk.path().join(file)).unwrap();
    let before = fs::metadata(desk.path().join(other)).unwrap().modified().unwrap();
    assert!(desk.good(line) == one);
    assert_eq!(fs::metadata(desk.path().join(other)).unwrap().modified().unwrap(), before);
    // Another sweep does not go into its folder.
    let another = desk.bad("sweep submit SWEEP.toml --shards 3 --parallel -o out", 2);
    assert!(another.contains("name another folder"), "{another}");
}
