//! How judges get the files: served, or copied.

use serde_json::Value;

use super::lab::{Lab, text};

/// All that a judge may do with files it can do with those that are served.
#[test]
fn a_judge_may_do_anything_with_its_files() {
    let Some(lab) = Lab::new() else { return };
    let python = lab.script(
        "does.py",
        "import fcntl, mmap, os, socket\n\
         with open('m', 'w+b') as f:\n    f.truncate(10000)\n    m = mmap.mmap(f.fileno(), 0)\n\
         \x20   m[9000:9004] = b'text'\n    m.flush()\n\
         assert open('m', 'rb').read()[8998:9006] == b'\\0\\0text\\0\\0'\n\
         os.setxattr('m', 'user.a', b'1')\nassert os.getxattr('m', 'user.a') == b'1'\n\
         fd = os.open('named', os.O_CREAT | os.O_EXCL | os.O_RDWR)\n\
         os.pwrite(fd, b'text', 2)\nassert open('named').read() == '\\0\\0text'\n\
         a, b = open('m'), open('m')\nfcntl.flock(a, fcntl.LOCK_EX)\n\
         try:\n    fcntl.flock(b, fcntl.LOCK_EX | fcntl.LOCK_NB)\n\
         \x20   raise SystemExit('locked twice')\n\
         except BlockingIOError:\n    pass\n\
         s = socket.socket(socket.AF_UNIX)\ns.bind('sock')\ns.listen()\n\
         os.posix_fallocate(fd, 0, 1 << 20)\nassert os.fstat(fd).st_size == 1 << 20\n\
         with open('sparse', 'wb') as f:\n    f.seek(1 << 40)\n    f.write(b'x')\n\
         fd = os.open('sparse', os.O_RDONLY)\nassert os.lseek(fd, 0, os.SEEK_DATA) == 1 << 40\n\
         os.rename('named', 'sparse')\nassert os.listdir('dir') == ['f']\n",
    );
    let script = lab.script(
        "judge",
        &format!(
            "set -e\ntest -e dir/f || exit 0\ncp -a dir copy && diff -r dir copy\n\
             mv copy/f copy/g && ln copy/g hard && test $(stat -c %h hard) = 2\n\
             ln -s dir/f soft && grep -q text soft && chmod 640 hard\n\
             printf '#!/bin/sh\\necho run\\n' > run && chmod +x run && test $(./run) = run\n\
             echo more >> dir/f && tail -n 1 dir/f | grep -q more\n\
             truncate -s 2 dir/f && test $(cat dir/f) = te\n\
             mkfifo pipe && (echo through > pipe & grep -q through pipe)\n\
             sqlite3 db 'pragma journal_mode=wal; create table t(n); insert into t values(1)' \
                 > /dev/null && test $(sqlite3 db 'select n from t') = 1\n\
             mkdir many && (cd many && seq 500 | xargs touch && ls | wc -l | grep -qx 500)\n\
             rm -r many copy && ! rmdir dir 2> /dev/null\n\
             (echo x; sleep 0.1; echo y) > gone & sleep 0.05; rm -f gone; wait\n\
             tar cf - . | tar tf - | grep -q soft\npython3 {python}\n\
             cp -a . ../beside && test -e ../beside/soft && sort $STEADFAST_PRINTED > ../sorted\n\
             truncate -s 6G large && cp large larger && test $(stat -c %b larger) -lt 100\n\
             mv $STEADFAST_TREE $STEADFAST_TREE.old && cd ../tree.old && grep -q soft list || ls\n"
        ),
    );
    let judge = format!("sh -x {script} 2>&1");
    for how in ["served", "copied"] {
        let words = ["--linger", "0", "--cuts", "8", "--model", "none", "--judge-files", how];
        let program = ["--", "sh", "-c", "mkdir dir; echo text > dir/f; sync dir/f dir ."];
        let (report, found) = lab.run(&[&words[..], &["--judge", &judge], &program[..]].concat());
        assert!(!found, "{how}: {report:#}");
        assert!(report["trees"].as_u64().unwrap() >= 2, "{report:#}");
        assert_eq!(report["judge"].is_null(), how == "copied", "{report:#}");
    }
}

/// How often the judge was run, and how often not because it would have read the same.
fn asked(report: &Value) -> (u64, u64) {
    let number = |key: &str| report["judge"][key].as_u64().unwrap_or_default();
    (number("runs"), number("known"))
}

#[test]
fn a_judge_that_would_read_the_same_is_not_run() {
    let Some(lab) = Lab::new() else { return };
    let loops =
        "for n in $(seq 40); do echo $n > a; sync a; echo $n; done; echo done > b; sync b .";
    let run = |judge: &str, how: &str| {
        let words = ["--linger", "0", "--cuts", "300", "--model", "none", "--judge-files", how];
        let judge = ["--judge", judge];
        lab.run_several(&[&words[..], &judge, &["--", "sh", "-c", loops]].concat())
    };
    // It looks at one of two files, and at no line: there, empty, and whole.
    let (report, found) = run("test ! -s b || grep -qx done b", "served");
    let (runs, known) = asked(&report);
    let judged = report["judged"].as_u64().unwrap();
    assert!(!found && judged > 40 && known > 30 && runs < 12, "{report:#}");
    // What it would say is not lost: each state that is wrong is.
    let (report, found) = run("test ! -s b", "served");
    assert!(found && asked(&report).1 > 30, "{report:#}");
    let (copied, _) = run("test ! -s b", "copied");
    let kinds = |report: &Value| report["findings"][0]["what"].clone();
    assert_eq!(kinds(&report), kinds(&copied));
    // One who looks at the lines, and at `a`, is run for nearly each.
    let (report, found) = run(
        "test $(tail -n 1 $STEADFAST_PRINTED | grep . || echo 0) -le \
                               $(grep . a || echo 0)",
        "served",
    );
    let (runs, _) = asked(&report);
    assert!(!found && runs > 40, "{report:#}");
}

/// It is run for each tree then.
#[test]
fn a_judge_that_says_two_things_of_one_tree_is_not_believed() {
    let Some(lab) = Lab::new() else { return };
    let count = lab.path("count");
    let judge = format!("echo >> {0}; test $(wc -l < {0}) -lt 3", count.display());
    let loops = "for n in $(seq 80); do echo $n > a; sync a; echo $n; done";
    let words = ["run", "--linger", "0", "--cuts", "300", "--model", "none", "--jobs", "1"];
    let out = lab.crash(&[&words[..], &["--judge", &judge, "--", "sh", "-c", loops]].concat());
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("of what reads the same it said"), "{said}");
}

#[test]
fn a_judge_that_fills_the_disk_does_not_fill_memory() {
    let Some(lab) = Lab::new() else { return };
    let judge = "head -c 3G /dev/zero 2>&1 > fill | grep -q 'No space left' && \
                 test $(stat -c %s fill) -lt 1500000000";
    let words = ["--linger", "0", "--cuts", "2", "--model", "none", "--judge", judge];
    let slow = ["--judge-limit", "250", "--", "sh", "-c", "echo x > f"];
    let (report, found) = lab.run(&[&words[..], &slow].concat());
    assert!(!found && asked(&report).0 > 0, "{report:#}");
}
