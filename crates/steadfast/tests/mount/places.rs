//! Which mount is meant: several at one folder, one at several, and whoever asks.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{lchown, symlink};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use steadfast_suite::OtherNamespace;

use super::bench::{Bench, has_ended, lives, text, until};

/// The program.
const PROGRAM: &str = env!("CARGO_BIN_EXE_steadfast");

#[test]
fn a_second_mount_on_the_same_folder_is_refused() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.make("other.img", "32m");
    b.good("mount disk.img m");
    fs::write(b.at().join("file"), "first").unwrap();
    let said = b.bad("mount other.img m", 2);
    assert!(said.contains("disk.img is mounted there"), "{said}");
    assert_eq!(fs::read_to_string(b.at().join("file")).unwrap(), "first");
    b.good("umount m");
    b.e2fsck_is_clean("other.img");
    b.e2fsck_is_clean("disk.img");
}

/// Who uses an image, and where, is in the refusal.
#[test]
fn an_image_in_use_names_process_and_place() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    let process = b.process();
    let at = b.at().canonicalize().unwrap();
    for line in ["check disk.img", "mkdir disk.img /x", "mkfs -F disk.img"] {
        let said = b.bad(line, 2);
        let who = format!("disk.img: is in use: process {process} (steadfast) has locked it");
        assert!(said.contains(&who), "{line}: {said}");
        let place = format!("hint: process {process} has it mounted at {}", at.display());
        assert!(said.contains(&place), "{line}: {said}");
    }
    b.good("umount m");
    // Another program's lock has no place of ours.
    let lock = fs::File::open(b.path("disk.img")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    let said = b.bad("check disk.img", 2);
    let who = format!("process {} (", std::process::id());
    assert!(said.contains(&who) && !said.contains("hint"), "{said}");
}

#[test]
fn a_mount_that_recovers_says_so() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    fs::write(b.at().join("file"), "synced").unwrap();
    fs::File::open(b.at().join("file")).unwrap().sync_all().unwrap();
    let process = b.process();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    until("the process ends", || !lives(process));
    b.good("umount m");
    let out = b.run("mount disk.img m -o ro");
    let message = text(&out.stderr);
    assert!(out.status.success() && message.contains("had not been unmounted: "), "{message}");
    assert!(
        message.contains("replayed from its journal (") && message.contains("in memory"),
        "{message}"
    );
    b.good("umount m");
    let out = b.run("mount disk.img m --log log");
    let message = text(&out.stderr);
    assert!(
        message.contains("replayed from its journal (") && !message.contains("memory"),
        "{message}"
    );
    assert!(fs::read_to_string(b.path("log")).unwrap().contains("had not been unmounted"));
    let status = b.status();
    assert!(status["recovered"]["blocks"].as_u64().unwrap() > 0, "{status}");
    b.good("umount m");
    // It was unmounted: there is nothing to say.
    let out = b.run("mount disk.img m");
    assert_eq!(text(&out.stderr), "");
    assert!(b.status()["recovered"].is_null());
    b.good("umount m");
}

#[test]
fn what_lies_over_a_mount_is_named_and_left_alone() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    let process = b.process();
    assert!(b.command("mount", &["-t", "tmpfs", "above", "m"]).status.success());
    let said = b.bad("umount m", 1);
    assert!(said.contains("above (tmpfs) is mounted over"), "{said}");
    assert!(lives(process));
    assert!(b.command("umount", &["m"]).status.success());
    b.good("umount m");
    assert!(!lives(process));
}

#[test]
fn an_unmount_names_the_other_places() {
    let Some(b) = Bench::with_image("32m") else { return };
    fs::create_dir(b.path("n")).unwrap();
    b.good("mount disk.img m");
    let process = b.process();
    assert!(b.command("mount", &["--bind", "m", "n"]).status.success());
    let said = b.bad("umount m --timeout 0", 1);
    let other = b.path("n").canonicalize().unwrap();
    assert!(said.contains(&format!("mounted at {} too", other.display())), "{said}");
    // Without time it is asked for and not waited for.
    until("it is unmounted", || !b.command("mountpoint", &["-q", "m"]).status.success());
    // By its device number it is found there too.
    b.good("umount n");
    until("the process ends", || !lives(process));
    b.e2fsck_is_clean("disk.img");
}

#[test]
fn what_is_in_use_is_left_and_the_user_named() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    let mut holder = Command::new("sleep").arg("600").current_dir(b.at()).spawn().unwrap();
    let expected = format!("process {} (sleep) has a file or folder of it open", holder.id());
    let said = b.bad("umount m", 1);
    assert!(said.contains("is in use") && said.contains(&expected), "{said}");
    assert!(!said.contains("too"), "the mount itself is none of them: {said}");
    assert!(b.command("mountpoint", &["-q", "m"]).status.success());
    holder.kill().unwrap();
    has_ended(&mut holder);
    b.good("umount m");
    assert!(b.bad("umount m", 2).contains("nothing is mounted there"));
}

/// An unmount that is given no time waits for the flush only: the mount itself holds nothing.
#[test]
fn an_unmount_without_time_does_not_name_its_own_mount() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    // While it cannot act on it, the mount is still there.
    let process = b.stopped();
    let mut unmount = Command::new(PROGRAM)
        .args(["umount", "m", "--timeout", "0"])
        .env("STEADFAST_RUNTIME_DIR", b.path("run"))
        .current_dir(b.path(""))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::CONT).unwrap();
    let mut said = String::new();
    unmount.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    has_ended(&mut unmount);
    assert!(!said.contains("too"), "{said}");
    until("the process ends", || !lives(process));
    b.e2fsck_is_clean("disk.img");
}

#[test]
fn an_unmount_says_who_holds_a_copy() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    let process = b.process();
    let holder = OtherNamespace::new().unwrap();
    let mut unmount = Command::new(PROGRAM)
        .args(["umount", "m"])
        .env("STEADFAST_RUNTIME_DIR", b.path("run"))
        .current_dir(b.path(""))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(unmount.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let expected =
        format!("process {} (sleep) has a copy in its mount namespace", holder.process());
    assert!(line.contains(&expected), "{line}");
    assert!(!b.command("mountpoint", &["-q", "m"]).status.success());
    assert!(lives(process), "it serves the copy");
    // A second one finds it too, and waits no longer than its timeout.
    let again = b.bad("umount m --timeout 0", 1);
    assert!(again.contains(&expected), "{again}");
    drop(holder);
    assert!(has_ended(&mut unmount).success());
    said.read_to_string(&mut line).unwrap();
    assert!(!lives(process));
    b.e2fsck_is_clean("disk.img");
}

/// The path is the caller's, in his namespace of mounts: the process would take away another one.
#[test]
fn an_unmount_in_a_container_takes_its_own_copy() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    fs::write(b.at().join("kept"), "kept").unwrap();
    let script = format!("{PROGRAM} umount m && ! mountpoint -q m");
    let line = ["--mount", "--propagation", "private", "sh", "-c", &script];
    let out = b.command("unshare", &line);
    let said = text(&out.stderr);
    assert!(out.status.success() && said.contains("was a copy of the mount"), "{said}");
    assert_eq!(fs::read_to_string(b.at().join("kept")).unwrap(), "kept");
    assert!(b.good("status m").contains("disk.img"));
    b.good("umount m");
}

/// Over io_uring who asks the mount itself cannot be ended until its process goes on. In a
/// namespace of mounts of its own: others would wait for it when they ask for all mounts.
#[test]
fn a_stopped_process_does_not_hold_who_asks_for_its_status() {
    let Some(b) = Bench::with_image("32m") else { return };
    let script = format!(
        "{PROGRAM} mount disk.img m || exit 9
         process=$({PROGRAM} status m --json | grep '\"pid\"' | tr -dc 0-9)
         kill -STOP $process; sleep 0.3
         {PROGRAM} status m; status=$?
         kill -CONT $process; {PROGRAM} umount m || exit 8
         exit $status"
    );
    let line = ["--mount", "--propagation", "private", "sh", "-c", &script];
    let out = b.command("unshare", &line);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("its process does not answer"), "{said}");
}

/// A signal ends the process, whoever has a copy: what it has not written would be lost when the
/// machine goes down.
#[test]
fn a_signal_does_not_wait_for_a_copy() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    fs::write(b.at().join("written"), "not synced").unwrap();
    let process = b.process();
    let holder = OtherNamespace::new().unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    until("the process ends", || !lives(process));
    drop(holder);
    b.e2fsck_is_clean("disk.img");
    b.good("mount disk.img m");
    assert_eq!(fs::read(b.at().join("written")).unwrap(), b"not synced");
    b.good("umount m");
}

#[test]
fn a_mount_is_found_whatever_the_environment_says() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    let plain = |command: &str| {
        let line = format!("unset STEADFAST_RUNTIME_DIR; {command}");
        let out = b.command("sh", &["-c", &line]);
        assert!(out.status.success(), "{command}: {}", text(&out.stderr));
        text(&out.stdout)
    };
    let shown = plain(&format!("XDG_RUNTIME_DIR= {PROGRAM} status m"));
    assert!(shown.contains("disk.img"), "{shown}");
    plain(&format!("cd /; STEADFAST_RUNTIME_DIR=/nowhere {PROGRAM} umount {}", b.at().display()));
    b.e2fsck_is_clean("disk.img");
}

#[test]
fn after_a_shutdown_the_mount_is_gone_and_all_is_well() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    fs::write(b.at().join("lost"), "not synced").unwrap();
    b.shut_down(2);
    let out = b.run("umount m");
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("had been shut down"), "{}", text(&out.stderr));
    assert!(!b.command("mountpoint", &["-q", "m"]).status.success());
    b.good("mount disk.img m");
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
}

#[test]
fn a_stranger_s_socket_holds_nobody_up() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    let device = b.status()["device"].as_str().unwrap().replace(':', ".");
    let path = b.path(&format!("x-{device}.sock"));
    let address = SocketAddrUnix::new(&path).unwrap();
    let socket = || {
        let (kind, flags) = (SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC);
        rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None).unwrap()
    };
    let door = socket();
    rustix::net::bind(&door, &address).unwrap();
    rustix::net::listen(&door, 0).unwrap();
    let mut waiting = vec![socket()];
    while rustix::net::connect(waiting.last().unwrap(), &address).is_ok() {
        waiting.push(socket());
    }
    lchown(&path, Some(1234), None).unwrap();
    let start = Instant::now();
    assert!(b.good("status").contains("disk.img"));
    assert!(b.good("status m").contains("disk.img"));
    assert!(start.elapsed() < Duration::from_secs(20));
    b.good("umount m");
}

#[test]
fn nothing_is_removed_where_a_stranger_s_socket_points() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    let device = b.status()["device"].as_str().unwrap().replace(':', ".");
    let name = format!("x-{device}.sock");
    for folder in ["q", "victim"] {
        fs::create_dir(b.path(folder)).unwrap();
    }
    let precious = b.path("victim").join(&name);
    fs::write(&precious, "precious").unwrap();
    let _bound = UnixListener::bind(b.path("q").join(&name)).unwrap();
    fs::rename(b.path("q"), b.path("moved")).unwrap();
    symlink(b.path("victim"), b.path("q")).unwrap();
    b.good("status");
    b.good("status m");
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    // A dead socket of ours there is not for us to remove either; in our own folder it is.
    fs::remove_file(&precious).unwrap();
    drop(UnixListener::bind(&precious).unwrap());
    let dead = b.path("run").join(&name);
    drop(UnixListener::bind(&dead).unwrap());
    b.good("status");
    assert!(precious.symlink_metadata().is_ok() && dead.symlink_metadata().is_err());
    b.good("umount m");
}

/// In a session of its own it would have a scheduler group of its own (`sched_autogroup`), and each
/// request would wait for that group's share of a busy machine.
#[test]
fn a_mount_in_the_background_has_the_share_of_who_started_it() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    let process = b.process();
    // 0 where its leader is outside of the container: not rustix's, to which that is none.
    let session = |of: i32| nix::unistd::getsid(Some(nix::unistd::Pid::from_raw(of))).unwrap();
    assert_eq!(session(process.as_raw_nonzero().get()), session(0));
    let group = |of: &str| fs::read_to_string(format!("/proc/{of}/autogroup")).ok();
    assert_eq!(group(&process.as_raw_nonzero().to_string()), group("self"));
    // Ctrl-C is not for it, nor the end of the terminal.
    assert_eq!(rustix::process::getpgid(Some(process)).unwrap(), process);
    b.good("umount m");
}

/// In a container processes are numbered anew: whoever is outside has no number there. The one
/// that serves is outside, then inside.
#[test]
fn a_process_without_a_number_here_answers_and_is_answered() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    for (command, expected) in [("status", "disk.img"), ("umount", "")] {
        let out = b.command("unshare", &["--pid", "--fork", PROGRAM, command, "m"]);
        let said = text(&out.stdout);
        assert!(out.status.success() && said.contains(expected), "{said}{}", text(&out.stderr));
    }
    let mut inside = Command::new("unshare")
        .args(["--pid", "--fork", "sh", "-c"])
        .arg(format!("{PROGRAM} mount disk.img m && echo mounted && read line"))
        .env("STEADFAST_RUNTIME_DIR", b.path("run"))
        .current_dir(b.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(inside.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "mounted\n");
    assert_ne!(b.status()["pid"], u64::from(inside.id()));
    b.good("umount m");
    drop(inside.stdin.take());
    assert!(!has_ended(&mut inside).success());
}

/// Over io_uring the threads that answer are bound to a processor each. What a request starts, such
/// as those that write to the image, is not: it would stay there for as long as the mount lives.
#[test]
fn what_a_request_starts_runs_where_the_process_does() {
    let Some(b) = Bench::with_image("256m") else { return };
    b.good("mount disk.img m");
    let file = fs::File::create(b.at().join("f")).unwrap();
    for at in 0..64 {
        std::os::unix::fs::FileExt::write_all_at(&file, &[7; 1 << 20], at << 20).unwrap();
    }
    file.sync_all().unwrap();
    drop(file);
    let process = format!("/proc/{}", b.process().as_raw_nonzero());
    let allowed = |status: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        line.unwrap_or_default().trim().to_owned()
    };
    let all = allowed(&fs::read_to_string(format!("{process}/status")).unwrap());
    let mut seen = 0;
    for thread in fs::read_dir(format!("{process}/task")).unwrap() {
        // One may have ended meanwhile.
        let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap_or_default();
        if status.starts_with("Name:\tio ") {
            assert_eq!(allowed(&status), all, "{status}");
            seen += 1;
        }
    }
    assert!(seen > 0, "nothing was started");
    b.good("umount m");
}
