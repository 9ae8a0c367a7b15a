//! The Solaris commands: what needs no host, and a published session against a running one.

#[path = "svm/bad_use.rs"]
mod bad_use;
#[path = "svm/host.rs"]
mod host;
#[path = "svm/others.rs"]
mod others;
#[path = "svm/transcript.rs"]
mod transcript;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_steadfast");

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command line where no host answers.
fn alone(program: &Path, words: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(program);
    command.args(words).env("STEADFAST_SOCKET", folder.join("nobody"));
    steadfast_suite::output(std::time::Duration::from_secs(300), &mut command).unwrap()
}

#[test]
fn a_usage_is_asked_for_or_deserved() {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(PROGRAM);
    let usage = "\
usage:  metaparam [-s setname] [options] concat/stripe | RAID
        metaparam [-s setname] [options] mirror

Concat/Stripe or RAID options:
-h      hotspare_pool | \"none\"

Mirror options:
-r      roundrobin | geometric | first
-w      parallel | serial
-p      0-9
";
    let deserved = alone(program, &["svm", "metaparam"], folder.path());
    assert_eq!(deserved.status.code(), Some(1));
    assert_eq!((text(&deserved.stdout), text(&deserved.stderr)), (String::new(), usage.to_owned()));
    let asked = alone(program, &["svm", "metaparam", "-h"], folder.path());
    assert_eq!((asked.status.code(), text(&asked.stdout)), (Some(0), usage.to_owned()));
    let wrong = alone(program, &["svm", "ramdiskadm", "-q"], folder.path());
    assert_eq!(wrong.status.code(), Some(2));
    let said = text(&wrong.stderr);
    assert!(said.starts_with("ramdiskadm: illegal option -- q\nusage:  ramdiskadm"), "{said}");
}

#[test]
fn what_is_wrong_is_reported_as_on_solaris() {
    let folder = tempfile::tempdir().unwrap();
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let machine = machine.trim_end();
    let nobody = folder.path().join("nobody");
    for (line, said) in [
        ("metainit d10 -m", "d10: not enough submirrors specified".to_owned()),
        ("metaparam -r fastest d10", "fastest: invalid read option".to_owned()),
        (
            "metastat -s blue",
            "blue: no such set: a host has its own volumes only, and no disk sets".to_owned(),
        ),
        (
            "metastat",
            format!("{}: no host answers: start one by 'steadfast serve'", nobody.display()),
        ),
    ] {
        let words: Vec<&str> = ["svm"].into_iter().chain(line.split(' ')).collect();
        let refused = alone(Path::new(PROGRAM), &words, folder.path());
        let command = words[1];
        assert_eq!(refused.status.code(), Some(1), "{line}");
        assert_eq!(text(&refused.stderr), format!("{command}: {machine}: {said}\n"));
        assert!(refused.stdout.is_empty(), "{line}");
    }
}

#[test]
fn links_call_the_commands() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let link = || alone(Path::new(PROGRAM), &["svm", "link", at.to_str().unwrap()], at);
    assert_eq!(link().status.code(), Some(0));
    let found: Vec<_> = at.read_dir().unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(found.len(), 13, "{found:?}");
    // Again, and where somebody has taken one away.
    std::fs::remove_file(at.join("metastat")).unwrap();
    assert_eq!(link().status.code(), Some(0));
    let help = alone(&at.join("metastat"), &["-h"], at);
    assert_eq!(help.status.code(), Some(0));
    assert!(text(&help.stdout).starts_with("usage:  metastat "));
    let refused = alone(&at.join("metaclear"), &[], at);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).starts_with("usage:  metaclear "));
    // What is somebody else's stays, and nothing is made beside it.
    std::fs::remove_file(at.join("metainit")).unwrap();
    std::fs::remove_file(at.join("metadb")).unwrap();
    symlink("/bin/true", at.join("metadb")).unwrap();
    let refused = link();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("metadb: is there already"), "{refused:?}");
    assert!(!at.join("metainit").exists());
    for (name, says) in [("none", "none: there is no such folder"), ("metastat", "is no folder")] {
        let to = at.join(name);
        let refused = alone(Path::new(PROGRAM), &["svm", "link", to.to_str().unwrap()], at);
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains(says), "{refused:?}");
    }
}

#[test]
fn rates_need_a_host_and_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let iostat = |words: &[&str]| {
        let words: Vec<&str> = ["iostat"].iter().chain(words).copied().collect();
        alone(Path::new(PROGRAM), &words, folder.path())
    };
    let nobody = iostat(&["-xn", "1"]);
    assert_eq!(nobody.status.code(), Some(2));
    assert!(text(&nobody.stderr).contains("no host answers"), "{nobody:?}");
    // As of whoever else asks the host.
    for other in [&["host", "status"][..], &["top", "--once"]] {
        let nobody = alone(Path::new(PROGRAM), other, folder.path());
        assert_eq!(nobody.status.code(), Some(2), "{other:?}");
        assert!(text(&nobody.stderr).contains("no host answers"), "{nobody:?}");
    }
    for wrong in [&["0"][..], &["1", "0"], &["1", "2", "3"]] {
        assert_eq!(iostat(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
