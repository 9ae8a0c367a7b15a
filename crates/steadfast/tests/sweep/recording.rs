//! Recordings of `crash run`, judged in shards: what is merged is what `crash run` has said that
//! made the recording.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use super::{Desk, LIMIT, good};

/// It forgets to sync what it renames, and syncs something else behind it.
const FORGETS: &str = "\
echo 'colour=red' > settings.new
echo 'size=large' >> settings.new
mv settings.new settings
echo replaced
echo 'settings replaced' > log
sync log
echo logged
";

/// The old text or the new one; it says where it has looked.
const JUDGE: &str = "#!/bin/sh
case $(cat settings) in colour=blue | 'colour=red
size=large') exit 0 ;; esac
echo \"$PWD/settings: $(wc -c < settings) bytes\"
exit 1
";

/// A folder with a recording, and what the run that made it has said; `None`, said aloud: no FUSE
/// here, or not root.
struct RecordedDesk {
    desk: Desk,
    said: Output,
    judge: String,
}

impl RecordedDesk {
    fn new(judged: bool, more: &[&str]) -> Option<RecordedDesk> {
        let root = rustix::process::geteuid().is_root();
        if !root || fs::File::open("/dev/fuse").is_err() {
            println!("SKIPPED: needs root and /dev/fuse");
            return None;
        }
        let desk = Desk::new(1);
        let judge = desk.path().join("check").display().to_string();
        fs::write(&judge, JUDGE).unwrap();
        fs::set_permissions(&judge, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(desk.path().join("forgets"), FORGETS).unwrap();
        let program = desk.path().join("forgets").display().to_string();
        let mut words = vec!["-o", "data=writeback,noauto_da_alloc,commit=60", "--linger", "1"];
        words.extend(["--setup", "echo colour=blue > settings", "--record", "run.crash"]);
        // How often the judge is run depends on who has which states.
        words.extend(["--judge-files", "copied", "--cuts", "all", "--states", "48"]);
        if judged {
            words.extend(["--judge", &judge]);
        }
        words.extend(more);
        words.extend(["--", "sh", &program]);
        let mut command = desk.command("crash run");
        let said = steadfast_suite::output(LIMIT, command.args(&words)).unwrap();
        let mut sweep = "[crash-run]\nrecording = \"run.crash\"\n".to_owned();
        if judged {
            sweep += &format!("judge = \"{judge}\"\n");
        }
        fs::write(desk.path().join("SWEEP.toml"), sweep).unwrap();
        Some(RecordedDesk { desk, said, judge })
    }

    fn run(&self, shards: u32) {
        self.desk.plan(shards);
        for shard in 0..shards {
            self.desk.good(&format!("sweep run --plan plan.json --shard {shard} -o results"));
        }
    }

    fn merged(&self, more: &str) -> Output {
        self.desk.run(&format!("sweep merge plan.json results {more}"))
    }
}

fn text(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// What the program has printed comes before the report.
fn report(out: &Output) -> String {
    let text = text(out);
    text.split_once("logged\n").map(|(_, report)| report.to_owned()).unwrap_or(text)
}

#[test]
fn three_shards_say_what_one_machine_says() {
    for judged in [true, false] {
        let Some(recorded) = RecordedDesk::new(judged, &[]) else { return };
        assert_eq!(recorded.said.status.code(), Some(1), "{}", text(&recorded.said));
        recorded.run(3);
        let merged = recorded.merged("");
        assert_eq!(merged.status.code(), Some(1));
        let (merged, one) = (text(&merged), report(&recorded.said));
        assert!(merged == one, "{merged}\n{one}");
        assert!(merged.contains("settings") && merged.contains("--cut "), "{merged}");
        let json = text(&recorded.merged("--json -"));
        // A plan of one shard is one machine, for programs too.
        recorded.desk.plan(1);
        recorded.desk.good("sweep run --plan plan.json -o alone");
        let alone = recorded.desk.run("sweep merge plan.json alone --json -");
        assert!(json == text(&alone), "{json}");
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["format"], "steadfast-crash", "{json:#}");
        assert!(json["states"].as_u64().unwrap() > 12, "{json:#}");
        if judged {
            // No folder's name, which would be another one on each machine.
            let what = json["findings"][0]["what"].as_str().unwrap();
            assert!(what.contains(": $STEADFAST_TREE/settings: "), "{what}");
        }
        // The first state of a kind is shown by its number.
        let state = &json["findings"][0];
        let shown = recorded.desk.run(&format!(
            "crash show run.crash --cut {} {}",
            state["first_state"],
            if judged { format!("--judge {}", recorded.judge) } else { String::new() }
        ));
        assert_eq!(shown.status.code(), Some(1), "{}", text(&shown));
    }
}

#[test]
fn a_page_shows_how_far_it_is() {
    let Some(recorded) = RecordedDesk::new(false, &[]) else { return };
    let desk = &recorded.desk;
    desk.plan(3);
    desk.good("sweep run --plan plan.json --shard 0 -o results");
    let page = || fs::read_to_string(desk.path().join("sweep.html")).unwrap();
    let status = "sweep status plan.json results --report sweep.html";
    assert_eq!(desk.run(status).status.code(), Some(1));
    let waiting = page().matches(": it has not ended<").count();
    for shard in [1, 2] {
        desk.good(&format!("sweep run --plan plan.json --shard {shard} -o results"));
    }
    let said = desk.good(status);
    let cases: usize = said.split(' ').next().unwrap().parse().unwrap();
    assert!(waiting > cases / 2 && waiting < cases, "{waiting} of {cases}: {}", page());
    let page = page();
    assert_eq!(page.matches(": it has not ended<").count(), 0, "{page}");
    let instants = page.matches(": states that are wrong ").count();
    assert_eq!(instants, cases - 2, "{page}");
    assert!(page.contains("class=\"c1\""), "{page}");
}

#[test]
fn a_shard_that_was_killed_is_resumed() {
    let Some(recorded) = RecordedDesk::new(true, &[]) else { return };
    recorded.run(3);
    let (whole, desk) = (text(&recorded.merged("")), &recorded.desk);
    let (file, part) = ("shard-000001.jsonl", "shard-000001.lost-1-1.part");
    let at = |name: &str| desk.path().join("results").join(name);
    let lines = fs::read_to_string(at(file)).unwrap();
    // What a killed process leaves: some lines, and the beginning of one.
    let half: String = lines.chars().take(lines.len() / 2).collect();
    let cases = half.lines().count() - 2;
    fs::write(at(part), half).unwrap();
    fs::remove_file(at(file)).unwrap();
    assert_eq!(recorded.merged("").status.code(), Some(1));
    let again = desk.good("sweep run --plan plan.json --shard 1 -o results --json");
    assert!(again.contains(&format!("\"resumed\": {cases},")), "{again}");
    let resumed = fs::read_to_string(at(file)).unwrap();
    let results = |text: &str| {
        let case = |line: &str| line.split(",\"seconds\"").next().map(str::to_owned);
        text.lines().filter(|l| l.starts_with("{\"case\"")).map(case).collect::<Vec<_>>()
    };
    assert_eq!(results(&resumed), results(&lines));
    assert!(text(&recorded.merged("")) == whole);
}

#[test]
fn a_process_that_is_killed_while_it_works_is_resumed() {
    let Some(recorded) = RecordedDesk::new(false, &[]) else { return };
    recorded.run(3);
    let (whole, desk) = (text(&recorded.merged("")), &recorded.desk);
    fs::remove_dir_all(desk.path().join("results")).unwrap();
    for shard in [0, 2] {
        desk.good(&format!("sweep run --plan plan.json --shard {shard} -o results"));
    }
    let mut command = desk.command("sweep run --plan plan.json --shard 1 -o results");
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let lines = || -> usize {
        let files = fs::read_dir(desk.path().join("results")).unwrap();
        let of_shard = |entry: fs::DirEntry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let text = name.starts_with("shard-000001.").then(|| fs::read_to_string(entry.path()));
            text.and_then(Result::ok).map_or(0, |text| text.lines().count())
        };
        files.map(|entry| of_shard(entry.unwrap())).sum()
    };
    // Some cases have ended; a machine may be so fast that all have.
    while lines() < 3 && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let said = desk.good("sweep run --plan plan.json --shard 1 -o results --json");
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(said["resumed"].as_u64().unwrap() >= 2, "{said:#}");
    assert!(text(&recorded.merged("")) == whole);
}

#[test]
fn what_is_not_what_was_planned_is_refused() {
    let Some(recorded) = RecordedDesk::new(true, &[]) else { return };
    recorded.run(2);
    let desk = &recorded.desk;
    let at = |name: &str| desk.path().join(name);
    // A case altered: a finding that was made to be none.
    let (file, name) = (at("results/shard-000001.jsonl"), "results/shard-000001.jsonl");
    let lines = fs::read_to_string(&file).unwrap();
    let altered = lines.replace("\"bad_states\":", "\"bad_states\":1");
    assert_ne!(altered, lines);
    fs::write(&file, altered).unwrap();
    let said = desk.bad("sweep merge plan.json results", 1);
    assert!(said.contains(name) && said.contains("its sum is another one"), "{said}");
    fs::write(&file, &lines).unwrap();
    // The recording, and the judge, changed after the plan was made.
    for changed in ["run.crash", "check"] {
        let before = fs::read(at(changed)).unwrap();
        fs::write(at(changed), [&before[..], b"\n"].concat()).unwrap();
        for line in ["sweep merge plan.json results", "sweep run --plan plan.json --shard 0 -o new"]
        {
            let said = desk.bad(line, 2);
            assert!(said.contains(&format!("{changed}: its SHA-256 is")), "{said}");
        }
        fs::write(at(changed), before).unwrap();
    }
    // A machine with another e2fsck has run a shard.
    let fake = at("bin");
    fs::create_dir(&fake).unwrap();
    fs::write(fake.join("e2fsck"), "#!/bin/sh\necho 'e2fsck 9.99 (a test)' >&2\n").unwrap();
    fs::set_permissions(fake.join("e2fsck"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(&file).unwrap();
    let path = format!("{}:{}", fake.display(), std::env::var("PATH").unwrap());
    let mut command: Command = desk.command("sweep run --plan plan.json --shard 1 -o results");
    good("with another e2fsck", steadfast_suite::output(LIMIT, command.env("PATH", path)).unwrap());
    let said = desk.bad("sweep merge plan.json results", 1);
    let joined = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("has e2fsck (e2fsck 9.99 (a test)), and"), "{said}");
}

#[test]
fn what_cannot_be_judged_in_parts_is_said() {
    let Some(recorded) = RecordedDesk::new(true, &["--budget", "1ms"]) else { return };
    let desk = &recorded.desk;
    let sweep = |lines: &str| {
        fs::write(desk.path().join("SWEEP.toml"), format!("[crash-run]\n{lines}\n")).unwrap();
    };
    let said = |line: &str, words: &[&str]| {
        let said = desk.bad(line, 2);
        let joined = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.iter().all(|word| joined.contains(word)), "{line}: {said}");
    };
    sweep("recording = \"run.crash\"");
    said("sweep plan SWEEP.toml --shards 1", &["run.crash", "recorded with a judge"]);
    sweep("recording = \"SWEEP.toml\"");
    said("sweep plan SWEEP.toml --shards 1", &["it is no recording of steadfast crash run"]);
    sweep("recording = \"run.crash\"\njudge = \"/nowhere/check\"");
    desk.plan(1);
    said(
        "sweep run --plan plan.json -o results",
        &["status 127", "there is no such judge on this machine"],
    );
    said("sweep merge plan.json results --report page.html", &["no other form"]);
}
