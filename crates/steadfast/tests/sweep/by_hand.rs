//! A plan, its shards and their merge, without an engine.

use std::fs;

use super::{Desk, LIMIT, good};

#[test]
fn what_is_merged_is_what_one_machine_prints() {
    let desk = Desk::new(3);
    desk.plan(3);
    // By an option, by Slurm's variable, and by one that counts from 1.
    desk.good("sweep run --plan plan.json --shard 0 -o results");
    for (name, value) in [("SLURM_ARRAY_TASK_ID", "1"), ("CI_NODE_INDEX", "3")] {
        let mut command = desk.command("sweep run --plan plan.json -o results");
        let ran = steadfast_suite::output(LIMIT, command.env(name, value)).unwrap();
        good(name, ran);
    }
    let status = desk.good("sweep status plan.json results");
    assert!(status.starts_with("12 of 12 cases (0 failed)"), "{status}");
    let same = |merged: String, one: String| assert!(merged == one, "{merged}\n{one}");
    same(desk.good("sweep merge plan.json results"), desk.one_machine(""));
    let json = desk.good("sweep merge plan.json results --json - --report merged.html");
    same(json, desk.one_machine("--json - --report one.html"));
    let page = |name: &str| fs::read_to_string(desk.path().join(name)).unwrap();
    same(page("merged.html"), page("one.html"));
    for format in ["--format markdown", "--format csv --wide"] {
        let merged = desk.good(&format!("sweep merge plan.json results {format}"));
        same(merged, desk.one_machine(format));
    }
    // A shard that is whole stays.
    let again = desk.good("sweep run --plan plan.json --shard 2 -o results --json");
    assert!(again.contains("\"resumed\": 4"), "{again}");
}

#[test]
fn a_case_alone_is_the_line_of_the_shard() {
    let desk = Desk::new(1);
    desk.plan(1);
    desk.good("sweep run --plan plan.json -o results");
    let name = "external/cuts/seed-1";
    let alone = desk.good(&format!("sweep run --plan plan.json --case {name}"));
    let alone: serde_json::Value = serde_json::from_str(&alone).unwrap();
    let text = fs::read_to_string(desk.path().join("results/shard-000000.jsonl")).unwrap();
    let line = text.lines().find(|line| line.contains(name)).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!((&alone["result"], &alone["case"]), (&line["result"], &line["case"]));
    let none = desk.bad("sweep run --plan plan.json --case nobody", 2);
    assert!(none.contains("there is no case 'nobody'"), "{none}");
}

#[test]
fn a_comparison_of_stacks_is_the_same() {
    let desk = Desk::new(1);
    let mut log = "fio version 2 iolog\nf add\nf open\n".to_owned();
    (0..8).for_each(|n| log += &format!("f write {} 4096\nf sync 0 0\n", n * 4096));
    fs::write(desk.path().join("log.fio"), log + "f close\n").unwrap();
    desk.good("trace import log.fio -o log.trace");
    let sweep = "[lab-compare]\ntrace = \"log.trace\"\nonly = [\"disk-7200\", \"nvdimm-dax\"]\n\
                 cuts = 3\n";
    fs::write(desk.path().join("SWEEP.toml"), sweep).unwrap();
    desk.plan(2);
    for shard in 0..2 {
        desk.good(&format!("sweep run --plan plan.json --shard {shard} -o results"));
    }
    let one = "lab compare --trace log.trace --only disk-7200,nvdimm-dax --cuts 3";
    let merged = desk.good("sweep merge plan.json results --report merged.html");
    assert!(merged == desk.good(&format!("{one} --report one.html")), "{merged}");
    let page = |name: &str| fs::read_to_string(desk.path().join(name)).unwrap();
    assert!(page("merged.html") == page("one.html"));
    // The trace is an input: another one is refused.
    let trace = desk.path().join("log.trace");
    fs::write(&trace, fs::read(&trace).unwrap().repeat(2)).unwrap();
    let refused = desk.bad("sweep merge plan.json results", 2);
    assert!(refused.contains("log.trace: its SHA-256 is"), "{refused}");
}

#[test]
fn a_sensitivity_is_the_same() {
    let desk = Desk::new(1);
    let sweep = "[lab-sensitivity]\nscenario = \"small.toml\"\nsize = \"64k\"\nonly = \"card\"\n";
    fs::write(desk.path().join("SWEEP.toml"), sweep).unwrap();
    desk.plan(3);
    for shard in 0..3 {
        desk.good(&format!("sweep run --plan plan.json --shard {shard} -o results"));
    }
    let one = "lab sensitivity small.toml --size 64k --only card";
    let merged = desk.good("sweep merge plan.json results");
    assert!(merged == desk.good(one), "{merged}");
    let json = desk.good("sweep merge plan.json results --json -");
    assert!(json == desk.good(&format!("{one} --json -")), "{json}");
}

#[test]
fn a_matrix_over_stacks_is_the_same() {
    let desk = Desk::new(2);
    let small = fs::read_to_string(desk.path().join("small.toml")).unwrap();
    let one = small.lines().find(|line| line.starts_with("iozone = ")).unwrap();
    let lines = "iozone = \"-a -n 64k -g 256k -i0 -i1\"\n\
                 quick_iozone = \"-a -n 64k -g 128k -i0 -i1\"\n\
                 risk_iozone = \"-o -s 64k -r 16k -i0\"";
    let matrix = small.replace(one, lines);
    let without = |name: &str, text: String| {
        let lines = text.lines().filter(|line| !line.starts_with(name));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let matrix = without("quick_size", without("risk_size", matrix));
    fs::write(desk.path().join("small.toml"), matrix).unwrap();
    desk.plan(2);
    for shard in 0..2 {
        desk.good(&format!("sweep run --plan plan.json --shard {shard} -o results"));
    }
    let json = desk.good("sweep merge plan.json results --json - --report merged.html");
    assert!(json == desk.one_machine("--json - --report one.html"), "{json}");
    let page = |name: &str| fs::read_to_string(desk.path().join(name)).unwrap();
    assert!(page("merged.html") == page("one.html"));
    assert!(page("merged.html").contains("Speed by file and record size"));
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    let desk = Desk::new(1);
    let said = |line: &str, status, words: &[&str]| {
        let said = desk.bad(line, status);
        let joined = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.iter().all(|word| joined.contains(word)), "{line}: {said}");
    };
    said("sweep plan SWEEP.toml --shards 5", 2, &["4 cases in 5 shards", "at most 4 shards"]);
    desk.plan(2);
    said("sweep run --plan plan.json", 2, &["has 2 shards", "--shard K", "SLURM_ARRAY_TASK_ID"]);
    said("sweep run --plan plan.json --shard 2", 2, &["says shard 2: the plan has 2, from 0 to 1"]);
    desk.good("sweep run --plan plan.json --shard 1 -o results");
    said("sweep merge plan.json results", 1, &["shard 0 of 2 is missing", "--shard 0"]);
    said("sweep status plan.json results", 1, &[]);
    // Another plan's results, and the plan of another program.
    let plan = fs::read_to_string(desk.path().join("plan.json")).unwrap();
    desk.plan(1);
    said("sweep merge plan.json results", 1, &["it is of another plan"]);
    said("sweep run --plan plan.json -o results", 0, &[]);
    let hash = plan.split("\"sha256\":\"").nth(1).unwrap()[..64].to_owned();
    fs::write(desk.path().join("plan.json"), plan.replace(&hash, &"0".repeat(64))).unwrap();
    said("sweep run --plan plan.json --shard 0", 2, &["it has been changed", "sweep plan"]);
    fs::write(desk.path().join("plan.json"), "{}\n").unwrap();
    said("sweep merge plan.json results", 2, &["it is no plan of a sweep"]);
    let kernels = "[lab-run]\nscenario = \"data-at-risk\"\n";
    fs::write(desk.path().join("SWEEP.toml"), kernels).unwrap();
    said("sweep plan SWEEP.toml --shards 1", 2, &["cannot be swept", "virtual time"]);
    fs::write(desk.path().join("SWEEP.toml"), "[lab-run]\nscenari = \"x\"\n").unwrap();
    said("sweep plan SWEEP.toml --shards 1", 2, &["unknown field `scenari`", "--help"]);
}
