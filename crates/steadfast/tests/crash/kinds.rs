//! One program for each kind of mistake, and its correct twin: found, with what would help, by what
//! POSIX promises; nothing is found of the twin.

use super::lab::{Lab, text};

struct Kind<'a> {
    setup: &'a str,
    /// The program, and the one without the mistake. Scripts of sh; of python3 where they begin so.
    wrong: &'a str,
    right: &'a str,
    judge: &'a str,
    /// What would help.
    helps: &'a str,
}

/// What was acknowledged is there.
const SAVED: &str = "grep -q saved \"$STEADFAST_PRINTED\" || exit 0; test \"$(cat f)\" = new";

/// By default options, as somebody who has read nothing. Both wait most of the time for what comes
/// after the program's end, so they run side by side.
fn check(name: &str, kind: &Kind<'_>) {
    std::thread::scope(|scope| {
        scope.spawn(|| check_one(name, kind, true));
        scope.spawn(|| check_one(name, kind, false));
    });
}

fn check_one(name: &str, kind: &Kind<'_>, is_wrong: bool) {
    let Some(lab) = Lab::new() else { return };
    let script = if is_wrong { kind.wrong } else { kind.right };
    let shell = if script.starts_with("import") { "python3" } else { "sh" };
    let script = lab.script("script", script);
    let words = ["--setup", kind.setup, "--judge", kind.judge, "--", shell, &script];
    let (report, found) = lab.run(&words);
    let findings = report["by_calls"]["findings"].as_array().unwrap();
    assert_eq!((found, !findings.is_empty()), (is_wrong, is_wrong), "{name}: {report:#}");
    let all: Vec<String> = findings
        .iter()
        .flat_map(|finding| {
            let add = finding["add"].as_array().unwrap().iter();
            add.chain(Some(&finding["instead"])).filter_map(|help| help.as_str())
        })
        .map(str::to_owned)
        .collect();
    let helps = all.iter().any(|help| help.contains(kind.helps));
    assert_eq!(helps, is_wrong, "{name}: {all:?} {report:#}");
}

#[test]
fn a_rename_before_the_contents() {
    let judge = "case $(cat f) in old | new) ;; *) exit 1;; esac";
    let kind = Kind {
        setup: "echo old > f",
        wrong: "echo new > t; mv t f",
        right: "echo new > t; sync t; mv t f",
        judge,
        helps: "fsync of t before rename t to f",
    };
    check("rename", &kind);
}

/// One sync is not enough: it lacks each time.
#[test]
fn names_that_are_made_again_and_again() {
    let all = |sync: &str| {
        format!(
            "for n in 1 2 3; do echo x > half/$n; sync half/$n; mv half/$n mail/$n; {sync}echo $n; \
             done"
        )
    };
    let (wrong, right) = (all(""), all("sync mail; "));
    let kind = Kind {
        setup: "mkdir half mail",
        wrong: &wrong,
        right: &right,
        judge: "while read n; do test -s mail/$n || exit 1; done < \"$STEADFAST_PRINTED\"",
        helps: "fsync of the folder mail after each change in it",
    };
    check("queue", &kind);
}

/// A program that saves by a rename does so each time.
#[test]
fn a_file_that_is_replaced_again_and_again() {
    let all = |sync: &str| {
        format!("for n in 1 2 3; do echo new$n > s.new; {sync}mv s.new s; done; sync .")
    };
    let (wrong, right) = (all(""), all("sync s.new; "));
    let kind = Kind {
        setup: "echo new0 > s",
        wrong: &wrong,
        right: &right,
        judge: "grep -qx 'new[0-3]' s",
        helps: "fsync of s.new before each rename of it",
    };
    check("replaced", &kind);
}

#[test]
fn a_new_file_whose_folder_is_not_synced() {
    let kind = Kind {
        setup: "true",
        wrong: "echo new > f; sync f; echo saved",
        right: "echo new > f; sync f .; echo saved",
        judge: SAVED,
        helps: "fsync of the folder it works in before it prints 'saved'",
    };
    check("create", &kind);
}

#[test]
fn a_rename_whose_folder_is_not_synced() {
    let kind = Kind {
        setup: "echo old > f",
        wrong: "echo new > t; sync t; mv t f; echo saved",
        right: "echo new > t; sync t; mv t f; sync .; echo saved",
        judge: SAVED,
        helps: "fsync of the folder it works in before it prints 'saved'",
    };
    check("rename, folder", &kind);
}

#[test]
fn a_removal_whose_folder_is_not_synced() {
    let kind = Kind {
        setup: "echo old > f",
        wrong: "rm f; echo removed",
        right: "rm f; sync .; echo removed",
        judge: "grep -q removed \"$STEADFAST_PRINTED\" || exit 0; test ! -e f",
        helps: "fsync of the folder it works in before it prints 'removed'",
    };
    check("unlink", &kind);
}

#[test]
fn a_new_folder_whose_folder_is_not_synced() {
    let kind = Kind {
        setup: "true",
        wrong: "mkdir d; echo new > d/f; sync d/f d; echo saved",
        right: "mkdir d; echo new > d/f; sync d/f d .; echo saved",
        judge: "grep -q saved \"$STEADFAST_PRINTED\" || exit 0; test \"$(cat d/f)\" = new",
        helps: "fsync of the folder it works in before it prints 'saved'",
    };
    check("mkdir", &kind);
}

#[test]
fn a_file_that_is_cut_and_written_in_place() {
    let judge = "case $(cat f) in old | new) ;; *) exit 1;; esac";
    let kind = Kind {
        setup: "echo old > f",
        wrong: "echo new > f; sync f; echo saved",
        right: "echo new > t; sync t; mv t f; sync .; echo saved",
        judge,
        helps: "write a new file",
    };
    check("in place", &kind);
}

#[test]
fn an_index_before_what_it_points_at() {
    let kind = Kind {
        setup: ": > log; echo 0 > index",
        wrong: "echo one >> log; echo 1 > t; sync t; mv t index; sync .",
        right: "echo one >> log; sync log; echo 1 > t; sync t; mv t index; sync .",
        judge: "test $(cat index) = 0 || test \"$(cat log)\" = one",
        helps: "fsync of log before rename t to index",
    };
    check("index", &kind);
}

#[test]
fn two_files_that_must_agree() {
    let kind = Kind {
        setup: "mkdir v1; echo 1 > v1/a; echo 1 > v1/b; ln -s v1 now",
        wrong: "for f in a b; do echo 2 > t; sync t; mv t v1/$f; sync v1 .; done",
        right: "mkdir v2; echo 2 > v2/a; echo 2 > v2/b; sync v2/a v2/b v2 .
                ln -s v2 t; mv -T t now; sync .",
        judge: "cmp now/a now/b",
        helps: "make the change with one rename",
    };
    check("two files", &kind);
}

#[test]
fn a_log_that_goes_before_the_data_are_there() {
    let kind = Kind {
        setup: "printf old > db",
        wrong: "printf new > wal; sync wal .; echo logged
                printf new | dd of=db conv=notrunc status=none; rm wal; sync .",
        right: "printf new > wal; sync wal .; echo logged
                printf new | dd of=db conv=notrunc status=none; sync db; rm wal; sync .",
        judge: "grep -q logged \"$STEADFAST_PRINTED\" || exit 0
                test -e wal || test \"$(cat db)\" = new",
        helps: "fsync of db before unlink wal",
    };
    check("log", &kind);
}

const MAPPED: &str = "\
import mmap, os
with open('f', 'r+b') as f:
    m = mmap.mmap(f.fileno(), 0)
    m[0:3] = b'new'
    SYNC
    print('saved', flush=True)
    m.close()
";

#[test]
fn a_memory_map_that_is_not_synced() {
    let right: &'static str = MAPPED.replace("SYNC", "m.flush()").leak();
    let wrong: &'static str = MAPPED.replace("SYNC", "pass").leak();
    let kind = Kind {
        setup: "printf old > f",
        wrong,
        right,
        judge: SAVED,
        helps: "msync of f before it prints 'saved'",
    };
    check("map", &kind);
}

const RANGE: &str = "\
import ctypes, os
f = os.open('f', os.O_RDWR)
os.write(f, b'new')
SYNC
os.write(1, b'saved\\n')
";

#[test]
fn a_range_that_is_written_out_and_not_synced() {
    let range = "assert ctypes.CDLL(None).sync_file_range(f, 0, 0, 7) == 0";
    let kind = Kind {
        setup: "printf old > f",
        wrong: RANGE.replace("SYNC", range).leak(),
        right: RANGE.replace("SYNC", "os.fsync(f)").leak(),
        judge: SAVED,
        helps: "fsync of f before it prints 'saved'",
    };
    check("range", &kind);
}

/// Without a judge, and without an old file that it replaces.
#[test]
fn a_rename_to_a_new_name_before_the_contents() {
    let Some(lab) = Lab::new() else { return };
    let scripts = [("echo new > t; mv t f", true), ("echo new > t; sync t; mv t f", false)];
    for (script, is_wrong) in scripts {
        let words = ["--linger", "0.3", "--cuts", "20", "--", "sh", "-c", script];
        let (report, found) = lab.run(&words);
        assert_eq!(found, is_wrong, "{script}: {report:#}");
        if is_wrong {
            let finding = &report["by_calls"]["findings"][0];
            let what = finding["what"].as_str().unwrap();
            assert!(what.starts_with("f: renamed without fsync: "), "{what}");
            assert_eq!(finding["add"][0], "fsync of t before rename t to f");
        }
    }
}

/// The command that a finding names shows the calls with their fate, and the same fault.
#[test]
fn a_state_of_a_model_is_shown() {
    let Some(lab) = Lab::new() else { return };
    let words = ["--linger", "0.3", "--cuts", "none", "--setup", "echo old > f"];
    let (report, _) =
        lab.run(&[&words[..], &["--", "sh", "-c", "echo new > t; mv t f; echo saved"]].concat());
    let finding = &report["by_calls"]["findings"][0];
    let recording = report["recording"].as_str().unwrap();
    let state = finding["first_state"].to_string();
    let words = ["show", recording, "--model", "posix", "--cut", &state];
    assert_eq!(finding["show"], format!("steadfast crash {}", words.join(" ")));
    let shown = lab.crash(&words);
    let text = text(&shown.stdout);
    assert_eq!(shown.status.code(), Some(1), "{text}");
    let lost = text.lines().any(|line| line.contains("lost") && line.contains("write t: 4 bytes"));
    let there = text.lines().any(|line| line.contains("there") && line.contains("rename t to f"));
    assert!(lost && there, "{text}");
    // It may stand on two lines.
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains(finding["what"].as_str().unwrap()), "{text}");
    let none = lab.crash(&[&words[..5], &["999999"]].concat());
    assert_eq!(none.status.code(), Some(2), "{none:?}");
}
