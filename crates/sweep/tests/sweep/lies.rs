//! Lies that are planted in plans and results: a merge refuses each by its name.

use std::fs;

use sha2::{Digest, Sha256};
use steadfast_sweep::{
    CaseOutcome, MergeFault, PlanFile, PlanHead, PlanInput, PlanProgram, ShardRun, SweepCase,
    SweepError, write_plan,
};

use crate::common::{Sweep, cases, program, square};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The sum that a line of a plan's results ends with, as a liar who knows the format makes it.
fn with_sum(plan: &str, line: &str) -> String {
    let (text, _) = line.rsplit_once(",\"sum\":\"").unwrap();
    let sum = hex(&Sha256::new().chain_update(plan).chain_update(text).finalize()[..8]);
    format!("{text},\"sum\":\"{sum}\"}}")
}

#[test]
fn what_is_honest_is_merged_in_the_order_of_the_plan() {
    let sweep = Sweep::done(20, 3);
    assert_eq!(sweep.merged().unwrap(), sweep.expected());
    // In any order of the files.
    let files = [2, 0, 1].map(|shard| sweep.file(shard));
    assert_eq!(sweep.merged_of(&files).unwrap(), sweep.expected());
}

#[test]
fn a_missing_shard() {
    let sweep = Sweep::done(20, 3);
    fs::remove_file(sweep.file(0)).unwrap();
    fs::remove_file(sweep.file(2)).unwrap();
    let faults = sweep.faults();
    assert!(matches!(
        faults[..],
        [MergeFault::Missing { shard: 0, .. }, MergeFault::Missing { shard: 2, .. }]
    ));
    let said = faults[1].to_string();
    assert!(said.starts_with("shard 2 of 3 is missing (6 cases)"), "{said}");
    assert!(said.ends_with("--shard 2"), "{said}");
}

#[test]
fn a_doubled_shard() {
    let sweep = Sweep::done(20, 3);
    let again = sweep.path().join("again");
    fs::create_dir(&again).unwrap();
    ShardRun::new(&sweep.plan, 1, &again).run(square).unwrap();
    fs::rename(again.join("shard-000001.jsonl"), sweep.results().join("shard-again.jsonl"))
        .unwrap();
    let faults = sweep.faults();
    assert!(matches!(faults[..], [MergeFault::Doubled { shard: 1, .. }]), "{faults:?}");
    // Nor the very same file under two names.
    let files = [0, 1, 1, 2].map(|shard| sweep.file(shard));
    let refused = sweep.merged_of(&files).unwrap_err();
    assert!(refused.to_string().contains("shard 1 is there twice"), "{refused}");
}

#[test]
fn two_results_of_one_case_are_a_determinism_bug() {
    let sweep = Sweep::done(20, 2);
    let again = sweep.path().join("again");
    fs::create_dir(&again).unwrap();
    let other = |case: &SweepCase| match case.name.as_str() {
        "n-7" => CaseOutcome::Done(50.into()),
        _ => square(case),
    };
    for shard in 0..2 {
        ShardRun::new(&sweep.plan, shard, &again).run(other).unwrap();
    }
    let refused = sweep.merged_of(&[sweep.results(), again.clone()]).unwrap_err().to_string();
    assert!(refused.contains("DETERMINISM BUG: case 'n-7' has two results"), "{refused}");
    assert!(refused.contains(&again.display().to_string()), "{refused}");
    assert!(refused.contains(&sweep.results().display().to_string()), "{refused}");
    assert!(refused.contains("plan.json --case 'n-7'"), "{refused}");
    // A part that an attempt has left beside the whole file is compared, too.
    let shard = (0..2).find(|shard| sweep.text(*shard).contains("\"n-7\"")).unwrap();
    let text = fs::read_to_string(again.join(format!("shard-{shard:06}.jsonl"))).unwrap();
    let part = text.lines().take_while(|line| !line.contains("manifest"));
    let part: String = part.map(|line| format!("{line}\n")).collect();
    fs::write(sweep.results().join(format!("shard-{shard:06}.other-1-1.part")), part).unwrap();
    assert!(matches!(sweep.faults()[..], [MergeFault::Unlike { .. }]));
}

#[test]
fn a_shard_of_another_plan() {
    let (sweep, other) = (Sweep::done(20, 2), Sweep::done(21, 2));
    fs::copy(other.file(1), sweep.file(1)).unwrap();
    let faults = sweep.faults();
    assert!(
        matches!(faults[..], [MergeFault::OtherPlan { .. }, MergeFault::Missing { shard: 1, .. }]),
        "{faults:?}"
    );
    // Nor is anything written beside it.
    let run = ShardRun::new(&sweep.plan, 1, &sweep.results()).run(square);
    assert!(matches!(run, Err(SweepError::Folder(_))), "{run:?}");
}

#[test]
fn a_line_of_another_plan() {
    let (sweep, other) = (Sweep::done(20, 1), Sweep::done(21, 1));
    let text = sweep.text(0);
    let line = |text: &str| text.lines().nth(3).unwrap().to_owned();
    fs::write(sweep.file(0), text.replace(&line(&text), &line(&other.text(0)))).unwrap();
    assert!(matches!(sweep.faults()[..], [MergeFault::Altered { line: 4, .. }]));
}

#[test]
fn a_shard_of_another_build() {
    let sweep = Sweep::done(20, 2);
    // The liar's plan is the same but for the program: so its fingerprint is another one.
    let other = Sweep::new(20, 2, "b");
    assert_ne!(sweep.plan.fingerprint(), other.plan.fingerprint());
    // The plan is right and the program is not: the attempt says so.
    let text = sweep.text(1);
    let changed: String = text
        .replace(&program("a").sha256, &program("b").sha256)
        .lines()
        .map(|line| with_sum(sweep.plan.fingerprint(), line) + "\n")
        .collect();
    fs::write(sweep.file(1), changed).unwrap();
    let faults = sweep.faults();
    assert!(matches!(faults[0], MergeFault::OtherProgram { .. }), "{faults:?}");
    assert!(faults[0].to_string().contains("another build may give other results"));
}

#[test]
fn a_program_or_an_input_that_is_not_the_planned_one() {
    let sweep = Sweep::new(4, 1, "a");
    assert!(sweep.plan.verify(&program("a")).is_ok());
    let refused = sweep.plan.verify(&program("b")).unwrap_err().to_string();
    assert!(refused.contains("it was made by program aaaaaaaaaaaaaaaa (version 1.0)"), "{refused}");
    // A program that runs knows itself.
    let own = std::env::current_exe().unwrap();
    let sha256 = steadfast_sweep::sha256_of_file(&own).unwrap();
    assert_eq!(PlanProgram::this_one("1").unwrap().sha256, sha256);
    let mut head = PlanHead::new("squares", program("a"), 1);
    head.inputs = vec![PlanInput { path: own, sha256 }];
    let path = sweep.path().join("inputs.json");
    for (inputs, wanted) in [("as they were", true), ("changed", false)] {
        if !wanted {
            head.inputs[0].sha256 = "0".repeat(64);
        }
        let mut text = Vec::new();
        write_plan(&head, || cases(4), None, &mut text).unwrap();
        fs::write(&path, text).unwrap();
        let verified = PlanFile::open(&path).unwrap().verify(&program("a"));
        assert_eq!(verified.is_ok(), wanted, "{inputs}: {verified:?}");
    }
}

#[test]
fn a_shard_of_a_machine_with_other_tools() {
    let sweep = Sweep::new(20, 3, "a");
    let run = |shard: u32, version: Option<&str>, host: &str| {
        let tools = version.map(|version| ("e2fsck".to_owned(), version.to_owned()));
        let run = ShardRun::new(&sweep.plan, shard, &sweep.results()).on_host(host);
        run.with_tools(tools.into_iter().collect()).run(square)
    };
    run(0, Some("1.47.0"), "n1").unwrap();
    run(1, Some("1.47.0"), "n2").unwrap();
    run(2, None, "n3").unwrap();
    let faults = sweep.faults();
    assert!(matches!(faults[..], [MergeFault::OtherTools { .. }]), "{faults:?}");
    let said = faults[0].to_string();
    assert!(said.contains("n3 has no e2fsck, and n1 has e2fsck (1.47.0)"), "{said}");
    fs::remove_file(sweep.file(2)).unwrap();
    run(2, Some("1.47.1"), "n3").unwrap();
    assert!(matches!(sweep.faults()[..], [MergeFault::OtherTools { .. }]));
    // Nor does it go on where another machine has begun: whole files stay as they are.
    let text = sweep.text(2);
    fs::remove_file(sweep.file(2)).unwrap();
    let part: String = text.lines().take(4).map(|line| format!("{line}\n")).collect();
    fs::write(sweep.results().join("shard-000002.n3-1-1.part"), part).unwrap();
    let resumed = run(2, Some("1.47.0"), "n1");
    let Err(SweepError::Folder(fault)) = resumed else { panic!("{resumed:?}") };
    assert!(fault.to_string().contains("n3 has e2fsck (1.47.1), and n1 has e2fsck (1.47.0)"));
    run(2, Some("1.47.1"), "n4").unwrap();
    assert!(matches!(sweep.faults()[..], [MergeFault::OtherTools { .. }]));
}

#[test]
fn a_file_that_was_cut_off() {
    let sweep = Sweep::done(20, 2);
    let text = sweep.text(1);
    let lines = text.lines().count();
    let cut: String = text.lines().take(lines - 1).map(|line| format!("{line}\n")).collect();
    fs::write(sweep.file(1), cut).unwrap();
    let faults = sweep.faults();
    assert!(matches!(faults[..], [MergeFault::CutOff { shard: 1, done: 10, .. }]), "{faults:?}");
    assert!(faults[0].to_string().contains("resume it: steadfast sweep run --plan"));
    // In the middle of a line.
    fs::write(sweep.file(1), &text[..text.len() / 2]).unwrap();
    assert!(matches!(sweep.faults()[..], [MergeFault::CutOff { shard: 1, done: 1..10, .. }]));
}

#[test]
fn an_altered_result() {
    let sweep = Sweep::done(20, 1);
    let text = sweep.text(0);
    let altered = text.replace("\"result\":49,", "\"result\":50,");
    assert_ne!(altered, text);
    fs::write(sweep.file(0), &altered).unwrap();
    assert!(matches!(sweep.faults()[..], [MergeFault::Altered { .. }]));
    // By one who makes the line's sum right: the manifest has another.
    let changed: String = altered
        .lines()
        .map(|line| match line.contains("\"result\":50,") {
            true => with_sum(sweep.plan.fingerprint(), line) + "\n",
            false => line.to_owned() + "\n",
        })
        .collect();
    fs::write(sweep.file(0), changed).unwrap();
    let faults = sweep.faults();
    assert!(faults[0].to_string().contains("the manifest is not of the lines before it"));
}

#[test]
fn lines_that_were_taken_out_or_changed_places() {
    let sweep = Sweep::done(20, 1);
    let text = sweep.text(0);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.swap(3, 4);
    let joined = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    fs::write(sweep.file(0), joined(&lines)).unwrap();
    assert!(matches!(
        sweep.faults()[..],
        [MergeFault::Altered { .. } | MergeFault::ClockBack { .. }]
    ));
    lines.swap(3, 4);
    lines.remove(5);
    fs::write(sweep.file(0), joined(&lines)).unwrap();
    assert!(matches!(sweep.faults()[..], [MergeFault::Altered { line: 6, .. }]));
    fs::write(sweep.file(0), text.clone() + "\n").unwrap();
    let last = sweep.faults();
    assert!(last[0].to_string().contains("something follows the manifest"), "{last:?}");
}

#[test]
fn an_altered_case() {
    let sweep = Sweep::done(20, 2);
    let plan = fs::read_to_string(sweep.plan.path()).unwrap();
    let altered = plan.replace("\"name\":\"n-7\"", "\"name\":\"n-8\"");
    fs::write(sweep.plan.path(), &altered).unwrap();
    let refused = PlanFile::open(sweep.plan.path()).unwrap_err().to_string();
    assert!(refused.contains("it has been changed"), "{refused}");
    // While it is used, too.
    assert!(matches!(sweep.merged(), Err(SweepError::Plan { .. } | SweepError::Refused(_))));
    // By one who makes its fingerprint right: then it is another plan's.
    let head = PlanHead::new("squares", program("a"), 2);
    let mut text = Vec::new();
    let other = || {
        cases(20).map(|case| match case.name.as_str() {
            "n-7" => SweepCase { input: 8.into(), ..case },
            _ => case,
        })
    };
    write_plan(&head, other, None, &mut text).unwrap();
    fs::write(sweep.plan.path(), text).unwrap();
    let mut changed = sweep;
    changed.plan = PlanFile::open(changed.plan.path()).unwrap();
    let faults = changed.faults();
    assert!(matches!(faults[0], MergeFault::OtherPlan { .. }), "{faults:?}");
}

#[test]
fn a_clock_that_goes_back() {
    let sweep = Sweep::done(20, 2);
    let text = sweep.text(0);
    let late = text.lines().nth(5).unwrap();
    let (before, rest) = late.rsplit_once("\"at_ms\":").unwrap();
    let (at, rest) = rest.split_once(',').unwrap();
    let earlier = at.parse::<u64>().unwrap() - 90_000;
    let line = with_sum(sweep.plan.fingerprint(), &format!("{before}\"at_ms\":{earlier},{rest}"));
    fs::write(sweep.file(0), text.replace(late, &line)).unwrap();
    let faults = sweep.faults();
    assert!(
        matches!(faults[..], [MergeFault::ClockBack { line: 6, back_ms: 89_000.., .. }]),
        "{faults:?}"
    );
}

#[test]
fn what_is_no_result_at_all() {
    let sweep = Sweep::done(6, 2);
    for text in ["", "\n", "{}\n", "{\"attempt\":1,\"sum\":\"\"}\n", "\u{0}\u{0}\u{0}\n"] {
        fs::write(sweep.file(0), text).unwrap();
        assert!(matches!(sweep.faults()[0], MergeFault::Altered { line: 1, .. }), "{text:?}");
    }
    for text in ["", "{}\n", "{\"head\":{},\"cases\":[\n", "{\"head\":"] {
        fs::write(sweep.plan.path(), text).unwrap();
        assert!(
            matches!(PlanFile::open(sweep.plan.path()), Err(SweepError::Plan { .. })),
            "{text:?}"
        );
    }
}

#[test]
fn every_changed_byte_is_seen() {
    let sweep = Sweep::done(4, 2);
    let (file, plan) = (sweep.file(1), sweep.plan.path().to_owned());
    for (path, bytes) in [(&file, fs::read(&file).unwrap()), (&plan, fs::read(&plan).unwrap())] {
        for at in 0..bytes.len() {
            for flipped in [1, 0x20, 0x80] {
                let mut changed = bytes.clone();
                changed[at] ^= flipped;
                fs::write(path, changed).unwrap();
                let merged = PlanFile::open(&plan).map(|_| sweep.merged());
                assert!(!matches!(merged, Ok(Ok(_))), "{}: byte {at}", path.display());
            }
        }
        fs::write(path, bytes).unwrap();
    }
    assert_eq!(sweep.merged().unwrap(), sweep.expected());
}
