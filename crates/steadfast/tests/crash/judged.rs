//! Judges that are commands: what they say, and what becomes of what they start.

use std::path::Path;
use std::time::{Duration, Instant};

use steadfast_crash::program::supervisor::{Namespaces, Supervisor};
use steadfast_crash::program::{Command, Judgement, Tree};
use steadfast_vfs::HostFs;

use super::lab::{Lab, text};

/// What a judge says of a folder with the file `config`, after the lines `one` and `two`.
fn judge(command: &str, prints: Option<&str>, limit: f64, namespaces: Namespaces) -> Judgement {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("config"), "text\n").unwrap();
    let tree = Tree::read(&HostFs::open(folder.path()).unwrap()).unwrap();
    let command = Command {
        command: command.into(),
        prints: prints.map(str::to_owned),
        limit: Duration::from_secs_f64(limit),
        supervisor: Supervisor::new(env!("CARGO_BIN_EXE_steadfast"), namespaces),
    };
    command.judge(&tree, b"one\ntwo\n").unwrap()
}

/// The namespaces that this machine has for us.
#[allow(clippy::print_stdout, reason = "a test that did not run says so")]
fn namespaces() -> Vec<Namespaces> {
    let own = Supervisor::new(env!("CARGO_BIN_EXE_steadfast"), Namespaces::Own);
    match own.tried() {
        Ok(()) => vec![Namespaces::Shared, Namespaces::Own],
        Err(e) => {
            println!("SKIPPED: namespaces of a judge's own: {e}");
            vec![Namespaces::Shared]
        }
    }
}

#[test]
fn status_and_output_decide() {
    for namespaces in namespaces() {
        let judge = |command, prints| judge(command, prints, 60.0, namespaces);
        assert_eq!(judge("grep -q text config", None).bad, None);
        let bad = judge("cat config; exit 3", None);
        assert_eq!(bad.summary().unwrap(), "the judge ended with status 3: text");
        assert_eq!(judge("echo ok", Some("ok")).bad, None);
        let bad = judge("exit 3", None).summary().unwrap();
        assert_eq!(bad, "the judge ended with status 3 and printed nothing");
        let bad = judge("echo not ok", Some("ok")).summary().unwrap();
        assert_eq!(bad, "the judge was to print \"ok\": not ok");
        let both = "cd /; test -f $STEADFAST_TREE/config && tail -n 1 $STEADFAST_PRINTED";
        assert_eq!(judge(both, Some("two")).bad, None);
        assert_eq!(judge("kill -9 $$", None).bad.unwrap(), "was ended by signal 9");
        // It leads its group, and nobody else is in it.
        assert_eq!(judge("trap '' TERM; kill 0; echo here", Some("here")).bad, None);
        let errors = judge("echo out; echo error >&2", None).output;
        assert_eq!(errors, "out\nerror");
    }
}

/// How many processes have this path among their arguments.
fn processes_with(path: &Path) -> usize {
    let path = path.display().to_string();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| text(line).split('\0').any(|word| word == path)).count()
}

/// In its group, in sessions of their own, of parents that have ended: nothing survives a judge,
/// neither at its end nor where it took too long.
#[test]
fn nothing_that_a_judge_starts_outlives_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("watched");
    std::fs::write(&file, "").unwrap();
    let tail = format!("tail -f {}", file.display());
    let starts = format!(
        "{tail} & setsid {tail} & (setsid sh -c '{tail} & setsid {tail} & wait' &); \
         while test $(pgrep -fc '^{tail}') -lt 4; do sleep 0.01; done"
    );
    for namespaces in namespaces() {
        let left = judge(&starts, None, 60.0, namespaces);
        assert_eq!(left.bad, None, "{left:?}");
        assert_eq!(processes_with(&file), 0, "{namespaces:?}");
        let begun = Instant::now();
        let slow = judge(&format!("{starts}; sleep 600"), None, 1.0, namespaces);
        assert_eq!(slow.bad.unwrap(), "took longer than 1 s");
        assert!(begun.elapsed() < Duration::from_secs(300));
        assert_eq!(processes_with(&file), 0, "{namespaces:?}");
    }
}

/// A judge of a server may have one port for all states, where it has it for itself.
#[test]
fn judges_side_by_side_have_a_port_each() {
    if namespaces().len() == 1 {
        return;
    }
    let Some(lab) = Lab::new() else { return };
    let serve = lab.script(
        "serve.py",
        "import socket, time\ns = socket.socket()\ns.bind(('127.0.0.1', 47811))\ns.listen()\n\
         time.sleep(0.3)\nsocket.create_connection(('127.0.0.1', 47811)).close()\n",
    );
    let judge = format!("python3 {serve} 2>&1 | tail -n 1 | grep . && exit 1; true");
    let run = |when| {
        let loops = "for n in $(seq 9); do echo $n > f$n; sync f$n; echo $n; done";
        let program = ["--", "sh", "-c", loops];
        let words = ["run", "--linger", "0", "--cuts", "40", "--model", "none", "--jobs", "4"];
        // It reads nothing: of served files it would be asked once. And neighbours are to differ:
        // those that are the same wait for one answer.
        let words = [&words[..], &["--states", "1", "--judge-files", "copied"]].concat();
        let judge = ["--judge", &judge, "--judge-namespaces", when];
        let out = lab.crash(&[&words[..], &judge, &program].concat());
        (out.status.code(), text(&out.stdout) + &text(&out.stderr))
    };
    let (status, said) = run("always");
    assert_eq!(status, Some(0), "{said}");
    let (status, said) = run("never");
    assert!(status == Some(1) && said.contains("Address already in use"), "the control: {said}");
    assert!(said.contains("--judge-namespaces never"), "{said}");
}

/// Files have their owners there, and a judge of root's may become each of them.
#[test]
fn owners_are_seen_as_they_are() {
    let Some(lab) = Lab::new() else { return };
    let judge = "test ! -e f || test $(stat -c %u f) = 0 || { \
        test $(stat -c %u:%g f) = 1234:567 && \
        setpriv --reuid 1234 --regid 567 --clear-groups sh -c 'echo x >> f'; }";
    let program = ["--", "sh", "-c", "echo x > f; sync f .; chown 1234:567 f; sync f"];
    let words = ["--linger", "0", "--cuts", "20", "--model", "none", "--judge", judge];
    let (report, found) = lab.run(&[&words[..], &program].concat());
    assert!(!found && report["trees"].as_u64().unwrap() >= 2, "{report:#}");
}

/// What a judge leaves is ended all the same; who insists is told why not.
#[test]
fn where_there_are_no_namespaces_judges_share_ours() {
    let Some(lab) = Lab::new() else { return };
    let run = ["run", "--linger", "0", "--cuts", "3", "--model", "none", "--record", "run.crash"];
    let out = lab.crash(&[&run[..], &["--", "sh", "-c", "echo x > f; sync f"]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    for (when, expected) in [("auto", 0), ("never", 0), ("always", 2)] {
        let show = "echo 0 > /proc/sys/user/max_net_namespaces && exec \"$@\"";
        let program = [env!("CARGO_BIN_EXE_steadfast"), "crash", "show", "run.crash", "--cut", "1"];
        let out = std::process::Command::new("unshare")
            .args(["--user", "--map-root-user", "sh", "-c", show, "sh"])
            .args(program)
            .args(["--judge", "true", "--judge-namespaces", when])
            .current_dir(lab.path(""))
            .output()
            .unwrap();
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(expected), "{when}: {said}");
        assert_eq!(said.contains("this machine does not let us: unshare"), expected == 2, "{said}");
    }
}
