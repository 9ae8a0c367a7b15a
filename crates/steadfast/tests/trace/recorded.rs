//! Programs, recorded by an ordinary user and replayed.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use steadfast_suite::output;

use super::{Desk, LIMIT, NOBODY, has_fuse};

/// Records a program in a folder of its own, and replays what it did: all calls return the same.
fn there_and_back(program: &[&str]) -> serde_json::Value {
    let d = Desk::new();
    let work = d.path().join("work");
    fs::create_dir(&work).unwrap();
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(&work, all).unwrap();
    fs::write(work.join("old"), vec![7; 10_000]).unwrap();
    symlink("old", work.join("link")).unwrap();
    d.records(0, &["-o", "t.trace", "--folder", "work"], program);
    let json = d.prints(0, &["trace", "show", "--json", "t.trace"]);
    let shown: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(shown["end"]["status"], 0, "{json}");
    d.prints(0, &["trace", "replay", "t.trace", "."]);
    d.prints(0, &["trace", "replay", "--flat-out", "t.trace", "."]);
    // Nothing of it is left.
    let left = fs::read_dir(d.path()).unwrap().count();
    assert_eq!(left, 2);
    shown
}

#[test]
fn a_shell_with_its_children() {
    if !has_fuse() {
        return;
    }
    let script = "mkdir d && cp old d/new && mv d/new d/newer && cat link > /dev/null && \
                  ln d/newer hard && dd if=/dev/zero of=d/big bs=1M count=3 conv=fsync status=none \
                  && truncate -s 5 old && sync d && rm -r d && (echo one & echo two; wait) > lines";
    let shown = there_and_back(&["sh", "-c", script]);
    let of = |op: &str| shown["by_op"][op]["calls"].as_u64().unwrap_or(0);
    assert!(shown["threads"].as_u64() > Some(5), "{shown}");
    assert_eq!((of("mkdir"), of("rmdir"), of("rename"), of("link")), (1, 1, 1, 1), "{shown}");
    assert!(of("fsync") == 1 && of("fsyncdir") == 1 && of("truncate") >= 1, "{shown}");
    assert!(shown["by_op"]["write"]["bytes"].as_u64() > Some(3 << 20), "{shown}");
}

#[test]
fn sqlite() {
    if !has_fuse() {
        return;
    }
    let sql = "create table t(n); insert into t values (1); insert into t values (2);
               pragma journal_mode=wal; insert into t values (3);";
    let shown = there_and_back(&["sqlite3", "db", sql]);
    assert!(shown["by_op"]["fdatasync"]["calls"].as_u64() > Some(3), "{shown}");
}

#[test]
fn git() {
    if !has_fuse() {
        return;
    }
    let script = "git init -q r && cd r && cp ../old f && git add f && \
                  git -c user.name=n -c user.email=e commit -q -m m && git gc -q";
    let shown = there_and_back(&["sh", "-c", script]);
    assert!(shown["by_op"]["create"]["calls"].as_u64() > Some(10), "{shown}");
}

#[test]
fn a_programs_status_is_kept_and_nothing_stays_mounted() {
    if !has_fuse() {
        return;
    }
    let d = Desk::new();
    d.records(7, &["-o", "t.trace"], &["sh", "-c", "echo a > f; exit 7"]);
    let json = d.prints(0, &["trace", "show", "--json", "t.trace"]);
    assert!(json.contains("\"status\": 7"), "{json}");
    d.records(143, &["-o", "t.trace"], &["sh", "-c", "kill -TERM $$"]);
    let wrong = d.records(2, &["-o", "u.trace"], &["./no-such-program"]);
    assert!(wrong.contains("no-such-program") && !d.path().join("u.trace").exists(), "{wrong}");
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(&*d.path().to_string_lossy()), "{mounts}");
}

#[test]
fn names_can_be_hashed() {
    if !has_fuse() {
        return;
    }
    let d = Desk::new();
    let program = ["sh", "-c", "mkdir secret; echo x > secret/word"];
    d.records(0, &["--hash-names", "-o", "t.trace"], &program);
    let calls = d.prints(0, &["trace", "show", "--calls", "t.trace"]);
    assert!(calls.contains("mkdir") && !calls.contains("secret"), "{calls}");
    d.prints(0, &["trace", "replay", "t.trace", "."]);
}

/// What a program does before its first call and after its last one is its time, too; and what it
/// has left running is recorded to its end.
#[test]
fn all_of_its_time_counts_and_what_it_leaves_is_waited_for() {
    if !has_fuse() {
        return;
    }
    let d = Desk::new();
    let script = "sleep 0.3; echo a > a; sleep 0.4; (sleep 1; echo b > b) > /dev/null 2>&1 &";
    d.records(0, &["-o", "t.trace"], &["sh", "-c", script]);
    assert_eq!(fs::read_to_string(d.path().join("b")).unwrap(), "b\n");
    let json = d.prints(0, &["trace", "show", "--json", "t.trace"]);
    let shown: serde_json::Value = serde_json::from_str(&json).unwrap();
    let at = shown["end"]["at"].as_u64().unwrap();
    // As a replay of it lasts: until the last call of what it has left running.
    assert!(at >= 1_700_000_000, "{json}");
    assert_eq!(shown["by_op"]["create"]["calls"], 2, "{json}");
    let words = ["lab", "compare", "--trace", "t.trace", "--only", "nvme", "--cuts", "0"];
    let json = d.prints(0, &[&words[..], &["--json", "-"]].concat());
    let found: serde_json::Value = serde_json::from_str(&json).unwrap();
    let seconds = found["stacks"][0]["seconds"]["median"].as_f64().unwrap();
    assert!(seconds > 0.7, "{json}");
}

/// A file of somebody's is not lost, and the program does not run before that is known.
#[test]
fn only_a_trace_is_replaced() {
    if !has_fuse() {
        return;
    }
    let d = Desk::new();
    fs::write(d.path().join("notes.txt"), "mine").unwrap();
    let refused = d.records(2, &["-o", "notes.txt"], &["touch", "ran"]);
    assert!(refused.contains("is no trace; name another file"), "{refused}");
    assert_eq!(fs::read(d.path().join("notes.txt")).unwrap(), b"mine");
    assert!(!d.path().join("ran").exists());
    fs::write(d.path().join("t.trace"), "").unwrap();
    d.records(0, &["-o", "t.trace"], &["true"]);
    d.records(3, &["-o", "t.trace"], &["sh", "-c", "echo a > a; exit 3"]);
    let shown = d.prints(0, &["trace", "show", "t.trace"]);
    assert!(shown.contains("ended     with status 3"), "{shown}");
    let words = ["lab", "compare", "--trace", "t.trace", "--only", "nvme", "--cuts", "0"];
    let text = d.prints(0, &[&words[..], &["--seeds", "1"]].concat());
    assert!(text.contains("it ended with status 3"), "{text}");
}

/// Ctrl-C goes to the program, and what was recorded until then is a whole trace.
#[test]
fn what_was_recorded_until_ctrl_c_is_kept() {
    if !has_fuse() {
        return;
    }
    let d = Desk::new();
    let script = "echo a > a; mv a b; sleep 60; echo c > c";
    let words = ["trace", "record", "-o", "t.trace", "--", "sh", "-c", script];
    let mut child = d.command(&words).process_group(0).spawn().unwrap();
    let end = Instant::now() + LIMIT;
    while !d.path().join("b").exists() {
        assert!(Instant::now() < end, "it makes nothing");
        std::thread::sleep(Duration::from_millis(10));
    }
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let json = d.prints(0, &["trace", "show", "--json", "t.trace"]);
    let shown: serde_json::Value = serde_json::from_str(&json).unwrap();
    let of = |op: &str| shown["by_op"][op]["calls"].as_u64().unwrap_or(0);
    assert_eq!((of("create"), of("rename")), (1, 1), "{json}");
    assert_eq!(
        (&shown["end"]["interrupted"], &shown["end"]["status"]),
        (&true.into(), &130.into())
    );
    d.prints(0, &["trace", "replay", "t.trace", "."]);
    assert!(!d.path().join("c").exists());
}

/// Nobody could write a last line: what was recorded is there all the same, and can be used.
#[test]
fn what_was_recorded_before_a_kill_is_kept() {
    if !has_fuse() {
        return;
    }
    let d = Desk::new();
    let work = d.path().join("work");
    fs::create_dir(&work).unwrap();
    let script = "echo a > a; mv a b; sleep 60; echo c > c";
    let words = ["trace", "record", "-o", "t.trace", "--folder", "work", "--", "sh", "-c", script];
    let mut child = d.command(&words).process_group(0).spawn().unwrap();
    let is_written = || {
        let shown = d.run(&["trace", "show", "t.trace"]);
        String::from_utf8_lossy(&shown.stdout).contains("rename")
    };
    let end = Instant::now() + LIMIT;
    while !is_written() {
        assert!(Instant::now() < end, "nothing is written");
        std::thread::sleep(Duration::from_millis(50));
    }
    let says = |status: i32, words: &[&str]| {
        let out = output(LIMIT, &mut d.command(words)).unwrap();
        assert_eq!(out.status.code(), Some(status), "{words:?}: {out:?}");
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    let refused = says(2, &["umount", "work"]);
    assert!(refused.contains("a program is recorded here"), "{refused}");
    child.kill().unwrap();
    child.wait().unwrap();
    kill_process_group(Pid::from_child(&child), Signal::KILL).unwrap();
    let again = says(2, &["trace", "record", "-o", "u.trace", "--folder", "work", "--", "true"]);
    assert!(again.contains("an earlier recording was killed"), "{again}");
    let away = says(0, &["umount", "work"]);
    assert!(away.contains("are as the program has left them"), "{away}");
    assert_eq!(fs::read(work.join("b")).unwrap(), b"a\n");
    let whole = fs::read(d.path().join("t.trace")).unwrap();
    let shown = d.prints(0, &["trace", "show", "t.trace"]);
    assert!(shown.contains("rename") && shown.contains("cut off   its last line"), "{shown}");
    let compare = ["lab", "compare", "--only", "nvme", "--cuts", "0", "--trace", "t.trace"];
    let compared = d.prints(0, &compare);
    assert!(compared.contains("The trace was cut off: the figures are of"), "{compared}");
    let asked = d.prints(2, &["trace", "replay", "t.trace", "."]);
    assert!(asked.contains("--partial"), "{asked}");
    d.prints(0, &["trace", "replay", "--partial", "t.trace", "."]);
    // A frame that is not whole.
    fs::write(d.path().join("t.trace"), [&whole[..], &whole[..whole.len() / 2]].concat()).unwrap();
    let shown = d.prints(0, &["trace", "show", "t.trace"]);
    assert!(shown.contains("rename") && shown.contains("cut off"), "{shown}");
}

/// The program goes on, and so does what was written before.
#[test]
fn a_full_disk_ends_the_recording_and_not_the_program() {
    if !has_fuse() {
        return;
    }
    let d = Desk::new();
    let script = "echo first > first; sleep 0.6; i=0; while [ $i -lt 3000 ]; do echo $i > f$i; \
                  i=$((i+1)); done; echo ok > end";
    for (status, expected) in [(0, 2), (7, 7)] {
        // The limit is of the trace's file, in units of 512 bytes: it is as if the disk were full.
        let limited = format!(
            "ulimit -f 24; exec {} trace record -o t.trace --folder work -- sh -c '{script}; exit \
             {status}'",
            env!("CARGO_BIN_EXE_steadfast")
        );
        let _ = fs::remove_dir_all(d.path().join("work"));
        fs::create_dir(d.path().join("work")).unwrap();
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &limited]).current_dir(d.path());
        let out = output(LIMIT, &mut command).unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(expected), "{said}");
        for part in [
            "t.trace: File too large",
            "make room, or name a file elsewhere",
            "note: t.trace cannot",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(said.contains(&format!("(status {status})")), "{said}");
        assert_eq!(fs::read(d.path().join("work/end")).unwrap(), b"ok\n");
        let shown = d.prints(0, &["trace", "show", "t.trace"]);
        assert!(shown.contains("cut off") && shown.contains("create"), "{shown}");
    }
}

/// The trace is in the folder that is recorded, as it is without --folder.
#[test]
fn a_program_that_removes_all_files_does_not_remove_its_trace() {
    if !has_fuse() {
        return;
    }
    let d = Desk::new();
    fs::write(d.path().join("old"), "old").unwrap();
    let program = ["sh", "-c", "sleep 0.5; rm -f *; sleep 0.5; rm -f *"];
    d.records(0, &["-o", "t.trace"], &program);
    assert!(!d.path().join("old").exists());
    assert!(d.prints(0, &["trace", "show", "t.trace"]).contains("unlink"));
}

/// A signal removes what a replay has made, whatever it does at that moment.
#[test]
fn a_replay_that_is_stopped_leaves_nothing() {
    let d = Desk::new();
    let mut log = "fio version 2 iolog\nf add\nf open\n".to_owned();
    (0..300).for_each(|n| log += &format!("f wait {} 0\nf write 0 4096\n", n * 100));
    fs::write(d.path().join("log"), log).unwrap();
    d.prints(0, &["trace", "import", "log", "-o", "t.trace"]);
    let below = d.path().join("below");
    for signal in [Signal::INT, Signal::TERM] {
        fs::create_dir_all(&below).unwrap();
        let mut child = d.command(&["trace", "replay", "t.trace", "below"]).spawn().unwrap();
        let end = Instant::now() + LIMIT;
        let is_made = || {
            let mut all = fs::read_dir(&below).unwrap().flatten();
            all.any(|made| made.path().join("f").exists())
        };
        while !is_made() {
            assert!(Instant::now() < end, "it makes nothing");
            std::thread::sleep(Duration::from_millis(10));
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(128 + signal.as_raw()));
        assert_eq!(fs::read_dir(&below).unwrap().count(), 0);
    }
}

/// As where udev has set up /dev/fuse, through fusermount3.
#[test]
fn an_ordinary_user_records() {
    if !has_fuse() || !rustix::process::geteuid().is_root() {
        println!("SKIPPED: needs root, to become an ordinary user");
        return;
    }
    let d = Desk::new();
    // The build's folder may be closed to others.
    fs::copy(env!("CARGO_BIN_EXE_steadfast"), d.path().join("steadfast")).unwrap();
    let work = d.path().join("work");
    fs::create_dir(&work).unwrap();
    std::os::unix::fs::chown(&work, Some(NOBODY), Some(NOBODY)).unwrap();
    let outer = format!(
        "mknod fuse c 10 229 && chmod 666 fuse && mount --bind fuse /dev/fuse && \
         exec setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups sh -c '{}'",
        "./steadfast trace record -o t.trace --folder work -- \
         sh -c \"echo a > f; sync f; truncate -s 1 f\" && \
         ./steadfast trace show t.trace"
    );
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "sh", "-c", &outer]).current_dir(d.path());
    let out = steadfast_suite::output(LIMIT, &mut command).unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && said.contains("fsync"), "{out:?}");
}
